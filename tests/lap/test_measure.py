"""How long a comparison takes: as asked, or as long as slow steps need."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from hotlap.lap import measure as module
from hotlap.lap.measure import ALONE_WINDOW_S, LONG_SHARE, WINDOWS, Question, _seconds, measure, windows_of
from hotlap.proof.speedup import MIN_PAIRS
from hotlap.records.call import TRIAL_AHEAD
from hotlap.records.rows import Step
from hotlap.records.trials import Trial
from hotlap.testing.timelines import TimelineBuilder
from hotlap.trial.pauses import Cycle

NONE = Cycle()


def asking(
    cycle: Cycle = NONE, accelerators: tuple[str, ...] = (), one_at_a_time: bool = False, step_s: float = 0.0
) -> Any:
    machine = SimpleNamespace(accelerators=list(accelerators))
    return SimpleNamespace(cycle=cycle, machine=machine, one_at_a_time=one_at_a_time, step_s=step_s)


def seconds(
    step_s: float, left_s: float = 200.0, without: str | None = None, workers: int = 0, cycle: Cycle = NONE
) -> float:
    timeline = TimelineBuilder().steps(20, forward=step_s).loader(num_workers=workers, prefetch_factor=2).build()
    trainer = SimpleNamespace(steps=cast(list[Step], timeline.step), settings=timeline.setting)
    arm, session = SimpleNamespace(poll=lambda: trainer), asking(cycle)
    session.left_s = lambda share: left_s
    windows = windows_of(session, whole=False)
    return _seconds(session, cast(Any, arm), Question("roof", 14.0, without=without), windows)


def test_steps_of_a_second_get_the_pairs_that_a_verdict_needs() -> None:
    assert seconds(0.02) == 14.0
    per_pair = (WINDOWS.window_steps + WINDOWS.drop_steps + 2) + (WINDOWS.window_steps + 2)
    assert seconds(1.0) == pytest.approx(WINDOWS.min_pairs * per_pair, rel=0.05)
    assert seconds(1.0, workers=4) == seconds(1.0), "what had been fetched ahead stands still with the rest"


def test_never_more_than_the_budget_has_nor_for_an_ablation() -> None:
    assert seconds(10.0, left_s=100.0) == pytest.approx(LONG_SHARE * 100.0)
    assert seconds(1.0, left_s=5.0) == 14.0
    assert seconds(1.0, without="data") == 14.0 and seconds(1.0, without="everything") > 14.0


def test_windows_of_slow_steps_hold_fewer_of_them() -> None:
    slow = windows_of(asking(step_s=2.0), whole=False)
    assert (slow.window_steps, slow.drop_steps, slow.warmup_steps) == (2, 1, 3) and slow.min_pairs == WINDOWS.min_pairs
    assert windows_of(asking(step_s=0.9), whole=False) == WINDOWS
    assert windows_of(asking(Cycle(5, 10.0), step_s=2.0), whole=False).window_steps == 5
    on_device = windows_of(asking(accelerators=("H200",), step_s=2.0), whole=False)
    assert on_device.drop_steps == windows_of(asking(accelerators=("H200",)), whole=False).drop_steps


def test_windows_are_whole_cycles_of_the_scripts_pauses_and_there_is_time_for_them() -> None:
    windows = windows_of(asking(Cycle(21, 4.2)), whole=False)
    assert (windows.window_steps, windows.cycle_steps, windows.min_pairs) == (21, 21, 4)
    assert windows_of(asking(), whole=False) == WINDOWS
    assert windows_of(asking(), whole=True).min_pairs == MIN_PAIRS
    pairs_s = WINDOWS.min_pairs * (2 * (21 + 2) + WINDOWS.drop_steps) * 0.2
    assert seconds(0.02, cycle=Cycle(21, 4.2)) == pytest.approx(pairs_s, rel=0.05)


def test_what_is_planned_for_is_what_is_measured_on_a_device_and_one_at_a_time() -> None:
    assert windows_of(asking(accelerators=("card",)), whole=False).drop_steps == TRIAL_AHEAD + 1
    alone = windows_of(asking(one_at_a_time=True), whole=True)
    assert alone.one_at_a_time and alone.window_s == ALONE_WINDOW_S > WINDOWS.window_s


FULL = "out of memory: torch.OutOfMemoryError: CUDA out of memory"


@pytest.mark.parametrize(
    ("reasons", "tried", "after", "reason"),
    [
        ([FULL, ""], [False, True], True, ""),
        (["the baseline: " + FULL, ""], [False, True], True, ""),
        ([FULL, FULL], [False, True], False, FULL),  # the lever itself needs too much
        (["crashed with exit code 1"], [False], False, "crashed with exit code 1"),
        ([""], [False], False, ""),
    ],
)
def test_two_that_do_not_fit_into_memory_run_one_at_a_time_from_there_on(
    reasons: list[str], tried: list[bool], after: bool, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    seen: list[bool] = []
    ended: list[tuple[Any, ...]] = []
    session: Any = SimpleNamespace(
        one_at_a_time=False, folder=SimpleNamespace(write=lambda *_: None), listener=SimpleNamespace(line=lines.append),
        stop_all_but=lambda *arms: ended.append(arms), grow=lambda seconds: True,
    )  # fmt: skip

    def compared(session: Any, *_: Any) -> Trial:
        seen.append(session.one_at_a_time)
        why = reasons[len(seen) - 1]
        return Trial("x", {}, "failed" if why else "measured", why)

    monkeypatch.setattr(module, "_compared", compared)
    arm: Any = SimpleNamespace(spec=SimpleNamespace(name="x"), poll=lambda: None)
    assert measure(session, arm, arm, Question("x", 1.0)).reason == reason
    assert seen == tried and session.one_at_a_time is after
    assert bool(lines) is after and (not after or "do not fit into memory" in lines[0])
    assert ended == ([()] if len(tried) == 2 else [])


@pytest.mark.parametrize(("known", "tried"), [(True, [True]), (False, [False, True])])
def test_ranks_on_several_devices_run_one_at_a_time_as_soon_as_they_are_seen(
    known: bool, tried: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    seen: list[bool] = []
    session: Any = SimpleNamespace(
        one_at_a_time=False, folder=SimpleNamespace(write=lambda *_: None), listener=SimpleNamespace(line=lines.append),
        stop_all_but=lambda *arms: None, grow=lambda seconds: True,
    )  # fmt: skip
    trainer = SimpleNamespace(header=SimpleNamespace(world=2, device="H100"), settings=[])

    def compared(session: Any, *_: Any) -> Trial:
        seen.append(session.one_at_a_time)
        return Trial("x", {}, "measured")

    monkeypatch.setattr(module, "_compared", compared)
    arm: Any = SimpleNamespace(spec=SimpleNamespace(name="x"), poll=lambda: trainer if known or seen else None)
    assert measure(session, arm, arm, Question("x", 1.0)).status == "measured"
    assert seen == tried and len(lines) == 1 and "Ranks on several devices" in lines[0]
