"""What a cache in the plan asks of a trial: steps to warm it, or short epochs; and which lever it makes needless."""

from __future__ import annotations

from collections.abc import Sequence

from hotlap.lap.options import Options
from hotlap.lever.catalog import loader_workers
from hotlap.lever.registry import levers
from hotlap.plan.match import wanted
from hotlap.records.findings import Findings
from hotlap.records.plan import Move

__all__ = [
    "FEEDERS",
    "HERE",
    "REPLAY_BATCHES",
    "holds_cache",
    "is_of_samples",
    "loaded_here",
    "may_take_workers",
    "needs_replay",
    "relieved",
    "warm_steps",
    "ways",
]

LONG_EPOCH_S = 15.0
"""An epoch longer than this is replayed in short for levers that need one epoch to warm a cache."""
REPLAY_BATCHES = 24
LEAST_EPOCHS, MOST_EPOCHS, MOST_TEACHER_EPOCHS = 2, 4, 6
"""Epochs that warm a cache: as many as are over in LONG_EPOCH_S together. A teacher's takes the most: it is called for
two new samples of a batch, too."""
FEEDERS = ("loader-workers", "background-fetch")
"""Levers that do a sample's work beside the step: when a cache has taken the work away, sending the samples remains."""


HERE = Move(loader_workers.ID, dict(loader_workers.NONE), "distribution")
"""Takes the script's own workers away."""
WHOLE = "cache-sample"
"""Leaves little of a sample's work: it is tried in the feeder's place first."""
TEACHER = "cache-teacher"
"""Takes nothing of a sample's work."""
BOUNDED = (WHOLE, "cache-decode")
"""They refuse data that do not fit into memory."""


def may_take_workers(options: Options) -> bool:
    """Whether the user lets the script's own workers go."""
    return wanted(levers()[HERE.lever], options.allow, options.only, options.skip)


def ways(moves: Sequence[Move], new: Move, unmodified: Findings, may_take_workers: bool) -> list[list[Move]]:
    """Plans with ``new`` at their end, the likeliest to pay first: of a cache of samples, one whose samples are loaded
    beside the step as in the plan so far, and one whose are not."""
    beside = [*(m for m in moves if m.lever != new.lever), new]  # a knob has one value
    if not is_of_samples(new.lever):
        return [beside]
    here = loaded_here(moves, unmodified, may_take_workers)
    if here is None:
        return [beside]
    found = [[*(m for m in here if m.lever != new.lever), new], beside]
    return found if new.lever == WHOLE else found[::-1]


def loaded_here(moves: Sequence[Move], unmodified: Findings, may_take_workers: bool) -> list[Move] | None:
    """The plan whose samples are not loaded beside the step; None where there is nothing to take away. On a GPU the
    script's own workers stay: they take no core from the step. ``may_take_workers``: whether the user lets them go."""
    feeder = _feeder(moves)
    rest = [m for m in moves if m is not feeder]
    loader = unmodified.script.loader
    own = loader is not None and loader.num_workers > 0 and not loader.iterable
    if own and unmodified.script.device == "cpu" and not any(m.lever in FEEDERS for m in rest):
        if not may_take_workers:
            return None
        rest.append(HERE)
    return rest if rest != list(moves) else None


def relieved(moves: Sequence[Move], kept: str) -> Move | None:
    """The move that may no longer pay, now that ``kept`` has been added."""
    return _feeder(moves) if is_of_samples(kept) else None


def _feeder(moves: Sequence[Move]) -> Move | None:
    return next((m for m in moves if m.lever in FEEDERS and m.setting.get("workers") != 0), None)


def needs_replay(lever: str, findings: Findings) -> bool:
    """A cache pays from the second epoch on; a long epoch is shortened so that the trial can see it. Whether a whole
    one's samples fit has to be known for that: those of the first batches always do."""
    loader = findings.script.loader
    if lever in BOUNDED and (loader is None or not (loader.sample_bytes and loader.dataset_len)):
        return False
    return _is_cache(lever) and _epoch_steps(findings) * findings.throughput.step_s > LONG_EPOCH_S


def warm_steps(moves: Sequence[Move], findings: Findings) -> int:
    """Steps until the caches among ``moves`` are warm: some epochs, where one is short enough to be waited for.

    Several, since samples that are drawn at random (mirrored or not, noise to add, partners to mix) are not all drawn
    in the first: of pictures mirrored at random a quarter is new after two epochs, a sixteenth after four. A candidate
    that is colder than the plan so far looks slower than it is.
    """
    epoch_steps = _epoch_steps(findings)
    if not holds_cache(moves):
        return 0
    epoch_s = epoch_steps * findings.throughput.step_s
    if epoch_s > LONG_EPOCH_S:
        return 0
    most = MOST_TEACHER_EPOCHS if any(move.lever == TEACHER for move in moves) else MOST_EPOCHS
    return max(LEAST_EPOCHS, min(most, int(LONG_EPOCH_S / epoch_s) if epoch_s else most)) * epoch_steps


def holds_cache(moves: Sequence[Move]) -> bool:
    """Whether anything in the plan has to be warm before it pays."""
    return any(_is_cache(move.lever) for move in moves)


def is_of_samples(lever: str) -> bool:
    """Whether it is a cache that takes a sample's work away."""
    return _is_cache(lever) and lever != TEACHER


def _is_cache(lever: str) -> bool:
    return lever.startswith("cache-")


def _epoch_steps(findings: Findings) -> int:
    loader = findings.script.loader
    return (loader.batches_per_epoch or 0) if loader is not None else 0
