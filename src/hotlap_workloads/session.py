"""From names and files to a trainer: what ``train`` and ``evaluate`` share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from hotlap_workloads.catalogue import find_preset, find_workload
from hotlap_workloads.engine import random_state
from hotlap_workloads.engine.batch_search import find_batch_size
from hotlap_workloads.engine.checkpoint import is_there
from hotlap_workloads.engine.config_file import Values, read_config
from hotlap_workloads.engine.journal import SETTINGS
from hotlap_workloads.engine.loader import loading
from hotlap_workloads.engine.loop import Trainer
from hotlap_workloads.engine.machine import (
    Machine,
    apply_process_wide,
    check_machine,
    pick_device,
    read_machine,
    resolved,
)
from hotlap_workloads.engine.overrides import nearest, override
from hotlap_workloads.engine.profiles import PROFILES
from hotlap_workloads.engine.ranks import Ranks, joined
from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.engine.task import MADE_DATA, Context, Task, Workload
from hotlap_workloads.errors import SettingsError, WorkloadError
from hotlap_workloads.parts.writing import writing_into

__all__ = ["Request", "data_of_run", "opened", "settings_of", "settings_of_run"]

DATABASE = "database"
"""The setting by which published configurations name the data, where a workload has it."""


@dataclass(frozen=True)
class Request:
    """What was asked for: preset, then profile, then configuration file, then single values, the later ones winning."""

    workload: str
    out: Path
    preset: str = "fast"
    profile: str = ""
    config: Path | None = None
    values: Mapping[str, str] = field(default_factory=dict)
    data: Path | None = None
    quarantine: bool = False


def settings_of(
    request: Request, machine: Machine | None = None, say: Callable[[str], None] | None = None
) -> EngineSettings:
    """The settings, checked against themselves and the machine: this one, unless another is given.

    ``say`` hears what of a published configuration is left out or means something else.
    """
    workload, machine = find_workload(request.workload), machine or read_machine()
    config = _configured(request, workload, say or _quiet)
    if {**config, **request.values}.get("device") == "cpu":
        machine = machine.cpu  # presets ask for what the device can do, which is not the GPU
    settings = find_preset(workload, request.preset, machine)
    if request.data is None and hasattr(workload, "for_made_data"):
        settings = workload.for_made_data(settings, machine)
    if request.profile:
        if request.profile not in PROFILES:
            raise SettingsError(f"There is no profile {request.profile!r}.", nearest(request.profile, PROFILES))
        settings = PROFILES[request.profile](settings, machine)
    settings = override(settings, config, str(request.config))
    settings = resolved(override(settings, request.values, "--set"), machine)
    settings.check()
    check_machine(settings, machine)
    return settings


def _configured(request: Request, workload: Workload, say: Callable[[str], None]) -> Values:
    """The values of the configuration file, none without one."""
    if request.config is None:
        return {}
    translated = getattr(workload, "translated", None)
    return read_config(request.config, workload.aliases, partial(translated, say=say) if translated else None)


def settings_of_run(request: Request) -> EngineSettings:
    """The settings that a run was made with, with single values changed."""
    values = _kept(request)
    for key in ("workload", "data"):
        values.pop(key, None)
    values["search_batch_size"] = False  # found when it was trained
    path = str(request.out / SETTINGS)
    settings = override(find_preset(find_workload(request.workload), "slow", read_machine()), values, path)
    settings = resolved(override(settings, request.values, "--set"), read_machine())
    settings.check()
    check_machine(settings, read_machine())
    return settings


def data_of_run(request: Request) -> Path | None:
    """The data to judge a run by: those that are named, else those it was trained on; None where it made its own.

    SettingsError where they are not there any more, or a run of before does not say: made ones are another measure.
    """
    values = _kept(request)
    if request.data is not None or DATABASE in request.values:
        return request.data
    if "data" not in values and not values.get(DATABASE) and not (request.out / MADE_DATA).is_dir():
        what = f"{request.out / SETTINGS} does not say what the run was trained on."
        raise SettingsError(what, "Name it with --data.")
    if (folder := values.get("data")) is None:
        return None
    if not Path(folder).is_dir():
        raise SettingsError(f"{request.out} was trained on {folder}, which is not there: name it with --data.")
    return Path(folder)


def _kept(request: Request) -> dict[str, Any]:
    """What the folder of a training says of its settings. SettingsError where it is none."""
    path = request.out / SETTINGS
    try:
        values = _run_in(request)
    except (OSError, ValueError) as err:
        raise SettingsError(f"{path} cannot be read: {err}.", "--out names the folder of a training.") from err
    if values.get("workload") is None:
        raise SettingsError(f"{path} does not say of which workload it is.", "--out names the folder of a training.")
    return values


@contextmanager
def opened(request: Request, settings: EngineSettings, say: Callable[[str], None]) -> Iterator[Trainer]:
    """The trainer, with data read and model made. Ranks leave their group at the end."""
    machine = read_machine()
    _check_folders(request)
    apply_process_wide(settings)
    with loading(), joined(machine.gpu and settings.device != "cpu") as ranks:
        context = Context(
            pick_device(settings, machine, ranks.local),
            request.out,
            staged(request.data, settings.stage_to, ranks, say),
            ranks,
            request.quarantine,
            say if ranks.first else _quiet,
            source=_source(request, settings),
        )
        random_state.seed_all(settings.seed)
        task = find_workload(request.workload).build(settings, context)
        if settings.search_batch_size:
            settings = _searched(request, task, settings, context)
        random_state.seed_all(settings.seed + 1_000_003 * ranks.rank)
        yield Trainer(request.workload, task, settings, context)


def _source(request: Request, settings: EngineSettings) -> Path | None:
    """The folder of the data that is named, on the command line or by a setting."""
    setting: str = getattr(settings, DATABASE, "")
    return request.data or (Path(setting) if setting else None)


def _check_folders(request: Request) -> None:
    """Before anything is read or written: data that are there, and a folder for this workload's run."""
    if request.data is not None and not request.data.is_dir():
        what = "is no folder" if request.data.exists() else "does not exist"
        raise SettingsError(f"--data {request.data} {what}.", "It names the folder of the data set.")
    # suppressed: of a new folder, or of a file cut short, which training writes anew
    with writing_into(request.out, "--out"), suppress(OSError, ValueError):
        _run_in(request)


