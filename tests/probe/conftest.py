"""Runs a small training script in a process of its own with the probes installed, and reads what it wrote."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from hotlap.records.timeline import Timeline, training_timeline

PRELUDE = """
import sys, os
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, Dataset, IterableDataset
from hotlap.probe.watch import install
from hotlap.probe.undo import Undo
from hotlap.probe.hook_points import HookPoints
from hotlap.records.call import Call
from hotlap.inject.on_import import on_import
torch.set_num_threads(1)
torch.manual_seed(0)
undo, points = Undo(), HookPoints()
watch = install(Call(timeline_dir=sys.argv[1], flush_s=0.1), points, undo, on_import)
def net():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
def loader(n=32, batch=8, **kw):
    return DataLoader(TensorDataset(torch.randn(n, 4), torch.randint(0, 2, (n,))), batch, **kw)
"""

Ran = Callable[..., tuple[Timeline | None, str]]


@pytest.fixture
def watched(tmp_path: Path) -> Ran:
    """``watched(body)`` gives the timeline and the script's output."""

    def run(body: str, code: int = 0) -> tuple[Timeline | None, str]:
        script = tmp_path / "script.py"
        script.write_text(PRELUDE + textwrap.dedent(body))
        folder = tmp_path / "timeline"
        done = subprocess.run(
            [sys.executable, str(script), str(folder)],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            cwd=tmp_path,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return training_timeline(folder), done.stdout

    return run
