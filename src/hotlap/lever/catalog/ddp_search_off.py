"""Spare DistributedDataParallel the search for unused parameters.

Evidence: find_unused_parameters=True, and in the steps that were looked at no rank's own backward left a parameter out.

Gain: The walk over the autograd graph before each backward goes away. Prior: up to a twentieth of forward + backward.

Runtime: DistributedDataParallel is made with find_unused_parameters=False. A second setting keeps what is found in the
first step instead (static_graph=True), for models of which the same parameters are unused in every step.

Source: DistributedDataParallel(...) without find_unused_parameters, or with static_graph=True.

Risk: If a later step leaves a parameter out, DistributedDataParallel raises an error. With static_graph=True the set of
used parameters must never change. Buckets are made anew after the first step, so that with more than two ranks sums can
be added up in another order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hotlap.lever.checks import Rule, check_setting
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.ddp_arguments import change_ddp
from hotlap.lever.evidence import first, place
from hotlap.lever.gains import bounded
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

ID = "ddp-search-off"
TREATS = ("ddp-find-unused",)
PRESERVES = "maths"
CONFLICTS = ()
NUMERIC = False
RANKS = True

RULES = {"static_graph": Rule(bool)}


def evidence(findings: Findings) -> Finding | None:
    """A search that finds nothing."""
    return first(findings, TREATS)


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """No search; where that fails, one search."""
    return [{"static_graph": False}, {"static_graph": True}]


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """A fifth of what the finding says to all of it."""
    most = finding.seconds_per_step
    return bounded(findings, 0.2 * most, most, "prior")


def check(setting: Setting, machine: Machine) -> str | None:
    """One switch."""
    return check_setting(setting, RULES)


def environment(setting: Setting) -> dict[str, str]:
    """None needed."""
    return {}


def apply(target: Target, setting: Setting) -> None:
    """Arguments of each wrapper that searches."""

    def wanted(given: Mapping[str, Any]) -> dict[str, Any]:
        if not given["find_unused_parameters"] or given["static_graph"]:
            return {}
        return _keywords(setting)

    change_ddp(target, wanted)


def _keywords(setting: Setting) -> dict[str, Any]:
    found = {"find_unused_parameters": False}
    return found | {"static_graph": True} if setting["static_graph"] else found


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """Keywords where the wrapper is made."""
    where = place(*finding.where)
    keywords = _keywords(setting)
    return [Edit("set_keyword", where.file, where.line, "DistributedDataParallel|DDP", keywords=keywords)]
