"""Calls of the well-known file readers, whatever name the script imported them by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hotlap.patch.source import Source, Unwritable, dotted

if TYPE_CHECKING:
    import libcst as cst

__all__ = ["full_name", "full_names", "reader_calls"]

_READERS = {
    "soundfile.read", "cv2.imread", "cv2.imdecode", "PIL.Image.open", "numpy.load", "torchaudio.load",
    "scipy.io.wavfile.read", "simplejpeg.decode_jpeg",
}  # fmt: skip
_HANDLES = {"mmap_mode"}
"""A reader given one of these hands out the file itself, which cannot be kept."""


def reader_calls(source: Source) -> list[cst.Call]:
    """By place. Unwritable where there is none, or one is used in a way that a copy cannot stand in for."""
    import libcst as cst

    known = full_names(source)
    found, opened, kept_open = [], False, False
    for call in source.of_type(cst.Call):
        full = full_name(call, known)
        opened = opened or full == "soundfile.SoundFile"
        keywords = {a.keyword.value for a in call.args if a.keyword is not None}
        plain = call.args and call.args[0].keyword is None and not call.args[0].star
        if full in _READERS and plain and not keywords & _HANDLES and not _maps(source, call, full):
            if full == "PIL.Image.open" and any(isinstance(p, cst.WithItem) for p in source.parents(call)):
                raise Unwritable("the image is opened by a `with`: read it whole first")
            if full == "PIL.Image.open" and not _pixels_alone(source, call, known):
                kept_open = True
                continue
            found.append(call)
    if not found and opened:
        raise Unwritable("sounds are opened by soundfile.SoundFile: read them whole first, by soundfile.read")
    if not found and kept_open:
        raise Unwritable("the image may be asked for more than its pixels: write .convert(...) right behind Image.open")
    if not found:
        raise Unwritable("no call of a well-known reader is in this file")
    return found


def _maps(source: Source, call: cst.Call, full: str) -> bool:
    """``np.load(path, "r")``: the mode by its place."""
    values = [a for a in call.args if a.keyword is None]
    return full == "numpy.load" and len(values) > 1 and (values[1].star != "" or source.code(values[1].value) != "None")


def _pixels_alone(source: Source, call: cst.Call, known: dict[str, str]) -> bool:
    """Whether the opened image is made another at once: the copy of it has no file name, frames or tags of a camera."""
    import libcst as cst

    parent, around = [*source.parents(call)][:2]
    if isinstance(parent, cst.Attribute):
        return parent.attr.value == "convert" and isinstance(around, cst.Call) and around.func is parent
    return isinstance(around, cst.Call) and full_name(around, known) in ("numpy.array", "numpy.asarray")


def full_name(call: cst.Call, known: dict[str, str]) -> str:
    """``numpy.load`` of ``np.load(path)``, by what :func:`full_names` found."""
    head, dot, rest = (dotted(call.func) or "").partition(".")
    return known.get(head, head) + dot + rest


def full_names(source: Source) -> dict[str, str]:
    """``sf`` → ``soundfile``, ``Image`` → ``PIL.Image``."""
    import libcst as cst

    found = {}
    for node in source.of_type(cst.Import, cst.ImportFrom):
        base = "" if isinstance(node, cst.Import) or node.module is None else (dotted(node.module) or "") + "."
        for alias in node.names if not isinstance(node.names, cst.ImportStar) else ():
            full = base + (dotted(alias.name) or "")
            name = alias.asname.name.value if alias.asname is not None else full.removeprefix(base)
            found[name] = full
    return found
