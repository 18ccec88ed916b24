"""The text files of a VoxCeleb-like set: the training list and the trials."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hotlap_workloads.errors import DataError

__all__ = ["TrainList", "Trials", "read_train_list", "read_trials"]


@dataclass(frozen=True)
class TrainList:
    """``speakers[labels[i]]`` speaks in ``paths[i]``."""

    paths: list[Path]
    labels: list[int]
    speakers: list[str]

    def without(self, bad: set[Path]) -> TrainList:
        """Without files that cannot be read. Speakers keep their numbers."""
        kept = [(path, label) for path, label in zip(self.paths, self.labels, strict=True) if path not in bad]
        return TrainList([path for path, _ in kept], [label for _, label in kept], self.speakers)


@dataclass(frozen=True)
class Trials:
    """Trial i: ``same[i]`` is 1 when files number ``left[i]`` and ``right[i]`` of ``paths`` are of one speaker."""

    paths: list[Path]
    left: list[int]
    right: list[int]
    same: list[int]

    def without(self, bad: set[Path]) -> Trials:
        """Without trials of files that cannot be read."""
        rows = zip(self.left, self.right, self.same, strict=True)
        kept = [(self.paths[a], self.paths[b], same) for a, b, same in rows if not {self.paths[a], self.paths[b]} & bad]
        return _numbered(kept)


def read_train_list(file: Path, root: Path) -> TrainList:
    """Lines ``speaker path``, the path relative to ``root``."""
    rows = list(_fields(file, 2, "`speaker path`"))
    if not rows:
        raise DataError(file, "is empty.")
    speakers = sorted({fields[0] for _, fields in rows})
    if len(speakers) < 2:
        raise DataError(file, f"names one speaker alone, {speakers[0]!r}: there is nothing to tell apart.")
    number = {speaker: i for i, speaker in enumerate(speakers)}
    return TrainList([root / path for _, (_, path) in rows], [number[speaker] for _, (speaker, _) in rows], speakers)


def read_trials(file: Path, root: Path) -> Trials:
    """Lines ``label path path``. A file that is not there is named with its line."""
    rows = []
    exists: dict[Path, bool] = {}
    for line, (label, a, b) in _fields(file, 3, "`label path path`"):
        if label not in ("0", "1"):
            raise DataError(file, f"line {line}: the label is {label!r}, not 0 or 1.")
        for path in (root / a, root / b):
            if path not in exists:
                exists[path] = path.is_file()
            if not exists[path]:
                raise DataError(file, f"line {line} names {path}, which does not exist.")
        rows.append((root / a, root / b, int(label)))
    if len({same for _, _, same in rows}) < 2:
        raise DataError(file, f"has {len(rows)} trials, all of one kind: both same and different are needed.")
    return _numbered(rows)


def _numbered(rows: list[tuple[Path, Path, int]]) -> Trials:
    number: dict[Path, int] = {}
    for a, b, _ in rows:
        number.setdefault(a, len(number))
        number.setdefault(b, len(number))
    return Trials(list(number), [number[a] for a, _, _ in rows], [number[b] for _, b, _ in rows], [y for *_, y in rows])


def _fields(file: Path, count: int, form: str) -> Iterator[tuple[int, list[str]]]:
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as err:
        raise DataError(file, f"cannot be read: {err.strerror}.", "--data names the folder that holds it.") from err
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            fields = line.split()
            if len(fields) != count:
                raise DataError(file, f"line {number} has {len(fields)} fields, not {form}: {line.strip()!r}")
            yield number, fields
