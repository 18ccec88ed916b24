"""What ``hotlap prove`` prints when it has ended: the seeds, the proof, what would decide more."""

from __future__ import annotations

from collections.abc import Iterable

from rich.cells import cell_len
from rich.text import Text

from hotlap.report import seed_words, words
from hotlap.report.keep import run_command
from hotlap.report.layout import Lines, folded, pad, rule, spread, wrapped
from hotlap.report.view import Report

__all__ = ["seeds"]

WIDTHS = (5, 11, 15, 8, 14)
"""Of the columns seed, baseline, with the plan, ratio, steps; what is left is for the last one."""
STYLES = {"proved": "bold green", "refuted": "bold red", "not proved": "bold"}


def seeds(report: Report) -> Lines:
    """The whole output."""

    def build(width: int) -> Iterable[Text]:
        proof = report.seed_proof
        left = f"{words.shorten_path(report.brief(report.script), max(20, width // 3))} · {words.machine_line(report)}"
        if proof is None:
            yield from spread(left, f"the run {words.ended(report)} before its first seed ended", width)
            return
        yield from spread(left, seed_words.setup_line(proof), width)
        yield rule("seeds", width)
        yield _row(["seed", "as it is", "with the plan", "ratio", "steps", ""], width, "dim")
        for runs in proof.seeds:
            yield from _rows(seed_words.seed_cells(proof, runs), width)
        yield rule("proof", width)
        yield from wrapped(" · ".join(seed_words.proof_lines(proof)), width, " ", STYLES[proof.verdict])
        if report.status not in ("", "finished"):
            gone = f"the run {words.ended(report)} after {len(proof.seeds)} of {proof.asked_seeds} seeds"
            yield from wrapped(gone, width, " ", "yellow")
        for line in proof.more:
            yield from wrapped(f"to decide it: {line}", width, " ", "cyan")
        for note in proof.notes:
            style = " " * 3 if note.startswith("| ") else " "
            yield from wrapped(note if note.startswith("| ") else f"note: {report.brief(note)}", width, style, "dim")
        if proof.verdict == "proved" and report.plan_path:
            as_proved = proof.seeds[0].command  # `hotlap run` puts no seed in place of `{seed}`
            yield from folded(" keep it: ", run_command(report.plan_path, as_proved), width, "cyan")

    return Lines(build)


def _rows(cells: list[str], width: int) -> Iterable[Text]:
    """One line, or two where the last cell is too long for it."""
    room = width - sum(WIDTHS) - 3
    if cell_len(cells[-1]) <= room:
        yield _row(cells, width, "")
        return
    yield _row([*cells[:-1], ""], width, "")
    yield Text(" " * 8 + cells[-1])


def _row(cells: list[str], width: int, style: str) -> Text:
    line = " " + "".join(
        pad(cell, room, right=n > 0) for n, (cell, room) in enumerate(zip(cells, WIDTHS, strict=False))
    )
    return Text(line + "  " + pad(cells[-1], width - len(line) - 2), style)
