"""Trials of an evaluation: pairs of images of one split, the same for every seed and setting of the training."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hotlap_workloads.parts.verification import both_kinds
from hotlap_workloads.twin_verify.album import Album

__all__ = ["Trials", "make_trials"]

_SEED = 353
_ATTEMPTS = 20
"""Draws for a pair that is new, before a trial is left out: small splits run out of pairs."""


@dataclass(frozen=True)
class Trials:
    """Trial i: ``same[i]`` is 1 when images ``left[i]`` and ``right[i]`` are of one person.

    ``twin[i]`` is 1 where the people have twins: pairs of twins, and pairs of the same person who has one.
    """

    left: list[int]
    right: list[int]
    same: list[int]
    twin: list[int]

    def of_both_kinds(self, where: Path, split: str) -> Trials:
        """Itself, or an error that names the data and the split with one kind alone, or with none."""
        hint = "It takes two people, and one with two images: change split, or the files of the splits."
        both_kinds(self.same, f"{where}: the split {split!r}", "pairs of one person", hint)
        return self


def make_trials(album: Album, people: Sequence[int], per_image: int, twin_share: float) -> Trials:
    """For each image so many trials of one person, and as many of two people, ``twin_share`` of them twins."""
    draw = random.Random(_SEED)
    images_of, present = album.images_of, [p for p in people if album.images_of[p]]
    twins = {p: [twin for twin in album.twins_of[p] if images_of[twin]] for p in present}
    with_twin = [p for p in present if twins[p]]
    seen: set[tuple[int, int]] = set()
    rows: list[tuple[int, int, int, int]] = []

    def add(a: int, b: int, same: int, twin: int) -> bool:
        pair = (min(a, b), max(a, b))
        if a == b or pair in seen:
            return False
        seen.add(pair)
        rows.append((a, b, same, twin))
        return True

    for person in present:
        for image in images_of[person]:
            for _ in range(per_image):
                any(add(image, draw.choice(images_of[person]), 1, int(bool(twins[person]))) for _ in range(_ATTEMPTS))
    for number in range(len(rows)):
        is_twin = bool(with_twin) and int((number + 1) * twin_share) > int(number * twin_share)
        for _ in range(_ATTEMPTS):
            person = draw.choice(with_twin if is_twin else present)
            other = draw.choice(twins[person] if is_twin else present)
            if other == person or (other in twins[person]) != is_twin:
                continue
            if add(draw.choice(images_of[person]), draw.choice(images_of[other]), 0, int(is_twin)):
                break
    return Trials(*([row[i] for row in rows] for i in range(4)))
