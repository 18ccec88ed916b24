"""Trainings that take turns: one runs while the others are frozen."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import turns
from turns import Training

SCRIPT = """
import sys, time
for step in range(int(sys.argv[1])):
    time.sleep(float(sys.argv[2]))
    print(f"Speed 1.0 samples/s  Loss 1.00  Epoch 1  Step {step + 1}/99  ETA 0.0 h", flush=True)
    open(sys.argv[3], "a").write(".")
"""


def training(tmp_path: Path, steps: int, step_s: float, name: str = "told") -> Training:
    script = tmp_path / f"{name}.py"  # its own: another of the same name may be starting
    script.write_text(SCRIPT, encoding="utf-8")
    return Training([sys.executable, str(script), str(steps), str(step_s), str(tmp_path / name)], tmp_path)


def test_a_turn_runs_alone_and_its_rate_is_that_of_its_own_seconds(tmp_path: Path) -> None:
    fast, slow = training(tmp_path, 9999, 0.01), training(tmp_path, 9999, 0.03, "slow")
    try:
        for one in (fast, slow):
            one.run_to(3)
        before = (tmp_path / "slow").stat().st_size
        rates = [fast.turn(20) for _ in range(3)]
        assert (tmp_path / "slow").stat().st_size == before, "frozen"
        assert slow.turn(10) < min(rates) <= 100, "the pause is in no turn"
    finally:
        fast.end(), slow.end()
    assert fast._process.returncode and slow._process.returncode


def test_one_that_ends_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "PATIENCE_S", 5.0)
    one = training(tmp_path, 4, 0.01)
    with pytest.raises(RuntimeError, match=r"told no step any more \(exit code 0\)"):
        one.turn(50)
    one.end()
