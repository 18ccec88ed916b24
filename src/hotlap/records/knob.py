"""A knob: a setting of the script's own (an option, a key of its configuration file) with values worth trying."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hotlap.records.plan import KNOB

__all__ = ["Knob", "Scalar"]

Scalar = str | int | float | bool | None


@dataclass(frozen=True)
class Knob:
    """What the user gave as ``--knob``: a name, where it is set, and the values to try in this order."""

    name: str
    values: tuple[Scalar, ...]
    option: str = ""
    """``--batch-size``; with ``=`` at its end it is added to the command as one word. Empty for a file's key."""
    file: str = ""
    """The configuration file, as the user named it."""
    key: str = ""
    """Where the value stands in the file: ``trainer.test_interval``."""
    present: Scalar = None
    """The value that the command or the file has; None for an option that is not in the command."""

    @property
    def id(self) -> str:
        """Its name among the levers: ``knob:batch``."""
        return KNOB + self.name

    def setting(self, value: Scalar) -> dict[str, Any]:
        """The setting of a move that gives it ``value``."""
        if self.option:
            return {"option": self.option, "value": value}
        return {"file": self.file, "key": self.key, "value": value}
