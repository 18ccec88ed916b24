"""The sentences of a guarded run: warnings, the status line, what the report says of it afterwards."""

from __future__ import annotations

from collections.abc import Mapping

from hotlap.records.cells import line_words
from hotlap.records.findings import Where
from hotlap.records.guard import Alarm, GuardRecord
from hotlap.report import units, words

__all__ = ["alarm_line", "alarm_note", "over_line", "pace_text", "phases_text", "summary"]

MOST_PHASES = 3


def _place(where: Where, folder: str) -> str:
    file = where.file.removeprefix(f"{folder.rstrip('/')}/") if folder else where.file
    return f"{file}{line_words(where.file, where.line)}"


def _change(alarm: Alarm) -> str:
    what = "validation" if alarm.phase == "validation" else "step"
    times = units.ratio(alarm.after_s / alarm.before_s) if alarm.before_s > 0 else units.NONE
    return f"{units.seconds(alarm.before_s)} -> {units.seconds(alarm.after_s)} a {what} ({times})"


def alarm_line(alarm: Alarm, folder: str = "") -> str:
    """The warning, as one line; files are named from ``folder``, where the reader is, if they lie below it."""
    what = "validations grow" if alarm.phase == "validation" else "steps grow" if alarm.growing else "steps got slower"
    where = f" at {_place(alarm.where[0], folder)}" if alarm.where else ""
    phase = "" if alarm.phase == "validation" else f", {words.phase_name(alarm.phase)} most"
    return words.clean(
        f"{what} from step {units.count(alarm.at_step)} on: {_change(alarm)}{phase}. "
        f"Cause: {alarm.cause}{where}. {alarm.advice}"
    )


def over_line(alarm: Alarm) -> str:
    """The drift is over."""
    step = units.count(alarm.over_step)
    return f"steps are back near {units.seconds(alarm.before_s)} from step {step} on ({alarm.cause})."


def alarm_note(alarm: Alarm) -> str:
    """The same for a report, which tells it afterwards."""
    over = f" It was over at step {units.count(alarm.over_step)}." if alarm.over_step is not None else ""
    line = alarm_line(alarm)
    return f"Drift: {line}{over}"


def summary(record: GuardRecord) -> str:
    """What a whole guarded run comes to."""
    steps = f"{units.count(record.steps)} step{'' if record.steps == 1 else 's'}"
    per_s = record.samples / record.train_s if record.samples and record.train_s > 0 else None
    pace = f", {units.per_s(per_s)} samples/s over all" if per_s is not None else ""
    count = len(record.alarms)
    drifts = "no drift was seen" if not count else f"{count} drift{'' if count == 1 else 's'} told"
    return f"The run was watched for {steps} in {units.seconds(record.train_s)}{pace}: {drifts}."


def pace_text(samples_per_s: float | None, step_s: float | None, roof_share: float | None) -> str:
    """``212 samples/s, 34 % of the roof``."""
    if step_s is None:
        return "no step yet"
    pace = words.throughput_text(samples_per_s, 1.0 / step_s if step_s > 0 else None)
    return pace + (f", {units.share(roof_share)} of the roof" if roof_share is not None else "")


def phases_text(phases: Mapping[str, float], step_s: float | None) -> str:
    """``backward 45 %, forward 30 %, data wait 12 %``: the largest."""
    if not step_s:
        return ""
    ranked = sorted(phases.items(), key=lambda pair: -pair[1])[:MOST_PHASES]
    return ", ".join(f"{words.phase_name(p)} {units.share(min(1.0, s / step_s))}" for p, s in ranked if s > 0)
