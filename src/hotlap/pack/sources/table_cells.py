"""Cells of Parquet files and HF data sets as a row's values: numbers, lists, text, encoded images and audio."""

from __future__ import annotations

from typing import Any

import numpy as np

from hotlap.pack.sources.contract import BadRow
from hotlap.pack.sources.files import ImageReader

__all__ = ["cell", "image_bytes", "number_type"]


def number_type(kind: Any) -> np.dtype[Any] | None:
    """What a column of this Arrow type holds, in lists too; None where that is no numbers."""
    import pyarrow as pa

    while True:
        if isinstance(kind, pa.BaseExtensionType):
            kind = kind.storage_type
        elif hasattr(kind, "value_type"):  # lists of any kind, dictionaries
            kind = kind.value_type
        else:
            break
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    return np.dtype(kind.to_pandas_dtype()) if is_number else None


def image_bytes(value: Any) -> bytes | None:
    """The encoded file in ``{"bytes": …, "path": …}`` (how HF stores images and audio) or in a plain binary cell."""
    if isinstance(value, dict) and "bytes" in value:
        value = value["bytes"]
    return value if isinstance(value, bytes) else None


def cell(name: str, value: Any, is_image: bool, image: ImageReader, dtype: np.dtype[Any] | None) -> dict[str, Any]:
    """One cell. An image keeps its column's name; numbers that lost their type on the way get it back."""
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
        try:
            array = np.array(value)
        except ValueError:  # lists of lists
            array = np.array(None)
        if array.dtype == object:
            raise BadRow(f"column {name!r} holds lists of differing length, or with empty (null) entries")
        return {name: array if dtype is None or dtype == array.dtype else np.array(value, dtype)}
    if isinstance(value, bool | int | float) and dtype is not None:
        return {name: dtype.type(value)}
    if isinstance(value, str | bytes | bool | int | float | np.ndarray | np.generic):
        return {name: value}
    raise BadRow(f"column {name!r} holds {type(value).__name__}, which cannot be packed")
