"""The same augmentation for a whole batch on the device: noises from a bank in memory, rooms by FFT."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from hotlap_workloads.parts.audio_file import RATE_HZ, read_wave
from hotlap_workloads.speaker_verify.noises import KINDS, LAWS, NoiseFiles

__all__ = ["BatchAugment"]

FLOOR = 1e-4 / 32768**2
"""Power below which a sound counts as silence."""


class BatchAugment:
    """Waves (batch, samples) in -1 to 1, each with one kind of change, drawn from torch's random numbers.

    ``minutes`` of each kind of noise are kept, and so many ``rooms``, 0 for all. The sounds are no buffers of a module:
    several ranks would send them to each other at every step.
    """

    def __init__(self, files: NoiseFiles, minutes: float, device: torch.device, rooms: int = 0) -> None:
        self.banks = {kind: _bank(paths, minutes).to(device) for kind, paths in files.by_kind.items()}
        kept = [read_wave(path).astype(np.float32) for path in _spread(files.rooms, rooms or len(files.rooms))]
        length = max(map(len, kept))
        stacked = np.stack([np.pad(room / np.sqrt(np.sum(room**2)), (0, length - len(room))) for room in kept])
        self.rooms = torch.from_numpy(stacked).to(device)

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    @torch.no_grad()
    def __call__(self, waves: Tensor) -> Tensor:
        kind = torch.randint(len(KINDS), (len(waves),))  # on the host, so that it need not wait for the device
        out = waves.clone()
        for number, name in enumerate(KINDS):
            rows = (kind == number).nonzero().flatten()
            if name == "clean" or len(rows) == 0:
                continue
            rows = rows.to(waves.device, non_blocking=True)
            out[rows] = self._in_rooms(waves[rows]) if name == "room" else self._with(waves[rows], name)
        return out

    def _in_rooms(self, waves: Tensor) -> Tensor:
        rooms = self.rooms
        chosen = rooms[torch.randint(len(rooms), (len(waves),), device=waves.device)]
        length = 1 << (waves.shape[1] + rooms.shape[1] - 2).bit_length()
        product = torch.fft.rfft(waves, length) * torch.fft.rfft(chosen, length)
        heard: Tensor = torch.fft.irfft(product, length)[:, : waves.shape[1]]
        return heard

    def _with(self, waves: Tensor, kind: str) -> Tensor:
        law, bank, (count, samples) = LAWS[kind], self.banks[kind], waves.shape
        device = waves.device
        if len(bank) < samples:
            bank = self.banks[kind] = bank.repeat(-(-samples // len(bank)) + 1)
        begin = torch.randint(len(bank) - samples + 1, (count, law.most), device=device)
        noise = bank.unfold(0, samples, 1)[begin].float() / 32768
        wanted_db = torch.empty(count, law.most, device=device).uniform_(law.low_db, law.high_db)
        power = waves.square().mean(1, keepdim=True) + FLOOR
        gain = (power / (noise.square().mean(2) + FLOOR)).sqrt() * 10 ** (-wanted_db / 20)
        used = torch.randint(law.fewest, law.most + 1, (count, 1), device=device)
        gain = gain * (torch.arange(law.most, device=device) < used)
        # no product of matrices: autocast would have it in fp16, too narrow for silence made 1e5 times as loud
        return waves + (noise * gain[:, :, None]).sum(1)


def _bank(paths: Sequence[Path], minutes: float) -> Tensor:
    """int16 samples of files spread over the whole list, back to back: the same stretch of each, up to ``minutes``."""
    wanted = max(int(minutes * 60 * RATE_HZ), 10 * RATE_HZ)
    each = max(10 * RATE_HZ, wanted // len(paths))
    waves, have = [], 0
    for path in _spread(paths, len(paths)):
        waves.append(read_wave(path)[: min(each, wanted - have)])
        have += len(waves[-1])
        if have >= wanted:
            break
    return torch.from_numpy(np.concatenate(waves))


def _spread(paths: Sequence[Path], count: int) -> list[Path]:
    """``count`` paths in an order that jumps through the list, always the same."""
    order = np.random.default_rng(0).permutation(len(paths))[:count]
    return [paths[i] for i in order]
