"""Three profiles: the knobs that trade speed against equal bits, set together."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TypeVar

from hotlap_workloads.engine.machine import Machine, compiler
from hotlap_workloads.engine.settings import EngineSettings

__all__ = ["PROFILES", "balanced", "compiled", "fastest", "from_pack", "reproducible"]

S = TypeVar("S", bound=EngineSettings)


def fastest(settings: S, machine: Machine) -> S:
    """All that this machine can do, the compiler excepted (:func:`compiled`): what it gains is each workload's own.

    Two cores: no loading process beside the step, since they would fight for the cores; more cores: up to eight.
    """
    workers = machine.workers(8)
    return replace(
        settings,
        keep_freed_memory=not machine.gpu,
        workers=workers,
        eval_workers=workers,
        persistent_workers=workers > 0,
        prefetch_factor=3,
        pin_memory=machine.gpu,
        non_blocking=machine.gpu,
        precision=machine.autocast,
        tf32=machine.tf32,
        channels_last=True,
        cudnn_benchmark=True,
        deterministic=False,
        optimizer_loop="fused",
        zero_grad_to_none=True,
        read_loss_every_step=False,
        checkpoint_in_background=True,
    )


def from_pack(settings: S, machine: Machine) -> S:
    """The loading processes that a training on decoded, packed data deserves; a thread where a GPU would wait for none.

    A thread's copies run beside the training's Python. Beside a CPU's steps it would take a core from them.
    """
    workers = machine.packed_workers
    ahead = 2 if machine.gpu and not workers else 0
    return replace(settings, workers=workers, persistent_workers=workers > 0, batches_ahead=ahead)


def compiled(settings: S, machine: Machine, from_steps: int) -> S:
    """Compiled in trainings of at least so many steps, on a CPU, where it was measured and a C++ compiler is found."""
    if machine.gpu or shutil.which(compiler()) is None:
        return settings
    return replace(settings, compile=True, compile_from_steps=from_steps)


def balanced(settings: S, machine: Machine) -> S:
    """Fast, with the arithmetic left at fp32 and its memory order as it was."""
    fast = fastest(settings, machine)
    return replace(fast, precision="off", tf32=False, channels_last=False, cudnn_benchmark=False)


def reproducible(settings: S, machine: Machine) -> S:
    """The same bits at every run on this machine; loading stays fast, since it changes no number."""
    return replace(balanced(settings, machine), deterministic=True)


PROFILES = {"fastest": fastest, "reproducible": reproducible, "balanced": balanced}
"""By the name given to ``--profile``."""
