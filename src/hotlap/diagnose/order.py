"""Order of the findings, and nothing counted twice."""

from __future__ import annotations

from dataclasses import replace

from hotlap.diagnose.shares import Times
from hotlap.records.causes import NOT_ABOUT_TIME
from hotlap.records.findings import Finding

__all__ = ["in_order"]

_NAMED = ("whole-file-read", "reopened-per-sample", "parsed-per-sample", "linear-search")
"""Causes that say what the work per sample is; their seconds come out of the general words for it."""
_GENERAL = {"whole-file-read": ("decode", "augment")}
_SPLIT = (
    "decode", "augment", "collate", "storage-read", "network-storage", "page-cache-exhausted", "small-files",
    "worker-startup", "workers-respawned", "loader-rebuilt", "needless-workers", *_NAMED,
)  # fmt: skip
"""Causes that share the one data wait between them."""


_OF_COPIES = ("growing-step", "metrics-history", "drift", "host-work")
"""What a concatenation that grows shows as, besides under its own name."""
_LOGS = ("logging-blocking", "logging-forced", "logging-histogram")
_MOSTLY = 2.0
"""Times what a growing history costs, that the same line may cost as logging and still be the history's."""
_SPOILS = ("memory-leak", "sampler-set-epoch")
_SPOILING = 0.1
"""Share by which they are ranked: it would take a tenth of the time to matter as much."""
_AMBIENT = "page-faults"
"""What the C library does with memory costs most trainings something, wherever they spend their time ..."""
_AMBIENT_AT_LEAST = 2.0
"""... so it is told before a cause in the script's own code only where it costs that many times as much."""


_HOST = ("data_wait", "logging", "residual", "gc")
"""Phases in which the host launches nothing: what they cost on a device is the idle time that they leave it."""
_STARTS = ("worker-startup", "workers-respawned", "loader-rebuilt")
"""What happens where an epoch begins, when a device has long done what it was given."""
_WITHIN = ("straggler", "profiler-left-on")
"""What is told under a phase of the host and holds a device up within its own: by another rank, or at each launch."""


def _fit(found: list[Finding], limit_s: float, times: Times) -> list[Finding]:
    """Scale findings down so that together they explain no more than ``limit_s``."""
    total = sum(f.seconds_per_step for f in found)
    if total <= limit_s or total <= 0.0:
        return found
    scale = limit_s / total
    return [
        replace(
            f, seconds_per_step=f.seconds_per_step * scale, share=min(1.0, f.seconds_per_step * scale / times.step_s)
        )
        for f in found
    ]


def _told_once(findings: list[Finding], times: Times) -> list[Finding]:
    """Take what has a name of its own out of decode and augment: its seconds, and its lines where others are left."""
    left = {f.cause: f for f in findings}
    for name in _NAMED:
        owed = left[name].seconds_per_step if name in left else 0.0
        lines = {(w.file, w.line) for w in left[name].where} if name in left else set()
        for general in _GENERAL.get(name, ("augment", "decode")):
            found = left.get(general)
            if found is None or owed <= 0.0:
                continue
            taken = min(owed, found.seconds_per_step)
            owed -= taken
            rest = found.seconds_per_step - taken
            where = [w for w in found.where if (w.file, w.line) not in lines] or found.where
            advice = found.advice
            if where and found.where and where[0] != found.where[0]:
                old, new = found.where[0], where[0]
                advice = advice.replace(f"{old.file}:{old.line}", f"{new.file}:{new.line}")
            share = min(1.0, rest / times.step_s)
            left[general] = replace(found, seconds_per_step=rest, share=share, where=where, advice=advice)
    return [left[f.cause] for f in findings]


