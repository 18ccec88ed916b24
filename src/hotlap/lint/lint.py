"""Files to problems: which files, which rules, which lines asked to be left alone."""

from __future__ import annotations

import io
import os
import pkgutil
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

from hotlap.lint import rules
from hotlap.lint.loops import Training
from hotlap.lint.problem import Problem
from hotlap.lint.script import Script
from hotlap.records.errors import EXIT_USAGE, HotlapError

__all__ = ["Result", "all_rules", "lint_paths", "lint_text"]

_IGNORE = re.compile(r"#\s*hotlap:\s*ignore(?:\[([\w\-, ]*)\])?")
_SKIPPED = {"__pycache__", "node_modules", "site-packages", "build", "dist"}


@dataclass(frozen=True)
class Result:
    """What was found in how many files, and which files could not be read."""

    problems: list[Problem] = field(default_factory=list)
    files: int = 0
    unread: list[tuple[str, str]] = field(default_factory=list)
    """(file, why)."""


@cache
def all_rules() -> tuple[ModuleType, ...]:
    """The modules of ``lint/rules``."""
    names = sorted(info.name for info in pkgutil.iter_modules(rules.__path__))
    return tuple(import_module(f"{rules.__name__}.{name}") for name in names)


def lint_text(name: str, text: str) -> list[Problem]:
    """The problems of one source, by place. SyntaxError and ValueError where it is not Python."""
    if "torch" not in text and "lightning" not in text:
        return []
    script = Script(name, text)
    training = Training(script)
    found = [problem for rule in all_rules() for problem in rule.find(script, training)]
    ignored = _ignored(text) if found and "hotlap:" in text else {}
    kept = [p for p in found if not _is_ignored(p, ignored)]
    return sorted(kept, key=lambda p: (p.line, p.col, p.cause))


def _is_ignored(problem: Problem, ignored: dict[int, set[str] | None]) -> bool:
    causes = ignored.get(problem.line, set())
    return causes is None or problem.cause in causes


def _ignored(text: str) -> dict[int, set[str] | None]:
    """Causes ignored on each line; None: all."""
    found: dict[int, set[str] | None] = {}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        match = _IGNORE.search(token.string) if token.type == tokenize.COMMENT else None
        if match is not None:
            causes = None if match[1] is None else {c.strip() for c in match[1].split(",")}
            found[token.start[0]] = causes
    return found


def lint_paths(paths: Sequence[Path]) -> Result:
    """All Python files at and under the paths. HotlapError for a path that is not there."""
    problems: list[Problem] = []
    unread: list[tuple[str, str]] = []
    count = 0
    for path in _files(paths):
        count += 1
        try:
            with tokenize.open(path) as file:
                problems += lint_text(str(path), file.read())
        except (SyntaxError, ValueError, RecursionError) as err:
            line = getattr(err, "lineno", None)
            unread.append((f"{path}:{line}" if line else str(path), f"not Python that can be read: {err}"))
        except OSError as err:
            unread.append((str(path), err.strerror or str(err)))
    return Result(problems, count, unread)


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_file():
            yield path
        elif path.is_dir():
            for folder, folders, names in os.walk(path):
                folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in _SKIPPED)
                yield from (Path(folder, name) for name in sorted(names) if name.endswith(".py"))
        else:
            raise HotlapError(f"{path} is not there.", "Give files or folders.", EXIT_USAGE)
