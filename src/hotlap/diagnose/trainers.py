"""What trainers of libraries (Lightning, Transformers, Accelerate) do on their own, told from their frames."""

from __future__ import annotations

import re

from hotlap.diagnose.stacks import Sampled, StackBook
from hotlap.records.rows import Frame
from hotlap.records.trainer_calls import LOGS, SAVES

__all__ = ["RUNS_TEXT", "below", "is_framework", "trainer_logs", "trainer_saves"]

RUNS_TEXT = re.compile(r"\.(?:fit|train)\(")
"""A line of the script's that may have such a trainer run all steps."""
_TRAINERS = {"lightning", "pytorch_lightning", "lightning_fabric", "transformers", "accelerate"}


def below(sample: Sampled) -> tuple[Frame, ...]:
    """What the user's innermost line called."""
    inner = max((i for i, frame in enumerate(sample.frames) if frame.user), default=-1)
    return sample.frames[inner + 1 :]


def _in_trainer(frame: Frame) -> bool:
    return not frame.user and not _TRAINERS.isdisjoint(frame.file.replace("\\", "/").split("/"))


def trainer_saves(sample: Sampled) -> bool:
    """Whether a library saves a checkpoint."""
    return any(not frame.user and SAVES.search(frame.func) for frame in sample.frames)


def trainer_logs(sample: Sampled) -> bool:
    """Whether a trainer logs; not what a callback of the user's does then."""
    return any(_in_trainer(frame) and LOGS.search(frame.func) for frame in below(sample))


def is_framework(book: StackBook, sample: Sampled) -> bool:
    """Whether a trainer is at work on its own: no line of the user's below the one that has it run."""
    blamed = sample.blamed
    text = book.text(blamed) if blamed is not None else ""
    if not RUNS_TEXT.search(text):
        return False
    return "trainer" in text.lower() or any(_in_trainer(frame) for frame in below(sample))
