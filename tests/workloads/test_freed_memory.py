"""Memory that tensors no longer need."""

from __future__ import annotations

import subprocess
import sys

import pytest

FAULTS = """
import os, resource, torch
from hotlap_workloads.engine.machine import apply_process_wide
from hotlap_workloads.engine.settings import EngineSettings
kept = os.fork() == 0
if not kept:
    os.wait()
apply_process_wide(EngineSettings(threads=1, keep_freed_memory=kept))
def step():
    return torch.ones(8 << 20).add_(1)  # 32 MiB: 8,192 pages
for _ in range(12):  # aligned blocks: the heap grows a few times before one freed block holds the next
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(4):
    step()
faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(f"{'kept' if kept else 'given back'},{faults}", flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the C library of other systems is left alone")
def test_kept_memory_is_not_faulted_in_again() -> None:
    out = subprocess.run([sys.executable, "-c", FAULTS], check=True, capture_output=True, text=True).stdout
    faults = {how: int(count) for how, count in (line.split(",") for line in out.splitlines())}
    assert faults["kept"] < 100 < faults["given back"], faults
