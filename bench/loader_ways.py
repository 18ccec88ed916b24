"""Every way of feeding that ``bench/loader.py`` compares, as a function that returns something to iterate over.

A rival is listed only where it can be imported, with the settings that were found best for it by trying.
"""

from __future__ import annotations

import io
import os
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from loader_data import CLIP, CROP

from hotlap.pack import Clip, Image, Loader, LoaderSettings, Pack

__all__ = ["BATCH", "WAYS"]

BATCH = {"images": 128, "audio": 64}
Way = Callable[[Path], Any]


def _ours(folder: Path, variant: str, mode: str, threads: int = 1, layout: str = "nchw") -> Loader:
    image = variant != "audio"
    views = {"image": Image(CROP, flip=0.5, layout=layout)} if image else {"audio": Clip(CLIP)}
    settings = LoaderSettings(mode=mode, threads=threads)
    name = variant if image else "planar"
    batch = BATCH["images" if image else "audio"]
    return Loader(folder / name, batch, {**views, "label": None}, drop_last=True, settings=settings)


class _Files:
    """A plain data set: open, decode, crop, mirror, sample by sample."""

    def __init__(self, folder: Path, quick: bool) -> None:
        self._files, self._quick = sorted((folder / "files").rglob("*.*")), quick

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        path = self._files[index]
        label = int(path.parent.name)
        if path.suffix == ".wav":
            import soundfile

            begin = random.randrange(64_000 - CLIP + 1)
            return torch.from_numpy(soundfile.read(path, CLIP, begin, dtype="float32")[0]), label
        pixels = _decode(path.read_bytes(), self._quick)
        return torch.from_numpy(np.ascontiguousarray(_crop(pixels).transpose(2, 0, 1))).float(), label


def _decode(content: bytes, quick: bool) -> np.ndarray[Any, Any]:
    if quick:
        import simplejpeg

        decoded: np.ndarray[Any, Any] = simplejpeg.decode_jpeg(content, "RGB")
        return decoded
    from PIL import Image as Picture

    return np.asarray(Picture.open(io.BytesIO(content)).convert("RGB"))


