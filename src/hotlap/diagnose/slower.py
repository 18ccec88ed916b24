"""Why steps got slower during a run: the two sides of the change are diagnosed and set against each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from hotlap.diagnose.alike import Growth, measure_growth
from hotlap.diagnose.drift import grown_lines
from hotlap.diagnose.kept import kept
from hotlap.diagnose.phases import mean_s, phase_alone
from hotlap.diagnose.policy import DEFAULT, Policy
from hotlap.diagnose.registry import all_causes
from hotlap.diagnose.slower_loading import why_loading
from hotlap.diagnose.span import span
from hotlap.diagnose.surroundings import Around, Change, change_around
from hotlap.diagnose.view import View, look
from hotlap.records.findings import Drift, Finding, Where
from hotlap.records.machine import Machine
from hotlap.records.timeline import Timeline

__all__ = ["Named", "Sides", "name_cause", "sides"]

_OF_GROWTH = ("repeated-cat", "metrics-history", "growing-step", "drift")
"""Causes that look at a whole window themselves, the closest name first; the last one has no name for what it sees."""

_OF_MACHINE = {
    "swapping": "Give the run less to hold (workers, prefetch, caches) or more memory: the machine swaps.",
    "held-back": "Raise the quota of CPU, or see to the cooling: the training is held back.",
    "neighbour-load": "Look who else runs here (top), or give the training cores of its own: others took some from it.",
    "throttling": "Look at the processor's clock and temperature: every phase got slower alike, and nobody took the "
    "cores.",
}


_AT_ONCE = 0.75
"""Part of a change that came at once, from which what grew afterwards is not its cause."""
_JUST_BEFORE = 1 / 8
"""Of the steps before a change, those that tell how high a growth stood by then: where noise hides its beginning, the
change is seen some way up."""
_COMPILER = (
    *(
        f"/torch/_dynamo/{name}"
        for name in ("convert_frame", "guards", "output_graph", "symbolic_convert", "variables/")
    ),
    *(f"/torch/_inductor/{name}" for name in ("codegen/", "compile_fx", "graph", "ir.", "lowering", "scheduler")),
)
"""Files of torch.compile that work while it compiles; eval_frame.py and others run at each call of what is compiled."""


@dataclass(frozen=True)
class Named:
    """A cause, the lines it stands on, and what to do."""

    cause: str
    where: list[Where]
    advice: str
    evidence: dict[str, Any]


@dataclass(frozen=True)
class Sides:
    """A window that holds a drift: all of it, what came before the change, what came after."""

    whole: View
    early: View
    late: View
    split_ns: int
    around: Change
    one_work: bool = True
    """Whether the process has trained one thing only: another model may be as slow as a processor that is held back."""


def sides(
    timeline: Timeline, drift: Drift, start_ns: int, machine: Machine, around: Sequence[Around], policy: Policy
) -> Sides:
    """Cut a timeline at the change; a growth has none, and is cut into its first and its last third."""
    rows = [row for row in timeline.step if row.t >= start_ns]
    end = rows[-1].t + rows[-1].w + 1
    split = next((row.t for row in rows if row.i >= drift.at_step), end)
    early_end, late_start = split, split
    if drift.growing:
        third = (end - start_ns) // 3
        early_end, late_start = start_ns + third, end - third
    written = end + 60_000_000_000  # stacks and loads of the last steps are written down after these
    return Sides(
        replace(look(span(timeline, start_ns, written), machine, policy), known_drift=drift),
        look(span(timeline, start_ns, early_end), machine, policy),
        look(span(timeline, late_start, written), machine, policy),
        late_start,
        change_around(around, start_ns, late_start, written),
    )


def name_cause(both: Sides, drift: Drift) -> Named:
    """The cause of a drift: the machine's doing first, since it makes every other cause look worse."""
    step_more = drift.after_s / drift.before_s - 1.0 if drift.before_s > 0 else 0.0
    growth = measure_growth(both.early, both.late, step_more)
    return _machine(both, drift, growth) or _script(both, drift, growth)


def _machine(both: Sides, drift: Drift, growth: Growth) -> Named | None:
    policy, change = both.whole.policy, both.around
    evidence: dict[str, Any] = {"around": change.numbers(), "grew": growth.ratios}
    cause = ""
    if change.swapping(policy):
        cause = "swapping"
    elif change.held_back(policy) or (growth.all_alike and change.hot(policy)):
        cause = "held-back"
    elif not drift.growing and _neighbours(both, drift, growth):
        cause = "neighbour-load"
    elif not drift.growing and _processor(both, drift, growth):
        cause = "throttling"
    advice = _OF_MACHINE.get(cause)
    return None if advice is None else Named("throttling" if cause == "held-back" else cause, [], advice, evidence)


def _processor(both: Sides, drift: Drift, growth: Growth) -> bool:
    """Whether it is left to the processor: every phase got slower, and neither others nor another model did it."""
    asked = both.one_work and both.around.others_cores is not None
    return asked and growth.all_alike and drift.phase != "data_wait"


