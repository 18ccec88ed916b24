"""Which levers the findings call for, and why the others are left out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from hotlap.lever.contract import Gain, Lever, Refusal, Setting
from hotlap.lever.registry import levers
from hotlap.plan.predict import predicted_ratio, within_roof
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine
from hotlap.records.plan import KNOB, Move

__all__ = ["Candidate", "Tried", "as_move", "blocked", "candidates", "canonical", "refusals", "wanted"]

Tried = AbstractSet[tuple[str, str]]
"""Pairs of lever id and :func:`canonical` setting."""


@dataclass(frozen=True)
class Candidate:
    """One lever with one setting that is worth a trial."""

    lever: str
    setting: Setting
    preserves: str
    finding_cause: str
    predicted: float
    """Throughput ratio, from the middle of :attr:`gain`."""
    gain: Gain

    @property
    def is_knob(self) -> bool:
        """Whether it is a value of a knob of the user's; nothing is predicted of these."""
        return self.lever.startswith(KNOB)


def as_move(candidate: Candidate) -> Move:
    """The candidate as a move that has not been measured."""
    return Move(candidate.lever, candidate.setting, candidate.preserves)  # type: ignore[arg-type]


def canonical(setting: Setting) -> str:
    """A setting as text: equal settings give equal texts."""
    return json.dumps(setting, sort_keys=True)


def candidates(
    findings: Findings,
    machine: Machine,
    allow: AbstractSet[str],
    only: AbstractSet[str],
    skip: AbstractSet[str],
    done: Sequence[Move],
    tried: Tried,
) -> list[Candidate]:
    """Per lever the next setting that has not been tried, unordered (:func:`hotlap.plan.order.order` ranks them).

    ``allow``: what may be changed (``bits``, ``maths``, ...). ``only``: lever ids, empty for all. ``done``: the moves
    kept so far; their levers, and levers that conflict with them, are left out.
    """
    found = []
    for lever in levers().values():
        if not wanted(lever, allow, only, skip) or blocked(lever, done):
            continue
        finding = lever.evidence(findings)
        if finding is None:
            continue
        candidate = _next(lever, finding, findings, machine, tried)
        if candidate is not None:
            found.append(candidate)
    return found


def refusals(
    findings: Findings,
    machine: Machine,
    allow: AbstractSet[str],
    only: AbstractSet[str],
    skip: AbstractSet[str],
    done: Sequence[Move] = (),
) -> list[tuple[str, str]]:
    """(lever id, reason) for each lever that has evidence and is not tried all the same."""
    found = []
    for lever in levers().values():
        finding = lever.evidence(findings)
        if finding is None or lever.ID in skip or (only and lever.ID not in only):
            continue
        if lever.PRESERVES not in allow:
            found.append((lever.ID, f"It may change the {_WORDS[lever.PRESERVES]}; allow it with `--allow`."))
            continue
        conflict = blocked(lever, done)
        if conflict and conflict != lever.ID:
            found.append((lever.ID, f"It cannot be on together with {conflict}."))
            continue
        offered = lever.settings(finding, findings, machine)
        if isinstance(offered, Refusal):
            found.append((lever.ID, offered.reason))
        elif not conflict and not any(lever.check(s, machine) is None for s in offered):
            found.append((lever.ID, "This machine can do none of its settings."))
    return found


_WORDS = {"bits": "code path", "maths": "rounding", "distribution": "random draws", "goal": "training itself"}


def wanted(lever: Lever, allow: AbstractSet[str], only: AbstractSet[str], skip: AbstractSet[str]) -> bool:
    """Whether the user lets the lever be tried at all."""
    return lever.PRESERVES in allow and lever.ID not in skip and (not only or lever.ID in only)


def blocked(lever: Lever, done: Sequence[Move]) -> str | None:
    """The move that is this lever or conflicts with it (either side may say so)."""
    known = levers()
    for move in done:
        theirs = known[move.lever].CONFLICTS if move.lever in known else ()
        if move.lever == lever.ID or move.lever in lever.CONFLICTS or lever.ID in theirs:
            return move.lever
    return None


def _next(lever: Lever, finding: Finding, findings: Findings, machine: Machine, tried: Tried) -> Candidate | None:
    offered = lever.settings(finding, findings, machine)
    if isinstance(offered, Refusal):
        return None
    for setting in offered:
        if (lever.ID, canonical(setting)) in tried or lever.check(setting, machine) is not None:
            continue
        gain = within_roof(lever.ID, lever.gain(finding, findings, setting), findings, finding.phase)
        predicted = predicted_ratio(findings.throughput.step_s, gain)
        return Candidate(lever.ID, setting, lever.PRESERVES, finding.cause, predicted, gain)
    return None
