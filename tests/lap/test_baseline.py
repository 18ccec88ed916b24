"""A trial that the script itself ended is the end of all trials; one that the candidate ended is not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hotlap.lap import baseline
from hotlap.lap.baseline import Unmeasurable, check_baseline
from hotlap.records.errors import HotlapError
from hotlap.records.trials import NO_FIRST_STEP, OF_BASELINE, Trial


def test_a_script_that_crashes_as_it_is() -> None:
    with pytest.raises(Unmeasurable) as caught:
        check_baseline(Trial("roof", {}, "failed", f"{OF_BASELINE}crashed with exit code 1: RuntimeError: boom"))
    assert caught.value.what == "Nothing can be tried: the script crashed with exit code 1: RuntimeError: boom."
    assert "without Hotlap" in caught.value.hint


def test_a_first_step_that_takes_long_is_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    arm = SimpleNamespace(exit_code=-9, poll=lambda: None, spec=SimpleNamespace(output="out.txt"))  # ended by us
    session: Any = SimpleNamespace(
        stage="", arm=lambda _: arm, on_progress=None,
        options=SimpleNamespace(first_step_s=120.0, budget_s=225.0, steps=None),
    )  # fmt: skip
    reason = f"hang: {NO_FIRST_STEP} 120 s"
    outcome = SimpleNamespace(status="failed", reason=reason, startup_s=None, wall_s=120.0, steps=0)
    monkeypatch.setattr(baseline, "run_until", lambda *_, **__: outcome)
    monkeypatch.setattr(baseline, "rediagnose", lambda *_: None)
    with pytest.raises(HotlapError, match=r"the script made no first step within 120 s\. A larger --budget"):
        baseline.run_baseline(session)


@pytest.mark.parametrize("whose", ["", OF_BASELINE])
def test_a_script_that_is_over_too_soon_says_so_in_either_arm(whose: str) -> None:
    with pytest.raises(Unmeasurable) as caught:
        check_baseline(Trial("roof", {}, "failed", f"{whose}script ended after 200 steps; a comparison needs 29"))
    assert caught.value.what == "Nothing can be tried: the script ended after 200 steps; a comparison needs 29."
    assert "longer" in caught.value.hint


@pytest.mark.parametrize(
    "trial",
    [
        Trial("autocast", {}, "failed", "crashed with exit code 1: RuntimeError: mixed dtypes"),
        Trial("autocast", {}, "no-effect", f"{OF_BASELINE}script ended after 3 steps"),
        Trial("autocast", {}, "measured"),
    ],
)
def test_what_the_candidate_did_is_its_own_matter(trial: Trial) -> None:
    check_baseline(trial)
