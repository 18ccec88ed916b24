"""Profilers that were left on: nothing is recorded, and what the script asks of them still answers."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import torch

from hotlap.lever.registry import lever
from hotlap.testing.lever_target import LocalTarget


def recording() -> bool:
    return bool(torch._C._autograd._profiler_enabled())


def test_autograds_profiler(tmp_path: Path) -> None:
    real = torch.autograd.profiler.profile
    with LocalTarget(str(tmp_path)) as target:
        lever("debug-off").apply(target, {"anomaly": True, "profiler": True})
        with torch.autograd.profiler.profile(enabled=False):
            assert target.changes == 0, "it was off already"
        with torch.autograd.profiler.profile() as found:
            assert not recording()
            torch.ones(3).sum()
        assert target.changes == 1
        assert isinstance(found, real)
        assert not any("sum" in event.key for event in found.key_averages())
        assert isinstance(found.table(), str) and isinstance(str(found), str)
        found.export_chrome_trace(str(tmp_path / "trace.json"))
    with torch.autograd.profiler.profile() as found:
        assert recording(), "it is the real one again"
        torch.ones(3).sum()
    assert any("sum" in event.key for event in found.key_averages())


def test_torchs_profiler_still_does_nothing(tmp_path: Path) -> None:
    with LocalTarget(str(tmp_path)) as target:
        lever("debug-off").apply(target, {"anomaly": True, "profiler": True})
        with torch.profiler.profile() as found:
            assert not recording()
            torch.ones(3).sum()
            found.step()
        assert target.changes == 1 and not found.key_averages()


def test_what_torchs_profiler_is_asked_to_write_is_there(tmp_path: Path) -> None:
    trace, packed, stacks = tmp_path / "trace.json", tmp_path / "trace.json.gz", tmp_path / "stacks.txt"
    with LocalTarget(str(tmp_path)) as target:
        lever("debug-off").apply(target, {"anomaly": True, "profiler": True})
        with torch.profiler.profile(with_stack=True) as found:
            torch.ones(3).sum()
        found.export_chrome_trace(str(trace), use_python_export=True)
        found.export_chrome_trace(path=str(packed))
        found.export_stacks(str(stacks), metric="self_cuda_time_total")
        found.export_memory_timeline(str(tmp_path / "memory.json"), device="cpu")
    assert json.loads(trace.read_text()) == json.loads(gzip.decompress(packed.read_bytes())) == {"traceEvents": []}
    assert stacks.read_text() == "" and (tmp_path / "memory.json").exists()
