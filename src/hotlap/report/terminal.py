"""Terminal output: a header line, causes, the ladder, the proof, what to do next. Colour only as emphasis."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import zip_longest

from rich.cells import cell_len
from rich.text import Text

from hotlap.records.findings import Finding, Where
from hotlap.records.trials import LeverResult
from hotlap.report import keep, units, words
from hotlap.report.layout import Lines, folded, pad, rule, spread, wrapped
from hotlap.report.view import Report

__all__ = ["diagnosis", "lever_line", "speedup"]

ONE_LINE = 112
"""From this width on, a cause takes one line instead of two."""
MAX_CAUSES = 8
"""More stand in the HTML report; a terminal is for the ones worth acting on."""


def diagnosis(report: Report) -> Lines:
    """What ``hotlap diagnose`` prints."""

    def build(width: int) -> Iterable[Text]:
        yield from _header(report, width)
        yield from _causes(report, width)
        yield from _footer(report, width)

    return Lines(build)


def speedup(report: Report) -> Lines:
    """What ``hotlap speedup`` prints when it has ended."""

    def build(width: int) -> Iterable[Text]:
        yield from _header(report, width)
        yield from _causes(report, width)
        yield from _ladder(report, width)
        yield from _proof(report, width)
        yield from _footer(report, width)

    return Lines(build)


def _header(report: Report, width: int) -> Iterable[Text]:
    left = f"{words.shorten_path(report.brief(report.script), max(20, width // 3))} · {words.machine_line(report)}"
    found = report.findings
    if found is None:
        yield from spread(left, "watched, not diagnosed" if report.verdict else "nothing measured", width)
        return
    facts = [words.throughput_text(found.throughput.samples_per_s, found.throughput.steps_per_s)]
    if found.roof is not None:
        if found.roof.samples_per_s is not None:
            facts.append(f"roof {units.per_s(found.roof.samples_per_s)}")
        facts.append(f"you are at {units.share(found.roof.share)} of your roof")
    yield from spread(left, " · ".join(facts), width)


def _causes(report: Report, width: int) -> Iterable[Text]:
    found = report.findings
    if found is None:
        return
    shown = found.findings[:MAX_CAUSES]
    columns = _columns(report, shown, width)
    for finding in shown:
        yield from _cause(report, finding, width, columns)
    if len(found.findings) > MAX_CAUSES:
        yield Text(f"        {len(found.findings) - MAX_CAUSES} smaller causes stand in the report", "dim")
    if found.drift is not None:
        drift = found.drift
        how = "steps grow steadily from" if drift.growing else "step time changed at"
        yield from wrapped(
            f"drift: {how} step {units.count(drift.at_step)}, {units.seconds(drift.before_s)} -> "
            f"{units.seconds(drift.after_s)}, mostly {words.phase_name(drift.phase)}",
            width,
            " ",
            "yellow",
        )


def _first_place(report: Report, finding: Finding) -> Where | None:
    where = finding.where[0] if finding.where and finding.where[0].file else None
    return replace(where, file=report.brief(where.file)) if where is not None else None


def _columns(report: Report, shown: list[Finding], width: int) -> tuple[int, int, int]:
    """Widths of function, place and certainty, no wider than what stands in them."""
    places = [where for finding in shown if (where := _first_place(report, finding))]
    sure = max((cell_len(words.certainty(finding)) for finding in shown), default=0)
    room = max(0, width - 32 - sure)
    function = max((cell_len(where.function) for where in places), default=0)
    spot = max((cell_len(words.place(where)) for where in places), default=0)
    return min(function, int(room * 0.32)), min(spot, int(room * 0.32)), sure


def _cause(report: Report, finding: Finding, width: int, columns: tuple[int, int, int]) -> list[Text]:
    where = _first_place(report, finding)
    sure, sure_style = words.certainty(finding), "green" if finding.confirmed else "dim"
    share = units.share(finding.share) if finding.cause != "nothing-to-gain" and finding.share > 0 else ""
    name = max(20, len(finding.cause) + 1)  # the longest are told whole, and shorten their detail
    head = Text(f" {pad(share, 7, right=True)}  ").append(pad(finding.cause, name), "bold")
    if width >= ONE_LINE:
        function_width, spot_width, sure_width = columns
        head.append(
            pad(finding.detail, width - 12 - name - sure_width - function_width - spot_width - 2) + " ", "not bold"
        )
        head.append(pad(where.function if where else "", function_width) + " ", "not bold")
        head.append(pad(words.place(where, spot_width) if where else "", spot_width) + "  ", "not bold cyan")
        return [head.append(sure, f"not bold {sure_style}")]
    head.append(pad(finding.detail, width - 10 - name), "not bold")
    second = Text(" " * 10)
    if where is not None:
        room = width - 12 - cell_len(sure) - 3
        spot = words.place(where, max(room // 2, room - cell_len(where.function) - 2))
        function = words.shorten_path(where.function, max(4, room - cell_len(spot) - 2))
        second.append(words.clean(f"{function}  ")).append(words.clean(spot), "cyan").append(" · ")
    return [head, second.append(sure, sure_style)]


def _ladder(report: Report, width: int) -> Iterable[Text]:
    if not report.levers and not report.refused:
        return
    yield rule("levers", width, "samples/s     total   of roof")
    found = report.findings
    if found is not None:
        cells = [units.per_s(found.throughput.samples_per_s), units.ratio(1.0), units.share(report.share_of_roof(1.0))]
        yield _rung(" ", "baseline", "", "", cells, width)
    for lever, following in zip_longest(report.levers, report.levers[1:]):
        yield lever_line(report, lever, width)
        shared = following is not None and following.reason == lever.reason  # it stands below the last of them
        if lever.reason and not (lever.kept and lever.measured) and not shared:
            yield from wrapped(words.reason(lever), width, " " * 6, "dim")
    for lever_id, reason in report.refused:
        yield from wrapped(f"{lever_id}, not tried: {report.brief(reason)}", width, "   ", "dim")


def lever_line(report: Report, lever: LeverResult, width: int = 80) -> Text:
    """One lever's rung, also for the live display: kept with its throughput, or put back."""
    if lever.kept:
        cells = [units.per_s(lever.samples_per_s), units.ratio(lever.cumulative)]
        cells.append(units.share(report.share_of_roof(lever.cumulative)))
        return _rung("+", lever.id, words.setting_text(lever.setting), lever.preserves, cells, width)
    measured, outcome = lever.measured, words.outcome(lever)
    if measured is not None:
        outcome = f"{units.ratio_interval(measured.ratio, measured.low, measured.high)}  {outcome}"
    return _rung(" ", lever.id, words.setting_text(lever.setting), lever.preserves, [outcome], width)


