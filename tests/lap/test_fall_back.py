"""A plan that makes the loss worse loses the lever at fault, and the rest is proved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hotlap.lap import speedup as lap
from hotlap.lap.fall_back import EXTRA_S, fall_back, suspect
from hotlap.lap.incumbent import Search
from hotlap.lap.speedup import Outcome
from hotlap.records.findings import Roof
from hotlap.records.plan import Move
from hotlap.records.proof import Proof, Quality
from hotlap.records.trials import Interval, LeverResult, Trial
from hotlap.testing.lever_kit import findings_of

CACHE, CAST, LAST = (
    Move("cache-decode", {}, "bits"),
    Move("autocast", {"dtype": "bf16"}, "maths"),
    Move("channels-last", {}, "maths"),
)
GOOD, BAD = (
    Quality("proved", "non-inferior", "Fine."),
    Quality("refuted", "non-inferior", "The loss is worse, beyond the margin."),
)
FASTER = Interval(2.0, 1.8, 2.2)


def trial_of(move: Move, *losses: float) -> Trial:
    return Trial(move.lever, move.setting, "measured", losses={"baseline": [1.0] * len(losses), "candidate": [*losses]})


def searched(*moves: Move) -> Search:
    trials = {CACHE.lever: (1.0, 1.0, 1.0, 1.0), CAST.lever: (1.0, 1.0, 1.2, 1.3), LAST.lever: (3.0, 3.0, 1.01, 1.0)}
    kept = [
        LeverResult(m.lever, m.setting, m.preserves, 1.5, FASTER, True, "2.00x [1.80, 2.20]", cumulative=2.0)
        for m in moves
    ]
    state = Search(
        cast(Any, "plan"), findings_of("decode"), list(moves), kept, [trial_of(m, *trials[m.lever]) for m in moves]
    )
    state.cumulative = 2.0 ** len(moves)
    return state


class Session:
    """Counts the arms that it makes."""

    def __init__(self) -> None:
        self.extra_s, self.machine = 0.0, SimpleNamespace(accelerators=[], cpu="Some CPU", cores=2, torch="2.13")
        self.made: list[tuple[str, list[str]]] = []
        self.listener = SimpleNamespace(line=lambda _: None)
        self.options = SimpleNamespace(command=["python", "train.py"])
        self.written: dict[str, Any] = {}
        self.folder = SimpleNamespace(write=self.written.__setitem__, path=None)

    def arm(self, name: str, moves: Any = (), **_: Any) -> str:
        self.made.append((name, [m.lever for m in moves]))
        return name


def test_the_lever_whose_own_trial_was_worst_is_suspected() -> None:
    assert suspect(searched(CACHE, LAST, CAST)) is CAST, "what counts is the later half"
    assert suspect(searched(CACHE, LAST)) is LAST
    assert suspect(searched(CACHE)) is None, "equal bits cannot be worse"
    untold = searched(LAST, CAST)
    untold.trials = [trial_of(CAST, *[float("nan")] * 4)]
    assert suspect(untold) is CAST


def test_the_rest_of_the_plan_gets_arms_and_time_of_its_own() -> None:
    session, state = Session(), searched(CACHE, CAST)
    roof = Roof(10.0, 0.1, 0.4, "resident batch", levers=["autocast"])
    baseline = SimpleNamespace(arm="old", findings=replace(findings_of("decode"), roof=roof))
    assert fall_back(cast(Any, session), cast(Any, baseline), state) is CAST
    assert state.moves == [CACHE] and state.cumulative == 2.0 and session.extra_s == EXTRA_S
    assert session.made == [("baseline-again", []), ("plan-again", ["cache-decode"])]
    assert (baseline.arm, state.incumbent) == ("baseline-again", "plan-again")
    assert baseline.findings.roof is None, "a roof with the lever that was put back is none of this training"
    told = {r.id: (r.kept, r.reason) for r in state.results}
    assert told["cache-decode"][0] and told["autocast"] == (
        False, "2.00x [1.80, 2.20]: the loss was worse with it in the proof, put back",
    )  # fmt: skip


@pytest.mark.parametrize(("left", "replayed"), [(CACHE, True), (LAST, False)])
def test_batches_are_replayed_for_a_cache_alone(left: Move, replayed: bool) -> None:
    session, state = Session(), searched(left, CAST)
    state.replayed, state.trials = True, [trial_of(CAST, *[float("nan")] * 4)]
    baseline = SimpleNamespace(arm="old", findings=replace(findings_of("decode"), roof=None))
    assert fall_back(cast(Any, session), cast(Any, baseline), state) is CAST
    assert state.replayed is replayed


@pytest.mark.parametrize(("moves", "kept"), [((CACHE, CAST), ["cache-decode"]), ((CAST,), [])])
def test_a_lap_ends_with_what_is_left(
    monkeypatch: pytest.MonkeyPatch, moves: tuple[Move, ...], kept: list[str]
) -> None:
    def final_proof(session: Any, baseline: Any, state: Search) -> tuple[Proof, Trial, Any]:
        quality = BAD if CAST in state.moves else GOOD
        return Proof(FASTER, quality, True), Trial("proof", {}, "measured", interval=FASTER), findings_of("decode")

    monkeypatch.setattr(lap, "final_proof", final_proof)
    monkeypatch.setattr(lap, "write_atomic", lambda *_: None)
    session, outcome, state = Session(), Outcome(), searched(*moves)
    monkeypatch.setattr(lap, "dump_plan", lambda plan: "plan")
    session.folder.path = Path()
    baseline = SimpleNamespace(arm="old", findings=findings_of("decode"))
    lap._conclude(cast(Any, session), cast(Any, baseline), state, outcome)
    assert [m.lever for m in outcome.plan.moves] == kept if outcome.plan else kept == []
    assert outcome.proof is not None and outcome.proof.quality.verdict == "proved"
    assert "With autocast in the plan: the loss is worse, beyond the margin. It was put back" in outcome.notes[0]
    assert outcome.proof.claimed is bool(kept)
