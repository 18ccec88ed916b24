"""The data wait, shared out: what the step waits for, in proportion to what loading spends its time on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hotlap.diagnose.host import step_functions
from hotlap.diagnose.kinds import asks, in_loader, in_reader, loader_blame
from hotlap.diagnose.stacks import Sampled, StackBook, merge
from hotlap.diagnose.view import View
from hotlap.records.findings import Where
from hotlap.records.rows import Frame

__all__ = ["handing_over_s", "wait_evidence", "wait_seconds", "wait_where", "waits"]


def waits(view: View) -> bool:
    """Whether loading holds the step at all; below the policy's share it is hidden behind the compute."""
    return view.share(view.times.wait_s) >= view.policy.min_data_wait_share


def handing_over_s(view: View) -> float:
    """Seconds of data wait per step that are no loading: the step waits longer for its workers than one takes to load.

    That is by the loading's own time: workers that fight for the cores hold a batch for longer than they work on it.
    0.0 without workers, where loading was not measured, and where loading is the larger part of the wait.
    """
    loading = view.loading
    if view.workers == 0 or loading is None or loading.load_s is None or loading.cpu_s is None or not waits(view):
        return 0.0
    if view.times.wait_s <= loading.load_s:
        return 0.0
    waiting = loading.kinds.get("storage", 0.0) + loading.sleep_frac
    own_s = min(loading.load_s, loading.cpu_s + waiting * loading.load_s)
    rest = view.times.wait_s - own_s
    return rest if rest > own_s else 0.0


def wait_seconds(view: View, kind: str) -> float:
    """Seconds of data wait per step that a kind of loading work accounts for. All kinds add up to the data wait, less
    what is :func:`handing_over_s`."""
    if not waits(view) or view.loading is None:
        return 0.0
    return (view.times.wait_s - handing_over_s(view)) * view.loading.kinds.get(kind, 0.0)


CLOCK_OVER_STACKS = 2.0
"""How many times the stacks' part of a kind the clock's has to be before the stacks of the other kind are taken for it
too. Twice: nearer than that, both say the same, by what some tens of samples can tell."""


def _lines_of(view: View, kind: str) -> StackBook | None:
    """The stacks of a kind of loading.

    A reader and what is done with its result stand on one line often. The wording of that line tells the stacks'
    kind, and a clock how long the reader took: where the clock says more of a kind than the stacks show, they are it.
    """
    loading = view.loading
    own = loading.stacks.get(kind) if loading is not None else None
    if loading is None or own is None or kind not in ("decode", "augment", "storage"):
        return own
    total = sum(book.total() for name, book in loading.stacks.items() if name != "storage")
    enough = 0.0 if kind == "storage" else loading.kinds.get(kind, 0.0) * total / CLOCK_OVER_STACKS
    if own.total() and own.total() >= enough:
        return own
    others = [loading.stacks[name] for name in ("decode", "augment") if name in loading.stacks]
    both = merge(others, view.timeline.source, view.timeline.loops)
    beside = both.where(lambda sample: not in_reader(sample)) if kind == "augment" else both
    return beside if beside.total() else both


def _asking(view: View, book: StackBook) -> Callable[[Where], bool]:
    """Whether a line waits for the loading rather than does it: a loop's, in the function that runs the steps.

    In a data set a loop's line does what its iterator does: ``for _, row in table.iterrows():``.
    """
    stepping = step_functions(view)
    below = [frame for s in book.samples if any(map(in_loader, s.frames)) and (frame := loader_blame(s)) is not None]
    loading = {(frame.file, frame.func) for frame in below} - stepping
    return lambda w: asks(w.text) and (w.file, w.function) not in loading


def _caller(sample: Sampled) -> Frame | None:
    user = sample.user
    return user[-2] if len(user) > 1 else None


def wait_where(view: View, kind: str) -> list[Where]:
    """The user's lines called by the loader for this kind of work, else for any sample, else where the loader was made.

    Behind the lines that do the work stand those that call for it, when there is room: one reader often serves both
    the sample and its augmentation.
    """
    book = _lines_of(view, kind)
    if book is None:
        return view.loader_where()
    asking = _asking(view, book)
    lines = [w for w in book.lines(view.policy.max_where + 1, loader_blame) if not asking(w)]
    if lines:
        seen = {(w.file, w.line) for w in lines}
        callers = [w for w in book.lines(view.policy.max_where + 1, _caller) if not asking(w)]
        lines += [w for w in callers if (w.file, w.line) not in seen and w.function != "<module>"]
        return lines[: view.policy.max_where]
    return view.loader_where()


def wait_evidence(view: View, kind: str) -> dict[str, Any]:
    """Numbers behind the split."""
    loading = view.loading
    evidence: dict[str, Any] = {"data_wait_s": view.times.wait_s, "workers": view.workers}
    if loading is None:
        return evidence
    evidence["load_s_per_step"] = loading.load_s
    evidence[f"{kind.replace('-', '_')}_s_per_step"] = loading.seconds(kind)
    evidence["load_kinds"] = dict(loading.kinds)
    evidence["read_bytes_per_sample"] = loading.read_bytes_per_sample
    book = loading.stacks.get(kind)
    if book:
        evidence |= view.stack_evidence(book)
    return evidence
