"""Problems as text, JSON, GitHub annotations and SARIF."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hotlap.lint.lint import Result
from hotlap.lint.problem import Problem
from hotlap.records.causes import CAUSES

__all__ = ["FORMATS"]

SCHEMA = "hotlap.lint/1"
_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


def _text(result: Result) -> str:
    lines = []
    for p in result.problems:
        lines.append(f"{p.file}:{p.line}:{p.col}: {p.cause}: {p.message} {p.advice}")
    lines += [f"{file}: {why}" for file, why in result.unread]
    fixable = sum(bool(p.edits) for p in result.problems)
    told = f", {fixable} of them by --fix" if fixable else ""
    lines.append(f"{len(result.problems)} found in {result.files} files{told}.")
    return "\n".join(lines)


def _json(result: Result) -> str:
    problems = [
        {
            "cause": p.cause, "file": p.file, "line": p.line, "col": p.col, "message": p.message, "advice": p.advice,
            "text": p.text, "fixable": bool(p.edits),
        }
        for p in result.problems
    ]  # fmt: skip
    document = {
        "schema": SCHEMA,
        "files": result.files,
        "problems": problems,
        "unread": [list(u) for u in result.unread],
    }
    return json.dumps(document, indent=2)


def _github(result: Result) -> str:
    """Workflow commands (docs.github.com, "Workflow commands for GitHub Actions")."""
    lines = [
        f"::warning file={_property(_relative(p.file))},line={p.line},col={p.col}"
        f",title={_property('hotlap ' + p.cause)}"
        f"::{_data(p.message + ' ' + p.advice)}"
        for p in result.problems
    ]
    return "\n".join(lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _sarif(result: Result) -> str:
    """SARIF 2.1.0 (docs.oasis-open.org/sarif): one rule per cause."""
    causes = sorted({p.cause for p in result.problems})
    rules = [
        {"id": c, "shortDescription": {"text": CAUSES[c]}, "defaultConfiguration": {"level": "warning"}} for c in causes
    ]
    found = [_sarif_result(p, causes.index(p.cause)) for p in result.problems]
    driver = {"name": "hotlap", "rules": rules}
    run: dict[str, Any] = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": found}
    return json.dumps({"$schema": _SARIF, "version": "2.1.0", "runs": [run]}, indent=2)


def _sarif_result(problem: Problem, rule: int) -> dict[str, Any]:
    region = {"startLine": problem.line, "startColumn": problem.col}
    place = {"artifactLocation": {"uri": _relative(problem.file)}, "region": region}
    return {
        "ruleId": problem.cause, "ruleIndex": rule, "level": "warning",
        "message": {"text": f"{problem.message} {problem.advice}"}, "locations": [{"physicalLocation": place}],
    }  # fmt: skip


def _relative(file: str) -> str:
    """From here, with forward slashes: annotations are matched with the repository's files."""
    return Path(os.path.relpath(file)).as_posix()


FORMATS: dict[str, Callable[[Result], str]] = {"text": _text, "json": _json, "github": _github, "sarif": _sarif}
