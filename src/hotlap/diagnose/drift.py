"""Does the step time change while the run goes on, and which phase and lines grew?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from hotlap.diagnose.phases import PERIODIC, core_ns, mean_s
from hotlap.diagnose.policy import Policy
from hotlap.diagnose.stacks import StackBook, collect, sampling_period_ns
from hotlap.diagnose.surroundings import change_around
from hotlap.diagnose.trend import change_point, mann_kendall_z, theil_sen
from hotlap.diagnose.view import View
from hotlap.records.findings import Drift, Where
from hotlap.records.rows import Step

__all__ = ["Grown", "drift_in", "find_drift", "grown_lines", "neighbours_since", "where_it_may_lie"]

SAME_WORK_FRAC = 0.02
"""Steps whose samples differ by less than this part are the same work: an epoch's last batch is smaller."""


@dataclass(frozen=True)
class Grown:
    """A user's line that takes more time per step late in the run than early."""

    where: Where
    early_s: float
    """Seconds per step."""
    late_s: float


def _blocks(rows: list[Step], most: int) -> list[list[Step]]:
    size = max(1, -(-len(rows) // most))
    blocks = [rows[i : i + size] for i in range(0, len(rows), size)]
    if len(blocks) > 1 and len(blocks[-1]) < size / 2:
        blocks[-2:] = [blocks[-2] + blocks[-1]]
    return blocks


def _margin(blocks: int) -> int:
    """Blocks that a change has on either side at least."""
    return max(2, blocks // 8)


def _grown_phase(phases: list[str], early: list[Step], late: list[Step]) -> tuple[str, float]:
    growth = {}
    for phase in phases:
        if phase in PERIODIC:
            continue
        before, after = mean_s(early, phase, phases), mean_s(late, phase, phases)
        if before is not None and after is not None:
            growth[phase] = after - before
    if not growth:
        return "residual", 0.0
    phase = max(growth, key=lambda p: growth[p])
    return phase, growth[phase]


def find_drift(view: View) -> Drift | None:
    """The drift in the steady part of a timeline: the one that is known already, where there is one."""
    return view.known_drift or drift_in(view.steady.rows, view.phases, view.policy)


def drift_in(rows: list[Step], phases: list[str], policy: Policy) -> Drift | None:
    """A steady growth (also with a jump in it), or one change for the worse; None when the step time holds.

    Getting faster is warming up. Steps are blocked, and blocks averaged, so that a loader's bursts do not look like
    change. Steps that hold more than before may take longer: of those, the time of a sample is asked (of a micro-batch,
    where samples are unknown), and told as that of a step with as many as the later ones hold.
    """
    drift = _drift_in(rows, phases, policy)
    work = "s" if all(row.s > 0 for row in rows) else "m"
    if drift is None or any(getattr(row, work) <= 0 for row in rows):
        return drift
    before, after = (_per_step(side, work) for side in _sides(rows, drift))
    if abs(after - before) <= SAME_WORK_FRAC * before:
        return drift
    found = _drift_in([replace(row, n=getattr(row, work)) for row in rows], phases, policy)
    if found is None:
        return None
    held = _per_step(_sides(rows, found)[1], work)
    return replace(found, before_s=held * found.before_s, after_s=held * found.after_s)


def _sides(rows: list[Step], drift: Drift) -> tuple[list[Step], list[Step]]:
    """Before and after a change; the first and the last third of a growth."""
    if drift.growing:
        third = max(1, len(rows) // 3)
        return rows[:third], rows[-third:]
    return [row for row in rows if row.i < drift.at_step], [row for row in rows if row.i >= drift.at_step]


def _per_step(rows: list[Step], work: str) -> float:
    return float(sum(getattr(row, work) for row in rows)) / sum(row.n for row in rows)


def _drift_in(rows: list[Step], phases: list[str], policy: Policy) -> Drift | None:
    blocks = _blocks(rows, policy.max_blocks)
    if len(blocks) < policy.min_blocks:
        return None
    means = [sum(core_ns(b, phases)) / sum(r.n for r in b) / 1e9 for b in blocks]
    slope, start = theil_sen(means)
    fitted = [start + slope * i for i in range(len(means))]
    line_cost = sum(abs(m - f) for m, f in zip(means, fitted, strict=True))
    grown = slope * (len(means) - 1)
    point = change_point(means, _margin(len(means)))
    third = max(1, len(blocks) // 3)
    early = [row for block in blocks[:third] for row in block]
    late = [row for block in blocks[-third:] for row in block]
    grows = grown >= policy.growth_frac * max(start, 1e-9) and mann_kendall_z(means) >= policy.trend_z
    beside = point is not None and all(
        len(side) >= policy.min_side and mann_kendall_z(side) >= policy.side_z
        for side in (means[: point.index], means[point.index :])
    )
    if grows and (point is None or line_cost <= point.cost or beside):
        phase, _ = _grown_phase(phases, early, late)
        return Drift(early[0].i, max(0.0, fitted[0]), fitted[-1], phase, growing=True)
    if point is None or point.before <= 0.0:
        return None
    change = point.after - point.before
    noise = point.scatter + _within(means) / len(means) ** 0.5
    if change < policy.change_frac * point.before or change < policy.change_mads * noise:
        return None
    left = [row for block in blocks[: point.index] for row in block]
    right = [row for block in blocks[point.index :] for row in block]
    phase, _ = _grown_phase(phases, left, right)
    return Drift(right[0].i, point.before, point.after, phase, growing=False)


def where_it_may_lie(rows: list[Step], drift: Drift, policy: Policy) -> list[Step]:
    """The rows to look at again where a change was seen as late as one can be seen; empty: it lies where it was seen.

    Steps that became a little slower do so at one place. Much slower ones are seen before there are as many of them as
    a side of a change holds: at the latest place that is allowed, and with steps from before among them.
    """
    blocks = _blocks(rows, policy.max_blocks)
    margin = _margin(len(blocks))
    if drift.growing or len(blocks) <= 2 * margin or drift.at_step < blocks[-margin][0].i:
        return []
    return [row for block in blocks[-2 * margin :] for row in block]


def neighbours_since(view: View, drift: Drift) -> tuple[float, float] | None:
    """Cores that others took before and after a change for the worse, where they came with it."""
    rows = view.steady.rows
    split_ns = next((row.t for row in rows if row.i >= drift.at_step), None)
    if split_ns is None or drift.growing or drift.after_s <= drift.before_s:
        return None
    change = change_around(view.around, view.start_ns, split_ns, rows[-1].t + rows[-1].w)
    return change.others_cores if change.neighbours(view.machine.cores, view.policy) else None


def _within(values: list[float]) -> float:
    """Typical jump between neighbours: noise that a change point must exceed whatever its sides look like."""
    return median(abs(b - a) for a, b in pairwise(values)) if len(values) > 1 else 0.0


def grown_lines(view: View, phase: str, split_ns: int | None = None) -> list[Grown]:
    """User's lines of a phase that take more time per step than before, most growth first.

    Early and late are the two sides of ``split_ns``, or the first and last third of the steady part. Per step, not per
    second: a line that takes most of a step already cannot take more of a second.
    """
    start = view.start_ns
    end = start + int(view.span_s * 1e9)
    third = (end - start) // 3
    spans = ((start, split_ns), (split_ns, end)) if split_ns else ((start, start + third), (end - third, end))
    rates: list[dict[tuple[str, int, str], float]] = []
    texts: dict[tuple[str, int, str], str] = {}
    period_s = sampling_period_ns(view.timeline) / 1e9
    for begin, stop in spans:
        book: StackBook = collect(view.timeline, begin or 0, stop).phase(phase)
        total = book.total()
        steps = max(1, sum(row.n for row in view.steady.rows if (begin or 0) <= row.t < (stop or end)))
        lines = book.lines(50)
        for line in lines:
            texts[line.file, line.line, line.function] = line.text
        rates.append({(w.file, w.line, w.function): (w.share or 0.0) * total * period_s / steps for w in lines})
    early, late = rates
    grown = [
        Grown(Where(*key, text=texts[key]), early.get(key, 0.0), rate)
        for key, rate in late.items()
        if rate > 1.25 * early.get(key, 0.0)
    ]
    return sorted(grown, key=lambda g: g.early_s - g.late_s)
