"""What can be said about a source, whatever its kind."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["AUDIO", "IMAGES", "LAYOUT", "RESIZED", "STORE", "SourceOptions"]

IMAGES = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".gif", ".tif", ".tiff", ".ppm", ".pgm")
AUDIO = (".wav", ".flac", ".ogg", ".mp3", ".aiff")

STORE = "store"
"""Key of a pack's metadata: ``raw`` or ``encoded``, as its images and recordings are; absent where they differ."""
LAYOUT = "rows"
"""Key of a pack's metadata: ``planar`` or ``interleaved``, as its decoded images are."""
RESIZED = "resized_to"
"""Key of a pack's metadata: ``HEIGHTxWIDTH`` that its images were resized to while packing."""


@dataclass(frozen=True)
class SourceOptions:
    """Options of ``hotlap pack`` that say how rows are read."""

    root: str | None = None
    """Folder (or URL) that names in a list are relative to; default: where the list lies."""
    store: str = "auto"
    """``raw``: decoded; ``encoded``: the file's own bytes; ``auto``: raw where all have one size, or get one."""
    size: tuple[int, int] | None = None
    """Resize images to (height, width) while packing."""
    interleaved: bool = False
    """Decoded images as [height, width, channel] instead of planes: better where batches are to be channels-last."""