def _rung(mark: str, name: str, setting: str, preserves: str, cells: list[str], width: int) -> Text:
    each = 30 // len(cells)
    results = "".join(" " + pad(cell, each - 1, right=True) for cell in cells)
    room = width - 3 - 2 - 13 - cell_len(results)
    name = pad(name, min(room, cell_len(name)))
    kept = len(cells) == 3
    line = Text(f" {mark} ", "" if kept else "dim").append(name, "bold" if mark == "+" else "")
    line.append(pad(f"  {setting}" if setting else "", room - cell_len(name)), "dim")
    return line.append(f"  {pad(preserves, 13)}", "dim").append(results)


def _proof(report: Report, width: int) -> Iterable[Text]:
    lines = words.proof_lines(report)
    if not lines:
        return
    yield rule("proof", width)
    proof = report.proof
    style = "bold green" if proof is not None and proof.claimed and proof.quality.verdict == "proved" else "bold"
    yield from wrapped(" · ".join(lines), width, " ", style)


def _footer(report: Report, width: int) -> Iterable[Text]:
    if report.verdict or report.proof is None or not report.proof.claimed:  # else the proof line has just said it
        yield from wrapped(words.verdict(report), width, " ", "bold")
    if report.status not in ("", "finished") and (gone := words.missing(report)):
        yield from wrapped(f"missing, since the run {words.ended(report)}: {', '.join(gone)}", width, " ", "yellow")
    for note in report.all_notes:
        yield from wrapped(f"note: {report.brief(note)}", width, " ", "dim")
    for label, command in zip(("keep it:", "     or:", "     or:"), keep.keep_commands(report), strict=False):
        yield from folded(f" {label} ", command, width, "cyan")
