"""FFCV, the rival closest to us: raw and JPEG images, recordings, and boxes padded to the most there are.

Its crop of one size is its RandomResizedCrop decoder with the area of the crop, which does not resize then. Recordings
need a crop that FFCV does not have; it is written here as one of its operations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from loader_data import BATCH, CLIP, CROP, MOST_BOXES, SIDE, read, samples
from loader_rivals import Rival

__all__ = ["FFCV"]


class _Rows:
    """What FFCV's writer asks for samples."""

    def __init__(self, folder: Path, kind: str) -> None:
        self._samples, self._kind = list(samples(folder, kind)), kind

    def __len__(self) -> int:
        return len(self._samples)

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        sample = self._samples[index]
        if self._kind == "audio":
            return read(sample["path"]), sample["label"]
        image = np.ascontiguousarray(read(sample["path"]).transpose(1, 2, 0))
        if self._kind == "images":
            return image, sample["label"]
        padded = np.zeros((MOST_BOXES, 4), np.float32)
        padded[: len(sample["boxes"])] = sample["boxes"]
        return image, padded, len(sample["boxes"])


def write(folder: Path, target: Path, kind: str, mode: str = "raw") -> None:
    """``target/data.beton``."""
    from ffcv.fields import IntField, NDArrayField, RGBImageField
    from ffcv.writer import DatasetWriter

    image = RGBImageField(write_mode=mode, jpeg_quality=90)
    boxes = NDArrayField(np.dtype("float32"), (MOST_BOXES, 4))
    fields = {"images": {"image": image, "label": IntField()},
              "audio": {"audio": NDArrayField(np.dtype("int16"), (2 * CLIP,)), "label": IntField()},
              "boxes": {"image": image, "boxes": boxes, "count": IntField()}}[kind]  # fmt: skip
    target.mkdir()
    DatasetWriter(str(target / "data.beton"), fields, num_workers=2).from_indexed_dataset(_Rows(folder, kind))


def write_jpeg(folder: Path, target: Path, kind: str) -> None:
    """JPEGs of quality 90: FFCV encodes again what it is given."""
    write(folder, target, kind, "jpg")


def _clip() -> Any:
    from ffcv.pipeline.allocation_query import AllocationQuery
    from ffcv.pipeline.compiler import Compiler
    from ffcv.pipeline.operation import Operation

    class Crop(Operation):  # type: ignore[misc]
        """A random stretch as float, -1 … 1."""

        def generate_code(self) -> Callable[..., Any]:
            my_range = Compiler.get_iterator()

            def crop(sounds: Any, out: Any) -> Any:
                for i in my_range(sounds.shape[0]):
                    begin = np.random.randint(0, sounds.shape[1] - CLIP + 1)
                    for k in range(CLIP):
                        out[i, k] = sounds[i, begin + k] * np.float32(1 / 32768)
                return out[: sounds.shape[0]]

            crop.is_parallel = True  # type: ignore[attr-defined]
            return crop

        def declare_state_and_memory(self, state: Any) -> tuple[Any, Any]:
            dtype = np.dtype("float32")
            return replace(state, shape=(CLIP,), dtype=dtype), AllocationQuery((CLIP,), dtype)

    return Crop()


def _mirrored() -> Any:
    """Mirrored half of the time and made float in one compiled pass: twice FFCV's own two transforms, measured here."""
    from ffcv.pipeline.allocation_query import AllocationQuery
    from ffcv.pipeline.compiler import Compiler
    from ffcv.pipeline.operation import Operation

    class MirrorFloat(Operation):  # type: ignore[misc]
        """uint8 [n, height, width, 3] to float, 0 … 255."""

        def generate_code(self) -> Callable[..., Any]:
            my_range = Compiler.get_iterator()

            def convert(images: Any, out: Any) -> Any:
                _, height, width, _ = images.shape
                mirrored = np.random.rand(images.shape[0]) < 0.5
                for i in my_range(images.shape[0]):
                    for y in range(height):
                        for x in range(width):
                            source = width - 1 - x if mirrored[i] else x
                            for k in range(3):
                                out[i, y, x, k] = images[i, y, source, k]
                return out[: images.shape[0]]

            convert.is_parallel = True  # type: ignore[attr-defined]
            return convert

        def declare_state_and_memory(self, state: Any) -> tuple[Any, Any]:
            dtype = np.dtype("float32")
            return replace(state, dtype=dtype), AllocationQuery(state.shape, dtype)

    return MirrorFloat()


def _open(folder: Path, kind: str, workers: int, name: str) -> Any:
    from ffcv.fields.decoders import IntDecoder, NDArrayDecoder, RandomResizedCropRGBImageDecoder
    from ffcv.fields.rgb_image import SimpleRGBImageDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import Convert, Squeeze, ToTensor, ToTorchImage

    last: list[Any] = [ToTensor(), ToTorchImage(channels_last=True, convert_back_int16=False)]
    number = [IntDecoder(), ToTensor(), Squeeze()]
    if kind == "images":
        area = CROP[0] * CROP[1] / SIDE[kind] ** 2
        decoder = RandomResizedCropRGBImageDecoder(CROP, (area, area), (1.0, 1.0))
        pipelines = {"image": [decoder, _mirrored(), *last], "label": number}
    elif kind == "audio":
        pipelines = {"audio": [NDArrayDecoder(), _clip(), ToTensor()], "label": number}
    else:
        image = [SimpleRGBImageDecoder(), *last, Convert(torch.float32)]
        pipelines = {"image": image, "boxes": [NDArrayDecoder(), ToTensor()], "count": number}
    return Loader(str(folder / name / "data.beton"), batch_size=BATCH[kind], num_workers=workers, os_cache=True,
                  order=OrderOption.RANDOM, drop_last=True, pipelines=pipelines)  # fmt: skip


def _raw(folder: Path, kind: str, workers: int) -> Any:
    return _open(folder, kind, workers, "FFCV")


def _jpeg(folder: Path, kind: str, workers: int) -> Any:
    return _open(folder, kind, workers, "FFCV JPEG")


_SETTINGS = "raw, RandomResizedCrop decoder, mirrored and made float by one operation of ours, channels-last, os_cache"
FFCV = (
    Rival("FFCV", "ffcv", "ffcv", f"{_SETTINGS}; boxes padded", _raw, write, workers=(1, 2)),
    Rival("FFCV JPEG", "ffcv", "ffcv", "JPEG of quality 90, otherwise as raw", _jpeg, write_jpeg, ("images",), (1, 2)),
)
