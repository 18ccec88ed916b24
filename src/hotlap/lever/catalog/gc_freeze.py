"""Let the garbage collector look at new objects only.

Evidence: The collector pauses the step, by itself or because the script calls gc.collect() in the loop, and each full
collection goes through every object that the set-up left behind (modules, data set, model).

Gain: A full collection takes time in proportion to the objects alive; frozen ones are not looked at, and a higher
threshold makes what is left of the pauses rarer.

Runtime: After the first steps gc.collect() and gc.freeze(), then gc.set_threshold for the youngest generation. A script
that has frozen objects, or switched the collector off, keeps what it set.

Source: gc.collect(); gc.freeze(); gc.set_threshold(50_000, 20, 20) after the set-up, and no gc.collect() in the loop.

Risk: Cycles live longer, so memory may grow a little before it falls: those made before the freeze are collected by a
full collection, also the script's own gc.collect(), that comes a hundred times as long after the last such one as it
takes. Results do not change.
"""

from __future__ import annotations

import gc
import math
import os
import time
from typing import TYPE_CHECKING, Any

from hotlap.lever.checks import Rule, check_setting
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.evidence import first, place
from hotlap.lever.gains import bounded
from hotlap.lever.knob import Knob
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

if TYPE_CHECKING:
    from torch.optim import Optimizer

ID = "gc-freeze"
TREATS = ("gc", "gc-collect")
PRESERVES = "bits"
CONFLICTS = ()
NUMERIC = True

RULES = {"threshold": Rule(int, 700, 10_000_000), "after_steps": Rule(int, 1, 10_000)}
_OLDER = 20
"""Collections of a generation before the next older one is collected too (Python's own: 10)."""
_RARELY = 100.0
"""A full collection that goes through everything is followed by as many times its length without one: 1 % at most."""


def evidence(findings: Findings) -> Finding | None:
    """Pauses of the collector."""
    return first(findings, TREATS)


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """After three steps, when the optimizer has its state and the workers have started."""
    return [{"threshold": 50_000, "after_steps": 3}]


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """Nearly all of the full collections, whose time goes into the set-up's objects (in a script that
    calls one in each step, 98 % of the step went away: boxes_gc in bench/results/prediction.json); half to nearly all
    of the others, by how many objects are new."""
    found = {f.cause: f for f in findings.findings if f.cause in TREATS}
    pauses = sum(f.seconds_per_step for f in found.values())
    by_itself = found["gc"].evidence if "gc" in found else {}
    full = (by_itself.get("full_each_s") or 0.0) * (by_itself.get("full_per_step") or 0.0)
    full += found["gc-collect"].seconds_per_step if "gc-collect" in found else 0.0
    whole = min(full, pauses)
    return bounded(findings, 0.9 * whole + 0.5 * (pauses - whole), 0.99 * whole + 0.98 * (pauses - whole), "modelled")


def check(setting: Setting, machine: Machine) -> str | None:
    """Types and range."""
    return check_setting(setting, RULES)


def environment(setting: Setting) -> dict[str, str]:
    """None needed."""
    return {}


class _Frozen:
    """Whether the objects of the set-up are frozen, as a value that can be put back.

    What a fold leaves behind may be in a cycle (a scheduler makes one of each optimizer), with the memory of a model:
    a full collection goes through the frozen objects, too, where such a one is rare enough to cost next to nothing.
    """

    def __init__(self) -> None:
        self.on = False
        self._pid = os.getpid()
        self._began, self._full_s, self._ended, self._thawed = 0.0, 0.0, -math.inf, False

    def get(self) -> bool:
        return self.on

    def set(self, on: bool) -> None:
        if on == self.on:
            return
        self.on = on
        if on:
            gc.collect()
            gc.freeze()
            gc.callbacks.append(self._collects)
        else:
            if self._collects in gc.callbacks:
                gc.callbacks.remove(self._collects)
            gc.unfreeze()

    def _collects(self, phase: str, info: dict[str, int]) -> None:
        if info["generation"] != 2 or os.getpid() != self._pid:  # a worker shares the frozen pages while it reads none
            return
        now = time.perf_counter()
        if phase == "stop" and self._thawed:
            gc.freeze()
            self._full_s, self._ended, self._thawed = now - self._began, now, False
        elif phase == "start" and now - self._ended >= _RARELY * self._full_s and gc.get_freeze_count():
            gc.unfreeze()
            self._began, self._thawed = now, True


def apply(target: Target, setting: Setting) -> None:
    """Count the steps, then freeze once."""
    frozen = _Frozen()
    steps = 0

    def step(optimizer: Optimizer, call: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        nonlocal steps
        result = call(*args, **kwargs)
        steps += 1
        if steps == setting["after_steps"] and gc.isenabled() and not gc.get_freeze_count():
            target.replace(Knob(frozen.get, frozen.set), "value", True)
            thresholds = Knob(gc.get_threshold, lambda values: gc.set_threshold(*values))
            target.replace(thresholds, "value", (setting["threshold"], _OLDER, _OLDER))
        return result

    target.around_step(step)
    # what is frozen is not collected at the interpreter's end, and files in a cycle would lose their last lines
    target.at_exit(lambda: frozen.set(False))


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """Advice: where the set-up ends is the script's to say; at a gc.collect() in the loop, take it out."""
    where = place(*finding.where)
    after = f"gc.collect(); gc.freeze(); gc.set_threshold({setting['threshold']}, {_OLDER}, {_OLDER}) after the set-up"
    advice = f"Call {after}; take gc.collect() out of the loop." if finding.cause == "gc-collect" else f"Call {after}."
    return [Edit("advice", where.file, where.line, target="gc.collect", advice=advice)]
