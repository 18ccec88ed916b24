"""Where results go: the terminal (stderr while the script owns stdout), the JSON file, the HTML report."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from rich.console import Console

from hotlap.records.codec import dumps
from hotlap.records.run_folder import RunFolder, write_atomic
from hotlap.report import check_page, check_words, html, seed_page, seed_terminal, terminal, words
from hotlap.report.data import to_json
from hotlap.report.saved import CHECK, SEEDS
from hotlap.report.view import Report

__all__ = ["console", "publish"]


def console(stderr: bool = True) -> Console:
    """A console that writes plain text when it is not a terminal."""
    return Console(file=sys.stderr if stderr else sys.stdout, highlight=False, soft_wrap=False)


def publish(report: Report, folder: RunFolder, json_file: Path | None, stderr: bool = True) -> None:
    """Write report.html (and ``--json``), then print the report."""
    if report.kind == CHECK:
        return _publish_check(report, folder, json_file, stderr)
    path = folder.path / "report.html"
    seeds = report.kind == SEEDS
    write_atomic(path, seed_page.render(report) if seeds else html.render(report))
    if json_file is not None and report.seed_proof is not None:
        write_atomic(json_file, dumps(report.seed_proof) + "\n", aside=folder.path)
    elif json_file is not None and not seeds:
        write_atomic(json_file, json.dumps(to_json(report), indent=2, allow_nan=False) + "\n", aside=folder.path)
    out = console(stderr)
    if seeds:
        out.print(seed_terminal.seeds(report))
    else:
        out.print(terminal.speedup(report) if report.is_speedup else terminal.diagnosis(report))
    if report.seed_proof is not None:
        out.print(f" proof:  {_short(folder.path / 'proof.json')}", soft_wrap=True)
    out.print(f" report: {_short(path)}", soft_wrap=True)


def _publish_check(report: Report, folder: RunFolder, json_file: Path | None, stderr: bool) -> None:
    """A comparison has its lines, and a page of its own."""
    path = folder.path / "report.html"
    write_atomic(path, check_page.render(report))
    found = report.check
    if found is not None and json_file is not None:
        write_atomic(json_file, dumps(found) + "\n")
    lines = [f"the run {words.ended(report)}: nothing was compared"] if found is None else check_words.lines(found)
    for line in lines:
        console(stderr).print(f" {line}", soft_wrap=True, markup=False)
    console(stderr).print(f" report: {_short(path)}", soft_wrap=True, markup=False)


def _short(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