def _neighbours(both: Sides, drift: Drift, growth: Growth) -> bool:
    """Whether cores were taken, and the slow-down looks like it: every phase got slower, or the loader did.

    A training thread that waits for a core may wait for its own loader: that alone speaks where every phase got slower.
    """
    policy, change = both.whole.policy, both.around
    taken = change.neighbours(both.whole.machine.cores, policy)
    return (growth.all_alike and change.crowded(policy)) or (taken and (growth.all_alike or drift.phase == "data_wait"))


def _script(both: Sides, drift: Drift, growth: Growth) -> Named:
    view = both.late
    if drift.phase == "data_wait":
        named = why_loading(both.whole, both.early, both.late)
        if named is not None:
            return Named(*named)
    if drift.phase == "forward" and _compiling(view):
        again = _found(both.whole, ("recompilation",), drift.phase)
        lines = again.where if again else view.forward_where()
        return Named("recompilation", lines, again.advice if again else "Compile with dynamic=True, or pad to a few "
                     "sizes: torch.compile compiles again and again.", {})  # fmt: skip
    grown = _found(both.whole, _OF_GROWTH, drift.phase)
    retained = drift.growing and any(k.kind != "tensor" for k in kept(both.whole))
    if growth.compute_alike and not retained:
        return Named("larger-batches", view.forward_where(), "Cut samples to a fixed length, or sort them into "
                     "buckets: forward and backward grew, the update did not.", {"grew": growth.ratios})  # fmt: skip
    more = None if growth.all_alike else _grown_finding(both, drift)
    for found in (grown if drift.growing else _begun(both, drift), more, grown):
        if found is not None:
            return Named(found.cause, found.where or _lines(both, drift), found.advice, _plain(found))
    where = _lines(both, drift)
    at = f" at {where[0].file}:{where[0].line}" if where else ""
    cause = "growing-step" if drift.growing else "drift"
    return Named(cause, where, f"Look at what changed at step {drift.at_step}{at}: "
                 f"{drift.phase.replace('_', ' ')} grew.", {"grew": growth.ratios})  # fmt: skip


def _begun(both: Sides, drift: Drift) -> Finding | None:
    """What began to grow within the window, and so looks like one change at first: it goes on after the change.

    Asked of the phase alone, since a growth that is small beside the step is lost in the step's noise. Where a trend
    alone speaks for it, the phase is nearly as short right after the change as right before it.
    """
    policy = replace(both.late.policy, growth_frac=DEFAULT.growth_frac)  # that steps got slower is known already
    alone = replace(both.late.steady, rows=phase_alone(both.late.steady.rows, drift.phase, both.late.phases))
    found = _found(replace(both.late, policy=policy, steady=alone), _OF_GROWTH[:-1], drift.phase)
    before_s, after_s = both.early.seconds(drift.phase), both.late.seconds(drift.phase)
    rows = both.early.steady.rows
    last = rows[-max(1, int(_JUST_BEFORE * len(rows))) :]
    at_once = (mean_s(last, drift.phase, both.early.phases) or before_s) + _AT_ONCE * (after_s - before_s)
    return None if found is not None and found.evidence.get("first_s", 0.0) > at_once else found


def _lines(both: Sides, drift: Drift) -> list[Where]:
    grown = [g.where for g in grown_lines(both.whole, drift.phase, None if drift.growing else both.split_ns)]
    limit = both.whole.policy.max_where
    return grown[:limit] or both.late.stacks.phase(drift.phase).lines(limit)


def _found(view: View, ids: tuple[str, ...], phase: str) -> Finding | None:
    finders = {cause.id: cause.find for cause in all_causes()}
    found = [finding for name in ids if (finding := finders[name](view)) is not None]
    return next((finding for finding in found if finding.phase == phase), None)


def _grown_finding(both: Sides, drift: Drift) -> Finding | None:
    """The cause in the phase that costs most more after the change than before: at least half of the growth.

    What rests on a prior is a fixed part of its phase, and grows with it whatever the reason.
    """
    best: tuple[float, Finding] | None = None
    for cause in all_causes():
        if cause.id in _OF_GROWTH:
            continue
        late = cause.find(both.late)
        if late is None or late.phase != drift.phase or late.evidence.get("basis") == "prior":
            continue
        early = cause.find(both.early)
        more = late.seconds_per_step - (early.seconds_per_step if early else 0.0)
        if more >= 0.5 * (drift.after_s - drift.before_s) and (best is None or more > best[0]):
            best = more, late
    return best[1] if best else None


def _compiling(view: View) -> bool:
    """Whether much of the forward is the compiler itself. Of a stack only its ends are kept, often not its entry."""
    inside = view.stacks.phase("forward").part(lambda s: any(part in f.file for f in s.frames for part in _COMPILER))
    return inside >= view.policy.compiler_frac


def _plain(found: Finding) -> dict[str, Any]:
    return {k: v for k, v in found.evidence.items() if not isinstance(v, list | dict)}
