"""What changed in how the training was set up, and in the machine that it ran on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from hotlap.compare.side import Side
from hotlap.records.comparison import Change

__all__ = ["lever_changes", "machine_changes", "same_amount", "setting_changes"]

NEAR_FRAC = 0.02
"""Two counts that differ by less are the same: a last batch that is not full, memory kept by the system."""
LOADER = ("batch_size", "num_workers", "persistent_workers", "prefetch_factor", "pin_memory", "dataset", "dataset_len")
MODEL = ("class", "parameters", "dtype", "autocast", "compiled", "channels_last")
SWITCHES = {
    "threads": ("torch", "interop", "omp_wait_policy"),
    "backends": ("cudnn_benchmark", "cudnn_deterministic", "deterministic", "gradients_kept"),
}
"""Setting rows of the timeline, and the keys of them that decide about speed."""
DEBUG = ("anomaly", "profiler")


def setting_changes(a: Side, b: Side) -> list[Change]:
    """Samples per step, loader, model, optimizers, threads, switches. What one run did not see is left out."""
    old, new = _settings(a), _settings(b)
    loaders = [side.findings.script.loader for side in (a, b)]
    if None in loaders:
        before, after = (loader.dataset if loader is not None else None for loader in loaders)
        first = [] if before is after else [Change("settings", "loader", before or None, after or None)]
        return first + _changes("settings", *_of_both(old, new))
    return _changes("settings", *_of_both(old, new))


def _of_both(old: dict[str, Any], new: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    return {k: v for k, v in old.items() if k in new}, {k: v for k, v in new.items() if k in old}


def lever_changes(a: Side, b: Side) -> list[Change]:
    """The moves that were applied to the runs themselves (``hotlap run``); None: without it."""
    return _changes("levers", _applied(a), _applied(b))


def machine_changes(a: Side, b: Side) -> list[Change]:
    """Processor, cores, memory, accelerators, Python, torch, and the Hotlap that watched."""
    return _changes("machine", *_of_both(_machine(a), _machine(b)))


def same_amount(a: float | None, b: float | None) -> bool:
    """Whether two counts are the same for what they are compared for."""
    if a is None or b is None:
        return a is b
    return abs(a - b) <= NEAR_FRAC * max(abs(a), abs(b))


Group = Literal["levers", "machine", "settings"]


def _changes(group: Group, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    found = []
    for what in dict.fromkeys([*old, *new]):
        x, y = old.get(what), new.get(what)
        near = what in ("samples_per_step", "memory_bytes") and same_amount(x, y)
        if x != y and not near:
            found.append(Change(group, what, x, y))
    return found


def _settings(side: Side) -> dict[str, Any]:
    """What was seen: a key that is missing was not."""
    script, throughput = side.findings.script, side.findings.throughput
    found: dict[str, Any] = {}
    if throughput.batch is not None:
        found["samples_per_step"] = throughput.batch
    if script.loader is not None:
        found |= {f"loader_{name}": getattr(script.loader, name) for name in LOADER}
    found |= {f"model_{name}": script.model[name] for name in MODEL if name in script.model}
    if script.optimizers:
        found["optimizers"] = [_optimizer(value) for value in script.optimizers]
    for row, names in SWITCHES.items():
        value = side.settings.get(row, {})
        found |= {f"{row}_{name}": value[name] for name in names if name in value}
    found |= {f"debug_{name}": script.debug[name] for name in DEBUG if name in script.debug}
    return found | {"device": script.device, "framework": script.framework, "ranks": script.world_size}


def _optimizer(value: dict[str, Any]) -> str:
    flags = [name for name in ("foreach", "fused", "capturable") if value.get(name)]
    return " ".join([str(value.get("class") or "optimizer"), *flags])


def _applied(side: Side) -> dict[str, Any]:
    origin = side.run.origin
    return {move.lever: move.setting for move in origin.moves} if origin is not None else {}


def _machine(side: Side) -> dict[str, Any]:
    machine = side.machine
    found: dict[str, Any] = {}
    if machine is not None:
        found = {
            "system": machine.system,
            "cpu": machine.cpu,
            "cores": machine.cores,
            "memory_bytes": machine.memory_bytes,
            "accelerators": [accelerator.name for accelerator in machine.accelerators],
        }
    versions = {
        "python": side.python or (machine.python if machine is not None else None),
        "torch": side.torch_version,
        "hotlap": side.hotlap,
    }
    return found | {name: version for name, version in versions.items() if version is not None}
