"""Arms of a script that writes a training's timeline itself (no torch)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hotlap.trial.arm import Arm, ArmSpec
from hotlap.trial.sandbox import Sandbox

sys.path.insert(0, str(Path(__file__).parent))
from trial_support import MakeArm  # a helper beside the tests, which are no package

FAKE = Path(__file__).with_name("fake_train.py")


@pytest.fixture
def make_arm(tmp_path: Path) -> Iterator[MakeArm]:
    """Arms named as asked; options go to the fake script. All are ended with the test."""
    made: list[Arm] = []

    def make(name: str, sandbox: Sandbox | None = None, command: list[str] | None = None, **options: object) -> Arm:
        folder = tmp_path / "timelines" / name
        folder.mkdir(parents=True)
        pairs = [f"{key}={str(value).replace(' ', '+')}" for key, value in options.items()]
        words = command or [sys.executable, str(FAKE), str(folder), *pairs]
        output = tmp_path / f"{name}.txt"
        made.append(Arm(ArmSpec(name, words, dict(os.environ), folder, tmp_path, sandbox, output)))
        return made[-1]

    yield make
    for arm in made:
        arm.stop()
