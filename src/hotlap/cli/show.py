"""Where results go: the terminal (stderr while the script owns stdout), the JSON file, the HTML report."""

from __future__ import annotations

import json
from pathlib import Path

from hotlap.cli.console import console
from hotlap.records.codec import dumps
from hotlap.records.run_folder import RunFolder, write_atomic
from hotlap.report import check_words, pages, seed_terminal, terminal, words
from hotlap.report.data import to_json
from hotlap.report.saved import CHECK, SEEDS
from hotlap.report.view import Report

__all__ = ["publish"]


def publish(report: Report, folder: RunFolder, json_file: Path | None, stderr: bool = True) -> None:
    """Print the report and write report.html, then ``--json``: where that fails, the rest is there."""
    path = folder.path / "report.html"
    out = console(stderr)
    if report.kind == CHECK:
        for line in _check_lines(report):
            out.print(f" {line}", soft_wrap=True, markup=False)
    elif report.kind == SEEDS:
        out.print(seed_terminal.seeds(report))
    else:
        out.print(terminal.speedup(report) if report.is_speedup else terminal.diagnosis(report))
    write_atomic(path, pages.render(report))
    if report.seed_proof is not None:
        out.print(f" proof:  {_short(folder.path / 'proof.json')}", soft_wrap=True, markup=False)
    out.print(f" report: {_short(path)}", soft_wrap=True, markup=False)
    document = _document(report) if json_file is not None else None
    if json_file is not None and document is not None:
        write_atomic(json_file, document + "\n", aside=folder.path)


def _document(report: Report) -> str | None:
    """What ``--json`` is asked for; None where the run did not get that far."""
    if report.kind == CHECK:
        return None if report.check is None else dumps(report.check)
    if report.kind == SEEDS:
        return None if report.seed_proof is None else dumps(report.seed_proof)
    return json.dumps(to_json(report), indent=2, allow_nan=False)


def _check_lines(report: Report) -> list[str]:
    if report.check is None:
        return [f"the run {words.ended(report)}: nothing was compared"]
    return check_words.lines(report.check)


def _short(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
