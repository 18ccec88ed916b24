"""What is told of a plan at the end of a run, by the marks of all ranks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hotlap.cli.applied import applied_lines, unwatched_lines
from hotlap.records.plan import Move, Plan
from hotlap.records.rows import Mark
from hotlap.records.timeline import Timeline
from hotlap.testing.timelines import TimelineBuilder

PLAN = Plan([Move("cache-sample", {}, "bits"), Move("checkpoint-async", {}, "bits")])


def rank(number: int, *marks: Mark) -> Timeline:
    timeline = TimelineBuilder().steps(40, forward=0.1).build()
    header = replace(timeline.header, rank=number, world=3, pid=100 + number)
    return replace(timeline, header=header, mark=list(marks))


def lines(folder: Path, *ranks: Timeline) -> list[str]:
    timeline = replace(ranks[0], ranks=list(ranks[1:])) if ranks else None
    return applied_lines(PLAN, [], timeline, folder)


APPLIED, SAVED = Mark("lever", "cache-sample", "applied", 9), Mark("lever", "checkpoint-async", "applied", 1)
NOT_SAVED = Mark("lever", "checkpoint-async", "no-effect", 0)


def test_ranks_on_which_a_move_did_something_else_are_named(tmp_path: Path) -> None:
    failed = Mark("lever", "cache-sample", "failed", 0, "OSError: full")
    (told,) = lines(tmp_path, rank(0, APPLIED, SAVED), rank(1, APPLIED, failed), rank(2, failed))
    assert told == "cache-sample: failed on ranks 1 and 2, OSError: full; the run went on without it there"
    drawn = Mark("lever", "cache-sample", "no-effect", 0, "samples may change")
    (told,) = lines(tmp_path, rank(0, drawn, SAVED), rank(1, APPLIED, NOT_SAVED), rank(2, APPLIED))
    assert told == "cache-sample: no effect on rank 0 (samples may change)"
    everywhere = lines(tmp_path, rank(0, failed), rank(1, failed, NOT_SAVED), rank(2, failed))
    assert everywhere == [
        "cache-sample: failed, OSError: full; the run went on without it",
        "checkpoint-async: no effect (it found nothing to change in this run)",
    ]


def test_what_one_rank_does_for_all_was_applied(tmp_path: Path) -> None:
    told = lines(tmp_path, rank(0, APPLIED, SAVED), rank(1, APPLIED, NOT_SAVED), rank(2, APPLIED))
    assert told == ["all 2 moves of the plan were applied over 40 steps."]


def test_a_helper_process_that_was_not_attached_to_leaves_the_plan_applied(tmp_path: Path) -> None:
    (tmp_path / "call.json.412.error").write_text("ImportError: no torch\n")
    (tmp_path / "call.json.413.error").write_text("ImportError: no torch\n")
    told = lines(tmp_path, rank(0, APPLIED, SAVED))
    assert told == [
        "all 2 moves of the plan were applied over 40 steps.",
        "processes 412 and 413 were not watched: ImportError: no torch",
    ]
    assert unwatched_lines(rank(0), tmp_path) == told[1:]
    assert lines(tmp_path) == ["the plan was not applied: ImportError: no torch"]
    assert unwatched_lines(None, tmp_path) == ["the run was not watched: ImportError: no torch"]


def test_a_run_without_a_step_has_applied_nothing(tmp_path: Path) -> None:
    assert lines(tmp_path) == ["the plan was not applied: no optimiser step was seen."]
    assert unwatched_lines(None, tmp_path) == []
