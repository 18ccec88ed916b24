"""What the batches that were looked into read: lines, the files behind them, and the file systems these lie on."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from hotlap.diagnose.kinds import data_kind, loader_blame, touches_storage, works
from hotlap.diagnose.mounts import mounts_read
from hotlap.diagnose.stacks import Sampled, StackBook, merge, user_where
from hotlap.diagnose.view import View
from hotlap.diagnose.waiting import waits
from hotlap.records.findings import Finding, Where
from hotlap.records.rows import Setting
from hotlap.records.timeline import Timeline

__all__ = ["Opened", "Reading", "is_parsed", "is_repeated", "loader_book", "measure_reading", "repeated_finding"]

_OPENED_BY_USE = {"sqlite3.connect": re.compile(r"\.(?:execute\w*|fetch\w+|cursor|close)\(")}
"""A connection opens its file and parses the schema at the first statement, and drops its page cache when closed."""
_PARSERS = frozenset((
    "json.load", "csv.reader", "pickle.load", "pandas.read_csv", "pandas.read_parquet", "xml.etree.ElementTree.parse",
    "numpy.loadtxt", "numpy.genfromtxt",
))  # fmt: skip
_PARSES = re.compile(r"\b(?:json|pickle|yaml|orjson|ujson|marshal|joblib|toml\w*)\.\w*load|\bcsv\.|\bfromstring\(")
MIN_CALLS = 8
"""Calls of a line below which a repetition may be chance."""


@dataclass(frozen=True)
class Opened:
    """Calls of one operation from one line, in all processes that load."""

    where: Where
    op: str
    calls: int
    files: int
    """Distinct files per batch looked into, added up."""
    frac: float
    """Part of the batches' wall time inside these calls."""
    file_bytes: int
    """Sizes of those files, added up."""


@dataclass(frozen=True)
class Reading:
    """All batches looked into."""

    samples: int
    opened: list[Opened]
    mounts: dict[str, int]
    """Files by kind of file system."""


def _sources(view: View) -> list[tuple[Timeline, Setting]]:
    timelines = view.timeline.workers if view.loading and view.loading.in_workers else [view.timeline]
    rows = []
    for timeline in timelines:
        last = next((row for row in reversed(timeline.setting) if row.name == "file_reads"), None)
        if last is not None:
            rows.append((timeline, last))
    return rows


def measure_reading(view: View) -> Reading | None:
    """None when no batch was looked into."""
    totals: dict[tuple[str, int, str, str], list[int]] = {}
    samples = wall = 0
    sources = _sources(view)
    for timeline, row in sources:
        samples += int(row.value.get("samples") or 0)
        wall += int(row.value.get("w") or 0)
        for line in row.value.get("lines") or []:
            where = user_where(timeline, frame_id=line[0]) if len(line) == 6 else None
            if where is not None:
                known = totals.setdefault((where.file, where.line, where.function, str(line[1])), [0, 0, 0, 0])
                for i, value in enumerate(line[2:]):
                    known[i] += int(value)
    if not samples or wall <= 0:
        return None
    source = view.timeline.source
    opened = [
        Opened(
            Where(file, number, function, source.get(f"{file}:{number}", "").strip()), op, calls, files, ns / wall, size
        )
        for (file, number, function, op), (calls, files, ns, size) in totals.items()
    ]
    mounts = mounts_read(timeline for timeline, _ in sources)
    return Reading(samples, sorted(opened, key=lambda o: (-o.frac, o.where.file, o.where.line)), mounts)


def is_repeated(view: View, opened: Opened) -> bool:
    """Whether a line opens the same file again and again within a batch."""
    return opened.calls >= MIN_CALLS and opened.calls >= view.policy.reopened_times * max(1, opened.files)


def is_parsed(opened: Opened) -> bool:
    """Whether the file is turned into Python objects: by the operation, or by what its line does with the open file."""
    return opened.op in _PARSERS or (opened.op == "open" and _PARSES.search(opened.where.text) is not None)


def loader_book(view: View) -> StackBook:
    """All stacks of the loading, whatever they do."""
    books = view.loading.stacks if view.loading else {}
    parts = [books[kind] for kind in ("decode", "augment", "collate") if kind in books]
    return merge(parts, view.timeline.source, view.timeline.loops)


def _beside(book: StackBook, opened: Opened, other_lines: set[tuple[str, int]]) -> float:
    """Part of the stacks that read or parse in the function that opens, on lines that no clock was put on."""

    def reads(sample: Sampled) -> bool:
        frame = loader_blame(sample)
        if frame is None or (frame.file, frame.line) in other_lines:
            return False
        within = (frame.file, frame.func) == (opened.where.file, opened.where.function)
        by_use = _OPENED_BY_USE.get(opened.op)
        uses = by_use is not None and by_use.search(book.text(frame)) is not None
        return within and (uses or data_kind(book, sample) == "decode" or touches_storage(book, sample))

    return book.part(reads)


def _on_line(book: StackBook, opened: Opened) -> float:
    """Part of the stacks that read or parse on the very line that opens: ``list(csv.reader(open(path)))``."""

    def reads(sample: Sampled) -> bool:
        frame = loader_blame(sample)
        if frame is None or (frame.file, frame.line) != (opened.where.file, opened.where.line) or works(sample):
            return False
        return is_parsed(opened) or data_kind(book, sample) == "decode" or touches_storage(book, sample)

    return book.part(reads)


def repeated_finding(
    view: View, cause: str, is_meant: Callable[[Opened], bool], advice: Callable[[Opened], str], detail: str
) -> Finding | None:
    """The finding of a cause whose operations are meant, from the lines that repeat a file; None when none does."""
    reading = measure_reading(view) if waits(view) else None
    again = [o for o in reading.opened if is_meant(o) and is_repeated(view, o)] if reading else []
    if reading is None or not again:
        return None
    book = loader_book(view)
    clocked = {(o.where.file, o.where.line) for o in reading.opened}
    functions = {(o.where.file, o.where.function): o for o in reversed(again)}
    by_line: dict[tuple[str, int], list[Opened]] = {}
    for opened in again:
        by_line.setdefault((opened.where.file, opened.where.line), []).append(opened)
    frac = sum(max(sum(o.frac for o in line), _on_line(book, line[0])) for line in by_line.values())
    frac += sum(_beside(book, o, clocked) for o in functions.values())
    first = again[0]
    evidence = {
        "calls_per_sample": first.calls / reading.samples,
        "calls_per_file": first.calls / max(1, first.files),
        "file_bytes": first.file_bytes / max(1, first.files),
        "op": first.op,
    }
    return view.finding(
        cause, view.times.wait_s * min(1.0, frac), advice(first), [o.where for o in again[: view.policy.max_where]],
        detail=detail, phase="data_wait", evidence=evidence, ablation="data",
    )  # fmt: skip
