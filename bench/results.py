"""Where published figures are kept: bench/results/<name>.json, with the machine they came from."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hotlap.machine.facts import read_machine

__all__ = ["FOLDER", "facts", "save", "without_folders"]

FOLDER = Path(__file__).parent / "results"


def facts() -> dict[str, Any]:
    """The day, and the machine."""
    return {"date": time.strftime("%Y-%m-%d"), "machine": asdict(read_machine())}


def save(name: str, figures: dict[str, Any]) -> Path:
    """Write ``figures`` with the machine's facts and the date; returns the file."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}.json"
    path.write_text(json.dumps(facts() | {"figures": figures}, indent=1, default=str) + "\n")
    return path


def without_folders(pairs: Sequence[str]) -> list[str]:
    """``KEY=VALUE`` settings that change a training; those that say where files of it lie are this machine's affair."""
    return [pair for pair in pairs if not Path(pair.partition("=")[2]).exists()]
