"""Train on a copy of the data set on a local disk (advice).

Evidence: The step waits for files on a network mount, or for storage that is slower than the training.

Gain: Reading costs what the local disk costs. Prior: from half of the wait for storage to all of it.

Runtime: None: the copy takes disk and time once, and where it may lie is the user's decision.

Source: `hotlap stage SRC DST` before training (space is looked at first, the copy is verified by hash, an interrupted
one goes on), and DST as the script's data folder.

Risk: The copy has to be made again when the data change, and takes its size on the local disk.
"""

from __future__ import annotations

from hotlap.lever.by_hand import advise, advised, at
from hotlap.lever.checks import check_setting
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.evidence import first, place
from hotlap.lever.gains import bounded
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings, Where
from hotlap.records.machine import Machine

ID = "stage-local"
TREATS = ("network-storage", "storage-read")
PRESERVES = "bits"
CONFLICTS = ()
NUMERIC = False
ADVICE = True


def evidence(findings: Findings) -> Finding | None:
    """A wait for storage that a nearer disk ends."""
    return first(findings, TREATS)


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """Never tried: what to do, in words."""
    return Refusal(_advice(place(*finding.where)))


def _advice(where: Where) -> str:
    return (
        f"By hand: {at(where)} waits for storage; `hotlap stage SRC DST` copies the data set to a local disk, or into "
        "memory (/dev/shm), once."
    )


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """Half of what the finding says to all of it."""
    most = finding.seconds_per_step
    return bounded(findings, 0.5 * most, most, "prior")


def check(setting: Setting, machine: Machine) -> str | None:
    """There is nothing to set."""
    return check_setting(setting, {})


def environment(setting: Setting) -> dict[str, str]:
    """None needed."""
    return {}


def apply(target: Target, setting: Setting) -> None:
    """Nothing but words."""
    advise(target, "`hotlap stage SRC DST` copies the data set to a local disk")


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """Advice at each line."""
    return advised(finding, _advice)
