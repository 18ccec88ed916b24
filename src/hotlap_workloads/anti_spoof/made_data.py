"""A small set made here, for a machine without data: made voices, and the same voices through simple attacks.

"Bona fide" is a voice of ``parts.voice`` with a little noise; an attack rebuilds such a voice from less than the whole,
as vocoders do: A01 from magnitudes with phases of chance, A02 from magnitudes smoothed over frequency, A03 (in dev and
eval alone) by stretching it to another pitch. The ASV scores are drawn from three normal laws. Deterministic; a few
seconds to make; of no use but to see the training run.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import soundfile
from numpy.random import Generator
from scipy.signal import istft, resample, stft

from hotlap_workloads.parts.audio_file import RATE_HZ
from hotlap_workloads.parts.voice import Sound, voice

__all__ = ["make_data"]

PARTS = {"train": ("train.trn", 96, ("A01", "A02")), "dev": ("dev.trl", 36, ("A01", "A02", "A03"))}
PARTS["eval"] = ("eval.trl", 48, ("A01", "A02", "A03"))
"""End of the protocol's name, recordings (a third of them bona fide), attacks."""


def make_data(folder: Path) -> Path:
    """Write the set below ``folder`` unless it is there: ``protocols/`` and ``flac/``."""
    if (folder / "protocols").exists():
        return folder
    unfinished = folder.with_name(f"{folder.name}.{os.getpid()}")
    shutil.rmtree(unfinished, ignore_errors=True)
    (unfinished / "flac").mkdir(parents=True)
    (unfinished / "protocols").mkdir()
    for number, part in enumerate(PARTS):
        _part(unfinished, part, np.random.default_rng([17, number]))
    for part in ("dev", "eval"):
        _asv_scores(unfinished / f"protocols/MADE.asv.{part}.gi.trl.scores.txt", np.random.default_rng([19, len(part)]))
    os.replace(unfinished, folder)
    return folder


def _part(root: Path, part: str, random: Generator) -> None:
    end, count, attacks = PARTS[part]
    lines = []
    for number in range(count):
        name = f"MADE_{part[0].upper()}_{number:04d}"
        attack = "-" if number % 3 == 0 else attacks[number // 3 % len(attacks)]
        seconds, pitch_hz = random.uniform(2.5, 5.0), random.uniform(85, 260)
        sound = voice(random, seconds, pitch_hz, random.uniform(0.82, 1.22), random.uniform(0.9, 0.98))
        if attack != "-":
            sound = ATTACKS[attack](sound, random)
        _write(root / "flac" / f"{name}.flac", sound, random)
        lines.append(f"MADE_{number % 16:02d} {name} - {attack} {'bonafide' if attack == '-' else 'spoof'}")
    (root / f"protocols/MADE.cm.{end}.txt").write_text("\n".join(lines) + "\n")


def random_phases(sound: Sound, random: Generator) -> Sound:
    """The magnitudes of the sound with phases that are not its own."""
    *_, spectrum = stft(sound, RATE_HZ, nperseg=512)
    turned = np.abs(spectrum) * np.exp(2j * np.pi * random.random(spectrum.shape))
    return np.asarray(istft(turned, RATE_HZ, nperseg=512)[1][: len(sound)])


def smoothed(sound: Sound, random: Generator) -> Sound:
    """Magnitudes averaged over 9 neighbouring bands, with the sound's own phases."""
    *_, spectrum = stft(sound, RATE_HZ, nperseg=512)
    ends = np.pad(np.abs(spectrum), ((4, 4), (0, 0)), mode="edge")
    mean = sum(ends[i : i + len(spectrum)] for i in range(9)) / 9
    rebuilt = mean * np.exp(1j * np.angle(spectrum))
    return np.asarray(istft(rebuilt, RATE_HZ, nperseg=512)[1][: len(sound)])


def stretched(sound: Sound, random: Generator) -> Sound:
    """Played at another pace: pitch and formants move together."""
    return np.asarray(resample(sound, int(len(sound) * random.uniform(0.72, 0.85))))


ATTACKS: dict[str, Callable[[Sound, Generator], Sound]] = {"A01": random_phases, "A02": smoothed, "A03": stretched}


def _asv_scores(path: Path, random: Generator) -> None:
    laws = {"target": (3.0, 1.0, "bonafide"), "nontarget": (-2.0, 1.5, "bonafide"), "spoof": (1.5, 2.0, "A01")}
    lines = [
        f"{source} {key} {random.normal(mean, deviation):.6f}"
        for key, (mean, deviation, source) in laws.items()
        for _ in range(200)
    ]
    path.write_text("\n".join(lines) + "\n")


def _write(path: Path, sound: Sound, random: Generator) -> None:
    """16-bit FLAC at a random level over a little noise."""
    level = random.uniform(0.1, 0.5)
    sound = sound / np.abs(sound).max() * level + 0.003 * level * random.standard_normal(len(sound))
    soundfile.write(str(path), np.clip(sound, -1, 1), RATE_HZ, subtype="PCM_16")
