"""The command line: one file per command. Only this room prints, parses arguments and exits."""
