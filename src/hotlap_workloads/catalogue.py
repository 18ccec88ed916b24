"""The trainings by name. Each is imported only when it is asked for."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from importlib import import_module

from hotlap_workloads.engine.machine import Machine
from hotlap_workloads.engine.overrides import nearest
from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.engine.task import Workload
from hotlap_workloads.errors import SettingsError

__all__ = ["NAMES", "find_preset", "find_workload", "listing"]

NAMES = ("speaker_verify", "tiny_detr", "twin_verify")


def find_workload(name: str) -> Workload:
    """The training of that name."""
    if name not in NAMES:
        raise SettingsError(f"There is no workload {name!r}.", nearest(name, NAMES))
    found: Workload = import_module(f"hotlap_workloads.{name}.workload").WORKLOAD
    return found


def find_preset(workload: Workload, name: str, machine: Machine) -> EngineSettings:
    """The preset's settings on this machine."""
    if name not in workload.presets:
        raise SettingsError(f"{workload.name} has no preset {name!r}.", nearest(name, workload.presets))
    return workload.presets[name].make(machine)


def listing(machine: Machine) -> Iterator[str]:
    """Lines: each workload, its presets, and what each changes against ``slow`` on this machine."""
    for name in NAMES:
        workload = find_workload(name)
        yield f"{name}: {workload.summary}"
        slow = dataclasses.asdict(workload.presets["slow"].make(machine))
        for preset, entry in workload.presets.items():
            values = dataclasses.asdict(entry.make(machine))
            changes = [f"{key}={shown(value)}" for key, value in values.items() if value != slow[key]]
            yield f"  {preset}: {entry.why}"
            if changes:
                yield f"      against slow: {' '.join(changes)}"


def shown(value: object) -> str:
    """A value as ``--set`` takes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
