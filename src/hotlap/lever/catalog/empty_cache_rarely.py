"""Keep the device's cached memory for the next step.

Evidence: The script calls torch.cuda.empty_cache() every few steps.

Gain: Each call waits for the device and hands every free block back to the driver; the next step asks for the same
blocks again, one cudaMalloc each.

Runtime: torch.cuda.empty_cache does nothing for so many optimizer steps after a call that was let through, so that one
at the end of an epoch still works. Out of memory, torch frees its cache by itself and asks again.

Source: Take torch.cuda.empty_cache() out of the loop.

Risk: Memory that this process does not use stays reserved, where another process on the same device may want it, and
blocks of odd sizes are not given back so soon (fragmentation). Results do not change.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

from hotlap.lever.checks import Rule, check_setting
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.evidence import first, place
from hotlap.lever.gains import bounded
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

if TYPE_CHECKING:
    from torch.optim import Optimizer

ID = "empty-cache-rarely"
TREATS = ("empty-cache",)
PRESERVES = "bits"
CONFLICTS = ()
NUMERIC = True

RULES = {"steps_between": Rule(int, 1, 1_000_000)}


def evidence(findings: Findings) -> Finding | None:
    """A cache that is emptied in the loop."""
    return first(findings, TREATS)


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """One call in 200 steps."""
    return [{"steps_between": 200}]


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """The calls themselves at least; as much again for asking the driver anew (prior)."""
    calls = finding.seconds_per_step
    return bounded(findings, 0.8 * calls, 2.0 * calls, "prior")


def check(setting: Setting, machine: Machine) -> str | None:
    """A number of steps."""
    return check_setting(setting, RULES)


def environment(setting: Setting) -> dict[str, str]:
    """None needed."""
    return {}


def apply(target: Target, setting: Setting) -> None:
    """Count steps; let a call through when enough have passed since the last one."""
    steps = 0
    allowed_at: int | None = None

    def step(optimizer: Optimizer, call: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        nonlocal steps
        steps += 1
        return call(*args, **kwargs)

    def torch_ready(torch: ModuleType) -> None:
        real = torch.cuda.empty_cache

        def empty_cache() -> None:
            nonlocal allowed_at
            if allowed_at is None or steps - allowed_at >= setting["steps_between"] or steps == 0:
                allowed_at = steps
                real()
            else:
                target.changed()

        for owner in (torch.cuda, torch.cuda.memory):
            if vars(owner).get("empty_cache") is real:
                target.replace(owner, "empty_cache", empty_cache)
                target.changed(-1)

    target.around_step(step)
    target.on_import("torch", torch_ready)


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """Advice at the line that calls it."""
    where = place(*finding.where)
    advice = "Take torch.cuda.empty_cache() out of the loop."
    return [Edit("advice", where.file, where.line, target="torch.cuda.empty_cache", advice=advice)]
