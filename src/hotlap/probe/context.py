"""What every probe is given when it is installed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from hotlap.probe.hook_points import HookPoints
from hotlap.probe.recorder import Recorder
from hotlap.probe.undo import Undo
from hotlap.records.call import Call

__all__ = ["Context", "OnImport", "WatchModule"]

OnImport = Callable[[str, Callable[[Any], None]], None]
"""``on_import(module, callback)``: call back with the module once it is imported (now, if it is)."""


class WatchModule(Protocol):
    """A probe: a module with an ``install``."""

    def install(self, ctx: Context) -> None:
        """Put the probe's replacements in place, through ``ctx.undo``."""


@dataclass
class Context:
    """Handed to each probe's ``install``."""

    call: Call
    points: HookPoints
    undo: Undo
    rec: Recorder
    on_import: OnImport
    note: Callable[[str, str], None]
    torch: Any
    """The imported torch module."""
    _failed: set[str] = field(default_factory=set)

    def guard_imports(self) -> None:
        """From now on no callback can make the script's import fail."""
        on_import = self.on_import

        def register(module: str, callback: Callable[[Any], None]) -> None:
            def call(found: Any) -> None:
                try:
                    callback(found)
                except Exception as err:
                    self.failed(module, err)

            on_import(module, call)

        self.on_import = register

    def failed(self, probe: str, error: BaseException) -> None:
        """A probe met something it cannot read: it leaves this call alone, and the first time it is noted."""
        if probe not in self._failed:
            self._failed.add(probe)
            self.note(probe, f"{type(error).__name__} in a probe, which leaves such calls alone: {error}"[:400])
