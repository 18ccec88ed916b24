"""Libraries that read a pack as it lies: HF ``datasets`` its Arrow files, torchdata and SPDL whole batches of it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from hotlap.pack.dataset import PackedDataset, as_is
from hotlap.pack.rival_samples import Samples, key
from hotlap.pack.schema import Column
from hotlap.pack.threads import one_thread
from hotlap.pack.way import PREFETCHED, Batch, Reading, Way, worker_ways

__all__ = ["hugging_ways", "spdl_ways", "torchdata_ways"]


class _ArrowRows:
    """The Arrow files of a pack as a HF data set: mapped, not copied. Opened once per process."""

    def __init__(self, files: list[Path], samples: Samples) -> None:
        self._files, self._samples = files, samples
        self._data: Any = None

    def _open(self) -> Any:
        datasets, pa = import_module("datasets"), import_module("pyarrow")
        tables = [pa.ipc.open_file(pa.memory_map(str(file))).read_all() for file in self._files]
        names = [column.name for column in self._samples.columns]
        whole = pa.concat_tables(tables).select(names).replace_schema_metadata(None)
        return datasets.Dataset(datasets.table.InMemoryTable(whole)).with_format("arrow")

    def __len__(self) -> int:
        self._data = self._open() if self._data is None else self._data
        return len(self._data)

    def __getitems__(self, indices: list[int]) -> Batch:
        self._data = self._open() if self._data is None else self._data
        table, columns = self._data[indices], self._samples.columns
        values = [_values(column, table.column(column.name)) for column in columns]
        return self._samples.collate(
            [{key(k): value for k, value in enumerate(row)} for row in zip(*values, strict=True)]
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_data": None}


def _values(column: Column, stored: Any) -> list[Any]:
    """The rows of a column of a table, numbers where they lie."""
    if column.kind in ("bytes", "text"):
        return list(stored.to_pylist())
    if column.kind == "tensor" and not column.shape:
        return list(stored.to_numpy()[:, None])
    found = []
    for chunk in stored.chunks:
        if column.kind == "ragged":
            found += [_numbers(row.values) for row in chunk]
        else:
            flat = _numbers(chunk)
            found += [flat] if len(chunk) == 1 else np.split(flat, len(chunk))
    return found


def _numbers(nested: Any) -> np.ndarray[Any, Any]:
    """What lists of fixed sizes hold, one behind the other. (Arrow's own ``flatten`` takes ten times as long.)"""
    first, count = 0, len(nested)
    while hasattr(nested.type, "list_size"):
        size = nested.type.list_size
        first, count, nested = (nested.offset + first) * size, count * size, nested.values
    flat: np.ndarray[Any, Any] = nested.slice(first, count).to_numpy(zero_copy_only=True)
    return flat


def hugging_ways(datasets: Any, version: str, reading: Reading, _: Path | None) -> list[Way]:
    """Rows by the table of the pack's own files, the rest in the collate function."""
    from torch.utils.data import DataLoader

    files = [reading.pack.folder / part.file for part in reading.pack.manifest.parts]
    data: Any = _ArrowRows(files, Samples(reading.pack, reading.views))

    def open_with(how: dict[str, Any]) -> Any:
        return DataLoader(data, reading.batch, sampler=reading.shuffled(), collate_fn=as_is, **how)

    return worker_ways("HF datasets, DataLoader", f"HF datasets {version}", open_with)


def _whole_batch(data: PackedDataset, indices: list[int]) -> Batch:
    """In a thread beside others: a team of OpenMP threads for each would make all of them spin."""
    with one_thread():
        return data.__getitems__(indices)


def torchdata_ways(nodes: Any, version: str, reading: Reading, _: Path | None) -> list[Way]:
    """Whole batches of a PackedDataset, made by threads."""
    data = reading.data()

    def open_way(threads: int) -> Iterator[Batch]:
        source = nodes.IterableWrapper(reading.orders())
        mapped = nodes.ParallelMapper(source, partial(_whole_batch, data), num_workers=threads, method="thread")
        return iter(nodes.Loader(nodes.Prefetcher(mapped, PREFETCHED)))

    library = f"torchdata {version}"
    return [Way(f"torchdata.nodes, {_threads(n)}", partial(open_way, n), ahead=PREFETCHED + 2 * n, library=library)
            for n in (1, 2)]  # fmt: skip


def spdl_ways(pipeline: Any, version: str, reading: Reading, _: Path | None) -> list[Way]:
    """Whole batches of a PackedDataset, made by threads."""
    data = reading.data()

    def open_way(threads: int) -> Iterator[Batch]:
        builder = pipeline.PipelineBuilder().add_source(reading.orders())
        builder = builder.pipe(partial(_whole_batch, data), concurrency=threads, output_order="input")
        built = builder.add_sink(PREFETCHED).build(num_threads=threads)
        with built.auto_stop():
            yield from built

    library = f"SPDL {version}"
    return [Way(f"SPDL, {_threads(n)}", partial(open_way, n), ahead=PREFETCHED + 2 * n, library=library)
            for n in (1, 2)]  # fmt: skip


def _threads(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"
