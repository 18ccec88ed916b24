"""What was frozen is collected at the end of the process, as without the lever."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import atexit, gc, sys, torch
from hotlap.lever.catalog import gc_freeze
from hotlap.testing.lever_target import LocalTarget

class Trainer: pass
trainer = Trainer()
trainer.self = trainer
trainer.log = open(sys.argv[1], "w")
trainer.log.write("last line")
target = LocalTarget(sys.argv[2]).__enter__()
gc_freeze.apply(target, {"after_steps": 1, "threshold": 50_000})
weight = torch.nn.Parameter(torch.ones(2))
weight.sum().backward()
torch.optim.SGD([weight], lr=0.1).step()
assert gc.get_freeze_count() > 0
del trainer
for callback in target._exits:
    atexit.register(callback)
"""


def test_a_file_in_a_cycle_keeps_its_last_line(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(log), str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert log.read_text() == "last line"
