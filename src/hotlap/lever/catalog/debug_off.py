"""Switch off autograd's anomaly detection and profilers that were left on.

Evidence: Anomaly detection or a profiler is active during training.

Gain: Anomaly detection checks every gradient for NaN and keeps a stack for every operation; a profiler records every
operation. All of that time goes away.

Runtime: torch.autograd.set_detect_anomaly, detect_anomaly, torch.profiler.profile and torch.autograd.profiler.profile
keep their interface and do nothing. Files that they are asked for are written, with nothing in them.

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
from hotlap.lever.inert_profilers import begun_and_ended, inert
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
            target.on_import("torch.profiler", lambda module: swap(module, "profile", inert(module.profile, target)))
            older = "torch.autograd.profiler"
            target.on_import(older, lambda module: swap(module, "profile", begun_and_ended(module.profile, target)))

    target.on_import("torch", torch_ready)


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """The line that switched it on goes."""
    where = place(*finding.where)
    advice = "Remove this, or put it behind a --debug option."
    return [Edit("remove", where.file, where.line, "set_detect_anomaly|detect_anomaly|profile", advice=advice)]
