"""Folders of classes, and text lists as the field writes them (VoxCeleb, ASVspoof, ``dataset_infor.json``)."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from hotlap.pack.sources.files import FileSource, check_names, names_to_numbers
from hotlap.pack.sources.listing import list_folder, list_folders
from hotlap.pack.sources.options import AUDIO, IMAGES, SourceOptions
from hotlap.pack.sources.read import is_url, named, read_file
from hotlap.records.errors import HotlapError

__all__ = ["file_folder", "file_list", "identity_json", "protocol"]

_WHOLE = re.compile(r"[+-]?[0-9]+")
_REAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def file_folder(root: str, options: SourceOptions) -> FileSource:
    """A folder of images or audio; its first level of folders are the classes where there are any.

    A class without files counts too: the parts of a data set (train, val) then number their classes alike.
    """
    names = list_folder(root, (*IMAGES, *AUDIO))
    kinds = {name.lower().endswith(AUDIO) for name in names}
    if len(kinds) == 2:
        raise HotlapError(f"{root} holds both images and audio.", "Pack them apart: name the folders, or use a list.")
    stray = [name for name in names if "/" not in name]
    if stray and len(stray) < len(names):
        first = next(name for name in names if "/" in name)
        raise HotlapError(
            f"{root} has files without a class: {stray[0]} ({len(stray)} in all) lies beside folders of classes, as "
            f"that of {first}.",
            "Move them into a class's folder or elsewhere; a list of names (.txt) packs files without labels.",
        )
    if stray or not names:
        return FileSource(root, names, {}, options)
    folders = list_folders(root)
    check_names(root, folders)
    return _labelled(root, names, [PurePosixPath(n).parts[0] for n in names], options, folders)


def _labelled(root: str, names: list[str], labels: list[str], options: SourceOptions,
              known: Sequence[str] = ()) -> FileSource:  # fmt: skip
    columns: dict[str, Any] = {}
    classes: list[str] = []
    if labels:
        columns["label"], classes = names_to_numbers(labels, known)
    source = FileSource(root, names, columns, options)
    if classes:
        source.metadata["classes"] = classes
    return source


def _beside(path: str) -> str:
    return path.rsplit("/", 1)[0] if is_url(path) else os.path.dirname(os.path.abspath(path))


def _lines(path: str) -> dict[int, list[str]]:
    """The words of each line by its number in the file, comments and empty lines left out."""
    try:
        text = read_file(path).decode("utf-8-sig")
    except UnicodeDecodeError as err:
        raise HotlapError(f"{path} is not a text file: {err}.") from err
    lines = {number: line for number, line in enumerate(text.splitlines(), 1) if not line.startswith("#")}
    return {number: words for number, line in lines.items() if (words := line.replace(",", " ").split())}


def file_list(path: str, options: SourceOptions) -> FileSource:
    """Lines of one file name and at most one label, in any order: ``id1/a.wav``, ``id1 id1/a.wav``, ``a.jpg 3``.

    Names are numbered; where all labels are numbers, they are kept.
    """
    lines = _lines(path)
    if lines and all(len(line) == 5 and line[-1] in ("bonafide", "spoof") for line in lines.values()):
        return protocol(path, list(lines.values()), options)
    names, labels, first = [], [], next(iter(lines), 0)
    for number, words in lines.items():
        files = [w for w in words if w.lower().endswith((*IMAGES, *AUDIO))]
        others = [w for w in words if w not in files]
        if len(files) != 1 or len(others) > 1:
            raise HotlapError(
                f"{path}:{number} should hold one file name and at most one label; it holds {' '.join(words)!r}."
            )
        names.append(files[0])
        labels += others
        if len(labels) not in (0, len(names)):
            has, had = ("a", "no") if others else ("no", "a")
            raise HotlapError(f"{path}:{number} has {has} label, line {first} has {had} label.",
                              "Give each line a label, or none.")  # fmt: skip
    root = options.root or _beside(path)
    numbers = _numbers(path, labels)
    if numbers:
        return FileSource(root, named(root, names), {"label": numbers}, options)
    return _labelled(root, named(root, names), labels, options)


def _numbers(path: str, labels: list[str]) -> Sequence[float]:
    """Labels as the numbers that they are, floats where not all are whole; empty where one is a name."""
    if all(_WHOLE.fullmatch(label) for label in labels):
        spelt: dict[int, str] = {}
        for label in labels:
            if (other := spelt.setdefault(int(label), label)) != label:
                raise HotlapError(f"{path} has the labels {other} and {label}: two names, or one number?",
                                  "Write one number in one way, or add a letter to names.")  # fmt: skip
        return [int(label) for label in labels]
    return [float(label) for label in labels] if all(_REAL.fullmatch(label) for label in labels) else []


def protocol(path: str, lines: list[list[str]], options: SourceOptions) -> FileSource:
    """ASVspoof: ``SPEAKER FILE - ATTACK bonafide|spoof``; files are ``ROOT/FILE.flac`` or ``ROOT/flac/FILE.flac``."""
    root = options.root or _beside(path)
    first = lines[0][1] + ".flac"
    folders = [f for f in ("", "flac/", "../flac/") if (Path(root) / f / first).exists()]
    if folders and folders[0] == "../flac/":
        root, folders = os.path.dirname(root), ["flac/"]
    elif not folders and not is_url(root):
        raise HotlapError(f"{first} of {path} is neither in {root} nor in its folder flac.", "Say where: --root DIR")
    prefix = folders[0] if folders else ""
    speakers, speaker_names = names_to_numbers([line[0] for line in lines])
    attacks, attack_names = names_to_numbers([line[3] for line in lines])
    genuine = [int(line[4] == "bonafide") for line in lines]
    columns: dict[str, Any] = {"label": genuine, "speaker": speakers, "attack": attacks}
    source = FileSource(root, named(root, (f"{prefix}{line[1]}.flac" for line in lines)), columns, options)
    source.metadata |= {"classes": ["spoof", "bonafide"], "speakers": speaker_names, "attacks": attack_names}
    return source


def identity_json(path: str, found: dict[str, list[str]], options: SourceOptions) -> FileSource:
    """``dataset_infor.json``: {identity: [image, …]}; pairs of identities beside it come along as metadata."""
    wrong = next(((who, name) for who, images in found.items() for name in images if not isinstance(name, str)), None)
    if wrong:
        raise HotlapError(f"{path}: {wrong[0]!r} has an image that is no file name: {wrong[1]!r:.80}.")
    names = [name for images in found.values() for name in images]
    labels = [identity for identity, images in found.items() for _ in images]
    root = options.root or _beside(path)
    if options.root is None and any(name.startswith("../") for name in names):
        climbs = max(len(n.split("/")) - len([p for p in n.split("/") if p != ".."]) for n in names)
        raise HotlapError(
            f"{path} names files outside its folder ({next(n for n in names if n.startswith('../'))}).",
            f"If that is right: --root {os.path.normpath(os.path.join(root, *['..'] * climbs))}",
        )
    base = os.path.relpath(_beside(path), root) if not is_url(root) else ""
    names = named(root, (os.path.normpath(os.path.join(base, n)) for n in names))
    source = _labelled(root, names, labels, options)
    pairs = Path(path).with_name(Path(path).name.replace("dataset_infor", "twin_pairs_infor"))
    if pairs != Path(path) and pairs.exists():
        classes = {name: k for k, name in enumerate(source.metadata["classes"])}
        try:
            known = [p for p in json.loads(pairs.read_text()) if all(i in classes for i in p)]
        except (OSError, ValueError, TypeError) as err:
            raise HotlapError(f"{pairs} is no list of pairs: {err}.", "Repair it, or move it away.") from err
        source.metadata["pairs"] = [[classes[i] for i in pair] for pair in known]
    return source
