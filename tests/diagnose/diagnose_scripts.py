"""Lines of an imagined script, and timelines made of them."""

from __future__ import annotations

from typing import Any

from hotlap.diagnose.diagnose import diagnose
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine
from hotlap.testing.timelines import TimelineBuilder, UserLine, cpu_machine

LOOP: UserLine = ("train.py", 90, "main", "for batch in loader:")
FETCH: UserLine = ("/v/site-packages/torch/utils/data/_utils/fetch.py", 52, "fetch", "")
COLLATE: UserLine = ("/v/site-packages/torch/utils/data/_utils/collate.py", 12, "default_collate", "")
READ: UserLine = ("train.py", 48, "__getitem__", "wave, rate = sf.read(path)")
CUSTOM: UserLine = ("train.py", 49, "__getitem__", "wave = self.read_clip(path)")
NOISE: UserLine = ("train.py", 55, "add_noise", "wave = wave + np.random.randn(len(wave))")
SLEEP: UserLine = ("train.py", 56, "__getitem__", "time.sleep(0.01)")
LOADER: UserLine = ("train.py", 80, "main", "loader = DataLoader(clips, batch_size=32)")
SOUNDFILE: UserLine = ("/v/site-packages/soundfile.py", 285, "read", "")
H5: UserLine = ("/v/site-packages/h5py/_hl/dataset.py", 85, "__getitem__", "")

COMPUTE: dict[str, Any] = {"forward": 0.010, "backward": 0.010, "optimizer": 0.0004, "zero_grad": 0.0001}
"""A step of about 20 ms that has nothing wrong with it."""


def healthy(n: int = 120, **more: Any) -> TimelineBuilder:
    """A loop whose loading is hidden."""
    return TimelineBuilder().loader(LOADER).steps(n, **{**COMPUTE, "data_wait": 0.0002, "residual": 0.0002, **more})


def judge(builder: TimelineBuilder, machine: Machine | None = None) -> Findings:
    return diagnose(builder.build(), machine or cpu_machine(), "train.py")


def causes(builder: TimelineBuilder, machine: Machine | None = None) -> dict[str, Finding]:
    return {finding.cause: finding for finding in judge(builder, machine).findings}
