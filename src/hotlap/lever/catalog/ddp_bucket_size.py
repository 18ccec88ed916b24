"""Exchange gradients in larger or smaller buckets.

Evidence: A model is trained by several ranks under DistributedDataParallel, which exchanges gradients in buckets while
the backward goes on.

Gain: Not to be told beforehand (prior: from nothing to what the finding says): larger buckets pay the start of an
exchange less often, smaller ones start it earlier.

Runtime: DistributedDataParallel is made with bucket_cap_mb as the setting says; torch's own choice is 25.

Source: DistributedDataParallel(..., bucket_cap_mb=N).

Risk: With more than two ranks, sums over other buckets can be added up in another order, and round differently.
"""

from __future__ import annotations

from hotlap.lever.checks import Rule, check_setting
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.ddp_arguments import change_ddp
from hotlap.lever.evidence import first, place
from hotlap.lever.gains import bounded
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

ID = "ddp-bucket-size"
TREATS = ("gradient-exchange",)
PRESERVES = "maths"
CONFLICTS = ()
NUMERIC = False
RANKS = True

RULES = {"bucket_cap_mb": Rule(int, 1, 4096)}
_MIB = 1 << 20
_SMALLEST_MIB = 2
"""Below this there are hardly two buckets of any size to choose between."""


def evidence(findings: Findings) -> Finding | None:
    """Gradients that are exchanged."""
    return first(findings, TREATS)


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """Four times torch's own size, where there is more than one such bucket; a fifth of it."""
    size = finding.evidence.get("gradient_bytes")
    known = float(size) if isinstance(size, int | float) else float("inf")
    if known < _SMALLEST_MIB * _MIB:
        return Refusal("All gradients together are smaller than a bucket is worth cutting.")
    return [{"bucket_cap_mb": mib} for mib in (100, 5) if mib < 25 or known > 25 * _MIB]


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """Nothing to what the finding says."""
    return bounded(findings, 0.0, finding.seconds_per_step, "prior")


def check(setting: Setting, machine: Machine) -> str | None:
    """A size."""
    return check_setting(setting, RULES)


def environment(setting: Setting) -> dict[str, str]:
    """None needed."""
    return {}


def apply(target: Target, setting: Setting) -> None:
    """An argument of each wrapper."""
    change_ddp(target, lambda given: {"bucket_cap_mb": setting["bucket_cap_mb"]})


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """A keyword where the wrapper is made."""
    where = place(*finding.where)
    return [Edit("set_keyword", where.file, where.line, "DistributedDataParallel|DDP", keywords=dict(setting))]
