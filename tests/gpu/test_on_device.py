"""What only a GPU can show: phases on the device, no waits of ours, and the levers that are refused elsewhere."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from hotlap.inject.door import environment
from hotlap.inject.seeding import STRIDE
from hotlap.records.call import Call
from hotlap.records.plan import Move
from hotlap.records.rows import PHASES
from hotlap.records.timeline import Timeline, training_timeline

pytestmark = pytest.mark.gpu

SCRIPT = """
import json, sys, torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
if __name__ == "__main__":
    torch.manual_seed(0)
    images, labels = torch.randn(512, 3, 32, 32), torch.randint(0, 10, (512,))
    loader = DataLoader(TensorDataset(images, labels), batch_size=64, drop_last=True)
    model = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
                          nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Linear(64, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    kept = []
    for epoch in range(int(sys.argv[1])):
        for images, labels in loader:
            images, labels = images.to("cuda"), labels.to("cuda")
            if len(kept) == 20:
                torch.cuda.set_sync_debug_mode(sys.argv[2])
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            kept.append(loss.detach())
            torch.cuda.set_sync_debug_mode("default")
    print(json.dumps([loss.item() for loss in kept]))
"""


def watched(folder: Path, *moves: Move, epochs: int = 6, syncs: str = "default") -> tuple[Timeline, list[float]]:
    (folder / "train.py").write_text(SCRIPT)
    timelines = folder / "timelines"
    call = Call(timeline_dir=str(timelines), mode="run", moves=list(moves), scratch=str(folder))
    timelines.mkdir()
    done = subprocess.run(
        [sys.executable, "train.py", str(epochs), syncs], cwd=folder, env=environment(call), capture_output=True,
        text=True, timeout=150,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    timeline = training_timeline(timelines)
    assert timeline is not None, [p.read_text() for p in timelines.glob("*.error")]
    return timeline, json.loads(done.stdout.splitlines()[-1])


def test_phases_copies_memory_and_losses(tmp_path: Path) -> None:
    timeline, losses = watched(tmp_path, epochs=500)  # some seconds: telemetry comes once a second
    assert timeline.header.device == torch.cuda.get_device_name()
    steps = [event for event in timeline.event if event.kind == "device_step"]
    assert steps and all(event.d["forward"] > 0 and event.d["backward"] > 0 for event in steps)
    assert all(sum(event.d.values()) <= 1.05 * event.w for event in steps), "phases are parts of the step"
    assert any(row.p[PHASES.index("h2d")] for row in timeline.step), "copies were seen"
    assert timeline.tick[-1].device_bytes, "memory of the device was read"
    read = {row.i: row.l[-1] for row in timeline.step if row.l and row.n == 1}
    assert len(read) > 20 and all(loss == pytest.approx(losses[i], rel=1e-6) for i, loss in read.items())


def test_no_wait_for_the_device_is_ours(tmp_path: Path) -> None:
    watched(tmp_path, syncs="error")


@pytest.mark.parametrize(
    ("lever", "setting"),
    [
        ("tf32", {}),
        ("cudnn-benchmark", {}),
        ("pin-memory", {"non_blocking": True}),
        ("expandable-segments", {}),
        ("autocast", {"dtype": "bf16"}),
        ("autocast", {"dtype": "fp16"}),
        ("compile-model", {}),
        ("channels-last", {}),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(map(str, value.values())) or "on",
)
def test_a_lever_that_a_cpu_refuses_is_applied_and_trains(tmp_path: Path, lever: str, setting: dict[str, Any]) -> None:
    timeline, losses = watched(tmp_path, Move(lever, setting, "maths"))
    (mark,) = [m for m in timeline.mark if m.kind == "lever"][-1:]
    assert (mark.id, mark.state) == (lever, "applied"), mark
    assert all(map(math.isfinite, losses)) and sum(losses[-8:]) < sum(losses[:8])


def test_a_seed_of_the_devices_own_is_shifted_once(tmp_path: Path) -> None:
    (tmp_path / "seeds.py").write_text(
        "import torch\n"
        "assert not torch.cuda.is_initialized()\n"
        "for seed in (torch.manual_seed, torch.cuda.manual_seed, torch.cuda.manual_seed_all):\n"
        "    seed(5)\n"
        "    print(torch.cuda.initial_seed())\n"
    )
    call = Call(timeline_dir=str(tmp_path), mode="trial", seed_offset=2, scratch=str(tmp_path))
    done = subprocess.run(
        [sys.executable, "seeds.py"], cwd=tmp_path, env=environment(call), capture_output=True, text=True, timeout=150
    )
    assert done.stdout.split() == [str(5 + 2 * STRIDE)] * 3, done.stderr
