"""Several animals in one process, one after the other: a start of Python with torch takes longer than they do."""

import os
import runpy

for name in ("uses_alarm", "weird_getattr", "copies_and_pickles", "own_patches", "debuggers_on"):
    print(name)
    runpy.run_path(f"{name}.py", run_name="__main__")
    os.rename("losses.txt", f"{name}.losses.txt")
