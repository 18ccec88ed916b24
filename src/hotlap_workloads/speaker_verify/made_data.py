"""A small set made here, for a machine without data: voices of different pitch and formants, noises and rooms.

A speaker is a pitch, four formants and a tilt of the spectrum; an utterance strings together vowels of that voice with
its own melody, level and background noise. Deterministic; a few seconds to make.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import soundfile
from numpy.random import Generator
from scipy.signal import lfilter

from hotlap_workloads.parts.audio_file import RATE_HZ
from hotlap_workloads.parts.voice import Sound, voice

__all__ = ["make_data"]

TRAIN_SPEAKERS, TRAIN_EACH, TEST_SPEAKERS, TEST_EACH = 32, 12, 10, 8


def make_data(folder: Path) -> Path:
    """Write the set below ``folder`` unless it is there: lists, trials, wav/, musan/, rirs/."""
    if (folder / "train_list.txt").exists():
        return folder
    unfinished = folder.with_name(f"{folder.name}.{os.getpid()}")
    shutil.rmtree(unfinished, ignore_errors=True)
    train = _speakers(unfinished, "made", range(TRAIN_SPEAKERS), TRAIN_EACH)
    test = _speakers(unfinished, "made", range(TRAIN_SPEAKERS, TRAIN_SPEAKERS + TEST_SPEAKERS), TEST_EACH)
    _noises(unfinished)
    lines = _trials(test)
    (unfinished / "val_trials.txt").write_text("\n".join(lines[::2]) + "\n")
    (unfinished / "test_trials.txt").write_text("\n".join(lines) + "\n")
    (unfinished / "train_list.txt").write_text("\n".join(f"{path.split('/')[0]} {path}" for path in train) + "\n")
    os.replace(unfinished, folder)
    return folder


def _speakers(root: Path, name: str, numbers: range, each: int) -> list[str]:
    paths = []
    for number in numbers:
        random = np.random.default_rng([7, number])
        pitch_hz, stretch, tilt = random.uniform(85, 260), random.uniform(0.82, 1.22), random.uniform(0.90, 0.98)
        (root / "wav" / f"{name}{number:03d}").mkdir(parents=True)
        for utterance in range(each):
            path = f"{name}{number:03d}/{utterance:05d}.wav"
            seconds = random.uniform(2.0, 3.5)
            _write(root / "wav" / path, voice(random, seconds, pitch_hz, stretch, tilt), random)
            paths.append(path)
    return paths


def _noises(root: Path) -> None:
    random = np.random.default_rng(11)
    for number in range(6):
        white = random.standard_normal(8 * RATE_HZ)
        _write(
            root / f"musan/noise/made/noise-{number}.wav",
            lfilter([1.0], [1.0, -random.uniform(0, 0.99)], white),
            random,
        )
        time_s = np.arange(8 * RATE_HZ) / RATE_HZ
        notes = 220 * 2 ** (random.integers(0, 24, 16) / 12)
        tune = sum(np.sin(2 * np.pi * notes[(time_s * 2).astype(int)] * k * time_s) / k for k in (1, 2, 3))
        _write(root / f"musan/music/made/music-{number}.wav", np.asarray(tune), random)
    for number in range(8):
        talk = voice(random, 8.0, random.uniform(85, 260), random.uniform(0.82, 1.22), 0.95)
        _write(root / f"musan/speech/made/speech-{number}.wav", talk, random)
    for number in range(8):
        seconds = random.uniform(0.1, 0.5)
        time_s = np.arange(int(seconds * RATE_HZ)) / RATE_HZ
        echo = random.standard_normal(len(time_s)) * np.exp(-6.9 * time_s / seconds) * 0.2
        echo[0] = 1.0
        _write(root / f"rirs/made/room-{number}.wav", echo, random, noise=0.0)


def _trials(paths: list[str]) -> list[str]:
    random = np.random.default_rng(13)
    same = [(a, b) for i, a in enumerate(paths) for b in paths[i + 1 :] if a.split("/")[0] == b.split("/")[0]]
    other = [(a, b) for i, a in enumerate(paths) for b in paths[i + 1 :] if a.split("/")[0] != b.split("/")[0]]
    chosen = [other[i] for i in random.choice(len(other), len(same), replace=False)]
    lines = [f"1 {a} {b}" for a, b in same] + [f"0 {a} {b}" for a, b in chosen]
    return [lines[i] for i in random.permutation(len(lines))]


def _write(path: Path, sound: Sound, random: Generator, noise: float = 0.01) -> None:
    """16-bit WAV, at a random level over a little noise; impulse responses (no noise) at full level."""
    path.parent.mkdir(parents=True, exist_ok=True)
    level = random.uniform(0.2, 0.9) if noise else 0.9
    sound = sound / np.abs(sound).max() * level + noise * random.standard_normal(len(sound)) * level
    soundfile.write(str(path), np.clip(sound, -1, 1), RATE_HZ, subtype="PCM_16")
