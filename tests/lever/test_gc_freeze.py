"""What was frozen is collected by a full collection that comes rarely, and at the end of the process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import atexit, gc, os, sys, torch, weakref
from hotlap.lever.catalog import gc_freeze
from hotlap.testing.lever_target import LocalTarget

class Trainer:
    def __init__(self):
        self.self = self

trainer, fold, later = Trainer(), Trainer(), Trainer()
fold_ref, later_ref = weakref.ref(fold), weakref.ref(later)
trainer.log = open(sys.argv[1], "w")
trainer.log.write("last line")
target = LocalTarget(sys.argv[2]).__enter__()
gc_freeze.apply(target, {"after_steps": 1, "threshold": 50_000})
weight = torch.nn.Parameter(torch.ones(2))
weight.sum().backward()
torch.optim.SGD([weight], lr=0.1).step()
assert gc.get_freeze_count() > 0
del fold
gc.collect(1)
assert fold_ref() is not None, "it is frozen"
if os.fork() == 0:  # such as a worker of a loader, which shares the pages of what is frozen
    gc.collect()
    os._exit(int(fold_ref() is None))
assert os.wait()[1] == 0
gc.collect()
assert fold_ref() is None and gc.get_freeze_count() > 0
del later
gc.collect()
assert later_ref() is not None, "not so soon again"
for callback in target._exits:
    atexit.register(callback)
"""


def test_what_was_frozen_is_let_go(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(log), str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert log.read_text() == "last line", "a file in a cycle is closed"
    assert done.stderr == ""
