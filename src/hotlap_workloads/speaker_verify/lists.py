"""The training list of a VoxCeleb-like set."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hotlap_workloads.engine.quarantine import FILE
from hotlap_workloads.errors import DataError
from hotlap_workloads.parts.fields import fields, not_there
from hotlap_workloads.parts.verification import left_of

__all__ = ["TrainList", "read_train_list"]


@dataclass(frozen=True)
class TrainList:
    """``speakers[labels[i]]`` speaks in ``paths[i]``."""

    paths: list[Path]
    labels: list[int]
    speakers: list[str]

    def without(self, bad: set[Path]) -> TrainList:
        """Without files that cannot be read. Speakers keep their numbers; DataError where fewer than two are left."""
        kept = [(path, label) for path, label in zip(self.paths, self.labels, strict=True) if path not in bad]
        left = len({label for _, label in kept})
        if left < 2:
            what = f"has {left} speaker{'' if left == 1 else 's'}: there is nothing to tell apart."
            raise DataError(left_of(self.paths, bad), what, f"{FILE} lists what is left out.")
        return TrainList([path for path, _ in kept], [label for _, label in kept], self.speakers)


def read_train_list(file: Path, root: Path, must_exist: bool = True) -> TrainList:
    """Lines ``speaker path``, the path relative to ``root``. With ``must_exist``, one that is not there is named."""
    rows = list(fields(file, "speaker path"))
    if not rows:
        raise DataError(file, "is empty.")
    for line, (_, path) in rows if must_exist else ():
        if not (root / path).is_file():
            raise not_there(file, root / path, line)
    speakers = sorted({found[0] for _, found in rows})
    if len(speakers) < 2:
        raise DataError(file, f"names one speaker alone, {speakers[0]!r}: there is nothing to tell apart.")
    number = {speaker: i for i, speaker in enumerate(speakers)}
    return TrainList([root / path for _, (_, path) in rows], [number[speaker] for _, (speaker, _) in rows], speakers)
