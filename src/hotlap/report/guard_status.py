"""How a run goes now, in words: one line, or a panel that is redrawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rich.console import Group
from rich.table import Table
from rich.text import Text

from hotlap.records.guard import Alarm
from hotlap.report import units, words
from hotlap.report.guard_words import alarm_line, pace_text, phases_text

__all__ = ["Shown", "panel", "status_line"]

BAR = 40


@dataclass(frozen=True)
class Shown:
    """What is shown of a run. None: not measured."""

    script: str
    steps: int = 0
    step_s: float | None = None
    samples_per_s: float | None = None
    roof_share: float | None = None
    phases: Mapping[str, float] = field(default_factory=dict)
    rss_bytes: int | None = None
    children_rss_bytes: int | None = None
    device_bytes: int | None = None
    device: str = ""
    train_s: float = 0.0
    left_s: float | None = None
    silent_s: float | None = None
    """Since the last step, where the next one has been due for long."""
    drift: Alarm | None = None
    ended: str = ""
    """How the run ended; empty while it goes on."""


def _memory(shown: Shown) -> str:
    if shown.rss_bytes is None:
        return ""
    text = units.bytes_(shown.rss_bytes)
    if shown.children_rss_bytes:
        text += f" + {units.bytes_(shown.children_rss_bytes)} in workers"
    return text + (f", {units.bytes_(shown.device_bytes)} on the device" if shown.device_bytes else "")


def _pace(shown: Shown) -> str:
    if shown.silent_s is not None:
        return f"no step for {units.seconds(shown.silent_s)}"
    return pace_text(shown.samples_per_s, shown.step_s, shown.roof_share)


def _left(shown: Shown) -> str:
    return f"{units.seconds(shown.left_s)} left" if shown.left_s is not None else ""


def status_line(shown: Shown) -> str:
    """``step 1,200 · 212 samples/s, 34 % of the roof · backward 45 %, … · 1.2 GiB · 12 min 3 s left``."""
    parts = [
        f"step {units.count(shown.steps)}",
        _pace(shown),
        phases_text(shown.phases, shown.step_s),
        _memory(shown),
        _left(shown),
        f"slower: {shown.drift.cause}" if shown.drift is not None else "",
    ]
    return " · ".join(part for part in parts if part)


def panel(shown: Shown, folder: str = "") -> Group:
    """The same over several lines, with a bar per phase, for a terminal of its own, whose user is in ``folder``."""
    head = Text(f" {words.clean(shown.script)}", "bold")
    head.append(f"  step {units.count(shown.steps)}", "not bold")
    if shown.device:
        head.append(f" · {words.clean(shown.device)}", "not bold dim")
    pace = Text(f" {_pace(shown)}")
    if shown.step_s is not None:
        pace.append(f" · {units.seconds(shown.step_s)} a step")
    rest = " · ".join(p for p in (_memory(shown), f"{units.seconds(shown.train_s)} so far", _left(shown)) if p)
    lines: list[Text | Table] = [head, pace, _bars(shown), Text(f" {rest}", "dim")]
    if shown.drift is not None:
        lines.append(Text(f" {alarm_line(shown.drift, folder)}", "yellow"))
    if shown.ended:
        lines.append(Text(f" {shown.ended}", "bold"))
    return Group(*lines)


def _bars(shown: Shown) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right", min_width=20)
    table.add_column(justify="right", min_width=5)
    table.add_column()
    for phase, seconds in shown.phases.items():
        part = min(1.0, seconds / shown.step_s) if shown.step_s else 0.0
        if part > 0.0:
            bar = Text("━" * round(BAR * part), "cyan")
            table.add_row(words.phase_name(phase), units.share(part), bar)
    return table
