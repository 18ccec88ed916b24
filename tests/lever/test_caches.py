"""Decoded files and samples from memory: right under change, copied, bounded, shared; never where samples vary."""

from __future__ import annotations

import functools
import io
import os
import random
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy
import pytest
import simplejpeg
import soundfile
import torch

from hotlap.lever.catalog import cache_decode, cache_sample, cache_teacher
from hotlap.lever.file_cache import FileCache
from hotlap.lever.readers import cached_decoder, cached_reader
from hotlap.lever.sample_codec import pack, unpack
from hotlap.lever.sample_proof import deterministic
from hotlap.lever.sample_purity import impure_reason
from hotlap.lever.sounds import cached_sound_read
from hotlap.testing.lever_kit import machine_of
from hotlap.testing.lever_target import LocalTarget


@pytest.fixture
def cache(tmp_path: Path) -> FileCache:
    return FileCache(str(tmp_path / "cache"), 1 << 22)


def counted(read: Any) -> tuple[Any, list[Any]]:
    calls: list[Any] = []

    def reader(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        return read(*args, **kwargs)

    return reader, calls


def test_second_read_is_a_copy_from_the_cache(cache: FileCache, tmp_path: Path) -> None:
    path = str(tmp_path / "a.npy")
    numpy.save(path, numpy.arange(6.0))
    read, calls = counted(numpy.load)
    load = cached_reader(cache, "numpy.load", read)
    first = load(path)
    second = load(path)
    second[0] = 99.0
    assert len(calls) == 1 and numpy.array_equal(first, load(path))


def test_an_archive_whose_arrays_are_kept_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.npz"
    numpy.savez(path, image=numpy.arange(4.0), label=7)
    opened: list[object] = []
    real = zipfile.ZipFile.__init__
    monkeypatch.setattr(zipfile.ZipFile, "__init__", lambda *a, **k: (opened.append(a), real(*a, **k))[1])
    with LocalTarget(str(tmp_path)) as target:
        cache_decode.apply(target, {"max_bytes": 1 << 22})
        for _ in range(3):
            with numpy.load(path) as item:
                assert item["image"].tolist() == [0, 1, 2, 3] and len(item) == 2 and "label" in item
        assert len(opened) == 1
        kept = numpy.load(path)
        assert type(kept) is numpy.lib.npyio.NpzFile and "a.npz" in repr(kept) and kept.f.image.shape == (4,)
        assert len(opened) == 1
        assert int(kept["label"]) == 7 and kept.zip.namelist() == ["image.npy", "label.npy"] and len(opened) == 2
        kept.close()
        assert kept.zip is None
        assert numpy.load(path, allow_pickle=True).allow_pickle and len(opened) == 3
        with pytest.raises(FileNotFoundError):
            numpy.load(tmp_path / "none.npz")


def test_arrays_of_an_archive_are_decoded_once(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    numpy.savez_compressed(path, image=numpy.arange(12.0).reshape(3, 4), label=7, words=numpy.array(["a", "b"]))
    archive, real = numpy.lib.npyio.NpzFile, numpy.lib.npyio.NpzFile.__getitem__
    before = (numpy.load, real)
    with LocalTarget(str(tmp_path)) as target:
        cache_decode.apply(target, {"max_bytes": 1 << 22})
        seen = []
        for _ in range(3):
            with numpy.load(path) as item:
                image, label = item["image"], int(item["label"])
                assert (
                    item.f.image.shape == (3, 4)
                    and item["words"].tolist() == ["a", "b"]
                    and sorted(item) == sorted(item.files)
                )
                seen.append((image.copy(), label))
                image[:] = -1.0
            with pytest.raises((AttributeError, ValueError, TypeError)):
                item["image"]
        assert all(label == 7 and numpy.array_equal(image, seen[0][0]) for image, label in seen)
        numpy.savez_compressed(path, image=numpy.zeros(2), label=8)
        os.utime(path, ns=(time.time_ns(), time.time_ns() + 1_000_000))
        assert numpy.load(path)["image"].tolist() == [0.0, 0.0]
        with pytest.raises(KeyError, match="nothing"):
            numpy.load(path)["nothing"]
        opened = numpy.load(path)
        monkey = zipfile.ZipFile.open
        try:
            zipfile.ZipFile.open = None  # type: ignore[assignment,method-assign]
            assert opened["image"].tolist() == [0.0, 0.0], "from memory"
        finally:
            zipfile.ZipFile.open = monkey  # type: ignore[method-assign]
    assert (numpy.load, archive.__getitem__) == before


def test_a_changed_file_is_read_anew(cache: FileCache, tmp_path: Path) -> None:
    path = str(tmp_path / "a.npy")
    load = cached_reader(cache, "numpy.load", numpy.load)
    numpy.save(path, numpy.zeros(3))
    load(path)
    numpy.save(path, numpy.ones(3))
    os.utime(path, ns=(time.time_ns(), time.time_ns() + 1_000_000))
    assert load(path).sum() == 3


def test_missing_file_raises_the_readers_own_error(cache: FileCache) -> None:
    with pytest.raises(FileNotFoundError):
        cached_reader(cache, "numpy.load", numpy.load)("nowhere.npy")


def test_arguments_are_part_of_the_key(cache: FileCache, tmp_path: Path) -> None:
    path = str(tmp_path / "a.wav")
    soundfile.write(path, numpy.random.RandomState(0).randn(100).clip(-1, 1), 8000, subtype="PCM_16")
    read = cached_sound_read(cache, soundfile.read)
    assert read(path)[0].dtype == numpy.float64
    assert read(path, dtype="int16")[0].dtype == numpy.int16


@pytest.mark.parametrize("suffix", ["wav", "flac"])
def test_crops_of_a_sound_come_from_one_decoding(cache: FileCache, tmp_path: Path, suffix: str) -> None:
    path = str(tmp_path / f"a.{suffix}")
    soundfile.write(path, numpy.random.RandomState(0).randn(500, 2).clip(-1, 1), 8000, subtype="PCM_16")
    real, calls = counted(soundfile.read)
    read = cached_sound_read(cache, real)
    parts: list[dict[str, Any]] = [
        {"start": 10, "stop": 60}, {"start": 499, "frames": 50}, {"frames": 7}, {"start": 3},
        {"start": 20, "stop": 900}, {"start": 5, "frames": 0}, {"start": 30, "stop": 30},
    ]  # fmt: skip
    for part in parts:
        for _ in range(2):
            got, rate = read(path, dtype="float32", **part)
            want, want_rate = soundfile.read(path, dtype="float32", **part)
            assert rate == want_rate and got.shape == want.shape and numpy.array_equal(got, want), part
            assert got.flags.writeable
    assert len(calls) == 1


@pytest.mark.parametrize("how", ["file", "bytes"])
def test_a_sound_of_an_open_file_or_of_bytes(cache: FileCache, tmp_path: Path, how: str) -> None:
    path = tmp_path / "a.flac"
    soundfile.write(path, numpy.random.RandomState(0).randn(500).clip(-1, 1), 8000, subtype="PCM_16")
    real, calls = counted(soundfile.read)
    read = cached_sound_read(cache, real)
    seen = []
    for _ in range(3):
        with open(path, "rb") if how == "file" else io.BytesIO(path.read_bytes()) as file:
            data, rate = read(file, dtype="int16")
            seen.append((data.tobytes(), rate, file.tell()))
            data[:] = 0
            assert read(path, dtype="int16")[0].any(), "a part read by path has an entry of its own"
    assert len(calls) == 2 and len(set(seen)) == 1


def test_encoded_bytes_are_decoded_once(cache: FileCache) -> None:
    """``cv2.imdecode`` is handed an array, ``simplejpeg.decode_jpeg`` bytes."""
    pixels = numpy.random.RandomState(0).randint(0, 255, (16, 24, 3), dtype=numpy.uint8)
    content = simplejpeg.encode_jpeg(pixels)
    real, calls = counted(simplejpeg.decode_jpeg)
    decode = cached_decoder(cache, "simplejpeg.decode_jpeg", real)
    for given in (content, bytearray(content), numpy.frombuffer(content, numpy.uint8)):
        for _ in range(2):
            image = decode(given, colorspace="BGR")
            assert numpy.array_equal(image, simplejpeg.decode_jpeg(content, colorspace="BGR"))
            image[:] = 0
    assert len(calls) == 1, "the same bytes, however they are held"
    other = simplejpeg.encode_jpeg(pixels[::-1].copy())
    assert not numpy.array_equal(decode(other, colorspace="BGR"), decode(content, colorspace="BGR"))
    decode(memoryview(content))
    assert len(calls) == 3, "an object of another kind is left alone"


def test_the_lever_helps_who_decodes_bytes(tmp_path: Path) -> None:
    content = simplejpeg.encode_jpeg(numpy.zeros((8, 8, 3), numpy.uint8))
    plain = simplejpeg.decode_jpeg
    with LocalTarget(str(tmp_path)) as target:
        cache_decode.apply(target, {"max_bytes": 1 << 22})
        assert simplejpeg.decode_jpeg is not plain
        simplejpeg.decode_jpeg(content)
        assert FileCache(str(Path(target.scratch) / cache_decode.ID), 1 << 22).used()
    assert simplejpeg.decode_jpeg is plain


def test_full_is_full(tmp_path: Path) -> None:
    small = FileCache(str(tmp_path / "c"), 20_000)
    stored = [small.put(str(i), bytes(6000)) for i in range(6)]
    assert stored == [True, True, False, False, False, False]
    assert small.get("0") == bytes(6000) and small.get("5") is None


def test_a_removed_folder_ends_the_cache_quietly(tmp_path: Path) -> None:
    cache = FileCache(str(tmp_path / "c"), 1 << 20)
    os.rmdir(tmp_path / "c")
    assert cache.put("a", b"x") is False and cache.get("a") is None


@pytest.mark.parametrize(
    "value",
    [
        torch.arange(6).reshape(2, 3), torch.randn(3, 4).t(), torch.zeros(0, 5), torch.ones((), dtype=torch.bfloat16),
        (numpy.arange(4, dtype="int16"), 16000), {"x": [torch.ones(2), None, "text", 1.5, True], 3: b"raw"},
    ],
    ids=["matrix", "turned", "empty", "bf16", "tuple", "nested"],
)  # fmt: skip
def test_samples_survive_packing(value: Any) -> None:
    packed = pack(value)
    assert packed is not None
    back = unpack(bytearray(packed))
    assert type(back) is type(value) and pack(back) == packed


@pytest.mark.parametrize(
    "value",
    [object(), {1, 2}, torch.ones(2, requires_grad=True), torch.ones(4)[::2]],
    ids=["object", "set", "gradient", "strided"],
)
def test_what_cannot_be_packed_is_not(value: Any) -> None:
    assert pack(value) is None


SHARED = numpy.random.default_rng(0)


def helper_with_a_hidden_generator(x: float) -> float:
    return x + SHARED.standard_normal()


class Base:
    def __init__(self) -> None:
        self.mean = 0.5

    def __len__(self) -> int:
        return 10


class Pure(Base):
    def scale(self, x: torch.Tensor) -> torch.Tensor:
        return x.permute(0) - self.mean

    def __getitem__(self, index: int) -> Any:
        return self.scale(torch.full((3,), float(index))), index


class GlobalDraw(Base):
    def __getitem__(self, index: int) -> Any:
        return torch.zeros(2) + random.random()


class HiddenGlobalDraw(Base):
    def __getitem__(self, index: int) -> Any:
        return getattr(torch, "ra" + "nd")(2) * 0.0


class SetEpoch(Base):
    def set_epoch(self, epoch: int) -> None:
        self.turn = epoch

    def __getitem__(self, index: int) -> Any:
        return torch.zeros(2)


class ReadsEpoch(Base):
    epoch = 0

    def __getitem__(self, index: int) -> Any:
        return torch.zeros(2) + self.epoch


class RareAugmentation(Base):
    def __init__(self) -> None:
        super().__init__()
        self.dice = random.Random(3)

    def __getitem__(self, index: int) -> Any:
        return torch.ones(2) * (2 if self.dice.getrandbits(10) == 0 else 1)


class HelperDraw(Base):
    def __getitem__(self, index: int) -> Any:
        return torch.zeros(2) + helper_with_a_hidden_generator(1.0)


class Flip:
    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x if torch.bernoulli(torch.tensor(0.001)) else -x


class TransformDraw(Base):
    def __init__(self) -> None:
        super().__init__()
        self.steps = [Flip()]

    def __getitem__(self, index: int) -> Any:
        return self.steps[0](torch.zeros(2))


class Counts(Base):
    def __getitem__(self, index: int) -> Any:
        self.seen = index
        return torch.zeros(2)


class Says(Base):
    def __getitem__(self, index: int) -> Any:
        print(index)
        return torch.zeros(2)


class EpochFlip:
    def __init__(self) -> None:
        self.epoch = 0

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x + numpy.random.default_rng((1, self.epoch)).integers(2)


class InContainer(Base):
    def __init__(self, held: Any) -> None:
        super().__init__()
        self.tfs = held

    def __getitem__(self, index: int) -> Any:
        x = torch.zeros(2)
        for step in self.tfs:
            x = step(x) if callable(step) else x
        return x


class Add:
    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self.change(x)

    def change(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1


class AddNoise(Add):
    def change(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.bernoulli(torch.tensor(1e-6))


class AddNoiseModule(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return AddNoise()(x) if torch.rand(()) < 0 else x


class SampleOf(Base):
    def __init__(self, part: Any) -> None:
        super().__init__()
        self.part = part

    def __getitem__(self, index: int) -> Any:
        return self.part[index]


@pytest.mark.parametrize(
    "held",
    [
        [EpochFlip()], (Add(), [EpochFlip()]), {"a": 1, "b": EpochFlip()}, [random.Random(1)],
        [Add()] * 99 + [EpochFlip()], 
        [functools.partial(EpochFlip())], 
        [torch.nn.Sequential(torch.nn.Identity(), AddNoiseModule())], [Add(), AddNoise()],
        [EpochFlip().__call__], numpy.array([None, EpochFlip()]),
    ],
)  # fmt: skip
def test_what_varies_is_found_in_containers(held: Any) -> None:
    assert impure_reason(InContainer(held)) is not None


def test_what_varies_is_found_in_parts_and_what_does_not_is_pure() -> None:
    parts = torch.utils.data
    for varies in (TransformDraw(), SetEpoch(), InContainer([EpochFlip()])):
        assert impure_reason(parts.ConcatDataset([Pure(), varies])) is not None
        assert impure_reason(SampleOf(parts.Subset(varies, [0]))) is not None
    assert impure_reason(parts.ConcatDataset([Pure(), InContainer([Add()])])) is None
    plain = InContainer([Add(), {"a": [(Path("a"), 1)] * 9}, torch.nn.Linear(2, 2), numpy.arange(3), numpy.float32])
    assert impure_reason(SampleOf(parts.Subset(plain, [0]))) is None


def test_a_pure_data_set_is_proven() -> None:
    assert impure_reason(Pure()) is None and deterministic(Pure())


@pytest.mark.parametrize(
    "kind",
    [GlobalDraw, HiddenGlobalDraw, SetEpoch, ReadsEpoch, RareAugmentation, HelperDraw, TransformDraw, Counts, Says],
)
def test_a_data_set_that_may_vary_is_not(kind: type[Base]) -> None:
    before = torch.get_rng_state(), random.getstate()
    assert not deterministic(kind())
    assert torch.equal(before[0], torch.get_rng_state()) and before[1] == random.getstate()


@pytest.mark.parametrize("lever", [cache_decode, cache_sample, cache_teacher], ids=lambda lever: lever.ID)
def test_a_cache_takes_a_mib_or_more_and_no_more_than_the_machine_has(lever: Any) -> None:
    machine = machine_of(memory_bytes=1 << 30)
    assert lever.check({"max_bytes": 1 << 20}, machine) is None and lever.check({"max_bytes": 1 << 30}, machine) is None
    assert "the machine's 1073741824" in (lever.check({"max_bytes": (1 << 30) + 1}, machine) or "")
    assert "at least" in (lever.check({"max_bytes": (1 << 20) - 1}, machine) or "")
    assert lever.check({"max_bytes": True}, machine) and lever.check({}, machine)


def test_a_data_set_that_is_not_cached_says_why(tmp_path: Path) -> None:
    with LocalTarget(str(tmp_path)) as target:
        cache_sample.apply(target, {"max_bytes": 1 << 20})
        list(torch.utils.data.DataLoader(GlobalDraw()))
    assert target.changes == 0
    assert target.reasons == ["samples of GlobalDraw may change between draws (__getitem__ uses random)"]
