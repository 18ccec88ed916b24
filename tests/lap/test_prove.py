"""The proof measures the roof a second time only where that leaves time for the launches that a claim needs."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hotlap.diagnose.notes import CAME_ONCE
from hotlap.lap import prove as module
from hotlap.lap import repeats as repeats_module
from hotlap.lap.launches import Launches
from hotlap.lap.prove import _judged, _over_all, _replay_for_caches_alone, _roof_again, _share_of_roof
from hotlap.lap.repeats import Repeats
from hotlap.records.findings import Roof
from hotlap.records.plan import Move
from hotlap.records.rows import Step
from hotlap.records.trials import Trial
from hotlap.testing.lever_kit import findings_of
from hotlap.trial.budget import Budget

FIRST, AGAIN = Roof(100.0, 0.01, 0.4, "resident batch"), Roof(120.0, 0.008, 0.9, "resident batch")


def again(
    monkeypatch: pytest.MonkeyPatch, left_s: float, known: Roof | None = FIRST
) -> tuple[Roof | None, list[Trial]]:
    monkeypatch.setattr(module, "measure_roof", lambda *_: (AGAIN, Trial("roof", {}, "measured")))
    session = SimpleNamespace(left_s=lambda share: left_s)
    state = SimpleNamespace(incumbent=None, findings=None, moves=[], trials=[])
    launches = SimpleNamespace(first=SimpleNamespace(wall_s=20.0), missing_s=lambda _: 30.0)
    baseline = SimpleNamespace(findings=SimpleNamespace(roof=known))
    roof = _roof_again(cast(Any, session), cast(Any, baseline), cast(Any, state), cast(Any, launches))
    return roof, state.trials


def test_launches_go_before_the_roof(monkeypatch: pytest.MonkeyPatch) -> None:
    assert again(monkeypatch, 49.0) == (None, [])
    assert again(monkeypatch, 51.0)[0] is AGAIN and len(again(monkeypatch, 51.0)[1]) == 1


def test_a_roof_that_was_never_measured_is_measured_now(monkeypatch: pytest.MonkeyPatch) -> None:
    assert again(monkeypatch, 1.0, known=None)[0] is AGAIN


def test_without_a_second_roof_the_share_is_of_the_first() -> None:
    assert _share_of_roof(FIRST, AGAIN, 2.0) == 0.9
    assert _share_of_roof(FIRST, None, 2.0) == pytest.approx(0.8) and _share_of_roof(FIRST, None, 3.0) == 1.0
    assert _share_of_roof(None, None, 2.0) is None


def test_a_plan_that_is_faster_than_the_roof_raises_it() -> None:
    known = replace(findings_of("unfused"), roof=replace(FIRST, share=0.75))
    raised = _over_all(known, None, None, 1.8).roof
    assert raised is not None and raised.share == pytest.approx(1 / 1.8) and "the plan's own speed" in raised.how
    assert known.throughput.samples_per_s is not None
    assert raised.samples_per_s == pytest.approx(known.throughput.samples_per_s * 1.8)
    assert _over_all(known, None, None, 1.2).roof == known.roof, "it is below it"


def test_what_has_a_cadence_by_now_is_no_longer_told_as_seen_once() -> None:
    once = [f"One {what} of 2 s {CAME_ONCE} in 40 steps: …" for what in ("validation", "checkpoint")]
    longer = once[1].replace("40", "900")
    first = replace(findings_of("unfused"), notes=["Only 40 steady steps were seen.", *once])
    fresh = replace(findings_of("unfused", "validation-cadence"), notes=[longer, "another"])
    found = _over_all(first, fresh, None, 1.0)
    assert {f.cause for f in found.findings} == {"unfused", "validation-cadence"}
    assert found.notes == ["Only 40 steady steps were seen.", longer]


@pytest.mark.parametrize(("lever", "replayed"), [("allocator", False), ("cache-decode", True)])
def test_batches_are_repeated_in_the_proof_for_a_cache_alone(lever: str, replayed: bool) -> None:
    moves, made, ended = [Move(lever, {}, "bits")], list[Any](), list[str]()
    session: Any = SimpleNamespace(discard=ended.append, arm=lambda name, moves: made.append(moves) or name)
    state: Any = SimpleNamespace(moves=moves, replayed=True, incumbent="searched")
    _replay_for_caches_alone(session, state)
    assert state.replayed is replayed and state.incumbent == ("searched" if replayed else "plan")
    assert (made, ended) == (([], []) if replayed else ([moves], ["searched"]))


class Again:
    """A session whose unmodified script, launched again, has these losses, and then ends as it may."""

    def __init__(self, losses: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
        self.options = SimpleNamespace(margin=None, first_step_s=600.0)
        self.on_progress, self.stage = None, ""
        self.losses = losses
        self.asked: list[tuple[int, int]] = []
        self.discarded = 0
        monkeypatch.setattr(repeats_module, "run_until", self._run)

    def arm(self, name: str, seed_offset: int, replay_batches: int) -> Any:
        rows = [step_row(i, loss) for i, loss in enumerate(self.losses)]
        return SimpleNamespace(seed=seed_offset, poll=lambda: SimpleNamespace(steps=rows))

    def _run(self, arm: Any, budget: Budget, steps: int, on_progress: Any) -> Any:
        assert budget.first_step_s == self.options.first_step_s
        self.asked.append((arm.seed, steps))
        return SimpleNamespace(reason="" if len(self.losses) >= steps else "crashed with exit code 1")

    def discard(self, arm: Any) -> None:
        self.discarded += 1


def step_row(index: int, loss: float) -> Step:
    return Step(index, 1, index, 1, [], 1, 1, l=[loss])


def of_bits(seeds: int, differ: int | None) -> tuple[Any, Launches]:
    """A plan that promises bits, and its losses: with seed ``differ`` they differ from step 12 on."""

    def pair(seed: int) -> Trial:
        base = [1.0 / (step + 1 + seed) for step in range(40)]
        plan = [value * (1.001 if seed == differ and step >= 12 else 1.0) for step, value in enumerate(base)]
        return Trial("proof", {}, "measured", losses={"baseline": base, "candidate": plan})

    launches = Launches(pair(0))
    for seed in range(1, seeds):
        launches.add(pair(seed))
    return SimpleNamespace(moves=[Move("cache-decode", {}, "bits")], replayed=False), launches


@pytest.mark.parametrize(
    ("told", "verdict", "words"),
    [(13, "refuted", "from step 12 on."), (5, "not proved", "run again with seed 2, it crashed with exit code 1")],
)
def test_bits_that_differ_refute_a_plan_where_the_script_is_seen_to_repeat_itself(
    told: int, verdict: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, launches = of_bits(4, differ=2)
    session: Any = Again([1.0 / (step + 3) for step in range(told)], monkeypatch)
    repeats = Repeats()
    for _ in range(2):
        quality = _judged(session, state, launches, repeats).quality
        assert (quality.verdict, quality.kind, quality.first_difference) == (verdict, "bits", 12)
        assert words in quality.summary
    assert session.asked == [(2, 13)] and session.discarded == 1, "asked once, with the seed at which they differ"


def test_bits_are_not_asked_of_a_script_that_does_not_repeat_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    state, launches = of_bits(4, differ=1)
    session: Any = Again([0.5, 0.4], monkeypatch)
    repeats = Repeats()
    for _ in range(2):
        proof = _judged(session, state, launches, repeats)
        assert proof.quality.kind == "non-inferior" and proof.quality.verdict == "proved"
        assert proof.notes == [repeats.note] and "differ from step 1 on" in repeats.note
    assert session.asked == [(1, 13)]


def test_nothing_is_launched_again_where_bits_are_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    state, launches = of_bits(3, differ=None)
    session: Any = Again([], monkeypatch)
    assert _judged(session, state, launches, Repeats()).quality.verdict == "proved" and session.asked == []
