"""Rivals of the packed-data loader: how each writes the data set in a form of its own, and how it feeds from it.

A rival is used only where it is installed, in the settings found best by trying (they stand in ``settings``); a number
at the end of a way's name is its worker processes or threads. FFCV stands in ``loader_ffcv.py``.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from loader_data import BATCH, CROP, SIDE, decode, read, samples
from loader_samples import collate
from loader_ways import Again, Memmap, Way, batches

__all__ = ["RIVALS", "Rival", "installed", "rival_ways"]


@dataclass(frozen=True)
class Rival:
    """One library."""

    name: str
    distribution: str
    module: str
    settings: str
    open: Callable[[Path, str, int], Any]
    """(folder, kind, workers) -> batches, epoch after epoch."""
    write: Callable[[Path, Path, str], None] | None = None
    """(folder, target, kind): None where the rival reads the files or the memory map."""
    kinds: tuple[str, ...] = ("images", "audio", "boxes")
    workers: tuple[int, ...] = (0, 2)


def _stored(sample: dict[str, Any], kind: str) -> dict[str, Any]:
    """A sample decoded, as raw bytes and their label."""
    row = {"raw": read(sample["path"]).tobytes(), "label": sample["label"]}
    return row | ({"boxes": sample["boxes"].tobytes()} if kind == "boxes" else {})


def _loaded(kind: str, row: Any) -> Any:
    """The arrays of what :func:`_stored` made."""
    if kind == "audio":
        return np.frombuffer(row["raw"], np.int16)
    image = np.frombuffer(row["raw"], np.uint8).reshape(3, SIDE[kind], SIDE[kind])
    return (image, np.frombuffer(row["boxes"], np.float32).reshape(-1, 4)) if kind == "boxes" else image


def _collate_rows(kind: str, rows: list[Any]) -> Any:
    return collate(kind, [_loaded(kind, row) for row in rows])


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def _write_litdata(folder: Path, target: Path, kind: str) -> None:
    import litdata

    litdata.optimize(partial(_stored, kind=kind), list(samples(folder, kind)), str(target), chunk_bytes="64MB",
                     num_workers=_cores(), verbose=False)  # fmt: skip


def _litdata(folder: Path, kind: str, workers: int) -> Any:
    import litdata

    data = litdata.StreamingDataset(str(folder / "LitData"), shuffle=True, drop_last=True)
    return litdata.StreamingDataLoader(data, batch_size=BATCH[kind], num_workers=workers, drop_last=True,
                                       collate_fn=partial(_collate_rows, kind),
                                       persistent_workers=workers > 0)  # fmt: skip


def _write_mosaic(folder: Path, target: Path, kind: str) -> None:
    from streaming import MDSWriter

    columns = {"raw": "bytes", "label": "int", **({"boxes": "bytes"} if kind == "boxes" else {})}
    with MDSWriter(out=str(target), columns=columns) as out:
        for sample in samples(folder, kind):
            out.write(_stored(sample, kind))


def _mosaic(folder: Path, kind: str, workers: int) -> Any:
    from streaming import StreamingDataset
    from streaming.base.util import clean_stale_shared_memory
    from torch.utils.data import DataLoader

    clean_stale_shared_memory()
    data = StreamingDataset(local=str(folder / "Mosaic"), shuffle=True, batch_size=BATCH[kind])
    return DataLoader(data, BATCH[kind], num_workers=workers, collate_fn=partial(_collate_rows, kind), drop_last=True,
                      persistent_workers=workers > 0)  # fmt: skip


def _write_webdataset(folder: Path, target: Path, kind: str) -> None:
    import webdataset

    target.mkdir()
    with webdataset.ShardWriter(str(target / "%05d.tar"), maxsize=64 << 20, verbose=0) as out:
        for k, sample in enumerate(samples(folder, kind)):
            row = _stored(sample, kind)
            boxes = {"boxes": row["boxes"]} if kind == "boxes" else {}
            out.write({"__key__": f"{k:06d}", "raw": row["raw"], "cls": row["label"], **boxes})


def _write_webdataset_files(folder: Path, target: Path, kind: str) -> None:
    import webdataset

    target.mkdir()
    with webdataset.ShardWriter(str(target / "%05d.tar"), maxsize=16 << 20, verbose=0) as out:
        for k, sample in enumerate(samples(folder, kind)):
            out.write({"__key__": f"{k:06d}", "jpg": sample["path"].read_bytes(), "cls": sample["label"]})


def _jpeg_row(kind: str, row: Any) -> Any:
    return np.ascontiguousarray(decode(row["jpg"]).transpose(2, 0, 1))


def _webdataset(folder: Path, kind: str, workers: int, name: str, load: Callable[[str, Any], Any]) -> Any:
    import webdataset

    shards = sorted(map(str, (folder / name).glob("*.tar")))
    data = webdataset.WebDataset(shards, shardshuffle=len(shards), empty_check=False)
    data = data.shuffle(1000).map(partial(load, kind)).batched(BATCH[kind], partial(collate, kind), partial=False)
    return webdataset.WebLoader(data, batch_size=None, num_workers=workers, persistent_workers=workers > 0)


def _write_hugging(folder: Path, target: Path, kind: str) -> None:
    import datasets

    columns = {"raw": datasets.Value("large_binary"), "label": datasets.Value("int64")}
    if kind == "boxes":
        columns["boxes"] = datasets.Value("binary")

    def rows() -> Any:
        for sample in samples(folder, kind):
            yield _stored(sample, kind)

    cache = str(target) + ".cache"
    data = datasets.Dataset.from_generator(rows, features=datasets.Features(columns), cache_dir=cache)
    data.save_to_disk(str(target))


def _hugging(folder: Path, kind: str, workers: int) -> Any:
    import datasets
    from torch.utils.data import DataLoader

    data: Any = datasets.load_from_disk(str(folder / "HF"))
    return DataLoader(data, BATCH[kind], shuffle=True, drop_last=True, collate_fn=partial(_collate_rows, kind),
                      num_workers=workers, persistent_workers=workers > 0)  # fmt: skip


def _spdl(folder: Path, kind: str, workers: int) -> Any:
    from spdl.pipeline import PipelineBuilder

    data = Memmap(folder, kind)

    def epoch(order: list[int]) -> Any:
        built = PipelineBuilder().add_source(batches(order, BATCH[kind])).pipe(data.__getitems__, concurrency=workers)
        pipeline = built.add_sink(2).build(num_threads=workers)
        with pipeline.auto_stop():
            yield from pipeline

    return Again(len(data), epoch)


def _torchdata(folder: Path, kind: str, workers: int) -> Any:
    from torchdata import nodes

    data = Memmap(folder, kind)

    def epoch(order: list[int]) -> Any:
        source = nodes.IterableWrapper(batches(order, BATCH[kind]))
        mapped = nodes.ParallelMapper(source, data.__getitems__, num_workers=workers, method="thread")
        return iter(nodes.Loader(nodes.Prefetcher(mapped, 2)))

    return Again(len(data), epoch)


def _dali(folder: Path, kind: str, workers: int) -> Any:
    from nvidia.dali import fn, pipeline_def, types
    from nvidia.dali.plugin.pytorch import DALIGenericIterator, LastBatchPolicy

    @pipeline_def(batch_size=BATCH[kind], num_threads=workers, device_id=None)  # type: ignore[untyped-decorator]
    def pipeline() -> Any:
        content, label = fn.readers.file(file_root=str(folder / "files"), random_shuffle=True, name="files")
        images = fn.decoders.image(content, device="cpu", output_type=types.RGB)
        place = {"crop_pos_x": fn.random.uniform(range=(0, 1)), "crop_pos_y": fn.random.uniform(range=(0, 1))}
        images = fn.crop_mirror_normalize(images, crop=CROP, mirror=fn.random.coin_flip(), dtype=types.FLOAT, **place)
        return images, label

    return DALIGenericIterator([pipeline()], ["image", "label"], reader_name="files", auto_reset=True,
                               last_batch_policy=LastBatchPolicy.DROP)  # fmt: skip


_RAW = "decoded rows as bytes, numpy crops stacked by whole batches in the collate function"
RIVALS = (
    Rival("LitData", "litdata", "litdata", f"{_RAW}; chunks of 64 MB", _litdata, _write_litdata),
    Rival("Mosaic", "mosaicml-streaming", "streaming", f"{_RAW}; MDS, no compression", _mosaic, _write_mosaic),
    Rival("WebDataset", "webdataset", "webdataset", f"{_RAW}; tars of 64 MB, shuffle buffer 1000",
          partial(_webdataset, name="WebDataset", load=_loaded), _write_webdataset),
    Rival("WebDataset JPEG", "webdataset", "webdataset", "tars of 16 MB of JPEGs, simplejpeg, shuffle buffer 1000",
          partial(_webdataset, name="WebDataset JPEG", load=_jpeg_row), _write_webdataset_files, ("images",)),
    Rival("HF", "datasets", "datasets", f"{_RAW}; map-style, torch's DataLoader", _hugging, _write_hugging),
    Rival("SPDL memmap", "spdl-core", "spdl.pipeline", "whole batches from a memory map, sink of 2", _spdl, None,
          ("images", "audio", "boxes"), (1, 2)),
    Rival("torchdata memmap", "torchdata", "torchdata.nodes", "whole batches from a memory map, one thread, prefetch 2",
          _torchdata, None, ("images", "audio", "boxes"), (1,)),
    Rival("DALI JPEG", "nvidia-dali-cuda120", "nvidia.dali", "on the CPU, without a device", _dali, None, ("images",),
          (1, 2)),
)  # fmt: skip


def installed(rival: Rival) -> str:
    """The version, or why it cannot be used here."""
    try:
        importlib.import_module(rival.module)
        return importlib.metadata.version(rival.distribution)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
    except ImportError as err:
        return f"not installed ({err})"


def rival_ways(rivals: tuple[Rival, ...], kind: str) -> dict[str, Way]:
    """Ways of those that can be used here and know this kind of data."""
    ways: dict[str, Way] = {}
    for rival in rivals:
        if kind in rival.kinds:
            ways |= {f"{rival.name} {n}": partial(rival.open, kind=kind, workers=n) for n in rival.workers}
    return ways
