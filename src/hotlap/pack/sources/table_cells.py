"""Cells of Parquet files and HF data sets as a row's values: numbers, lists, text, encoded images and audio."""

from __future__ import annotations

from typing import Any

import numpy as np

from hotlap.pack.sources.contract import BadRow
from hotlap.pack.sources.files import ImageReader

__all__ = ["cell", "image_bytes"]


def image_bytes(value: Any) -> bytes | None:
    """The encoded file in ``{"bytes": …, "path": …}`` (how HF stores images and audio) or in a plain binary cell."""
    if isinstance(value, dict) and "bytes" in value:
        value = value["bytes"]
    return value if isinstance(value, bytes) else None


def cell(name: str, value: Any, is_image: bool, image: ImageReader) -> dict[str, Any]:
    """One cell. An image keeps its column's name."""
    content = image_bytes(value)
    if is_image:
        if content is None:
            raise BadRow(f"column {name!r} holds no image here")
        return {name: image(content)["image"]}
    if content is not None:
        return {name: content}
    if value is None:
        raise BadRow(f"column {name!r} is empty (null) here")
    if isinstance(value, list):
        array = np.array(value)
        if array.dtype == object:
            raise BadRow(f"column {name!r} holds lists of differing length")
        return {name: array}
    if isinstance(value, str | bytes | bool | int | float | np.ndarray | np.generic):
        return {name: value}
    raise BadRow(f"column {name!r} holds {type(value).__name__}, which cannot be packed")
