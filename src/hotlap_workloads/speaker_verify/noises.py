"""The folders of MUSAN and of room impulse responses, and the law of the augmentation, for both ways of doing it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hotlap_workloads.errors import DataError

__all__ = ["KINDS", "LAWS", "Law", "NoiseFiles", "find_noises"]


@dataclass(frozen=True)
class Law:
    """How many recordings are added, and by how many dB each lies below the voice (both ends included)."""

    fewest: int
    most: int
    low_db: float
    high_db: float


LAWS = {"noise": Law(1, 1, 0, 15), "speech": Law(3, 7, 13, 20), "music": Law(1, 1, 5, 15)}
"""As the VoxCeleb trainer has it (after Snyder et al. 2018, x-vectors)."""
KINDS = ("clean", "room", "music", "speech", "noise")
"""Each sample gets one of these, all equally likely."""


@dataclass(frozen=True)
class NoiseFiles:
    """Files by kind (noise, speech, music), and impulse responses."""

    by_kind: dict[str, list[Path]]
    rooms: list[Path]

    @property
    def paths(self) -> list[Path]:
        """All of them."""
        return [path for files in self.by_kind.values() for path in files] + self.rooms

    def without(self, bad: set[Path]) -> NoiseFiles:
        """Without files that cannot be read. Raises DataError where none of a kind is left."""
        kept = {}
        for kind, files in {**self.by_kind, "room": self.rooms}.items():
            kept[kind] = [path for path in files if path not in bad]
            if not kept[kind]:
                raise DataError(files[0], f"and all {len(files)} files of {kind} cannot be read.")
        return NoiseFiles({kind: kept[kind] for kind in self.by_kind}, kept["room"])


def find_noises(musan: Path, rirs: Path) -> NoiseFiles:
    """All WAV files below ``musan/KIND`` and ``rirs``."""
    by_kind = {kind: sorted((musan / kind).rglob("*.wav")) for kind in LAWS}
    for kind, files in by_kind.items():
        if not files:
            raise DataError(musan / kind, "holds no .wav file.", "musan=DIR names the folder of MUSAN.")
    rooms = sorted(rirs.rglob("*.wav"))
    if not rooms:
        raise DataError(rirs, "holds no .wav file.", "rirs=DIR names the folder of impulse responses.")
    return NoiseFiles(by_kind, rooms)
