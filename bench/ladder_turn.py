"""One turn of one rung in a process of its own; ``ladder.py`` starts these.

python bench/ladder_turn.py '{"workload": …, "settings": {…}, …}'      prints a JSON object last

With ``gate`` it says ``ready`` once it is prepared, and plays and prints a turn for every line that it is then given.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from ladder_watch import Watched
from simulated import Device, Gpu
from simulated_task import SimulatedTask, answered, count

from hotlap_workloads.catalogue import find_workload
from hotlap_workloads.engine import random_state
from hotlap_workloads.engine.batch_search import find_batch_size
from hotlap_workloads.engine.machine import Machine, apply_process_wide, pick_device, read_machine
from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.engine.task import Context, Task
from hotlap_workloads.session import Request, settings_of

__all__ = ["Target", "plain"]

PROFILED_STEPS = 5


@dataclasses.dataclass(frozen=True)
class Target:
    """Where the steps run: ``cpu``, ``cuda``, or the simulated GPU of that name at that share of its peak."""

    on: str
    mfu: float = 0.0

    @property
    def gpu(self) -> Gpu | None:
        return None if self.on in ("cpu", "cuda") else Gpu(self.on, self.mfu)

    @property
    def kind(self) -> Literal["cpu", "cuda", "simulated"]:
        return "cpu" if self.on == "cpu" else "cuda" if self.on == "cuda" else "simulated"

    @property
    def machine(self) -> Machine:
        """What the presets are made for."""
        here = read_machine()
        if self.gpu is not None:
            return self.gpu.machine(here.cores)
        return here if self.on == "cuda" else here.cpu


def plain(settings: EngineSettings) -> dict[str, Any]:
    """Settings as values that JSON holds and :func:`override` takes."""
    return {key: list(v) if isinstance(v, tuple) else v for key, v in dataclasses.asdict(settings).items()}


def opened(
    asked: dict[str, Any], target: Target, settings: EngineSettings, data: Path | None
) -> tuple[Watched, dict[str, float]]:
    """The trainer with its data read and its model made; of a simulated device, what a step takes by count."""
    real = pick_device(dataclasses.replace(settings, device="cpu") if target.on != "cuda" else settings, target.machine)
    context = Context(real, Path(asked["out"]), data, say=partial(print, file=sys.stderr))
    random_state.seed_all(settings.seed)
    workload = find_workload(asked["workload"])
    if target.gpu is not None:
        device = target.gpu.device(settings)
        with answered(device, {}):  # what is asked once of a network is asked of the simulated device, too
            task = workload.build(settings, context)
        return _simulated(asked, task, settings, context, device)
    task = workload.build(settings, context)
    if settings.search_batch_size and target.on == "cuda":
        settings = dataclasses.replace(settings, batch_size=find_batch_size(task, settings, context))
    wait: Callable[[], None] = torch.cuda.synchronize if real.type == "cuda" else _nothing
    return Watched(asked["workload"], task, settings, context, asked["steps"], wait, asked["times"]), {}


def _simulated(
    asked: dict[str, Any], task: Task, settings: EngineSettings, context: Context, device: Device
) -> tuple[Watched, dict[str, float]]:
    counted = count(task, settings)
    simulated = SimulatedTask(task, counted, device, settings)
    flops = counted.flops_per_sample * settings.batch_size * settings.accumulate
    made = Watched(asked["workload"], simulated, settings, context, asked["steps"], device.wait, asked["times"])
    return made, {"counted_flops_per_step": flops, "simulated_step_s": flops / device.flops_per_s}


def _nothing() -> None:
    """A CPU has done what it was told to."""


def kernels_s(trainer: Watched) -> float:
    """Seconds per step in which the GPU runs kernels or copies, by torch.profiler, on fresh batches."""
    trainer.wait()
    before = trainer.position.step
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        while trainer.position.step - before < PROFILED_STEPS:
            trainer._epoch(None)
        trainer.wait()
    total_us = sum(event.self_device_time_total for event in profile.key_averages())
    return float(total_us) / 1e6 / (trainer.position.step - before)


def play(asked: dict[str, Any]) -> Iterator[dict[str, float]]:
    """Measure what was asked for, once, or as often as a line comes in."""
    begun = time.perf_counter()
    target = Target(asked["on"], asked["mfu"])
    data = Path(asked["data"]) if asked["data"] else None
    request = Request(asked["workload"], Path(asked["out"]), "slow", values=asked["settings"], data=data)
    settings = dataclasses.replace(settings_of(request, target.machine), compile_from_steps=0)  # as in a long training
    apply_process_wide(settings)
    Path(asked["out"]).mkdir(parents=True, exist_ok=True)
    trainer, simulated = opened(asked, target, settings, data)
    prepared_s = time.perf_counter() - begun
    kernels: float | None = None
    for _ in _lines() if asked.get("gate") else range(1):
        found = trainer.window(asked["seconds"]) | simulated
        busy_s = simulated.get("simulated_step_s", found["in_step_s"])
        if target.on == "cuda":
            found["device_bytes"] = torch.cuda.max_memory_reserved()
            if kernels is None:  # the same in every turn
                kernels = kernels_s(trainer)
            busy_s = kernels
        found["busy_frac"] = busy_s / found["step_s"]
        found["host_bytes"] = trainer.host_bytes
        found["prepared_s"] = prepared_s
        found["roof_step_s"] = trainer.roof_s(asked["seconds"])
        if asked["periodic"]:
            found |= trainer.periodic()
        yield found


def _lines() -> Iterator[str]:
    print("ready", flush=True)
    yield from iter(sys.stdin.readline, "")


def main() -> None:
    """Do what the JSON in the first argument says."""
    for found in play(json.loads(sys.argv[1])):
        print("\n" + json.dumps(found), flush=True)
    os._exit(0)  # loading processes are ended by the caller's group


if __name__ == "__main__":
    main()
