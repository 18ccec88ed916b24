"""Two animals in one process: one that reads its own source, then one that replaces standard output and closes it."""

import os
import runpy

runpy.run_path("reads_own_source.py", run_name="__main__")
os.rename("losses.txt", "reads_own_source.losses.txt")
runpy.run_path("replaced_stdout.py", run_name="__main__")
