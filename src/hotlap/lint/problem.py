"""One cause at one place of the source, and the causes that diagnose does not have."""

from __future__ import annotations

from dataclasses import dataclass, field

from hotlap.records.edits import Edit
from hotlap.records.findings import CAUSES

__all__ = ["LINT_CAUSES", "Problem"]

LINT_CAUSES: dict[str, str] = {
    "attention-by-hand": "Attention is written out as products and a softmax, where one kernel does it.",
    "cudnn-benchmark": "Convolutions run by heuristics where cuDNN could try its algorithms out.",
    "empty-cache": "The script empties the device's memory cache inside the loop.",
    "gc-collect": "The script collects garbage by hand inside the loop.",
    "h2d-copy": "Batches are copied to the device from pageable memory.",
    "loader-rebuilt": "The DataLoader is constructed anew each epoch.",
    "memory-leak": "Tensors are kept from step to step with the graph behind them.",
    "repeated-cat": "A tensor grows by concatenation in a loop: everything is copied again each time.",
    "sampler-set-epoch": "Every epoch draws the samples in the same order.",
    "zero-grad": "Gradients are zeroed in place, and added to, where they could be let go.",
} | CAUSES
"""Every cause that lint may name: those of a diagnosis, and those that (so far) only source shows."""


@dataclass(frozen=True)
class Problem:
    """What a rule found. ``line`` and ``col`` count from 1."""

    cause: str
    file: str
    line: int
    col: int
    message: str
    """What is there and what it costs, in one sentence."""
    advice: str
    edits: list[Edit] = field(default_factory=list)
    """What ``--fix`` writes; empty: a person has to do it."""
    text: str = ""
    """The line as it is."""
