"""The scripts of bench/faults with what is known about each: bench/faults/faults.toml."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

__all__ = ["FOLDER", "Fault", "faults"]

FOLDER = Path(__file__).parent / "faults"


@dataclass(frozen=True)
class Fault:
    """One slow script (or a healthy one), and what a diagnosis of it has to say."""

    name: str
    style: str
    domain: str
    causes: list[str] = field(default_factory=list)
    line: str = ""
    also: list[str] = field(default_factory=list)
    fix: str = ""
    levers: list[str] = field(default_factory=list)
    herring: str = ""
    herring_why: str = ""
    needs: list[str] = field(default_factory=list)
    healthy: bool = False

    @property
    def script(self) -> Path:
        """The slow version."""
        return FOLDER / f"{self.name}.py"

    @property
    def fixed(self) -> Path:
        """The version fixed by hand; the script itself where nothing is wrong with it."""
        return self.script if self.healthy else FOLDER / f"{self.name}_fixed.py"

    @property
    def missing(self) -> list[str]:
        """Packages that the script needs and that are not installed."""
        return [package for package in self.needs if find_spec(package) is None]

    @property
    def right_lines(self) -> set[int]:
        """Lines that are right to name: the one of ``line`` and those of ``also``."""
        return {self.line_of(pattern) for pattern in [self.line, *self.also] if pattern}

    @property
    def herring_line(self) -> int | None:
        """The line that looks slow and is not."""
        return self.line_of(self.herring) if self.herring else None

    def line_of(self, pattern: str) -> int:
        """The one line that ``pattern`` matches; ValueError when it matches none or several."""
        found = [k for k, text in enumerate(self.script.read_text().splitlines(), 1) if re.search(pattern, text)]
        if len(found) != 1:
            raise ValueError(f"{self.script.name}: {pattern!r} matches lines {found}, not one")
        return found[0]


def faults(only: list[str] | None = None) -> list[Fault]:
    """All of faults.toml, or those named in ``only``; an unknown name is a ValueError."""
    table = tomllib.loads((FOLDER / "faults.toml").read_text())
    found = [Fault(name=name, **row) for name, row in table.items()]
    unknown = set(only or []) - {fault.name for fault in found}
    if unknown:
        raise ValueError(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(table)}")
    return [fault for fault in found if not only or fault.name in only]
