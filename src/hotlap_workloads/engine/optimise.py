"""The update rule and its learning rate, from the settings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.errors import SettingsError, WorkloadError

__all__ = ["check_least_rate", "for_global_batch", "load_optimizer", "lr_factor", "make_optimizer"]


def make_optimizer(objective: nn.Module, settings: EngineSettings) -> torch.optim.Optimizer:
    """Adam, AdamW or SGD over the parameters that are trained.

    AdamW spares vectors, and those parameters that their module names in ``without_decay``.
    """
    parameters = [p for p in objective.parameters() if p.requires_grad]
    how: dict[str, Any] = {} if settings.optimizer_loop == "auto" else {"foreach": False, "fused": False}
    if settings.optimizer_loop in ("foreach", "fused"):
        how = {settings.optimizer_loop: True}
    if settings.optimizer == "sgd":
        return torch.optim.SGD(parameters, settings.lr, settings.momentum, weight_decay=settings.weight_decay, **how)
    how |= {"betas": settings.betas, "amsgrad": settings.amsgrad}
    if settings.optimizer == "adam":
        return torch.optim.Adam(parameters, settings.lr, weight_decay=settings.weight_decay, **how)
    named = {id(getattr(m, name)) for m in objective.modules() for name in getattr(m, "without_decay", ())}
    decayed = [p for p in parameters if p.ndim > 1 and id(p) not in named]
    spared = [p for p in parameters if p.ndim <= 1 or id(p) in named]
    groups = [
        {"params": decayed, "weight_decay": settings.weight_decay},
        {"params": spared, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, settings.lr, **how)


def for_global_batch(settings: EngineSettings, world: int) -> EngineSettings:
    """The settings with ``lr`` in proportion to the samples of a step of all ranks, where ``lr_for_samples`` is set."""
    if not settings.lr_for_samples:
        return settings
    return replace(settings, lr=settings.lr * _samples(settings, world) / settings.lr_for_samples)


def check_least_rate(settings: EngineSettings, world: int) -> None:
    """Raise SettingsError where ``lr_min`` is above what ``lr`` is on so many ranks.

    For a training alone: an evaluation or a batch search has neither its ranks nor its batch.
    """
    scaled = for_global_batch(settings, world)
    if settings.lr_for_samples and scaled.lr_min > scaled.lr:
        meant = f"which is {settings.lr:g} for {settings.lr_for_samples} samples a step"
        what = f"{meant}, and a step has {_samples(settings, world)}."
        raise SettingsError(f"lr_min={scaled.lr_min:g} is above lr={scaled.lr:g}, {what}", "Lower lr_min.")


def _samples(settings: EngineSettings, world: int) -> int:
    """The samples of a step of all ranks."""
    return settings.batch_size * settings.accumulate * world


def lr_factor(settings: EngineSettings, steps_per_epoch: int) -> Callable[[float], float]:
    """The learning rate at a step, as a factor of ``lr``: linear warm-up, then constant, cosine, or steps."""
    warmup = round(settings.warmup_epochs * steps_per_epoch)
    total = settings.epochs * steps_per_epoch
    every = max(1, round(settings.decay_every_epochs * steps_per_epoch)) if settings.decay_every_epochs else math.inf
    least = settings.lr_min / settings.lr if settings.lr else 0.0

    def factor(step: float) -> float:
        if step < warmup:
            return (step + 1) / warmup
        if settings.schedule == "cosine":
            share = 0.5 * (1 + math.cos(math.pi * min(1.0, (step - warmup) / max(1, total - warmup))))
            return least + (1 - least) * share
        if settings.schedule == "step":
            return float(settings.decay ** (step // every))
        return 1.0

    return factor


def load_optimizer(optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
    """Load, and give each moment the memory order of its parameter.

    A fused optimiser on a CPU walks both as flat memory: moments of another order would silently update wrong weights.
    How the update loops is not the checkpoint's to say: it stays what it is, and moments are put where it wants them.
    Raises WorkloadError where the checkpoint groups the parameters otherwise.
    """
    loop = {key: optimizer.param_groups[0][key] for key in ("foreach", "fused")}
    try:
        optimizer.load_state_dict({**state, "param_groups": [group | loop for group in state["param_groups"]]})
    except ValueError as err:
        raise WorkloadError(
            f"The checkpoint is of another optimiser: {err}.", "Start anew with another --out."
        ) from err
    for parameter in _parameters(optimizer):
        moments = optimizer.state[parameter]
        for name, moment in moments.items():
            if name != "step" and isinstance(moment, torch.Tensor) and moment.shape == parameter.shape:
                moments[name] = torch.empty_like(parameter, dtype=moment.dtype).copy_(moment)


def _parameters(optimizer: torch.optim.Optimizer) -> Iterable[torch.Tensor]:
    return (parameter for group in optimizer.param_groups for parameter in group["params"])
