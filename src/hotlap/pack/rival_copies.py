"""Libraries that read files of a form of their own: how each writes the rows, and how it gives them back.

Rows are stored as they lie in the pack (decoded images stay decoded), which is the quickest to read that each form has.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hotlap.pack.rival_samples import Samples, key
from hotlap.pack.way import Reading, Way, worker_ways

__all__ = [
    "litdata_ways",
    "mosaic_ways",
    "webdataset_ways",
    "write_litdata",
    "write_mosaic",
    "write_webdataset",
]

_MOST_SHARD_BYTES = 64 << 20
_LEAST_SHARD_BYTES = 1 << 20
_SHARDS = 8
"""At least so many where there is enough for them: workers share out whole shards, and mix them."""
_MIXED = 1000
"""Rows of WebDataset's shuffle buffer."""


def _shard_bytes(reading: Reading, samples: Samples) -> int:
    total = int(samples.sizes(reading.pack)[: reading.rows].sum())
    return max(_LEAST_SHARD_BYTES, min(_MOST_SHARD_BYTES, total // _SHARDS))


def write_webdataset(webdataset: Any, reading: Reading, folder: Path) -> None:
    """Tars, a file per column and row."""
    samples = Samples(reading.pack, reading.views)
    folder.mkdir()
    pattern, size = str(folder / "%05d.tar"), _shard_bytes(reading, samples)
    with webdataset.ShardWriter(pattern, maxsize=size, maxcount=1 << 40, verbose=0) as out:
        for row in range(reading.rows):
            out.write({"__key__": f"{row:09d}", **samples.stored(reading.pack, row)})


def webdataset_ways(webdataset: Any, version: str, reading: Reading, folder: Path | None) -> list[Way]:
    """Shards in random order, rows mixed by a buffer."""
    assert folder is not None
    shards, collate = sorted(map(str, folder.glob("*.tar"))), Samples(reading.pack, reading.views).collate

    def open_with(how: dict[str, Any]) -> Any:
        data = webdataset.WebDataset(shards, shardshuffle=len(shards), empty_check=False)
        batches = data.shuffle(_MIXED).batched(reading.batch, collation_fn=collate, partial=True)
        return webdataset.WebLoader(batches, batch_size=None, **how)

    return worker_ways("WebDataset", f"WebDataset {version}", open_with)


def write_litdata(litdata: Any, reading: Reading, folder: Path) -> None:
    """Chunks, by the writer in this process: ``optimize`` starts others, and keeps folders of its own."""
    samples = Samples(reading.pack, reading.views)
    folder.mkdir()
    cache = litdata.streaming.Cache(str(folder), chunk_bytes=_shard_bytes(reading, samples))
    for row in range(reading.rows):
        cache[row] = samples.stored(reading.pack, row)
    cache.done()
    cache.merge()


def litdata_ways(litdata: Any, version: str, reading: Reading, folder: Path | None) -> list[Way]:
    """Its own shuffle and its own loader."""
    collate = Samples(reading.pack, reading.views).collate

    def open_with(how: dict[str, Any]) -> Any:
        data = litdata.StreamingDataset(str(folder), shuffle=True, drop_last=False)
        return litdata.StreamingDataLoader(data, batch_size=reading.batch, collate_fn=collate, **how)

    return worker_ways("LitData", f"LitData {version}", open_with)


def write_mosaic(streaming: Any, reading: Reading, folder: Path) -> None:
    """Shards without compression."""
    samples = Samples(reading.pack, reading.views)
    columns = {key(number): "bytes" for number in range(len(samples.columns))}
    size = _shard_bytes(reading, samples)
    with streaming.MDSWriter(out=str(folder), columns=columns, size_limit=size) as out:
        for row in range(reading.rows):
            out.write(samples.stored(reading.pack, row))


def mosaic_ways(streaming: Any, version: str, reading: Reading, folder: Path | None) -> list[Way]:
    """Its own shuffle, torch's loader."""
    from torch.utils.data import DataLoader

    collate = Samples(reading.pack, reading.views).collate

    def open_with(how: dict[str, Any]) -> Any:
        data = streaming.StreamingDataset(local=str(folder), shuffle=True, batch_size=reading.batch)
        return DataLoader(data, reading.batch, collate_fn=collate, **how)

    return worker_ways("MosaicML Streaming", f"MosaicML Streaming {version}", open_with)
