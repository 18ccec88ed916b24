"""A trial that the script itself ended is the end of all trials; one that the candidate ended is not."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hotlap.diagnose.diagnose import TooFewSteps
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
    spec = SimpleNamespace(output="out.txt", timeline_dir=Path("none"))
    arm: Any = SimpleNamespace(exit_code=-9, poll=lambda: None, spec=spec)  # ended by us
    session: Any = SimpleNamespace(
        stage="", on_progress=None,
        options=SimpleNamespace(first_step_s=120.0, budget_s=225.0, steps=None),
    )  # fmt: skip
    reason = f"hang: {NO_FIRST_STEP} 120 s"
    outcome = SimpleNamespace(status="failed", reason=reason, startup_s=None, wall_s=120.0, steps=0)
    monkeypatch.setattr(baseline, "run_until", lambda *_, **__: outcome)
    monkeypatch.setattr(baseline, "rediagnose", lambda *_: None)
    with pytest.raises(HotlapError, match=r"the script made no first step within 120 s\. A larger --budget"):
        baseline.run_baseline(session, arm)


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


class Runs:
    """Stands for ``run_until``: each step takes ``step_s``, and so the session's clock goes on."""

    def __init__(self, session: Any, step_s: float) -> None:
        self.session, self.step_s, self.steps = session, step_s, 0

    def __call__(self, *_: Any, steps: int | None = None, seconds: float | None = None, **__: Any) -> Any:
        wall_s = (max(0, steps - self.steps) if steps is not None else 10**6) * self.step_s
        wall_s = wall_s if seconds is None else min(wall_s, seconds)
        wall_s = max(wall_s, self.step_s - self.session.elapsed_s)  # the first one is waited for
        self.session.elapsed_s += wall_s
        self.steps = int(self.session.elapsed_s / self.step_s)
        return SimpleNamespace(
            status="enough", reason="", steps=self.steps, wall_s=wall_s, startup_s=0.0, exit_code=None
        )


def run(
    monkeypatch: pytest.MonkeyPatch, step_s: float, budget_s: float, asked: bool, steps: int | None
) -> tuple[Any, int]:
    """The session after a baseline of such steps, and how many there were."""
    options = SimpleNamespace(
        first_step_s=120.0, budget_s=budget_s, budget_asked=asked, steps=steps, command=["python", "train.py"]
    )
    arm: Any = SimpleNamespace(poll=lambda: None, spec=SimpleNamespace(output="out.txt", timeline_dir=Path("none")))
    session: Any = SimpleNamespace(stage="", on_progress=None, options=options, elapsed_s=0.0, extra_s=0.0, lines=[])
    session.listener = SimpleNamespace(line=session.lines.append)
    session.left_s = lambda share=1.0: max(0.0, share * budget_s + session.extra_s - session.elapsed_s)
    runs = Runs(session, step_s)

    found: Any = SimpleNamespace(throughput=SimpleNamespace(step_s=3.0))

    def rediagnosed(*_: Any) -> Any:
        if runs.steps < 9:
            raise TooFewSteps("too few")
        return found

    monkeypatch.setattr(baseline, "run_until", runs)
    monkeypatch.setattr(baseline, "rediagnose", rediagnosed)
    assert baseline.run_baseline(session, arm).findings is found
    assert session.step_s == 3.0
    return session, runs.steps


def test_the_steps_that_were_asked_for_are_run_however_long_they_take(monkeypatch: pytest.MonkeyPatch) -> None:
    session, steps = run(monkeypatch, 2.0, 75.0, False, 100)
    assert steps == 100 and session.extra_s == pytest.approx(session.elapsed_s - 0.45 * 75), "what follows has its time"
    session, steps = run(monkeypatch, 2.0, 75.0, True, 100)
    assert steps == 16 and session.extra_s == 0.0, "a budget that was named is kept to: its share of it"


def test_slow_steps_get_all_of_the_budget_before_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, 5.0, 75.0, True, None)[1] == 12
    assert run(monkeypatch, 0.5, 75.0, True, None)[1] == 26, "LEAST_S of steps that are not slow"
    session, steps = run(monkeypatch, 30.0, 225.0, False, None)
    assert steps == 12 and session.extra_s == pytest.approx(session.elapsed_s - 0.45 * 225), "our own budget grows"
    (line,) = session.lines
    assert "Steps of about 33.8 s are slow: a diagnosis needs 12. That takes about 6 minutes more." in line


def test_a_diagnosis_that_no_budget_of_ours_holds_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HotlapError) as caught:
        run(monkeypatch, 200.0, 225.0, False, None)
    assert caught.value.what == "train.py made 1 step in 3 min 20 s; a diagnosis needs 12."
    assert caught.value.hint == "With --budget 44m there is time for them."


def test_steps_too_slow_for_the_budget_are_told_with_one_that_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HotlapError) as caught:
        run(monkeypatch, 12.0, 40.0, True, None)
    assert caught.value.what == "train.py made 3 steps in 40.0 s; a diagnosis needs 12."
    assert caught.value.hint == "With --budget 3m there is time for them."
    with pytest.raises(TooFewSteps):
        run(monkeypatch, 0.1, 75.0, True, 5)


def test_a_process_that_hotlap_did_not_come_into_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "call.json.7.error").write_text("`python train.py` was shut out\n")
    spec = SimpleNamespace(output="out.txt", timeline_dir=tmp_path)
    arm: Any = SimpleNamespace(exit_code=-9, poll=lambda: None, spec=spec)
    session: Any = SimpleNamespace(
        stage="", on_progress=None, options=SimpleNamespace(first_step_s=120.0, budget_s=225.0, steps=None)
    )
    outcome = SimpleNamespace(status="failed", reason=f"hang: {NO_FIRST_STEP} 120 s", startup_s=None)
    monkeypatch.setattr(baseline, "run_until", lambda *_, **__: outcome)
    monkeypatch.setattr(baseline, "rediagnose", lambda *_: None)
    with pytest.raises(HotlapError, match=r"could not attach to the script: `python train\.py` was shut out\."):
        baseline.run_baseline(session, arm)


def test_a_crash_is_not_put_on_a_helper_that_was_shut_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "call.json.7.error").write_text("`python -E prepare.py` was shut out\n")
    spec = SimpleNamespace(output="out.txt", timeline_dir=tmp_path)
    arm: Any = SimpleNamespace(exit_code=1, poll=lambda: None, spec=spec)
    session: Any = SimpleNamespace(
        stage="", on_progress=None, options=SimpleNamespace(first_step_s=120.0, budget_s=225.0, steps=None)
    )
    outcome = SimpleNamespace(status="failed", reason="crashed with exit code 1: ValueError: no", startup_s=None)
    monkeypatch.setattr(baseline, "run_until", lambda *_, **__: outcome)
    monkeypatch.setattr(baseline, "rediagnose", lambda *_: None)
    with pytest.raises(HotlapError, match="the script crashed with exit code 1: ValueError: no"):
        baseline.run_baseline(session, arm)
