"""Work that a library's trainer does on its own, beside callbacks of the script's."""

from __future__ import annotations

from diagnose_scripts import COMPUTE, causes

from hotlap.records.findings import Finding
from hotlap.testing.timelines import TimelineBuilder, UserLine

RUN: UserLine = ("train.py", 64, "main", "trainer.train()")


def by_a_trainer(*frames: UserLine | str, package: str = "transformers") -> dict[str, Finding]:
    """Findings where a trainer's functions, and some frames, are seen below the line that has it run."""
    path = f"/v/lib/python3.11/site-packages/{package}/trainer.py"
    stack = [(path, 300, f, "") if isinstance(f, str) else f for f in frames]
    builder = TimelineBuilder().steps(60, residual=0.01, **COMPUTE).stack("residual", 50, RUN, *stack)
    for text in ("logging_steps=50,", "save_steps=4, logging_steps=1)"):
        line = ("train.py", 40 + len(text), "main", text)
        builder.shape("logging-blocking", line, line[1], detail="logging_steps")
    return {c: f for c, f in causes(builder).items() if c in ("host-work", "checkpoint-blocking", "logging-blocking")}


def test_what_a_trainer_of_a_library_does_about_a_save_is_checkpointing() -> None:
    assert list(by_a_trainer("_inner_training_loop", "_save_checkpoint", "rotate_checkpoints")) == [
        "checkpoint-blocking"
    ]
    assert list(by_a_trainer("_run_epoch", "_save_rng_state", "collect")) == ["checkpoint-blocking"]


def test_what_a_trainer_logs_is_logging_where_it_was_asked_for() -> None:
    found = by_a_trainer("_maybe_log_save_evaluate", ("/usr/lib/python3.11/json/encoder.py", 9, "encode", ""))
    assert [w.line for w in found.pop("logging-blocking").where] == [70, 57, 64] and not found, "the fewest steps first"
    assert list(by_a_trainer("update_train_step_metrics", package="lightning/pytorch")) == ["logging-blocking"]
    hook = ("train.py", 20, "on_log", "self.rows = rebuild(self.rows)")
    assert by_a_trainer("on_log", hook)["host-work"].where[0].line == 20, "a callback of the script's"


def test_a_trainers_own_overhead_is_nobodys_work() -> None:
    assert not by_a_trainer("_inner_training_loop", "_load_from_checkpoint")
    hook = ("train.py", 20, "on_step_end", "self.rows = rebuild(self.rows)")
    assert by_a_trainer("call_event", hook)["host-work"].where[0].line == 20
    mine = ("train.py", 30, "train", "self.rows = rebuild(self.rows)")
    assert by_a_trainer(mine)["host-work"].where[0].line == 30, "a trainer of the script's own"