def _crop(pixels: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    top, left = random.randrange(160 - CROP[0] + 1), random.randrange(160 - CROP[1] + 1)
    window = pixels[top : top + CROP[0], left : left + CROP[1]]
    return window[:, ::-1] if random.random() < 0.5 else window


class _Memmap:
    """Decoded rows in one array on disk, read by whole batches: the best a DataLoader does without a library."""

    def __init__(self, folder: Path, kind: str) -> None:
        path = folder / "rows.npy"
        if not path.exists():
            pack = Pack(folder / "planar", check=False)
            name, shape = ("image", (3, 160, 160)) if kind == "images" else ("audio", (64_000,))
            dtype = np.uint8 if kind == "images" else np.int16
            kept = np.lib.format.open_memmap(path, "w+", dtype, (len(pack), *shape))
            for k in range(len(pack)):
                kept[k] = pack.row(k)[name].numpy()
            kept.flush()
        self._rows, self._kind = np.load(path, mmap_mode="r"), kind

    def __len__(self) -> int:
        return len(self._rows)

    def one(self, index: int) -> np.ndarray[Any, Any]:
        if self._kind == "audio":
            begin = random.randrange(64_000 - CLIP + 1)
            clip: np.ndarray[Any, Any] = self._rows[index, begin : begin + CLIP]
            return clip
        top, left = random.randrange(160 - CROP[0] + 1), random.randrange(160 - CROP[1] + 1)
        window = self._rows[index, :, top : top + CROP[0], left : left + CROP[1]]
        return window[:, :, ::-1] if random.random() < 0.5 else window

    def __getitems__(self, indices: list[int]) -> torch.Tensor:
        whole = torch.from_numpy(np.stack([self.one(k) for k in indices])).float()
        return whole if self._kind == "images" else whole.mul_(1 / 32768)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.__getitems__([index])[0]


def _data_loader(folder: Path, kind: str, data: str, workers: int) -> Any:
    from torch.utils.data import DataLoader

    keep: dict[str, Any] = {"num_workers": workers, "persistent_workers": workers > 0, "drop_last": True}
    if data == "memmap":
        return DataLoader(_Memmap(folder, kind), BATCH[kind], shuffle=True, collate_fn=_as_is, **keep)  # type: ignore
    return DataLoader(_Files(folder, data == "quick"), BATCH[kind], shuffle=True, **keep)  # type: ignore[arg-type]


def _as_is(batch: Any) -> Any:
    return batch


class _Again:
    """A function of the epoch's shuffled indices as something that can be iterated over again and again."""

    def __init__(self, count: int, epoch: Callable[[list[int]], Iterator[Any]]) -> None:
        self._count, self._epoch = count, epoch

    def __iter__(self) -> Iterator[Any]:
        return self._epoch(torch.randperm(self._count).tolist())


def _batches(order: list[int], size: int) -> list[list[int]]:
    return [order[k : k + size] for k in range(0, len(order) - size + 1, size)]


def _spdl(folder: Path, kind: str, threads: int) -> Any:
    from spdl.pipeline import PipelineBuilder

    data = _Memmap(folder, kind)

    def epoch(order: list[int]) -> Iterator[Any]:
        built = PipelineBuilder().add_source(_batches(order, BATCH[kind])).pipe(data.__getitems__, concurrency=threads)
        pipeline = built.add_sink(2).build(num_threads=threads)
        with pipeline.auto_stop():
            yield from pipeline

    return _Again(len(data), epoch)


def _torchdata(folder: Path, kind: str) -> Any:
    from torchdata import nodes

    data = _Memmap(folder, kind)

    def epoch(order: list[int]) -> Iterator[Any]:
        source = nodes.IterableWrapper(_batches(order, BATCH[kind]))
        mapped = nodes.ParallelMapper(source, data.__getitems__, num_workers=1, method="thread")
        return iter(nodes.Loader(nodes.Prefetcher(mapped, 2)))

    return _Again(len(data), epoch)


def _dali(folder: Path, threads: int) -> Any:
    from nvidia.dali import fn, pipeline_def, types
    from nvidia.dali.plugin.pytorch import DALIGenericIterator, LastBatchPolicy

    @pipeline_def(batch_size=BATCH["images"], num_threads=threads, device_id=None)  # type: ignore[untyped-decorator]
    def pipeline() -> Any:
        content, label = fn.readers.file(file_root=str(folder / "files"), random_shuffle=True, name="files")
        images = fn.decoders.image(content, device="cpu", output_type=types.RGB)
        place = {"crop_pos_x": fn.random.uniform(range=(0, 1)), "crop_pos_y": fn.random.uniform(range=(0, 1))}
        images = fn.crop_mirror_normalize(images, crop=CROP, mirror=fn.random.coin_flip(), dtype=types.FLOAT, **place)
        return images, label

    policy = LastBatchPolicy.DROP
    return DALIGenericIterator([pipeline()], ["image", "label"], reader_name="files", auto_reset=True,
                               last_batch_policy=policy)  # fmt: skip


def _hugging(folder: Path) -> Any:
    import datasets
    from torch.utils.data import DataLoader

    data = datasets.Dataset.from_dict({"file": [str(p) for p in sorted((folder / "files").rglob("*.jpg"))]})
    data = data.map(lambda row: {"file": Path(row["file"]).read_bytes()}, cache_file_name=str(folder / "hf.arrow"),
                    features=datasets.Features({"file": datasets.Value("binary")}))  # fmt: skip

    def decoded(batch: dict[str, list[bytes]]) -> dict[str, Any]:
        crops = [_crop(_decode(content, True)).transpose(2, 0, 1) for content in batch["file"]]
        return {"image": [torch.from_numpy(np.ascontiguousarray(c)).float() for c in crops]}

    return DataLoader(data.with_transform(decoded), BATCH["images"], shuffle=True, drop_last=True)  # type: ignore


def _resident(folder: Path, kind: str) -> Any:
    """No loading at all: the roof of a training, and the memcpy limit where there is none."""
    shape = (3, *CROP) if kind == "images" else (CLIP,)
    batch = torch.randn(BATCH[kind], *shape)
    target = torch.empty_like(batch)
    return _Again(8000, lambda order: (target.copy_(batch) for _ in _batches(order, BATCH[kind])))


def _needs(module: str) -> bool:
    try:
        __import__(module)
    except ImportError:
        return False
    return True


def _all(kind: str) -> dict[str, Way]:
    encoded: dict[str, Way] = {}
    variant = "planar" if kind == "images" else "audio"
    ways: dict[str, Way] = {"memcpy of the batch": partial(_resident, kind=kind)}
    for mode, threads in (("inline", 1), ("background", 1), ("background", 2), ("auto", 1)):
        ways[f"hotlap.pack {mode} {threads}"] = partial(_ours, variant=variant, mode=mode, threads=threads)
    for workers in (0, 2):
        ways[f"DataLoader memmap __getitems__ {workers}"] = partial(
            _data_loader, kind=kind, data="memmap", workers=workers
        )
        name = "Pillow" if kind == "images" else "soundfile"
        ways[f"DataLoader {name} {workers}"] = partial(_data_loader, kind=kind, data="plain", workers=workers)
    if _needs("spdl.pipeline"):
        ways |= {f"SPDL memmap {n}": partial(_spdl, kind=kind, threads=n) for n in (1, 2)}
    if _needs("torchdata.nodes"):
        ways["torchdata nodes memmap"] = partial(_torchdata, kind=kind)
    if kind == "audio":
        return ways
    ways["hotlap.pack channels-last"] = partial(_ours, variant="interleaved", mode="background", layout="channels_last")
    encoded = {f"hotlap.pack JPEG {n}": partial(_ours, variant="encoded", mode="background", threads=n) for n in (1, 2)}
    for workers in (0, 2):
        encoded[f"DataLoader simplejpeg {workers}"] = partial(_data_loader, kind=kind, data="quick", workers=workers)
    if _needs("nvidia.dali"):
        encoded |= {f"DALI CPU JPEG {n}": partial(_dali, threads=n) for n in (1, os.cpu_count() or 1)}
    if _needs("datasets"):
        encoded["HF datasets JPEG"] = _hugging
    return ways | encoded


WAYS: dict[str, dict[str, Way]] = {kind: _all(kind) for kind in ("images", "audio")}
