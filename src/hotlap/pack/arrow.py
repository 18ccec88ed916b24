"""A chunk of rows as an Arrow record batch, and where its bytes ended up in the file.

Plain Arrow IPC, so that pandas, polars, DuckDB and HF datasets read a part as it is: fixed shapes are nested lists of
fixed size (HF datasets refuses the type that Arrow has for tensors), varying lengths large lists, files large binary.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from hotlap.pack.schema import Column
from hotlap.records.errors import HotlapError

__all__ = ["arrow_schema", "column_starts", "pyarrow", "record_batch"]


def pyarrow() -> ModuleType:
    """The library, or a sentence that says how to get it. Reading a pack does without."""
    try:
        import pyarrow
    except ImportError as err:
        raise HotlapError("Packing needs pyarrow, which is not installed.", "pip install 'hotlap[pack]'") from err
    return pyarrow  # type: ignore[no-any-return]


def _storage(pa: Any, column: Column) -> Any:
    value = pa.from_numpy_dtype(np.dtype(column.dtype))
    if column.kind == "bytes":
        return pa.large_binary()
    if column.kind == "text":
        return pa.large_string()
    for size in reversed(column.shape):
        value = pa.list_(value, size)
    return pa.large_list(value) if column.kind == "ragged" else value


def arrow_schema(columns: Sequence[Column]) -> Any:
    """The file's schema; our own description travels in its metadata."""
    pa = pyarrow()
    ours = {"hotlap.pack": json.dumps({"version": 1, "columns": [c.to_json() for c in columns]})}
    return pa.schema([pa.field(c.name, _storage(pa, c), nullable=False) for c in columns], metadata=ours)


def record_batch(schema: Any, columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> Any:
    """``rows`` (one list of row values per column) as a record batch."""
    arrays = [_column_array(c, schema.field(c.name).type, values) for c, values in zip(columns, rows, strict=True)]
    return pyarrow().record_batch(arrays, schema=schema)


def _column_array(column: Column, kind: Any, values: Sequence[Any]) -> Any:
    pa = pyarrow()
    if column.kind in ("bytes", "text"):
        lengths = np.fromiter((len(v) for v in values), np.int64, len(values))
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(values))]
        return pa.Array.from_buffers(kind, len(values), buffers)
    if column.kind == "ragged":
        offsets = np.concatenate([[0], np.cumsum([len(v) for v in values])]).astype(np.int64)
        flat = np.concatenate(values) if values else np.empty((0, *column.shape), column.dtype)
        inner = _fixed(pa, flat.reshape(-1), kind.value_type)
        return pa.LargeListArray.from_arrays(_numbers(pa, offsets), inner)
    return _fixed(pa, np.stack(values).reshape(-1), kind)


def _fixed(pa: Any, flat: np.ndarray[Any, Any], kind: Any) -> Any:
    sizes = []
    while pa.types.is_fixed_size_list(kind):
        sizes.append(kind.list_size)
        kind = kind.value_type
    array = _numbers(pa, flat)
    for size in reversed(sizes):
        array = pa.FixedSizeListArray.from_arrays(array, size)
    return array


def _numbers(pa: Any, flat: np.ndarray[Any, Any]) -> Any:
    """As ``pa.array``, which imports pandas first, to see whether it was handed a series: in each process."""
    return pa.Array.from_buffers(pa.from_numpy_dtype(flat.dtype), len(flat), [None, pa.py_buffer(flat)])


def column_starts(path: Path, columns: Sequence[Column]) -> list[dict[str, int]]:
    """Per record batch: column -> offset in the file of its data, asked of Arrow itself."""
    pa = pyarrow()
    with pa.memory_map(str(path)) as file:
        base = file.read_buffer(file.size()).address
        file.seek(0)
        reader = pa.ipc.open_file(file)
        starts = []
        for number in range(reader.num_record_batches):
            batch = reader.get_batch(number)
            # the data buffer is a column's last one, in all of our types; an empty one has no address of its own
            data = {c.name: batch.column(i).buffers()[-1] for i, c in enumerate(columns)}
            starts.append({k: (v.address - base if v is not None and v.size else -1) for k, v in data.items()})
        return starts
