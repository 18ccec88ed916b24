"""Known readers of images, audio and arrays, timed while a batch is being fetched."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable
from threading import get_ident
from typing import Any

from hotlap.probe.c_functions import as_unbound
from hotlap.probe.context import Context
from hotlap.probe.load_time import MeterHolder
from hotlap.probe.own_frames import strip

__all__ = ["READERS", "install"]

READERS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("PIL.ImageFile", "ImageFile", ("load",)),
    ("PIL.Image", "", ("open",)),
    ("cv2", "", ("imread", "imdecode")),
    ("simplejpeg", "", ("decode_jpeg",)),
    ("soundfile", "", ("read",)),
    ("soundfile", "SoundFile", ("read",)),
    ("numpy", "", ("load",)),
    ("torchaudio", "", ("load",)),
    ("librosa", "", ("load",)),
    ("imageio", "", ("imread",)),
    ("scipy.io.wavfile", "", ("read",)),
    ("wave", "", ("open",)),
    ("wave", "Wave_read", ("readframes",)),
    ("torchvision.io", "", ("read_image", "decode_image")),
    ("torch", "", ("load",)),
)
"""Module, class ("" for functions of the module), names."""


def install(ctx: Context, holder: MeterHolder) -> None:
    """Replace each reader once its module is imported."""
    reading: set[int] = set()

    def watch(owner: str, names: tuple[str, ...], module: Any) -> None:
        target = getattr(module, owner, None) if owner else module
        for name in names:
            original = getattr(target, name, None)
            if callable(original):
                timed = _timed(original, holder, reading)
                ctx.undo.replace(target, name, timed)
                home = sys.modules.get(getattr(original, "__module__", None) or "")
                if home not in (None, target) and getattr(home, name, None) is original:  # by that name it is pickled
                    ctx.undo.replace(home, name, timed)

    for module, owner, names in READERS:
        if module == "torch":
            watch(owner, names, ctx.torch)
        else:
            ctx.on_import(module, functools.partial(watch, owner, names))


def _timed(original: Callable[..., Any], holder: MeterHolder, reading: set[int]) -> Callable[..., Any]:
    clock = time.monotonic_ns

    @functools.wraps(original)
    def read(*args: Any, **kwargs: Any) -> Any:
        try:
            thread = get_ident()
            if thread not in holder.meter.fetching or thread in reading:
                return original(*args, **kwargs)
            reading.add(thread)
            begun = clock()
            try:
                return original(*args, **kwargs)
            finally:
                holder.meter.decode += clock() - begun
                reading.discard(thread)
        except BaseException as err:
            strip(err)
            raise

    return as_unbound(original, read)
