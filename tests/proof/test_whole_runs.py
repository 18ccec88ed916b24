"""Whole runs over seeds to a verdict."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from types import SimpleNamespace

import pytest

from hotlap.lap.prove_seeds import _Prover
from hotlap.proof.curves import at_equal_steps, broken_at, differ_at, per_step, samples_per_step
from hotlap.proof.metric import judge_metric
from hotlap.proof.over_seeds import over_seeds, seeds_for_margin, seeds_for_ratio
from hotlap.proof.sooner import seconds_to
from hotlap.proof.what_more import what_more
from hotlap.proof.whole_runs import Asked, conclude, diverged, hopeless, ratios
from hotlap.records.seed_proof import ArmRun, SeedRuns, Stop


def run(step_s: float, steps: int = 60, seed: int = 0, worse: float = 1.0, **more: object) -> ArmRun:
    draw = random.Random(seed)
    loss: list[float | None] = [(0.5 + 2.5 * math.exp(-i / 8) + 0.02 * draw.random()) * worse for i in range(steps)]
    ends = [2.0 + step_s * (i + 1) for i in range(steps)]
    whole = ArmRun(
        "finished", "script ended", 0, steps, ends[-1] + 1.0, ends[0],
        step=list(range(1, steps + 1)), end_s=ends, samples=[8] * steps, loss=loss,
    )  # fmt: skip
    return replace(whole, **more)  # type: ignore[arg-type]


def pair(seed: int, step_s: float = 0.1, worse: float = 1.0, **candidate: object) -> SeedRuns:
    return SeedRuns(
        seed, ["python"], "baseline", True, run(0.2, seed=seed), run(step_s, seed=seed, worse=worse, **candidate)
    )


def test_equal_bits_and_a_clear_gain_are_proved() -> None:
    found = conclude([pair(seed) for seed in (1, 2, 3)], Asked("bits"))
    assert (found.verdict, found.quality.kind, found.quality.verdict) == ("proved", "bits", "proved")
    assert found.whole and found.speedup is not None
    assert found.speedup.ratio == pytest.approx((2 + 60 * 0.2 + 1) / (2 + 60 * 0.1 + 1))
    assert found.speedup.launches == 3 and what_more([], found, Asked("bits")) != []
    assert what_more([pair(seed) for seed in (1, 2, 3)], found, Asked("bits")) == []


def test_one_seed_proves_bits_but_no_small_gain() -> None:
    seeds = [pair(1, step_s=0.19)]
    found = conclude(seeds, Asked("bits"))
    assert (found.verdict, found.quality.verdict, found.speed_verdict) == ("not proved", "proved", "not proved")
    assert what_more(seeds, found, Asked("bits")) == ["1 seed cannot show how runs differ: `--seeds 3` or more."]


def test_other_bits_than_promised_refute_and_end_it() -> None:
    broken = pair(1)
    broken.candidate.loss[17] = 3.0
    found = conclude([broken], Asked("bits"))
    assert (found.verdict, found.quality.first_difference) == ("refuted", 17) and hopeless(found)
    unknown = conclude([broken], Asked("bits", uncertain="It crashed."))
    assert unknown.quality.verdict == "not proved" and not hopeless(unknown)
    assert unknown.quality.summary.endswith("It crashed.")


def test_a_script_that_does_not_repeat_itself_owes_no_bits() -> None:
    seeds = [pair(seed, worse=1.001) for seed in (1, 2, 3)]
    assert conclude(seeds, Asked("bits")).verdict == "refuted"
    found = conclude(seeds, Asked("bits", repeats=False))
    assert (found.verdict, found.quality.kind) == ("proved", "non-inferior")


def test_equal_bits_are_taken_where_less_is_owed() -> None:
    found = conclude([pair(1)], Asked("distribution"))
    assert (found.quality.kind, found.quality.verdict) == ("bits", "proved")
    assert conclude([pair(1, worse=1.0001)], Asked("distribution")).quality.kind == "non-inferior"


def test_worse_beyond_the_margin_is_refuted_early_only_when_clear() -> None:
    clear = conclude([pair(seed, worse=1.2 + seed / 1000) for seed in (1, 2)], Asked("maths"))
    assert clear.verdict == "refuted" and hopeless(clear)
    close = conclude([pair(1, worse=1.04), pair(2, worse=1.06)], Asked("maths", margin_frac=0.01))
    assert not hopeless(close)
    almost = conclude([pair(1, worse=1.04), pair(2, worse=1.042)], Asked("maths", margin_frac=0.01))
    assert almost.verdict == "refuted" and not hopeless(almost), "at 95 %, not at the 99 % of an early look"
    one = conclude([pair(1, worse=1.001)], Asked("maths"))
    assert one.quality.verdict == "not proved" and not hopeless(one)


def test_a_crash_under_the_plan_alone_refutes_it() -> None:
    crash = pair(1, status="failed", reason="crashed with exit code 1", exit_code=1, steps=30)
    found = conclude([crash], Asked("bits"))
    assert found.verdict == "refuted" and found.speedup is None
    assert what_more([crash], found, Asked("bits")) == [], "it is decided"


def test_a_script_that_ends_with_a_status_of_its_own_is_no_crash() -> None:
    ended = {"status": "failed", "reason": "crashed with exit code 3", "exit_code": 3}
    both = replace(pair(1), baseline=run(0.2, seed=1, **ended), candidate=run(0.1, seed=1, **ended))
    assert both.usable
    assert not replace(both, candidate=run(0.1, seed=1, **{**ended, "steps": 59})).usable


@pytest.mark.parametrize("reason", ["crashed with exit code 1: RuntimeError: boom", "ended by SIGTERM"])
def test_a_script_that_crashes_in_both_arms_alike_proves_nothing(reason: str) -> None:
    ended = {"status": "failed", "reason": reason, "exit_code": 1}
    crashes = [
        replace(pair(k), baseline=run(0.2, seed=k, **ended), candidate=run(0.1, seed=k, **ended)) for k in (1, 2, 3)
    ]
    assert not any(runs.usable for runs in crashes)
    found = conclude(crashes, Asked("bits"))
    assert found.verdict == "not proved" and found.speedup is None
    assert what_more(crashes, found, Asked("bits")) == ["No seed came through in both arms: nothing was compared."]


def test_who_asked_for_enough_seeds_is_not_told_to_ask_for_more() -> None:
    one = [pair(1, worse=1.001)]
    few = what_more(one, conclude(one, Asked("maths", seeds=3)), Asked("maths", seeds=3))
    assert few == ["1 seed of 3 cannot show how runs differ: the notes say what became of the others."]
    few = what_more(one, conclude(one, Asked("maths", seeds=1)), Asked("maths", seeds=1))
    assert few == ["1 seed cannot show how runs differ: `--seeds 3` or more."]


def test_runs_that_were_stopped_are_compared_after_the_first_step_by_work() -> None:
    one = run(0.2, steps=31, status="stopped", run_s=2.0 + 0.2 * 31)
    other = run(0.2, steps=61, status="stopped", run_s=12.0 + 0.2 * 61, first_step_s=12.2)
    cut = SeedRuns(1, [], "baseline", True, one, replace(other, samples=[16] * 61))
    assert ratios([cut], whole=False) == pytest.approx([2.0]), "twice the samples in a step of the same time"
    found = conclude([cut], Asked("goal", Stop(steps=31)))
    assert not found.whole


def test_seeds_that_change_nothing_prove_no_quality() -> None:
    same = [replace(pair(1, worse=1.001), seed=seed) for seed in (1, 2, 3)]
    found = conclude(same, Asked("maths"))
    assert not found.seeds_differ and found.quality.verdict == "not proved" and found.verdict == "not proved"
    assert "write `{seed}` in the command" in what_more(same, found, Asked("maths"))[0]


def test_the_metric_decides_where_bits_are_not_owed() -> None:
    def told(candidate: list[float | None]) -> list[SeedRuns]:
        return [
            replace(pair(k), baseline=run(0.2, seed=k, metric=m), candidate=run(0.1, seed=k, worse=1.5, metric=c))
            for k, (m, c) in enumerate(zip((5.0, 5.2, 4.8), candidate, strict=True))
        ]

    asked = Asked("distribution", pattern="EER (.*)", lower_is_better=True)
    assert conclude(told([4.0, 4.1, 4.2]), asked).verdict == "proved"
    worse = conclude(told([9.0, 9.1, 9.2]), asked)
    assert worse.verdict == "refuted" and hopeless(worse)
    missing = told([None, None, None])
    found = conclude(missing, asked)
    assert found.metric is not None and "candidate's output" in found.metric.summary
    assert "Check the pattern" in what_more(missing, found, asked)[0]
    equal = [pair(1), pair(2), pair(3)]
    found = conclude(equal, Asked("bits", pattern="EER (.*)"))
    assert found.verdict == "not proved", "what was asked for was not found, however equal the bits"
    assert "Check the pattern" in what_more(equal, found, asked)[0]


def test_a_loss_that_is_no_number_any_more_refutes_whatever_the_metric_of_other_seeds_says() -> None:
    asked = Asked("maths", pattern="EER (.*)", lower_is_better=True)
    fine = [
        replace(pair(k), baseline=run(0.2, seed=k, metric=5 + k / 9), candidate=run(0.1, seed=k, metric=4 + k / 9))
        for k in range(3)
    ]
    assert conclude(fine, asked).verdict == "proved"
    broken = replace(pair(3), candidate=run(0.1, seed=3, status="stopped", loss=[*[1.0] * 20, *[None] * 40]))
    assert diverged(broken) and not any(map(diverged, fine))
    assert conclude([*fine, broken], asked).verdict == "refuted"
    silent = replace(fine[0], candidate=run(0.1, metric=None))
    found = conclude([*fine, silent], asked)
    assert found.verdict == "not proved" and found.metric is not None and "In 1 of 4 seeds" in found.metric.summary


def test_a_metric_is_turned_so_that_positive_is_worse() -> None:
    higher = judge_metric([0.9, 0.91], [0.8, 0.81], "acc", False, 0.02, paired=True)
    lower = judge_metric([0.9, 0.91], [0.8, 0.81], "eer", True, 0.02, paired=True)
    assert higher.verdict == "refuted" and higher.delta_frac == pytest.approx(0.1 / 0.905)
    assert lower.verdict == "proved" and lower.delta_frac == pytest.approx(-0.1 / 0.905)
    assert judge_metric([0.0, 0.0], [0.0, 0.0], "x", True, None, paired=True).verdict == "proved"
    assert judge_metric([0.0, 0.0], [1.0, 1.0], "x", True, None, paired=True).verdict == "not proved"
    assert judge_metric([0.5], [0.5], "x", True, None, paired=True).verdict == "not proved", "one seed"


def test_time_to_a_loss_that_was_asked_for() -> None:
    stop = Stop(loss=0.6)

    def reached(seed: int, baseline: float | None, candidate: float | None) -> SeedRuns:
        one = run(0.2, seed=seed, reached_s=baseline, status="stopped")
        return replace(pair(seed, reached_s=candidate, status="stopped"), baseline=one)

    asked = Asked("goal", stop)
    found = conclude([reached(1, 10, 5), reached(2, 11, 5.4), reached(3, 9, 4.6)], asked)
    assert found.time_to_quality is not None and found.time_to_quality.interval is not None
    assert found.time_to_quality.interval.ratio == pytest.approx(2.0, rel=0.02)
    assert (found.verdict, found.quality.kind) == ("proved", "target")
    for few in ([reached(1, 10, 5), reached(2, 11, 5.4)], [reached(1, 5, 10)]):
        found = conclude(few, asked)
        assert found.time_to_quality is not None and found.time_to_quality.verdict == "not proved"
        assert (
            found.verdict == "not proved"
            and "cannot show how runs differ: `--seeds 3`" in what_more(few, found, asked)[0]
        )
    never = conclude([reached(1, 10, None), reached(2, 11, None)], asked)
    assert (never.verdict, never.quality.verdict) == ("refuted", "refuted")
    some = [reached(1, 10, 5), reached(2, 11, None)]
    assert "1 of 4 runs never came to the loss" in what_more(some, conclude(some, asked), asked)[0]


def test_where_the_goal_changed_it_is_the_loss_that_the_baseline_ends_with() -> None:
    seeds = [pair(seed) for seed in (1, 2, 3)]
    found = conclude(seeds, Asked("goal"))
    sooner = found.time_to_quality
    assert sooner is not None and sooner.interval is not None and found.verdict == "proved"
    assert 1.5 < sooner.interval.ratio < 2.0, "start-up counts: it is time from launch on"
    assert seconds_to(run(0.1), -1.0) is None and seconds_to(run(0.1, steps=2), 9.0) is None


def test_an_interval_over_seeds() -> None:
    assert over_seeds([]) is None
    one = over_seeds([2.0])
    assert one is not None and (one.low, one.high) == pytest.approx((1.6, 2.5))
    three = over_seeds([2.0, 2.1, 1.9])
    assert three is not None and 1.5 < three.low < 1.95 < three.high < 2.7
    same = over_seeds([1.0, 1.0, 1.0])
    assert same is not None and same.low < 1.0 < same.high
    with pytest.raises(ValueError):
        over_seeds([1.0, 0.0])


def test_what_more_seeds_would_do() -> None:
    assert seeds_for_ratio([1.1]) is None and seeds_for_ratio([1.0, 1.0]) is None
    needed = seeds_for_ratio([1.1, 1.2, 1.05])
    assert needed is not None and 3 < needed < 20
    assert seeds_for_ratio([2.0, 2.01]) == 3
    assert seeds_for_margin(0.03, 0.05, 0.02, 3, paired=True) is None
    more = seeds_for_margin(0.005, 0.03, 0.02, 3, paired=True)
    assert more is not None and 3 < more < 10
    # by tables of Student's t: 2.132 with 4 degrees of freedom, 1.691 with 34
    assert seeds_for_margin(0.0, 0.03, 0.01, 3, paired=False) == 18
    assert 0.03 / 2.132 * math.sqrt(3 / 18) * 1.691 <= 0.01 < 0.03 / 2.132 * math.sqrt(3 / 17) * 1.694


def test_curves_of_very_long_runs_keep_fewer_points() -> None:
    thin = run(0.1, steps=3, step=[1, 2, 4], samples=[8, 8, 16], loss=[3.0, 2.0, None])
    assert per_step(thin)[:2] == [3.0, 2.0] and math.isnan(per_step(thin)[3]) and len(per_step(thin)) == 4
    assert samples_per_step(thin) == [8, 8, 8, 8]
    assert at_equal_steps(run(0.1, step=[1, 2, 3], loss=[3.0, 2.0, 1.0]), thin)[0] == [3.0, 2.0]


def test_curves_are_looked_at_while_they_grow() -> None:
    assert differ_at([1.0, 2.0, None], [1.0, 2.0, None]) is None
    assert differ_at([0.0], [-0.0]) == 0
    assert broken_at([1.0] * 5, [1.0, None, None, 1.0, None]) is None
    assert broken_at([1.0] * 5, [1.0, None, None, None, None]) == 1
    assert broken_at([None] * 5, [None] * 5) is None


@pytest.mark.parametrize(("preserves", "word"), [("bits", "refuted"), ("maths", "not proved")])
def test_a_plan_that_makes_the_training_end_early_is_not_faster(preserves: str, word: str) -> None:
    """A script that leaves its loop at an error ends with 0, and its losses agree as far as they go."""
    whole = [pair(k) for k in range(3)]
    half = [
        replace(p, candidate=replace(p.candidate, steps=30, step=p.candidate.step[:30], loss=p.candidate.loss[:30],
                                     end_s=p.candidate.end_s[:30], samples=p.candidate.samples[:30]))
        for p in whole
    ]  # fmt: skip
    assert conclude(whole, Asked(preserves)).quality.verdict == "proved"
    found = conclude(half, Asked(preserves))
    assert (found.verdict, found.quality.verdict, found.speed_verdict) == (word, word, "not proved")
    assert "no equal work" in found.quality.summary


def test_a_loss_that_the_plan_never_reaches_ends_it() -> None:
    """Seeds that come after would each run three times as long as the script."""
    stop = Stop(loss=0.55)
    seeds = [
        replace(
            pair(k), baseline=run(0.2, seed=k, reached_s=9.0, status="stopped"), candidate=run(0.1, seed=k, worse=2.0)
        )
        for k in range(2)
    ]
    found = conclude(seeds, Asked("maths", stop))
    assert found.time_to_quality is not None and found.time_to_quality.verdict == "refuted"
    notes: list[str] = []
    prover = SimpleNamespace(
        seeds=seeds, request=SimpleNamespace(options=SimpleNamespace(seeds=9), metric=None), note=notes.append,
        repeats=SimpleNamespace(uncertain=""), preserves="maths",
    )  # fmt: skip
    assert _Prover.enough(prover, seeds[-1], found), "and says so"  # type: ignore[arg-type]
    assert notes and "Stopped after 2 of 9 seeds" in notes[-1]


def test_a_loss_that_is_no_number_is_told_with_its_seed() -> None:
    broken = pair(5)
    broken.candidate.loss[0] = None
    assert "step 0 of seed 5" in conclude([pair(4, worse=1.01), broken], Asked("maths")).quality.summary