def _searched(request: Request, task: Task, settings: EngineSettings, context: Context) -> EngineSettings:
    """With the largest batch that fits. A run that goes on keeps its own: another would bend its schedule."""
    with suppress(OSError, ValueError, KeyError):  # its settings may be of a file cut short
        if is_there(request.out):
            return replace(settings, batch_size=int(_run_in(request)["batch_size"]))
    settings = replace(settings, batch_size=find_batch_size(task, settings, context))
    context.say(f"The largest batch that fits is {settings.batch_size}.")
    return settings


def _run_in(request: Request) -> dict[str, Any]:
    """What the run's folder says of its settings; SettingsError where they are of another workload."""
    values = json.loads((request.out / SETTINGS).read_text(encoding="utf-8"))
    if not isinstance(values, dict):
        return {}
    if (held := values.get("workload", request.workload)) != request.workload:
        raise SettingsError(f"{request.out} holds a run of {held}, not of {request.workload}.", "Name another --out.")
    return values


def staged(data: Path | None, target: str, ranks: Ranks, say: Callable[[str], None]) -> Path | None:
    """The data on a local disk: copied once by the first rank of each machine, verified by hash, resumed if cut."""
    if not target:
        return data
    if data is None:
        raise SettingsError(f"stage_to={target} copies what --data names, and no --data is given.", "Drop one.")
    from hotlap.pack import HotlapError, stage

    if ranks.local == 0:
        try:
            stage(str(data), target)
        except HotlapError as err:
            raise WorkloadError(err.what, err.hint, err.exit_code) from err
        say(f"{data} is staged in {target}.")
    ranks.wait()
    return Path(target)


def _quiet(line: str) -> None:
    """Only the first rank talks."""
