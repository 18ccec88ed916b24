"""Lists of trials, lines ``label path path``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hotlap_workloads.errors import DataError
from hotlap_workloads.parts.fields import fields, not_there
from hotlap_workloads.parts.verification import both_kinds, left_of

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
        return _numbered(kept, left_of(self.paths, bad))


def read_trials(file: Path, root: Path, must_exist: bool = True) -> Trials:
    """Lines ``label path path``. With ``must_exist``, a file that is not there is named with its line."""
    rows = []
    there: set[Path] = set()
    for line, (label, a, b) in fields(file, "label path path"):
        if label not in ("0", "1"):
            raise DataError(file, f"line {line}: the label is {label!r}, not 0 or 1.")
        for path in (root / a, root / b):
            if must_exist and path not in there and not path.is_file():
                raise not_there(file, path, line)
            there.add(path)
        rows.append((root / a, root / b, int(label)))
    return _numbered(rows, file)


def _numbered(rows: list[tuple[Path, Path, int]], where: object) -> Trials:
    both_kinds([same for *_, same in rows], where)
    number: dict[Path, int] = {}
    for a, b, _ in rows:
        number.setdefault(a, len(number))
        number.setdefault(b, len(number))
    return Trials(list(number), [number[a] for a, _, _ in rows], [number[b] for _, b, _ in rows], [y for *_, y in rows])
