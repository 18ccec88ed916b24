"""The files of a face data set by name: what is trained on, and what it is judged by."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hotlap_workloads.errors import DataError
from hotlap_workloads.face_distill.bins import read_bin
from hotlap_workloads.face_distill.evaluations import Evaluation, GallerySet, TemplateSet, VerificationSet
from hotlap_workloads.face_distill.photos import SUFFIXES, FilePhotos, Photos, photos_in_folder, photos_in_list
from hotlap_workloads.face_distill.records import RecordPhotos
from hotlap_workloads.face_distill.settings import FaceSettings
from hotlap_workloads.face_distill.slow_storage import SlowPhotos
from hotlap_workloads.face_distill.squares import Squares
from hotlap_workloads.parts.fields import fields, not_there
from hotlap_workloads.parts.trials import read_trials

__all__ = ["HEAVY_NAMES", "heavy_names", "heavy_sets", "train_squares", "verification_sets"]

HEAVY_NAMES = "ijbb/, ijbc/, tinyface/, test_trials*.txt"


def train_squares(s: FaceSettings, data: Path, forgive: bool = False) -> Squares:
    """The training set that ``train`` names, or the first of its usual names that is there.

    ``forgive``: records that cannot be read are left for the reader to find.
    """
    names = [s.train] if s.train else ["train.rec", "train_list.txt", "train"]
    path = next((data / name for name in names if (data / name).exists()), None)
    if path is None:
        raise DataError(data, f"holds no {' and no '.join(names)}.", "train=NAME names the training set.")
    photos: Photos
    if path.suffix == ".rec":
        photos = RecordPhotos(path, s.photos_per_identity, forgive)
    elif path.is_dir():
        photos = photos_in_folder(path, s.photos_per_identity)
    else:
        photos = photos_in_list(path, s.photos_per_identity)
    if s.identities and s.identities != photos.identities:
        raise DataError(path, f"has {photos.identities} identities, and identities={s.identities}.")
    if s.page_cache_mb:
        photos = SlowPhotos(photos, int(s.page_cache_mb * 1e6), s.storage_ms / 1000)
    return Squares(photos, s.size, s.middle)


def verification_sets(s: FaceSettings, data: Path, must_exist: bool = True) -> list[Evaluation]:
    """The sets that ``verification`` names, or those there are. With ``must_exist``, so must photos of trials."""
    names = list(s.verification) or sorted(path.stem for path in data.glob("*.bin"))
    if not names and (data / "val_trials.txt").exists():
        names = ["val_trials.txt"]
    if not names:
        raise DataError(data, "holds no verification set (NAME.bin, or val_trials.txt).", "verification=NAME names it.")
    return [
        _trials(s, data / name, must_exist) if name.endswith(".txt") else _bin(s, data / f"{name}.bin")
        for name in names
    ]


def heavy_names(s: FaceSettings, data: Path) -> list[str]:
    """What ``heavy`` names, or what there is: nothing in a training set as InsightFace ships it."""
    if s.heavy:
        return list(s.heavy)
    folders = [name for name in ("ijbb", "ijbc", "tinyface") if (data / name).is_dir()]
    return folders + sorted(path.name for path in data.glob("test_trials*.txt"))


def heavy_sets(s: FaceSettings, data: Path, must_exist: bool = True) -> list[Evaluation]:
    """The sets that ``heavy`` names, or those there are. With ``must_exist``, so must photos of trials."""
    names = heavy_names(s, data)
    if not names:
        raise DataError(data, f"holds nothing for the heavy evaluation ({HEAVY_NAMES}).", "heavy=NAME names it.")
    return [_heavy(s, data / name, must_exist) for name in names]


def _heavy(s: FaceSettings, path: Path, must_exist: bool) -> Evaluation:
    if path.suffix == ".txt":
        return _trials(s, path, must_exist)
    return _gallery(s, path) if path.name == "tinyface" else _templates(s, path, must_exist)


def _trials(s: FaceSettings, file: Path, must_exist: bool) -> VerificationSet:
    trials = read_trials(file, file.parent, must_exist)
    photos = FilePhotos(trials.paths, [0] * len(trials.paths), 1)
    squares = Squares(photos, s.size, s.middle)
    left, right = np.array(trials.left), np.array(trials.right)
    return VerificationSet(file.stem, squares, left, right, trials.same).checked(file)


def _bin(s: FaceSettings, file: Path) -> VerificationSet:
    photos, same = read_bin(file)
    first = np.arange(0, len(photos), 2)
    return VerificationSet(file.stem, Squares(photos, s.size, s.middle), first, first + 1, same).checked(file)


def _templates(s: FaceSettings, folder: Path, must_exist: bool) -> TemplateSet:
    """``meta/*_face_tid_mid.txt`` (photo, template, medium), ``meta/*_template_pair_label.txt``, ``loose_crop/``.

    With ``meta/*_name_5pts_score.txt`` (photo, five landmarks, the detector's score) photos are aligned by it.
    """
    listed = _one(folder, "meta/*_face_tid_mid.txt")
    rows = [found for _, found in fields(listed, "photo template medium")]
    templates, media = (_whole(listed, [row[i] for row in rows]) for i in (1, 2))
    pairs_file = _one(folder, "meta/*_template_pair_label.txt")
    pairs = _table(pairs_file, 3)
    if len(unknown := np.setdiff1d(pairs[:, :2], templates)):
        raise DataError(pairs_file, f"names template {unknown[0]}, which {listed.name} does not have.")
    paths = [folder / "loose_crop" / row[0] for row in rows]
    if must_exist and (missing := next((path for path in paths if not path.is_file()), None)):
        raise not_there(listed, missing)
    points, weights = _landmarks(folder, [row[0] for row in rows])
    squares = Squares(FilePhotos(paths, [0] * len(paths), 1), s.size, s.middle, points)
    left, right, same = pairs.T
    found = TemplateSet(folder.name, squares, templates, media, weights, left, right, same, s.fars)
    return found.checked(pairs_file)


def _landmarks(folder: Path, names: list[str]) -> tuple[NDArray[np.float64] | None, NDArray[np.float64]]:
    """Five points of each photo, or None, and the detector's score, or 1."""
    if not list(folder.glob("meta/*_name_5pts_score.txt")):
        return None, np.ones(len(names))
    file = _one(folder, "meta/*_name_5pts_score.txt")
    by_name = {found[0]: found[1:] for _, found in fields(file, "photo x y x y x y x y x y score")}
    if missing := [name for name in names if name not in by_name]:
        raise DataError(file, f"lacks {missing[0]} and {len(missing) - 1} other photos.")
    try:
        table = np.array([by_name[name] for name in names], np.float64)
    except ValueError as err:
        raise DataError(file, f"holds what is no number: {err}.") from err
    return table[:, :10].reshape(-1, 5, 2), table[:, 10]


def _gallery(s: FaceSettings, folder: Path) -> GallerySet:
    """``Probe/``, ``Gallery_Match/`` and ``Gallery_Distractor/`` with photos ``PERSON_NUMBER.jpg``."""
    below = folder / "Testing_Set" if (folder / "Testing_Set").is_dir() else folder
    paths, persons, counts = [], [], []
    for name in ("Probe", "Gallery_Match", "Gallery_Distractor"):
        found = sorted(path for path in (below / name).glob("*") if path.suffix.lower() in SUFFIXES)
        if not found and name != "Gallery_Distractor":
            raise DataError(below / name, f"holds no photo ({', '.join(SUFFIXES)}).")
        paths += found
        counts.append(len(found))
        persons += [-1] * len(found) if name == "Gallery_Distractor" else [_person(path) for path in found]
    squares = Squares(FilePhotos(paths, [0] * len(paths), 1), s.size, s.middle)
    return GallerySet(folder.name, squares, np.array(persons), counts[0]).checked(below)


def _person(path: Path) -> int:
    person = path.stem.split("_")[0]
    if not person.isdecimal():
        raise DataError(path, "does not begin with the number of a person, as in 12_3.jpg.")
    return int(person)


def _one(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise DataError(folder / pattern, f"matches {len(found)} files, not one.")
    return found[0]


def _table(file: Path, columns: int) -> NDArray[np.int64]:
    try:
        table = np.loadtxt(file, np.int64, ndmin=2)
    except (OSError, ValueError) as err:
        raise DataError(file, f"is no table of whole numbers: {err}.") from err
    if table.shape[1] != columns:
        raise DataError(file, f"has {table.shape[1]} columns, not {columns}.")
    return table


def _whole(file: Path, texts: list[str]) -> NDArray[np.int64]:
    try:
        return np.array(texts).astype(np.int64)
    except ValueError as err:
        raise DataError(file, f"holds what is no whole number: {err}.") from err
