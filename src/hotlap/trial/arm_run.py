"""An arm's whole run as a record: its curve on its own clock, how it ended, what it printed of the metric."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from hotlap.records.rows import Event, Step
from hotlap.records.seed_proof import ArmRun, Stop
from hotlap.records.trials import Window
from hotlap.trial.abreast import ArmEnd
from hotlap.trial.arm import Arm
from hotlap.trial.awake import awake_s
from hotlap.trial.budget import Budget
from hotlap.trial.stopping import reached_at, stops_at
from hotlap.trial.windows import Turn, to_window

__all__ = ["arm_run", "last_match", "losses_of", "printed", "windows"]

MOST_OUTPUT_BYTES = 64 << 20
"""End of the output in which the metric is looked for."""


def arm_run(arm: Arm, end: ArmEnd, stop: Stop, metric: re.Pattern[str] | None) -> ArmRun:
    """The run of an arm that was launched once and has come to ``end``; rows beyond where it was to stop are cut."""
    trainer = arm.poll()
    rows: list[Step] = [] if trainer is None else trainer.steps
    events: list[Event] = [] if trainer is None else trainer.events
    cut = stops_at(stop, rows, events) if end.status == "stopped" else None
    past = sum(row.n for row in rows[cut:]) if cut is not None else 0
    rows = rows[:cut]
    ends = awake_s(arm.thaws, [row.t + row.w for row in rows])
    reached = None if stop.loss is None else reached_at(rows, stop.loss)
    stopped_s = ends[-1] if ends and end.status == "stopped" else None
    return ArmRun(
        status=end.status,
        reason=end.reason,
        exit_code=arm.exit_code if end.status != "stopped" else None,
        steps=rows[-1].i + rows[-1].n if rows else 0,
        run_s=stopped_s if stopped_s is not None else awake_s(arm.thaws, [end.at])[0],
        first_step_s=ends[0] if ends else None,
        step=[row.i + row.n for row in rows],
        end_s=ends,
        samples=[row.s for row in rows],
        loss=losses_of(rows),
        past_steps=past,
        reached_s=None if reached is None else ends[reached],
        metric=None if metric is None else last_match(metric, printed(arm))[0],
    )


def losses_of(rows: Sequence[Step]) -> list[float | None]:
    """The loss of each row, up to the first whose loss was not seen at all. None: it is no number (NaN, infinite)."""
    values: list[float | None] = []
    for row in rows:
        if not row.l:
            break
        values.append(row.l[-1])
    return values


def windows(arms: dict[str, Arm], turns: Sequence[Turn], cycle: int) -> list[Window]:
    """The turns as windows of steady steps; of whole cycles of so many steps."""
    budget = Budget()
    least = max(budget.window_steps, cycle)
    found = []
    for turn in turns:
        arm = arms[turn.arm]
        trainer = arm.poll()
        if trainer is not None:
            found.append(to_window(turn, trainer.steps, budget.drop_steps, least, budget.neighbour_cores, cycle))
    return found


def last_match(pattern: re.Pattern[str], text: str) -> tuple[float | None, str]:
    """The last match (its first group, if it has one) that is a number, a full stop or per cent sign after it or not.

    None: nothing matched, or it says NaN or infinity, even where the pattern takes digits alone; or only the beginning
    of the number matched, which then stands in the second place (``4.2e-1`` where 4.2 did; empty otherwise).
    """
    for match in reversed(list(pattern.finditer(text))):
        if _lost(match):
            return None, ""
        if rest := _rest(match):
            return None, _word(match) + rest
        value = _number(match)
        if value is not None:
            return (value if math.isfinite(value) else None), ""
    return None, ""


def _word(match: re.Match[str]) -> str:
    return ((match[1] if match.re.groups else match[0]) or "").strip()


def _number(match: re.Match[str]) -> float | None:
    try:
        return float(_word(match).rstrip(".,;%").rstrip())
    except ValueError:
        return None


def _lost(match: re.Match[str]) -> bool:
    """Whether what stands before the group comes again further on, before NaN or infinity."""
    label = match.string[match.start() : match.start(1)].strip() if match.re.groups else ""
    return bool(label) and bool(
        re.search(rf"{re.escape(label)}\s*[-+]?(?:nan|inf)", match.string[match.end() :], re.IGNORECASE)
    )


def _rest(match: re.Match[str]) -> str:
    """What the number goes on with where the match ends: digits, decimals, an exponent."""
    at = match.end(1) if match.re.groups else match.end()
    number = at > 0 and (match.string[at - 1].isdigit() or match.string[at - 1] == ".")
    found = re.compile(r"\d*(?:\.\d+)?(?:[eE][-+]?\d+)?").match(match.string, at) if number else None
    return found[0] if found is not None else ""


def printed(arm: Arm) -> str:
    """The end of what an arm has printed."""
    with open(arm.spec.output, "rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - MOST_OUTPUT_BYTES))
        return file.read().decode("utf-8", "replace")
