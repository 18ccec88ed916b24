"""Let gradients lie in the buckets that ranks exchange.

Evidence: A model is trained by several ranks under DistributedDataParallel, which copies each gradient into a bucket,
exchanges the bucket, and copies the gradient back.

Gain: Both copies go away, and so does the memory of one set of gradients. Prior: the time to copy all gradients twice.

Runtime: DistributedDataParallel is made with gradient_as_bucket_view=True. After the first backward a gradient is a
view of its bucket.

Source: DistributedDataParallel(..., gradient_as_bucket_view=True).

Risk: Gradients are the same bit for bit, but a script that keeps one from step to step sees it overwritten, and one
that detaches a gradient in place (detach_) gets an error.
"""

from __future__ import annotations

from hotlap.lever.checks import check_setting
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.ddp_arguments import change_ddp
from hotlap.lever.evidence import first, place
from hotlap.lever.gains import bounded
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

ID = "ddp-bucket-view"
TREATS = ("gradient-exchange",)
PRESERVES = "bits"
CONFLICTS = ()
NUMERIC = False
RANKS = True


def evidence(findings: Findings) -> Finding | None:
    """Gradients that are exchanged."""
    return first(findings, TREATS)


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """On, unless it is."""
    if finding.evidence.get("bucket_view"):
        return Refusal("Gradients are views of their buckets already.")
    return [{}]


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """Nothing (the copies may be hidden behind the exchange) to the time of both copies."""
    copies = finding.evidence.get("copy_s")
    most = float(copies) if isinstance(copies, int | float) else finding.seconds_per_step
    return bounded(findings, 0.0, most, "prior")


def check(setting: Setting, machine: Machine) -> str | None:
    """There is nothing to set."""
    return check_setting(setting, {})


def environment(setting: Setting) -> dict[str, str]:
    """None needed."""
    return {}


def apply(target: Target, setting: Setting) -> None:
    """An argument of each wrapper."""
    change_ddp(target, lambda given: {"gradient_as_bucket_view": True})


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """A keyword where the wrapper is made."""
    where = place(*finding.where)
    keywords = {"gradient_as_bucket_view": True}
    return [Edit("set_keyword", where.file, where.line, "DistributedDataParallel|DDP", keywords=keywords)]
