"""One file per command: ``NAME HELP ORDER TAKES_COMMAND add_arguments(parser) execute(args) -> exit code``."""
