"""Throughput of presets as measured, each with the machine it was measured on: ``measured.json``.

`bench/ladder.py --save` writes that file. What is not in it has not been measured, and is said to be so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

__all__ = ["Measured", "measured"]


@dataclass(frozen=True)
class Measured:
    """Evaluations and checkpoints count, as often as the preset asks for them."""

    samples_per_s: float
    on: str
    """The machine. A simulated accelerator says so."""
    data: str
    date: str

    def __str__(self) -> str:
        return f"{self.samples_per_s:.1f} samples/s on {self.on} ({self.data}, {self.date})"


def measured(workload: str, preset: str, document: dict[str, Any] | None = None) -> Iterator[Measured]:
    """What is known of a preset; nothing where it was not measured. ``document``: the file's, read when None."""
    if document is None:
        document = json.loads(files("hotlap_workloads").joinpath("measured.json").read_text(encoding="utf-8"))
    for row in document.get(workload, {}).get(preset, ()):
        yield Measured(**row)
