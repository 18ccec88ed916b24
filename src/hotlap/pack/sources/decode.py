"""Image and audio files as arrays. Nothing is decoded before its header says that it is not a bomb."""

from __future__ import annotations

import io
import re
import struct
import warnings
from typing import Any

import numpy as np

from hotlap.pack.sources.contract import BadRow
from hotlap.records.errors import HotlapError

__all__ = ["MAX_PIXELS", "MAX_SAMPLES", "check_image", "decode_audio", "decode_image", "fast_jpeg", "image_size"]

MAX_PIXELS = 64_000_000
"""A larger image is refused: a few KB of PNG can ask for terabytes. Photographs have 50 million at most."""
MAX_SAMPLES = 1 << 30
"""Likewise for audio: 6 hours at 48 kHz."""

_JPEG = b"\xff\xd8"
"""How a JPEG begins."""
_DAMAGE = ("premature end", "bad huffman", "bad arithmetic", "instead of rst")
"""What libjpeg says of pictures of which a part is lost. Its other warnings (extraneous bytes) leave them whole."""
_UNKNOWN_BYTES = 0x7FFF_F000
"""Sizes from here on are what programs write that stream a recording and do not know its end; others write 0."""
Array = np.ndarray[Any, Any]


def _pil() -> Any:
    try:
        from PIL import Image
    except ImportError as err:
        raise HotlapError("Reading images needs Pillow, which is not installed.", "pip install 'hotlap[pack]'") from err
    return Image


def _open(content: bytes) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow warns of large images; ours is the limit that counts
            image = _pil().open(io.BytesIO(content))
    except HotlapError:
        raise
    except Exception as err:  # Pillow's plug-ins raise whatever they like on damaged headers
        raise BadRow(f"not an image that can be read ({_said(err)})") from err
    _check_pixels(*image.size)
    return image


def _said(err: Exception) -> str:
    """An error's words, without the buffer that a library takes for a file's name."""
    return re.sub(r" ?<_io\.BytesIO object at 0x[0-9a-f]+>", "", str(err)).rstrip(".")


def _check_pixels(width: int, height: int) -> None:
    if width * height > MAX_PIXELS:
        raise BadRow(f"{width}x{height} pixels; at most {MAX_PIXELS} are decoded")


def image_size(content: bytes) -> tuple[int, int]:
    """(height, width), from the header alone."""
    width, height = _open(content).size
    return int(height), int(width)


def decode_image(content: bytes, size: tuple[int, int] | None = None, palettes: bool = True) -> Array:
    """RGB as uint8 [3, height, width] (planes: a crop of a plane is a window of memory), resized if asked.

    ``palettes``: whether of an image with a palette the colours are meant.
    """
    array = fast_jpeg(content)
    if array is not None and size in (None, array.shape[:2]):
        return np.ascontiguousarray(array.transpose(2, 0, 1))
    image = _open(content) if array is None else _pil().fromarray(array)
    if deep := _deep_mode(image):
        wanted = "Convert it to 8 bits first: which of its values are black and white is yours to say."
        raise BadRow(f"an image of more than 8 bits (mode {deep}).", wanted)
    if image.mode in ("P", "PA") and not palettes:
        wanted = "Save it as grey (mode L) with the numbers as they are, or as RGB."
        raise BadRow(f"an image with a palette (mode {image.mode}): colours, or the numbers of a mask?", wanted)
    try:
        rgb = image.convert("RGB")
        if size is not None and (rgb.height, rgb.width) != size:
            rgb = rgb.resize((size[1], size[0]), _pil().Resampling.BILINEAR)
    except Exception as err:  # as above: a truncated file is an OSError, SyntaxError, struct.error …
        raise BadRow(f"damaged image ({_said(err)})") from err
    return np.ascontiguousarray(np.asarray(rgb).transpose(2, 0, 1))


def _deep_mode(image: Any) -> str:
    """What Pillow calls an image of more than 8 bits a channel; empty of others.

    Of colours it drops the lower bits while it decodes: the mode is that of 8 bits, and the file's own is told apart.
    """
    if image.mode in ("I", "F") or image.mode.startswith("I;"):
        return str(image.mode)
    for codec, _, _, args in getattr(image, "tile", ()):
        raw, *rest = args if isinstance(args, tuple) else (args,)
        if ";16" in str(raw) and not str(raw).startswith("BGR"):  # a pixel of those has 16 bits in all
            return str(raw)
        if codec.startswith("ppm") and rest and rest[0] > 255:
            return f"{raw} up to {rest[0]}"
    return ""


def check_image(content: bytes) -> None:
    """BadRow where :func:`decode_image` raises one, in half its time: a JPEG's every code is read, of which only the
    mean brightness of each block becomes a picture."""
    if _jpeg(content, "GRAY", min_height=1, min_width=1) is None:
        decode_image(content)


def fast_jpeg(content: bytes) -> Array | None:
    """By libjpeg-turbo where simplejpeg is installed and the file is one it knows; else None. BadRow of damage."""
    return _jpeg(content, "RGB")


def _jpeg(content: bytes, colours: str, **scale: int) -> Array | None:
    if not content.startswith(_JPEG):
        return None
    try:
        import simplejpeg
    except ImportError:
        return None
    try:
        height, width, *_ = simplejpeg.decode_jpeg_header(content)
        _check_pixels(width, height)
        decoded: Array = simplejpeg.decode_jpeg(content, colours, **scale)
    except ValueError as err:
        if any(words in str(err).lower() for words in _DAMAGE):  # Pillow would fill in grey, and say nothing
            raise BadRow(f"damaged image ({err})") from err
        return None  # CMYK, a header that is none: Pillow decides, and words the error
    return decoded


def decode_audio(content: bytes) -> tuple[Array, int]:
    """(samples, rate): int16 where the file holds 16 bits, float32 otherwise; [frames] or [frames, channels]."""
    try:
        import soundfile
    except ImportError as err:
        raise HotlapError("Reading audio needs soundfile, which is not installed.", "pip install soundfile") from err
    _check_whole(content)
    try:
        with soundfile.SoundFile(io.BytesIO(content)) as file:
            if file.frames * file.channels > MAX_SAMPLES:
                raise BadRow(f"{file.frames} frames of {file.channels} channels; at most {MAX_SAMPLES} are decoded")
            deep = file.subtype in ("PCM_24", "PCM_32", "FLOAT", "DOUBLE")
            samples = file.read(dtype="float32" if deep else "int16")
            if len(samples) != file.frames:
                raise BadRow(f"truncated: {len(samples)} of {file.frames} frames")
            if len(samples) == 0:
                raise BadRow("a recording of 0 frames")
            return samples, int(file.samplerate)
    except (soundfile.SoundFileError, RuntimeError) as err:
        raise BadRow(f"not audio that can be read ({_said(err)})") from err


def _check_whole(content: bytes) -> None:
    """BadRow where a WAV or AIFF ends before its samples do: libsndfile takes what is there for all of it."""
    order = {b"RIFF": "<", b"FORM": ">"}.get(content[:4])
    at = 12
    while order and at + 8 <= len(content):
        kind, size = struct.unpack_from(f"{order}4sI", content, at)
        at += 8
        if kind in (b"data", b"SSND"):
            if len(content) - at < size < _UNKNOWN_BYTES:
                raise BadRow(f"truncated: {len(content) - at} of {size} bytes of samples")
            return
        at += size + size % 2  # chunks begin at even bytes
