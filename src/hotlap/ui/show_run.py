"""One run: what its page shows, and what the page asks for again every second while the run goes on."""

from __future__ import annotations

from typing import Any

from hotlap.records.trials import LeverResult
from hotlap.report import chart_phases, units, words
from hotlap.report.chart_phases import Segment
from hotlap.report.chart_steps import step_times
from hotlap.report.guard_words import alarm_note
from hotlap.report.run_words import status_line
from hotlap.ui.line import Line
from hotlap.ui.run_state import RunState
from hotlap.ui.show_list import PROVED, status_css

__all__ = ["now", "shown"]

MOST_ALARMS = 5
LATE = ("plan", "speedup", "wall")
"""Facts that only a run's results bring: the page tells that there are some, and shows them when it is loaded anew."""


def shown(state: RunState) -> dict[str, Any]:
    """For the template."""
    how, line = (state.run.status, state.run.exit_code, state.silent_s), state.line
    segments, which = _segments(state)
    return {
        "status": status_line(*how, line.drifts, line.verdict),
        "status_css": status_css(*how, line.verdict),
        "ended": state.ended,
        "results": state.results,
        "facts": [fact for fact in _facts(state) if fact[2] != units.NONE or _may_come(fact[0], state)],
        "segments": segments,
        "segments_of": which,
        "chart": step_times(state.glimpse.starts) if state.glimpse is not None else None,
        "alarms": [alarm_note(alarm) for alarm in state.alarms[-MOST_ALARMS:][::-1]],
        "levers": [_lever(lever) for lever in state.levers],
        "problems": state.problems,
    }


def now(state: RunState) -> dict[str, Any]:
    """The same as JSON values, as far as it changes from second to second. Texts, except for the chart, which is SVG
    made of numbers alone."""
    view = shown(state)
    view["facts"] = [list(fact) for fact in _facts(state)]
    view["segments"] = [vars(segment) for segment in view["segments"]]
    view["chart"] = str(view["chart"]) if view["chart"] is not None else ""
    del view["levers"], view["problems"]
    return view


def _may_come(fact: str, state: RunState) -> bool:
    return not state.ended and fact not in LATE


def _segments(state: RunState) -> tuple[list[Segment], str]:
    """Phases of the last seconds while the run goes on, of the whole run where it was diagnosed."""
    status = state.status
    if status.step_s and (not state.ended or state.findings is None):
        shares = {phase: seconds / status.step_s for phase, seconds in status.phases.items()}
        return chart_phases.segments_of(shares, status.step_s), "of the last half minute of training"
    if state.findings is not None:
        return chart_phases.segments(state.findings), "of the diagnosed steps, periodic work spread over all of them"
    return [], ""


def _facts(state: RunState) -> list[tuple[str, str, str]]:
    """(key, label, value): always the same ones, so that a page can put new values in place."""
    status, found, run = state.status, state.findings, state.run
    throughput = found.throughput if found is not None else None
    live = status.step_s is not None and (not state.ended or throughput is None)
    if live:
        step_s: float | None = status.step_s
        pace = words.throughput_text(status.samples_per_s, 1 / status.step_s if status.step_s else None)
        share = status.roof_share
    else:
        step_s = throughput.step_s if throughput is not None else None
        pace = words.throughput_text(throughput.samples_per_s, throughput.steps_per_s) if throughput else units.NONE
        share = found.roof.share if found is not None and found.roof is not None else None
    steps = status.steps or (throughput.steps_seen if throughput is not None else None)
    return [
        ("pace", "Throughput lately" if live else "Throughput", pace),
        ("step", "Step time lately" if live else "Step time", units.seconds(step_s)),
        ("roof", "Share of the roof", units.share(share)),
        ("plan", "With the plan", _planned(state)),
        ("speedup", "Speedup", _speedup(state.line)),
        ("steps", "Steps", units.count(steps)),
        ("trained", "Trained for", units.seconds(status.train_s or None)),
        ("left", "Time left", units.seconds(status.left_s if not state.ended else None)),
        ("memory", "Memory", _memory(state)),
        ("device", "Device", _device(state)),
        ("wall", "Hotlap took", units.seconds(run.wall_s)),
    ]


def _speedup(line: Line) -> str:
    if line.speedup is None:
        return units.NONE
    told = units.ratio_interval(line.speedup.ratio, line.speedup.low, line.speedup.high)
    return told if line.verdict in ("", PROVED) else f"{told}, {line.verdict}"


def _planned(state: RunState) -> str:
    """Throughput of the proved plan."""
    line = state.line
    if not line.planned:
        return units.NONE
    share = f", {units.share(line.roof_share)} of the roof" if line.roof_share is not None else ""
    return words.throughput_text(line.samples_per_s, line.steps_per_s) + share


def _memory(state: RunState) -> str:
    status = state.status
    workers = f" + {units.bytes_(status.children_rss_bytes)} in workers" if status.children_rss_bytes else ""
    return units.bytes_(status.rss_bytes) + workers


def _device(state: RunState) -> str:
    status = state.status
    if not status.device and state.findings is not None:
        return state.findings.script.device or units.NONE
    used = f", {units.bytes_(status.device_bytes)} reserved" if status.device_bytes else ""
    return f"{status.device or units.NONE}{used}"


def _lever(lever: LeverResult) -> tuple[str, ...]:
    """Lever, outcome, measured against the plan so far, throughput in all, why."""
    measured = lever.measured
    return (
        lever.id,
        words.setting_text(lever.setting),
        words.outcome(lever),
        units.ratio_interval(measured.ratio, measured.low, measured.high) if measured is not None else "",
        units.ratio(lever.cumulative) if lever.cumulative is not None else "",
        "" if lever.kept else words.reason(lever),
    )
