"""Recordings with their keys, and the protocol files that list them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hotlap_workloads.errors import DataError
from hotlap_workloads.parts.fields import fields, not_there, wrong_form
from hotlap_workloads.parts.verification import both_kinds, left_of

__all__ = ["BONA_FIDE", "SPOOF", "Clips", "Row", "read_protocol"]

SPOOF, BONA_FIDE = 0, 1
KEYS = {"spoof": SPOOF, "bonafide": BONA_FIDE}
Row = tuple[str, Path, str, int]


@dataclass(frozen=True)
class Clips:
    """Recording i: ``names[i]`` in ``paths[i]``, made by attack ``sources[i]`` (``-`` for none), ``keys[i]``."""

    names: list[str]
    paths: list[Path]
    sources: list[str]
    keys: list[int]

    @staticmethod
    def of(rows: Iterable[Row]) -> Clips:
        """From rows of (name, path, source, key)."""
        clips = Clips([], [], [], [])
        for name, path, source, key in rows:
            clips.names.append(name)
            clips.paths.append(path)
            clips.sources.append(source)
            clips.keys.append(key)
        return clips

    def without(self, bad: set[Path]) -> Clips:
        """Without files that cannot be read. Raises DataError where not both kinds are left."""
        rows = zip(self.names, self.paths, self.sources, self.keys, strict=True)
        return Clips.of(row for row in rows if row[1] not in bad).of_both_kinds(left_of(self.paths, bad))

    def of_both_kinds(self, where: object) -> Clips:
        """Itself, or an error that names the file or folder with one kind alone."""
        both_kinds(self.keys, where, "bona fide recordings")
        return self


@dataclass(frozen=True)
class Form:
    """The fields of a published protocol. Of those with a subset, the official evaluation's lines count alone."""

    words: str
    utterance: int
    attack: int
    key: int
    subset: int | None = None


FORMS = {
    5: Form("SPEAKER UTT ENVIRONMENT ATTACK KEY", 1, 3, 4),
    8: Form("SPEAKER UTT CODEC CHANNEL ATTACK KEY TRIM SUBSET", 1, 4, 5, 7),
    13: Form("SPEAKER UTT CODEC SOURCE ATTACK KEY TRIM SUBSET VOCODER TASK TEAM GENDER LANGUAGE", 1, 4, 5, 7),
}
"""By number of fields: ASVspoof 2019 (LA, PA), and the keys of 2021 LA and 2021 DF."""


def read_protocol(file: Path, folder: Path, must_exist: bool = True) -> Clips:
    """The recordings that a protocol lists, below ``folder``. A recording that is not there is named with its line."""
    have = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    rows: list[Row] = []
    first_line: dict[str, int] = {}
    form = None
    for line, values in fields(file):
        form = form or FORMS.get(len(values), FORMS[5])
        if len(values) != len(form.words.split()):
            raise wrong_form(file, line, values, form.words)
        name, attack, key = values[form.utterance], values[form.attack], values[form.key]
        if key not in KEYS:
            raise DataError(file, f"line {line}: the key is {key!r}, not bonafide or spoof.")
        if form.subset is not None and values[form.subset] != "eval":
            continue
        if name in first_line:
            raise DataError(file, f"line {line} lists {name} again, after line {first_line[name]}.")
        path = folder / f"{name}.flac"
        if must_exist and f"{name}.flac" not in have:
            raise not_there(file, path, line)
        first_line[name] = line
        rows.append((name, path, "-" if key == "bonafide" else attack, KEYS[key]))
    return Clips.of(rows).of_both_kinds(file)
