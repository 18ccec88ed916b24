"""Read the samples from a pack: decoded once, in few large files, without worker processes (advice).

Evidence: The step waits for decoding, or for a data set of many small, repeatedly opened or far-away files.

Gain: Decoding, opening files and Python's work per sample go away; what is left of the loading is a gather from memory,
which needs no worker processes. It pays as far as the step waits for these; where compute hides the loading, cores come
free and nothing more. `hotlap pack bench DST` then measures the pack beside the DataLoader on your machine.

Runtime: None: a pack is a copy of the data set, which takes disk and time, and nobody but the user knows what it
consists of.

Source: `hotlap pack SRC DST`, then hotlap.pack.Loader in place of the DataLoader, or PackedDataset inside it.

Risk: Crops and mirroring come from the pack's own draws: same law, other draws. The pack has to be made again when the
data change.
"""

from __future__ import annotations

from hotlap.lever.by_hand import advise, advised, at
from hotlap.lever.checks import check_setting
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.evidence import first, place
from hotlap.lever.gains import bounded, load_seconds
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings, Where
from hotlap.records.machine import Machine

ID = "pack-data"
TREATS = (
    "decode", "small-files", "network-storage", "storage-read", "page-cache-exhausted", "reopened-per-sample",
    "parsed-per-sample", "whole-file-read",
)  # fmt: skip
PRESERVES = "distribution"
CONFLICTS = ()
NUMERIC = False
ADVICE = True


def evidence(findings: Findings) -> Finding | None:
    """The largest cause of waiting that lies in how samples are stored."""
    return first(findings, TREATS)


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """Never tried: what to do, in words."""
    return Refusal(_advice(place(*finding.where)))


def _advice(where: Where) -> str:
    return (
        f"By hand: {at(where)} reads samples as they lie; `hotlap pack SRC DST` writes them once, decoded, into a few "
        "large files, and hotlap.pack.Loader(DST, batch) gives whole batches of them."
    )


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """Half of the data wait that the finding says to all of it; never more than the loading."""
    most = min(finding.seconds_per_step, load_seconds(findings.step_model))
    return bounded(findings, 0.5 * most, most, "prior")


def check(setting: Setting, machine: Machine) -> str | None:
    """There is nothing to set."""
    return check_setting(setting, {})


def environment(setting: Setting) -> dict[str, str]:
    """None needed."""
    return {}


def apply(target: Target, setting: Setting) -> None:
    """Nothing but words."""
    advise(target, "`hotlap pack SRC DST` writes the samples into a pack")


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """Advice at each line."""
    return advised(finding, _advice)
