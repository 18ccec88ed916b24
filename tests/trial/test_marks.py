"""What several ranks say of a lever: one on which it failed does something else than the others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hotlap.records.rows import Mark
from hotlap.trial.marks import last_words, took_hold, verdict

LEVER = "cache-sample"
APPLIED, FAILED = Mark("lever", LEVER, "applied", 3), Mark("lever", LEVER, "failed", 0, "OSError: full")


def arm(*ranks: Sequence[Mark], world: int | None = None, lever: str | None = LEVER) -> Any:
    tails = [
        SimpleNamespace(
            path=Path(f"{rank}.jsonl"), marks=marks, header=SimpleNamespace(rank=rank, world=world or len(ranks))
        )
        for rank, marks in enumerate(ranks)
    ]
    spec = SimpleNamespace(lever=lever, waits_for=frozenset())
    return SimpleNamespace(tails=lambda: tails, spec=spec, trainers=lambda: [])


def test_a_lever_that_failed_on_one_rank_has_failed() -> None:
    candidate = arm([APPLIED], [APPLIED, FAILED])
    assert took_hold(candidate) == set()
    assert verdict(candidate, arm()) == ("failed", "on rank 1: OSError: full")
    assert [mark.why for mark in last_words(candidate)[LEVER]] == ["", "on rank 1: OSError: full"]


def test_a_lever_that_failed_on_all_ranks_names_none() -> None:
    assert verdict(arm([FAILED], [FAILED]), arm()) == ("failed", "OSError: full")


def test_a_lever_that_one_rank_has_no_use_for_took_hold() -> None:
    nothing = Mark("lever", LEVER, "no-effect", 0, "no validation")
    assert took_hold(arm([APPLIED], [nothing])) == {LEVER} and verdict(arm([APPLIED], [nothing]), arm()) is None


def test_processes_that_are_no_ranks_do_not_hang_together() -> None:
    assert took_hold(arm([APPLIED], [FAILED], world=1)) == {LEVER}
