"""Lists of trials, lines ``label path path``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hotlap_workloads.errors import DataError
from hotlap_workloads.parts.fields import fields

__all__ = ["Trials", "read_trials"]


@dataclass(frozen=True)
class Trials:
    """Trial i: ``same[i]`` is 1 when files number ``left[i]`` and ``right[i]`` of ``paths`` are of one person."""

    paths: list[Path]
    left: list[int]
    right: list[int]
    same: list[int]

    def without(self, bad: set[Path]) -> Trials:
        """Without trials of files that cannot be read. Raises DataError where not both kinds of trials are left."""
        rows = zip(self.left, self.right, self.same, strict=True)
        kept = [(self.paths[a], self.paths[b], same) for a, b, same in rows if not {self.paths[a], self.paths[b]} & bad]
        if len({same for _, _, same in kept}) < 2:
            raise DataError(
                min(bad), f"and {len(bad) - 1} other files cannot be read: no trials of both kinds are left."
            )
        return _numbered(kept)


def read_trials(file: Path, root: Path, must_exist: bool = True) -> Trials:
    """Lines ``label path path``. With ``must_exist``, a file that is not there is named with its line."""
    rows = []
    exists: dict[Path, bool] = {}
    for line, (label, a, b) in fields(file, "label path path"):
        if label not in ("0", "1"):
            raise DataError(file, f"line {line}: the label is {label!r}, not 0 or 1.")
        for path in (root / a, root / b):
            if path not in exists:
                exists[path] = not must_exist or path.is_file()
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
