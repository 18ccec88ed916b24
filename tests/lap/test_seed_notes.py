"""What ends a proof over seeds before it has begun."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hotlap.lap.seed_notes import failed, past_notes
from hotlap.records.errors import HotlapError
from hotlap.records.seed_proof import ArmRun, SeedRuns

ARMS = ("baseline", "candidate")


def ended(label: str, **more: object) -> ArmRun:
    whole = ArmRun("failed", "crashed with exit code 1: RuntimeError: boom", 1, 195, 9.0, 1.0)
    return replace(whole, **more)  # type: ignore[arg-type]


def test_a_script_that_crashes_in_both_arms_has_nothing_to_prove(tmp_path: Path) -> None:
    arms: Any = {label: SimpleNamespace(spec=SimpleNamespace(output=tmp_path / label)) for label in ARMS}
    with pytest.raises(HotlapError, match=r"failed after 195 steps \(crashed with exit code 1: RuntimeError: boom\)"):
        failed(arms, {label: ended(label) for label in ARMS}, first=True)
    own = {label: ended(label, reason="crashed with exit code 3", exit_code=3) for label in ARMS}
    failed(arms, own, first=True)  # sys.exit(3) in both


def test_an_arm_that_went_far_beyond_its_stop_is_told() -> None:
    near, far = (ended("", status="stopped", steps=40, past_steps=n) for n in (3, 40))
    assert past_notes(SeedRuns(1, [], "baseline", True, near, near)) == []
    (told,) = past_notes(SeedRuns(1, [], "baseline", True, near, far))
    assert "the script under the plan made 40 steps beyond the 40" in told


def test_a_door_that_did_not_open_says_where_to_look(tmp_path: Path) -> None:
    (tmp_path / "1.error").write_text("no torch\n")
    arm: Any = SimpleNamespace(spec=SimpleNamespace(timeline_dir=tmp_path))
    run: Any = SimpleNamespace(status="finished", reason="the script ended", steps=0)
    with pytest.raises(HotlapError, match=r"attach to the script: no torch\. Does `hotlap doctor` say ok\?"):
        failed({"baseline": arm}, {"baseline": run}, first=True)
