"""``soundfile.SoundFile`` through the cache: the same samples, and the file left where it would be."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest
import soundfile

from hotlap.lever.file_cache import FileCache
from hotlap.lever.sounds import swap_sounds

FRAMES = 600
decoded: list[int] = []
"""Frames that each decoding asked for."""


@pytest.fixture
def through_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileCache]:
    real = soundfile.SoundFile.read

    def counted(sound: Any, frames: int = -1, *args: Any, **kwargs: Any) -> Any:
        decoded.append(frames)
        return real(sound, frames, *args, **kwargs)

    decoded.clear()
    monkeypatch.setattr(soundfile.SoundFile, "read", counted)
    cache = FileCache(str(tmp_path / "cache"), 1 << 22)
    swap_sounds(cache, soundfile, monkeypatch.setattr)
    yield cache


def written(path: Path, seed: int = 0, channels: int = 2) -> Path:
    noise = numpy.random.RandomState(seed).randn(FRAMES, channels).clip(-1, 1)
    soundfile.write(str(path), noise, 8000, subtype="VORBIS" if path.suffix == ".ogg" else "PCM_16")
    return path


def take(sound: Any, start: int, how: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[bytes, Any, int]:
    if start:
        sound.seek(start)
    data = sound.read(*how, **kwargs)
    assert data.flags.writeable
    seen = data.tobytes(), (data.shape, data.dtype), sound.tell()
    data[:] = 0  # the caller's own
    return seen


READS: list[tuple[int, tuple[Any, ...], dict[str, Any]]] = [
    (0, (), {}), (0, (), {"dtype": "int16"}), (0, (-1, "float32", True), {}), (100, (), {"dtype": "int16"}),
    (100, (50,), {"dtype": "int16"}), (590, (50, "int16"), {}), (0, (7,), {"dtype": "int16"}),
    (0, (0,), {"dtype": "int16"}), (0, (2000,), {"dtype": "int16"}), (FRAMES, (), {"dtype": "int16"}),
    (580, (50,), {"dtype": "int16", "fill_value": 3}),
]  # fmt: skip


@pytest.mark.parametrize("suffix", ["wav", "flac", "ogg"])
@pytest.mark.parametrize("channels", [1, 2])
def test_every_read_gives_what_it_gave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, channels: int
) -> None:
    path = str(written(tmp_path / f"a.{suffix}", channels=channels))
    want = []
    for start, how, kwargs in READS:
        with soundfile.SoundFile(path) as sound:
            want.append(take(sound, start, how, kwargs))
    swap_sounds(FileCache(str(tmp_path / "cache"), 1 << 22), soundfile, monkeypatch.setattr)
    for _ in range(3):
        for (start, how, kwargs), right in zip(READS, want, strict=True):
            with soundfile.SoundFile(path) as sound:
                assert take(sound, start, how, kwargs) == right


def test_a_file_is_decoded_once_for_all_its_openings(tmp_path: Path, through_cache: FileCache) -> None:
    path = written(tmp_path / "a.flac")
    for start in (0, 100, 300, 0):
        for given in (path, str(path)):
            with soundfile.SoundFile(given) as sound:
                sound.seek(start)
                sound.read(50, dtype="int16")
    assert decoded == [-1] and through_cache.used()


def test_reads_that_follow_each_other(tmp_path: Path, through_cache: FileCache) -> None:
    path = str(written(tmp_path / "a.wav"))
    whole, _ = soundfile.read(path, dtype="int16")
    with soundfile.SoundFile(path) as sound:
        parts = [sound.read(256, dtype="int16") for _ in range(4)]
    assert numpy.array_equal(numpy.concatenate(parts), whole) and len(parts[-1]) == 0
    assert [len(block) for block in soundfile.blocks(path, 256)] == [256, 256, FRAMES - 512]


def test_the_modules_read_is_kept_once(tmp_path: Path, through_cache: FileCache) -> None:
    path = str(written(tmp_path / "a.flac"))
    soundfile.read(path)
    entries = through_cache.used_units()
    for _ in range(3):
        soundfile.read(path)
    assert len(decoded) == 1 and through_cache.used_units() == entries
    with pytest.raises(TypeError):
        soundfile.read(path, start="x")
    with soundfile.SoundFile(path) as sound:
        sound.read()
    assert len(decoded) == 2, "after one that failed, what is opened is looked after again"


def test_a_file_that_changes_is_read_anew(tmp_path: Path, through_cache: FileCache) -> None:
    path = written(tmp_path / "a.wav")
    with soundfile.SoundFile(str(path)) as sound:
        first = sound.read()
    old = soundfile.SoundFile(str(path))
    os.replace(written(tmp_path / "b.wav", seed=1), path)
    with old, soundfile.SoundFile(str(path)) as sound:
        assert numpy.array_equal(old.read(), first), "it was opened before"
        assert not numpy.array_equal(sound.read(), first)


def test_what_is_written_or_cut_short_is_left_alone(tmp_path: Path, through_cache: FileCache) -> None:
    with soundfile.SoundFile(str(tmp_path / "w.wav"), "w+", 8000, 1) as sound:
        sound.write(numpy.ones(10))
        sound.seek(0)
        assert len(sound.read()) == 10
    path = written(tmp_path / "a.flac")
    path.write_bytes(path.read_bytes()[:1500])
    lengths = set()
    for _ in range(2):
        with soundfile.SoundFile(str(path)) as sound:
            try:
                lengths.add(len(sound.read(20, dtype="int16")))
            except soundfile.LibsndfileError:
                lengths.add(-1)
    assert len(lengths) == 1 and not through_cache.used()


def test_mistakes_of_the_script_are_its_own(tmp_path: Path, through_cache: FileCache) -> None:
    with soundfile.SoundFile(str(written(tmp_path / "a.wav"))) as sound:
        with pytest.raises(TypeError):
            sound.read(5, frames=3)
        with pytest.raises(ValueError, match="dtype"):
            sound.read(dtype="int8")
    with pytest.raises(soundfile.SoundFileRuntimeError):
        sound.read()
    with pytest.raises(soundfile.LibsndfileError):
        soundfile.SoundFile(str(tmp_path / "none.wav"))
