"""Runs made of built timelines: diagnosed as a real one would be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hotlap.compare.side import Side
from hotlap.diagnose.diagnose import diagnose
from hotlap.records.machine import Machine
from hotlap.records.origin import Origin
from hotlap.records.run import RunRecord
from hotlap.testing.timelines import TimelineBuilder, UserLine, cpu_machine

LOADER: UserLine = ("/home/u/train.py", 80, "main", "loader = DataLoader(clips, batch_size=32)")
SLEEP: UserLine = ("/home/u/train.py", 56, "__getitem__", "time.sleep(0.01)")
COMPUTE: dict[str, Any] = {"forward": 0.010, "backward": 0.010, "optimizer": 0.0004, "zero_grad": 0.0001}
ORIGIN = Origin(
    script="/home/u/train.py", repository="/home/u", commit="a" * 40, branch="main", changed=[], tracked=True,
    texts={"train.py": "111111111111"}, packages={"numpy": "2.1", "torch": "2.13.0"},
)  # fmt: skip


def timeline(n: int = 200, batch: int = 32, load_s: float = 0.0002, workers: int = 0, **more: Any) -> TimelineBuilder:
    """A loop of about 20 ms, loading in the training process; ``load_s`` of it is data wait."""
    made = TimelineBuilder(batch=batch).loader(LOADER, num_workers=workers).setting("threads", torch=2, interop=1)
    made.setting("model", **{"class": "Net", "parameters": 1000, "dtype": "float32"})
    made.steps(n, **{**COMPUTE, "data_wait": load_s, "residual": 0.0002, **more})
    if load_s > 0.001:
        made.loads(n, load_s, cpu=0.0).stack("data_wait", 200, LOADER, SLEEP)
    return made


def side(builder: TimelineBuilder, name: str = "a", machine: Machine | None = None, **more: Any) -> Side:
    """A finished ``hotlap diagnose`` of it."""
    built, computer = builder.build(), machine or cpu_machine()
    run = RunRecord("diagnose", ["python", "train.py"], "2026-01-01 00:00:00", "finished", 0, origin=ORIGIN)
    made = Side(
        name=name,
        path=f"/home/u/.hotlap/{name}",
        run=run,
        machine=computer,
        findings=diagnose(built, computer, "train.py"),
        settings={row.name: row.value for row in built.setting},
        hotlap=built.header.hotlap,
        python=built.header.python,
        torch=built.header.torch,
        folder=built.header.cwd,
    )
    return replace(made, **more)


def ran(found: Side, **more: Any) -> Side:
    """The same with other facts of its run."""
    return replace(found, run=replace(found.run, **more))
