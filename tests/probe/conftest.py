"""Runs a small training script in a process of its own with the probes installed, and reads what it wrote."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.fork_server import ForkServer

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


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    server = ForkServer()
    yield server
    server.close()


@pytest.fixture
def watched(tmp_path: Path, fork_server: ForkServer) -> Ran:
    """``watched(body)`` gives the timeline and the script's output."""

    def run(body: str, code: int = 0) -> tuple[Timeline | None, str]:
        script = tmp_path / "script.py"
        script.write_text(PRELUDE + textwrap.dedent(body))
        folder = tmp_path / "timeline"
        done = fork_server.run(script, [str(folder)], tmp_path, {**os.environ, "OMP_NUM_THREADS": "1"})
        assert done.returncode == code, done.stdout + done.stderr
        return training_timeline(folder), done.stdout

    return run
