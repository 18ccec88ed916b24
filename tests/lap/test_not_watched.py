"""A process that Hotlap did not come into is named while its trial has no step, and once."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from hotlap.lap import not_watched
from hotlap.lap.not_watched import NotWatched
from hotlap.trial.progress import Progress
from hotlap.trial.shut_out import ShutOut


class NamedArm(SimpleNamespace):
    __hash__ = object.__hash__


def progress(arm: str, steps: int) -> Progress:
    return Progress("start", arm, 0.0, 225.0, steps)


def test_the_arm_that_has_no_step_is_looked_at_and_each_reason_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []

    def look(self: ShutOut, root: int) -> list[str]:
        looked.append(root)
        return ["`python train.py` was shut out"]

    monkeypatch.setattr(ShutOut, "look", look)
    lines: list[str] = []
    watcher = NotWatched(lines.append)
    arms = [
        NamedArm(spec=SimpleNamespace(name=name, timeline_dir=Path("none")), pid=pid, alive=alive)
        for name, pid, alive in (("one", 1, True), ("two", 2, True), ("ended", 3, False))
    ]
    watcher.look(arms, progress("one", 0))  # type: ignore[arg-type]
    assert looked == [], "it has just begun"
    monkeypatch.setattr(not_watched, "LOOK_S", 0.0)
    for name, steps in (("one", 0), ("one", 5), ("two", 0), ("ended", 0)):
        watcher.look(arms, progress(name, steps))  # type: ignore[arg-type]
    assert looked == [1, 2]
    assert lines == ["  not watched: `python train.py` was shut out"]
    assert watcher.reasons == ["`python train.py` was shut out"]
