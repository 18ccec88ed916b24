"""Switch off autograd's anomaly detection and profilers that were left on.

Evidence: Anomaly detection or a profiler is active during training.

Gain: Anomaly detection checks every gradient for NaN and keeps a stack for every operation; a profiler records every
operation. All of that time goes away.

Runtime: torch.autograd.set_detect_anomaly, detect_anomaly, torch.profiler.profile and torch.autograd.profiler.profile
keep their interface and do nothing.

Source: Remove the call, or put it behind a --debug option.

Risk: A NaN in a gradient no longer stops the script with a trace, and profiler tables come out empty.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from hotlap.lever.checks import Rule, check_setting
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.evidence import first, place
from hotlap.lever.gains import bounded
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

ID = "debug-off"
TREATS = ("autograd-debug",)
PRESERVES = "bits"
CONFLICTS = ()
NUMERIC = True

RULES = {"anomaly": Rule(bool), "profiler": Rule(bool)}


def evidence(findings: Findings) -> Finding | None:
    """A debugging aid that is on."""
    return first(findings, TREATS)


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """All of them off."""
    return [{"anomaly": True, "profiler": True}]


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """What the finding says at most, half of it at least."""
    most = finding.seconds_per_step
    return bounded(findings, 0.5 * most, most, "modelled")


def check(setting: Setting, machine: Machine) -> str | None:
    """Two switches."""
    return check_setting(setting, RULES)


def environment(setting: Setting) -> dict[str, str]:
    """None needed."""
    return {}


def apply(target: Target, setting: Setting) -> None:
    """Make the switches inert; what counts as a change is one that was used."""

    def swap(owner: Any, name: str, new: Any) -> None:
        target.replace(owner, name, new)
        target.changed(-1)

    def torch_ready(torch: ModuleType) -> None:
        if setting["anomaly"]:
            real = torch.set_anomaly_enabled

            def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
                if enabled:
                    target.changed()
                real(False, check_nan)

            if torch.is_anomaly_enabled():
                target.changed()
                real(False, True)
            swap(torch, "set_anomaly_enabled", set_anomaly_enabled)
        if setting["profiler"]:
            target.on_import("torch.profiler", lambda module: swap(module, "profile", _inert(module.profile, target)))
            older = "torch.autograd.profiler"
            target.on_import(older, lambda module: swap(module, "profile", _begun_and_ended(module.profile, target)))

    target.on_import("torch", torch_ready)


def _inert(real: Any, target: Target) -> Any:
    """A profiler with the same interface that records nothing."""

    class profile(real):  # type: ignore[misc]
        def start(self) -> None:
            target.changed()

        def stop(self) -> None:
            return None

        def step(self) -> None:
            return None

        def __enter__(self) -> Any:
            self.start()
            return self

        def __exit__(self, *error: Any) -> None:
            return None

        def key_averages(self, *args: Any, **kwargs: Any) -> Any:
            from torch.autograd import profiler_util

            events: Any = profiler_util.EventList
            return events([])

        def events(self) -> Any:
            return self.key_averages()

        def export_chrome_trace(self, path: str) -> None:
            return None

        def export_stacks(self, path: str, metric: str = "") -> None:
            return None

    return profile


def _begun_and_ended(real: Any, target: Target) -> Any:
    """autograd's own profiler, over as soon as it has begun: every table of it works, and is empty."""

    class profile(real):  # type: ignore[misc]
        def __enter__(self) -> Any:
            super().__enter__()
            super().__exit__(None, None, None)
            target.changed(int(self.enabled))
            return self

        def __exit__(self, *error: Any) -> None:
            return None

    return profile


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """The line that switched it on goes."""
    where = place(*finding.where)
    advice = "Remove this, or put it behind a --debug option."
    return [Edit("remove", where.file, where.line, "set_detect_anomaly|detect_anomaly|profile", advice=advice)]