def _without_echo(findings: list[Finding]) -> list[Finding]:
    """One work is told once, by its closest name.

    Growth, or one change (on a noisy machine it looks like one), whose first line is a concatenation that grows is the
    concatenation's, as is host work on that line; a loop over samples is no other loop;
    and a line that logs what it computes over a history is the history's, where most of it is growth.
    """
    copies = {(w.file, w.line) for f in findings if f.cause == "repeated-cat" for w in f.where}
    findings = [f for f in findings if not (f.cause in _OF_COPIES and copies & {(w.file, w.line) for w in f.where[:1]})]
    history = {(w.file, w.line): f.seconds_per_step for f in findings if f.cause == "metrics-history" for w in f.where}
    findings = [
        f for f in findings
        if not (f.cause in _LOGS and f.where
                and f.seconds_per_step <= _MOSTLY * history.get((f.where[0].file, f.where[0].line), 0.0))
    ]  # fmt: skip
    over_samples = {f.evidence.get("loop") for f in findings if f.cause == "samples-loop"}
    return [f for f in findings if not (f.cause == "python-loop" and f.evidence.get("loop") in over_samples)]


def _ambient_last(ordered: list[Finding]) -> list[Finding]:
    """The allocator's cost behind causes of its size."""
    ambient = [f for f in ordered if f.cause == _AMBIENT]
    rest = [f for f in ordered if f.cause != _AMBIENT]
    at = sum(1 for f in rest if ambient and f.share * _AMBIENT_AT_LEAST > ambient[0].share)
    return [*rest[:at], *ambient, *rest[at:]]


def _beside_a_device(findings: list[Finding], idle_s: float | None, times: Times) -> list[Finding]:
    """Waits of the host cost no more than a device's idle time, and the split of the data wait no more together."""
    if idle_s is None:
        return findings
    overlapped = [f for f in findings if f.phase in _HOST and f.cause not in (*_STARTS, *_WITHIN)]
    split = [f for f in overlapped if _waits(f)]
    starts_s = sum(f.seconds_per_step for f in findings if f.cause in _STARTS)
    fitted = _fit(split, max(0.0, idle_s - starts_s), times)
    fitted += [each for f in overlapped if not _waits(f) for each in _fit([f], idle_s, times)]
    by_cause = {f.cause: replace(f, evidence={**f.evidence, "device_idle_s": idle_s}) for f in fitted}
    return [by_cause.get(f.cause, f) for f in findings]


def _weight(finding: Finding) -> float:
    """The share; what spoils a training stands before what costs it little time."""
    return max(finding.share, _SPOILING if finding.cause in _SPOILS else 0.0)


def _waits(finding: Finding) -> bool:
    """Whether it is part of the data wait; a data set that is made again with its loader costs time before it."""
    return finding.cause in _SPLIT and finding.phase != "residual"


def in_order(findings: list[Finding], times: Times, min_share: float, idle_s: float | None = None) -> list[Finding]:
    """Largest first, page faults behind causes of their size. The split of the data wait adds up to at most that wait.

    ``idle_s``: seconds per step in which the device that trains is idle at most, where that is known.

    ``too-few-workers`` is another way out of the same wait, not more of it: it stands behind the largest of the split,
    and its evidence (``shares_wait_with``) says so.
    """
    findings = _beside_a_device(_told_once(_without_echo(findings), times), idle_s, times)
    split = [f for f in findings if _waits(f)]
    wait_s = times.phase_s.get("data_wait") or 0.0
    split = _fit(split, wait_s, times)
    others = [f for f in findings if not _waits(f) and f.cause != "too-few-workers"]
    told = [f for f in split + others if f.share >= min_share or f.cause in NOT_ABOUT_TIME]
    ordered = _ambient_last(sorted(told, key=lambda f: (-_weight(f), f.cause)))
    workers = next((f for f in findings if f.cause == "too-few-workers"), None)
    if workers is None or (idle_s is not None and workers.share < min_share):
        return ordered
    after = next((i + 1 for i, f in enumerate(ordered) if _waits(f)), 0)
    at = max(after, sum(1 for f in ordered if f.share > workers.share))
    return [*ordered[:at], workers, *ordered[at:]]
