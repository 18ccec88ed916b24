"""What a pack holds: named columns, each of one kind, and how a Python value becomes a row of it.

Four kinds, chosen so that the loader can gather whole batches by address alone:

- ``tensor``: every row has the same shape and dtype (images decoded to one size, labels, embeddings);
- ``ragged``: the leading dimension varies, the rest is fixed (audio, boxes);
- ``bytes``: an encoded file, kept as it was (JPEG, FLAC);
- ``text``: a string.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from hotlap.records.errors import HotlapError

__all__ = ["DTYPES", "KINDS", "Column", "column_of", "columns_of", "schema_from_json", "to_row"]

KINDS = ("tensor", "ragged", "bytes", "text")
DTYPES = ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "float32", "float64")
"""What both Arrow and torch store in whole bytes. Booleans become uint8: Arrow packs them into bits."""


@dataclass(frozen=True)
class Column:
    """One column. ``shape`` is a row's shape for ``tensor``, the shape behind the leading dimension for ``ragged``."""

    name: str
    kind: str
    dtype: str = "uint8"
    shape: tuple[int, ...] = ()

    @property
    def unit_bytes(self) -> int:
        """Bytes of a whole row (``tensor``) or of one entry along the leading dimension."""
        return int(np.dtype(self.dtype).itemsize) * math.prod(self.shape)

    def to_json(self) -> dict[str, Any]:
        """As it stands in the manifest."""
        return {"name": self.name, "kind": self.kind, "dtype": self.dtype, "shape": list(self.shape)}


def schema_from_json(found: list[dict[str, Any]]) -> tuple[Column, ...]:
    """Columns of a manifest; refuses what this version does not know."""
    columns = tuple(Column(str(c["name"]), str(c["kind"]), str(c["dtype"]), tuple(map(int, c["shape"]))) for c in found)
    for c in columns:
        if c.kind not in KINDS or c.dtype not in DTYPES or any(not 0 <= size < 1 << 32 for size in c.shape):
            raise HotlapError(f"Column {c.name!r} is {c.kind} of {c.dtype} {c.shape}, which this version cannot read.")
    return columns


def _array(name: str, value: Any) -> np.ndarray[Any, Any]:
    is_tensor = type(value).__module__.partition(".")[0] == "torch"
    try:
        array = np.asarray(value.detach().cpu().numpy() if is_tensor else value)
    except (TypeError, ValueError, RuntimeError) as err:  # bfloat16, sparse, quantised; lists of differing length
        hint = "Return x.float(), x.to_dense() or x.dequantize()." if is_tensor else "Return arrays, each of one shape."
        what = f"a {value.layout} tensor of {value.dtype}" if is_tensor else f"{value!r:.80}, which is no array"
        raise HotlapError(f"Column {name!r} holds {what}: a pack cannot store it.".replace("torch.", ""), hint) from err
    if array.dtype == np.bool_:
        array = array.astype(np.uint8)
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    return array


def column_of(name: str, value: Any, ragged: bool = False) -> Column:
    """The column that ``value``, a first row's value, asks for."""
    if isinstance(value, bytes | bytearray | memoryview):
        return Column(name, "bytes")
    if isinstance(value, str):
        return Column(name, "text")
    array = _array(name, value)
    if array.dtype.name not in DTYPES:
        raise HotlapError(
            f"Column {name!r} holds {array.dtype}, which a pack cannot store.",
            f"Return numbers ({', '.join(DTYPES)}), bool, str or bytes.",
        )
    if ragged and array.ndim == 0:
        raise HotlapError(f"Column {name!r} cannot vary in length: its first row is a single number.")
    shape = tuple(array.shape[1:] if ragged else array.shape)
    if 0 in shape:
        raise HotlapError(f"Column {name!r} has rows of shape {tuple(array.shape)}, which hold nothing.",
                          "Leave the column out, or name it with --ragged if its length varies.")  # fmt: skip
    return Column(name, "ragged" if ragged else "tensor", array.dtype.name, shape)


def columns_of(row: dict[str, Any], ragged: frozenset[str]) -> tuple[Column, ...]:
    """The columns of a first row; the ``ragged`` ones vary in length."""
    if not row:
        raise HotlapError("The rows have no columns: there is nothing to pack.", "Return a value for each row.")
    return tuple(column_of(name, value, name in ragged) for name, value in row.items())


_ONE_SCALE = (
    "Samples and pixels of whole numbers have another scale than those of floats (16 bits and 24, 0…255 and 0…1): "
    "convert the ones to what the others are."
)


def _differ_in_scale(held: np.dtype[Any], value: Any, array: np.ndarray[Any, Any]) -> bool:
    """Whether the one are floats and the other samples or pixels as devices number them: written numbers are wider."""
    floats, whole = (held, array.dtype) if held.kind == "f" else (array.dtype, held)
    is_mask = str(getattr(value, "dtype", "")).endswith("bool")
    is_narrow = whole.kind in "iu" and whole.itemsize <= 2
    return array.ndim > 0 and floats.kind == "f" and is_narrow and not is_mask


def to_row(column: Column, value: Any) -> np.ndarray[Any, Any] | bytes:
    """``value`` as this column stores it; raises HotlapError where it does not fit."""
    if column.kind == "bytes":
        if not isinstance(value, bytes | bytearray | memoryview):
            raise HotlapError(f"Column {column.name!r} holds bytes, this row has {type(value).__name__}.")
        return bytes(value)
    if column.kind == "text":
        if not isinstance(value, str):
            raise HotlapError(f"Column {column.name!r} holds text, this row has {type(value).__name__}.")
        try:
            return value.encode()
        except UnicodeEncodeError as err:
            raise HotlapError(f"Column {column.name!r} holds text that is no UTF-8: {value[:80]!r}.") from err
    array = _array(column.name, value)
    inner = tuple(array.shape[1:]) if column.kind == "ragged" else tuple(array.shape)
    if column.kind == "ragged" and array.size == 0 and len(array) == 0:
        return np.empty((0, *column.shape), column.dtype)  # no boxes: an empty list knows no shape
    if inner != column.shape or (column.kind == "ragged" and array.ndim == 0):
        raise HotlapError(
            f"Column {column.name!r} has rows of shape {column.shape}, this row has {tuple(array.shape)}.",
            "Give all rows one size (--size), store them encoded (--store encoded), or name the column with --ragged.",
        )
    if array.dtype.name != column.dtype:
        both_whole = array.dtype.kind in "iu" and np.dtype(column.dtype).kind in "iu"
        hint = _ONE_SCALE if _differ_in_scale(np.dtype(column.dtype), value, array) else ""
        if hint or (not both_whole and not np.can_cast(array.dtype, column.dtype, "same_kind")):
            raise HotlapError(f"Column {column.name!r} holds {column.dtype}, this row has {array.dtype}.", hint)
        cast = array.astype(column.dtype)
        if array.dtype.kind in "iu" and not np.array_equal(cast, array):
            raise HotlapError(f"Column {column.name!r} holds {column.dtype}; this row has values beyond it.")
        array = cast
    return np.ascontiguousarray(array)
