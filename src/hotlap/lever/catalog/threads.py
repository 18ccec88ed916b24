"""Give compute the threads that are left over by everything else, and let waiting threads sleep.

Evidence: Torch's threads and the loader's workers together exceed the cores, in all processes of the command that train
at the same time, and the step is slower for it.

Gain: OpenMP threads spin while they wait for each other. Where workers want the same cores, a spinning thread holds the
core that a worker needs, and one thread that is held up makes all others wait, so that fewer threads, or threads that
sleep, take less time for the step. It depends on how busy the workers are, and on how few the cores.

Runtime: torch.set_num_threads before the first training forward; OMP_WAIT_POLICY=PASSIVE in the environment, where the
setting asks for it.

Source: torch.set_num_threads(N) at the start; OMP_WAIT_POLICY=PASSIVE in front of the command.

Risk: Sums over more or fewer threads round differently. Without busy workers fewer threads are slower.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from hotlap.lever.checks import Rule, check_setting
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.evidence import first, place
from hotlap.lever.gains import bounded
from hotlap.lever.knob import Knob
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

if TYPE_CHECKING:
    from torch import nn

ID = "threads"
TREATS = ("thread-contention",)
PRESERVES = "maths"
CONFLICTS = ()
NUMERIC = True

RULES = {"torch_threads": Rule(int, 1, 1024), "passive": Rule(bool)}
_POLICY = "OMP_WAIT_POLICY"
_CALL = "set_num_threads"
_VARIABLES = re.compile(r"\b(?:OMP|MKL)_NUM_THREADS\b")


def evidence(findings: Findings) -> Finding | None:
    """Threads and workers that fight for the cores."""
    return first(findings, TREATS)


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """The cores that workers leave; then as many as now, but waiting passively; then one."""
    model = findings.step_model
    cores = max(machine.cores // _processes(finding), 1)
    left = max(cores - model.workers, 1)
    now = max(model.torch_threads, 1)
    found: list[Setting] = []
    for threads, passive in ((left, False), (left, True), (min(now, cores), True), (1, False)):
        setting = {"torch_threads": threads, "passive": passive}
        if setting not in found and (threads != now or passive):
            found.append(setting)
    return found or Refusal("There is one core and one thread.")


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """Up to what the finding says; less when threads and workers still exceed the cores, and hardly less where torch's
    own threads did."""
    model = findings.step_model
    together = _processes(finding)
    crowded = together * setting["torch_threads"] + model.workers > model.cores
    most = finding.seconds_per_step * (0.6 if crowded and not setting["passive"] else 1.0)
    return bounded(findings, 0.8 * most if together * model.torch_threads > model.cores else 0.0, most, "modelled")


def _processes(finding: Finding) -> int:
    """Processes of the command that train at the same time, each with threads of its own."""
    return int(finding.evidence.get("processes") or 1)


def check(setting: Setting, machine: Machine) -> str | None:
    """Types, and no more threads than cores."""
    wrong = check_setting(setting, RULES)
    if wrong is None and setting["torch_threads"] > machine.cores:
        return f"torch_threads is {setting['torch_threads']}, expected at most {machine.cores}, the cores here."
    return wrong


def environment(setting: Setting) -> dict[str, str]:
    """The waiting policy is read once, when the OpenMP runtime starts."""
    return {_POLICY: "PASSIVE"} if setting["passive"] else {}


def apply(target: Target, setting: Setting) -> None:
    """Set the threads just before training starts, after the script's own settings."""
    if setting["passive"] and os.environ.get(_POLICY) == "PASSIVE":
        target.changed()
    done: list[bool] = []

    def set_threads(module: nn.Module) -> None:
        import torch

        if not done and torch.get_num_threads() != setting["torch_threads"]:
            target.replace(Knob(torch.get_num_threads, torch.set_num_threads), "value", setting["torch_threads"])
        done.append(True)

    target.on_model(set_threads)


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """The call at the start, or in place of the script's own, and the variable in front of the command."""
    where = place(*finding.where)
    threads = setting["torch_threads"]
    code = f"torch.set_num_threads({threads})"
    found = [Edit("insert_before", where.file, where.line, code=code)]
    if _CALL in where.text:  # before it, the script's own would undo it
        found = [Edit("replace_call", where.file, where.line, target=_CALL, code=code)]
    elif _VARIABLES.search(where.text):  # torch may not be imported yet
        found = [Edit("advice", where.file, where.line, advice=f"Set these variables to {threads}.")]
    if setting["passive"]:
        found.append(Edit("advice", where.file, where.line, advice=f"Start the script with {_POLICY}=PASSIVE."))
    return found
