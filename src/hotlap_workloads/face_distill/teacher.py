"""The frozen teacher: its weights from a file, and how it is run."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hotlap_workloads.engine.task import Context
from hotlap_workloads.errors import DataError, SettingsError, first_line
from hotlap_workloads.face_distill.settings import UNTRAINED, FaceSettings
from hotlap_workloads.face_distill.squares import Squares
from hotlap_workloads.parts.iresnet import IResNet, folded, halved

__all__ = ["Teacher", "make_teacher"]

FITTED_PHOTOS = 256
"""Photos that an untrained teacher's norms are fitted to."""
TYPES = {"off": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


class Teacher:
    """Images in -1 to 1 to unit embeddings in fp32, never with gradients.

    No module of the objective: its weights are not in checkpoints, not sent between ranks, and stay in eval mode.
    """

    def __init__(self, net: IResNet, s: FaceSettings, device: torch.device) -> None:
        self.fingerprint = _fingerprint(net, s)
        self._type = TYPES[s.precision] if s.teacher_mode == "folded" else None
        if self._type is not None:
            net = halved(folded(net), self._type).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._net = net.to(device).eval().requires_grad_(False)

    def __call__(self, images: Tensor) -> Tensor:
        if self._type is None:
            with torch.no_grad():
                return F.normalize(self._net(images).float())
        with torch.inference_mode(), torch.autocast(images.device.type, enabled=False):
            said = F.normalize(self._net(images.to(self._type)).float())
        return said.clone()  # a tensor of inference mode may not meet ones that have gradients


def make_teacher(s: FaceSettings, squares: Squares, context: Context) -> Teacher:
    """The teacher that the settings name. Its random numbers are its own: the student's weights do not hang on it."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = IResNet(s.teacher, s.embedding, s.size, s.teacher_width)
    if s.teacher_weights == UNTRAINED:
        path = context.out / "untrained_teacher.pt"
        if context.ranks.first and not path.exists():
            context.say("The teacher is untrained: time means something here, quality does not.")
            _fit_norms(net, squares)
            torch.save(net.state_dict(), path.with_suffix(".new"))
            os.replace(path.with_suffix(".new"), path)
        context.ranks.wait()
        _load(net, path)
    elif s.teacher_weights:
        _load(net, Path(s.teacher_weights))
    else:
        raise SettingsError(
            f"head={s.head} needs a trained teacher.",
            "Train one with --preset teacher and set teacher_weights=RUN/checkpoint.pt, or name a backbone.pth; "
            f"teacher_weights={UNTRAINED} is enough to measure time.",
        )
    return Teacher(net, s, context.device)


def _load(net: IResNet, path: Path) -> None:
    """Weights from a backbone.pth, or the student of a checkpoint."""
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as err:
        raise DataError(path, f"cannot be read: {err.strerror}.", "teacher_weights names the file.") from err
    except Exception as err:  # as in engine.checkpoint: torch raises many kinds for a damaged file
        raise DataError(path, f"holds no weights: {type(err).__name__}: {first_line(err)}") from err
    if isinstance(state, dict) and isinstance(found := state.get("objective"), dict):
        state = {name.removeprefix("net."): value for name, value in found.items() if str(name).startswith("net.")}
    named = isinstance(state, dict) and all(isinstance(name, str) for name in state)
    if not named or not all(isinstance(value, Tensor) for value in state.values()):
        raise DataError(
            path,
            f"holds a {type(state).__name__}, not the weights of a network by name.",
            "teacher_weights names a backbone.pth, or the checkpoint.pt of a run.",
        )
    state = {name.removeprefix("module."): value for name, value in state.items()}
    wanted = net.state_dict()
    odd = sorted(set(state) ^ set(wanted)) + [k for k in wanted if k in state and state[k].shape != wanted[k].shape]
    if odd:
        raise DataError(
            path,
            f"is of another network: {len(odd)} tensors differ, the first is {odd[0]!r}.",
            "teacher, teacher_width, embedding and size say which network it is.",
        )
    net.load_state_dict(state)


@torch.no_grad()
def _fit_norms(net: IResNet, squares: Squares) -> None:
    """Means and variances of all norms over some photos: without them, signals grow from block to block."""
    norms = [module for module in net.modules() if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = None  # the plain mean over all batches
    net.train()
    for pixels in _batches(squares, 32):
        net(torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 127.5 - 1)
    for norm in norms:
        norm.momentum = 0.1
    net.eval()


def _batches(squares: Squares, size: int) -> Iterator[Any]:
    rows = np.linspace(0, len(squares) - 1, min(FITTED_PHOTOS, len(squares))).astype(int).tolist()
    for begin in range(0, len(rows) - 1, size):  # a last one alone is left out: its norm cannot be told
        yield np.stack([squares(row)[0] for row in rows[begin : begin + size]])


def _fingerprint(net: IResNet, s: FaceSettings) -> str:
    crc = 0
    for value in net.state_dict().values():
        crc = zlib.crc32(np.ascontiguousarray(value.cpu().numpy()).tobytes(), crc)
    return f"{s.teacher} {s.teacher_mode} {s.precision} {crc:08x}"
