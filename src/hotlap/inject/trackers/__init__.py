"""The trackers a script may use, one file each: how figures get into the run that the script itself has made.

None of them is imported here: each file works with the module that the script has imported, and with the objects that
the script has made. No run and no file is opened, and no step counter moves.
"""
