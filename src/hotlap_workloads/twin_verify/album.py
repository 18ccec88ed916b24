"""Who is on which image, and who is whose twin: ``dataset_infor.json`` and ``twin_pairs_infor.json``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotlap_workloads.engine.overrides import nearest
from hotlap_workloads.errors import DataError

__all__ = ["Album", "read_album", "read_identities", "read_twins"]


@dataclass(frozen=True)
class Album:
    """People and images have numbers, which stay the same when unreadable images are left out.

    Person p is called ``names[p]``, is on the images ``images_of[p]`` and has the twins ``twins_of[p]``; image i is
    the file ``paths[i]``.
    """

    names: list[str]
    paths: list[Path]
    images_of: list[list[int]]
    twins_of: list[list[int]]

    def person_of(self) -> list[int]:
        """By the number of an image, who is on it; -1 where the image was left out."""
        out = [-1] * len(self.paths)
        for person, images in enumerate(self.images_of):
            for image in images:
                out[image] = person
        return out

    def used(self) -> list[int]:
        """Numbers of the images that are not left out."""
        return sorted(image for images in self.images_of for image in images)

    def without(self, bad: set[Path]) -> Album:
        """Without images that cannot be read."""
        kept = [[image for image in images if self.paths[image] not in bad] for images in self.images_of]
        return Album(self.names, self.paths, kept, self.twins_of)


def read_album(
    identities: Mapping[str, Sequence[Path]], twins: Mapping[Path, Iterable[tuple[str, str]]], source: Path
) -> Album:
    """``twins`` by their file, which is named in errors: a twin whom nobody knows. ``source`` is that of the images."""
    names = list(identities)
    number = {name: i for i, name in enumerate(names)}
    paths: list[Path] = []
    images_of: list[list[int]] = []
    owner: dict[Path, str] = {}
    for name, files in identities.items():
        for path in files:
            if path in owner:
                raise DataError(source, f"lists {path} twice: for {owner[path]!r} and for {name!r}.")
            owner[path] = name
        images_of.append(list(range(len(paths), len(paths) + len(files))))
        paths.extend(files)
    twins_of: list[set[int]] = [set() for _ in names]
    for file, (a, b) in ((file, pair) for file, pairs in twins.items() for pair in pairs):
        for name in (a, b):
            if name not in number:
                raise DataError(file, f"names the twin {name!r}, who has no images.", nearest(name, names))
        if a == b:
            raise DataError(file, f"calls {a!r} a twin of {a!r}.")
        twins_of[number[a]].add(number[b])
        twins_of[number[b]].add(number[a])
    return Album(names, paths, images_of, [sorted(found) for found in twins_of])


def read_identities(file: Path, root: Path) -> dict[str, list[Path]]:
    """{identity: [image, …]}, the images relative to ``root``."""
    found = _json(file)
    if not isinstance(found, dict) or not found:
        raise DataError(file, "does not hold {identity: [image, …]}.")
    for name, images in found.items():
        if not isinstance(images, list) or not all(isinstance(image, str) for image in images):
            raise DataError(file, f"identity {name!r} is not a list of images.")
        if not images:
            raise DataError(file, f"identity {name!r} has no images.", "Remove the identity.")
    return {name: [root / image for image in images] for name, images in found.items()}


def read_twins(file: Path) -> list[tuple[str, str]]:
    """[[identity, identity], …]."""
    found = _json(file)
    if not isinstance(found, list):
        raise DataError(file, "does not hold [[identity, identity], …].")
    for place, pair in enumerate(found):
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(name, str) for name in pair):
            raise DataError(file, f"entry {place} is no pair of identities: {str(pair)[:80]}")
    return [(a, b) for a, b in found]


def _json(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except OSError as err:
        hint = "--data names its folder; --dataset-info and --twin-pairs of optimize_data name the file."
        raise DataError(file, f"cannot be read: {err.strerror}.", hint) from err
    except (json.JSONDecodeError, UnicodeDecodeError) as err:
        raise DataError(file, f"is not whole JSON: {err}.", "Copy it again.") from err
