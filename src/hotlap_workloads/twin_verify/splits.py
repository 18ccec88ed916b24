"""Who trains, who validates, who tests: from files, or drawn so that twins stay together. Nobody is in two splits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hotlap_workloads.errors import DataError
from hotlap_workloads.twin_verify.album import Album, read_album, read_identities, read_twins
from hotlap_workloads.twin_verify.settings import TwinSettings

__all__ = ["SPLITS", "drawn_split", "read_people"]

SPLITS = ("train", "val", "test")
_SEED = 20_220_619
"""Of the draw: the same people for every seed of the training."""


def read_people(s: TwinSettings, data: Path) -> tuple[Album, dict[str, list[int]]]:
    """Everybody, and the numbers of the people of each split."""
    root = data / s.image_folder
    files = [data / f"{split}_{s.dataset_info}" for split in SPLITS]
    there = [file.exists() for file in files]
    if any(there):
        if not all(there):
            raise DataError(files[there.index(False)], "does not exist, though others of the three splits do.")
        parts = [read_identities(file, root) for file in files]
        for i, part in enumerate(parts):
            for earlier in range(i):
                if both := sorted(part.keys() & parts[earlier].keys()):
                    raise DataError(files[i], f"{both[0]!r} is in {files[earlier].name} as well ({len(both)} such).")
        twins = {file: read_twins(file) for file in (data / f"{split}_{s.twin_pairs}" for split in SPLITS)}
        album = read_album({name: images for part in parts for name, images in part.items()}, twins, data)
        number = {name: i for i, name in enumerate(album.names)}
        splits = {split: [number[name] for name in part] for split, part in zip(SPLITS, parts, strict=True)}
        _check_twins_together(album, splits, data)
    else:
        file = data / s.dataset_info
        pairs = data / s.twin_pairs
        album = read_album(read_identities(file, root), {pairs: read_twins(pairs)}, file)
        splits = drawn_split(album, s.split)
    if s.expect_identities and len(album.names) != s.expect_identities:
        raise DataError(
            data / s.dataset_info, f"has {len(album.names)} identities, expect_identities={s.expect_identities}."
        )
    return album, splits


def drawn_split(album: Album, shares: Sequence[float]) -> dict[str, list[int]]:
    """Families (twins, and twins of twins) go to one split each, at random, until it has its share of the people."""
    families = _families(album)
    order = np.random.default_rng(_SEED).permutation(len(families))
    out: dict[str, list[int]] = {split: [] for split in SPLITS}
    for number in order:
        split = max(SPLITS, key=lambda name: shares[SPLITS.index(name)] * len(album.names) - len(out[name]))
        out[split].extend(families[number])
    return {split: sorted(people) for split, people in out.items()}


def _families(album: Album) -> list[list[int]]:
    seen: set[int] = set()
    out = []
    for person in range(len(album.names)):
        if person in seen:
            continue
        family, waiting = [], [person]
        seen.add(person)
        while waiting:
            family.append(one := waiting.pop())
            new = [twin for twin in album.twins_of[one] if twin not in seen]
            seen.update(new)
            waiting.extend(new)
        out.append(family)
    return out


def _check_twins_together(album: Album, splits: dict[str, list[int]], data: Path) -> None:
    where = {person: split for split, people in splits.items() for person in people}
    for person, twins in enumerate(album.twins_of):
        for twin in twins:
            if where[person] != where[twin]:
                names = f"{album.names[person]!r} ({where[person]}) and {album.names[twin]!r} ({where[twin]})"
                raise DataError(data, f"has the twins {names} in different splits.")
