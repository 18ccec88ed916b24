"""A made run, looked at every five seconds as it grows, as the guard does."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from pathlib import Path

from hotlap.diagnose.surroundings import Around
from hotlap.guard.alarms import Alarms
from hotlap.records.codec import encode
from hotlap.records.guard import Alarm
from hotlap.records.timeline import Timeline
from hotlap.testing.timelines import TimelineBuilder, UserLine, cpu_machine

LOOK_S = 5.0
BASE = {"data_wait": 0.01, "forward": 0.06, "backward": 0.1, "optimizer": 0.02, "residual": 0.01}
"""Seconds of a step of 0.2 s."""


@dataclass
class Run:
    """Steps are added part by part; what the alarms said is kept."""

    builder: TimelineBuilder = field(default_factory=TimelineBuilder)
    alarms: Alarms = field(default_factory=lambda: Alarms(cpu_machine()))
    around: list[Around] = field(default_factory=list)
    told: list[Alarm] = field(default_factory=list)
    over: list[Alarm] = field(default_factory=list)
    noise: float = 0.05
    random: random.Random = field(default_factory=lambda: random.Random(1))

    def go(
        self,
        seconds: float,
        others: float | None = None,
        line: tuple[str, UserLine] | None = None,
        load_s: float = 0.0,
        read_bytes: int = 0,
        micro: int = 1,
        **phases: float,
    ) -> Run:
        """Train on for so long, ``micro`` micro-batches a step.

        ``line``: where a phase is sampled; ``others``: cores that others take.
        """
        until = self.builder.clock.now + round(seconds * 1e9)
        next_look = self.builder.clock.now + round(LOOK_S * 1e9)
        batches = 0
        while self.builder.clock.now < until:
            jitter = 1.0 + self.noise * self.random.gauss(0.0, 1.0)
            self.builder.steps(1, micro=micro, **{k: max(0.0, v * jitter) for k, v in {**BASE, **phases}.items()})
            batches += 1
            if line is not None:
                phase, at = line
                self.builder.stack(phase, round({**BASE, **phases}[phase] * 100), at)
            if self.builder.clock.now >= next_look:
                next_look += round(LOOK_S * 1e9)
                if load_s:
                    self.builder.loads(
                        batches, load_s, cpu=load_s * (0.2 if read_bytes else 1.0), read_bytes=read_bytes
                    )
                    batches = 0
                self.look(others)
        return self

    def look(self, others: float | None = None) -> None:
        if others is not None:
            self.around.append(Around(self.builder.clock.now, others_cores=others))
        news = self.alarms.look(self.builder.build(), self.around)
        self.told += news.alarms
        self.over += news.over


def write_timeline(timeline: Timeline, folder: Path) -> Path:
    """The file that a process would have written."""
    path = folder / f"{timeline.header.pid}.jsonl"
    rows = [timeline.header, *timeline.frame.values(), *timeline.stack.values(), *timeline.setting, *timeline.step]
    rows += [*timeline.event, *timeline.tick, *timeline.hits]
    path.write_text("".join(json.dumps({"k": type(row).__name__.lower(), **encode(row)}) + "\n" for row in rows))
    return path
