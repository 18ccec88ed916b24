"""Cut off each batch what is padding in all of its samples.

Evidence: A part of each batch is padding, and it is there behind the longest sample too: batches are padded to one size
(a tokenizer's ``max_length``, the largest image of the data set).

Gain: What is computed of the padding that all samples of a batch have in common; with a ``pool``, most of the rest.

Runtime: Each batch of the training loader is looked at where the script gets it. Where it says how far its content goes
(a mask of ones and zeros, lengths, sizes of images), all tensors that are as long are cut alike, to a multiple of
``sequence`` along dimension 1, of ``image`` in height and width. What is cut has to be the same padding everywhere;
else the batch is left alone. A quarter of each length stays in any case. With a ``pool`` of so many batches, samples
are dealt anew: each batch is made of the sample that has waited longest and those nearest to it in length. Each sample
still comes once per epoch. Only where torch's own samplers shuffle, and each part of a batch belongs to one sample.

Source: Pad to the longest sample of the batch: ``padding="longest"``, a collate function that pads. Samples of like
length in one batch: a batch sampler with buckets of length (``group_by_length``).

Risk: Of a model that reads the mask, the same is computed. One that does not has seen the padding (an average over
time, a normalisation over pixels), and learns from other numbers: the proof of quality compares the losses. Dropout
draws other numbers. Lengths vary from batch to batch, so graphs that are compiled or measured for one shape are not.
With a ``pool``, samples of like length meet in a batch, which matters most where a loss compares them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hotlap.lever.checks import Rule, check_setting
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.dealing import Dealing, rows_to_deal
from hotlap.lever.evidence import first, place
from hotlap.lever.gains import bounded
from hotlap.lever.trimming import trimmed
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

if TYPE_CHECKING:
    from torch.utils.data import DataLoader

ID = "trim-padding"
TREATS = ("padding",)
PRESERVES = "distribution"
CONFLICTS = ("compile-model", "cudnn-benchmark")
NUMERIC = True

RULES = {"sequence": Rule(int, 1, 4096), "image": Rule(int, 1, 1024), "pool": Rule(int, 0, 1024)}
POOL = 16
"""Batches whose samples wait to be dealt."""
DEALT_MIN_FRAC = 0.1
"""Of what is computed, the least padding in single samples for which they are dealt anew."""
NOT_TOLD = "nothing in the batches says where their content ends (a mask, lengths, sizes), or all of it is needed"


def evidence(findings: Findings) -> Finding | None:
    """Padding that is computed."""
    return first(findings, TREATS)


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """Multiples that kernels like: 8 for tensor cores, 1 on a CPU, 32 for networks that halve images five times."""
    if (loader := findings.script.loader) is None:
        return Refusal("The batches come from no DataLoader.")
    if findings.script.model.get("compiled"):
        return Refusal("The model is compiled: each new length would be compiled anew.")
    padding, common = _shares(finding)
    may_deal = loader.shuffled and findings.script.world_size == 1
    pools = [POOL] if may_deal and padding - common >= DEALT_MIN_FRAC else []
    if finding.evidence.get("one_size", True):
        pools.append(0)
    if not pools:
        return Refusal("Batches are padded to their own longest sample already.")
    return [{"sequence": 1 if findings.script.device == "cpu" else 8, "image": 32, "pool": pool} for pool in pools]


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """Of what padding costs, what is common to a batch's samples, with a pool most of the rest; half of it at least."""
    padding, common = _shares(finding)
    cut = common + (0.7 * (padding - common) if setting["pool"] else 0.0)
    seconds = finding.seconds_per_step * (cut / padding if padding > 0 else 0.0)
    return bounded(findings, 0.5 * seconds, 1.2 * seconds, "prior")


def _shares(finding: Finding) -> tuple[float, float]:
    """Of what is computed: padding, and its part that all samples of a batch have in common."""
    padding = float(finding.evidence.get("padding_frac", 1.0))
    return padding, min(padding, float(finding.evidence.get("common_frac", padding)))


def check(setting: Setting, machine: Machine) -> str | None:
    """Whole numbers."""
    return check_setting(setting, RULES)


def environment(setting: Setting) -> dict[str, str]:
    """None needed."""
    return {}


def apply(target: Target, setting: Setting) -> None:
    """Wrap each epoch's iterator of a training loader."""

    def shorter(loader: DataLoader[Any], iterator: Any) -> Any:
        rows = rows_to_deal(loader) if setting["pool"] else None
        dealing = None if rows is None else Dealing(iterator, rows, setting["pool"], target.fail)
        return _Trimming(target, iterator, dealing, setting)

    target.wrap_iterator(shorter)
    target.unfit(NOT_TOLD)


class _Trimming:
    """An epoch's iterator whose batches are cut, and dealt anew; in all else it is the loader's."""

    def __init__(self, target: Target, iterator: Any, dealing: Dealing | None, setting: Setting) -> None:
        self._target, self._iterator, self._dealing, self._setting = target, iterator, dealing, setting
        self._failed = False

    def __iter__(self) -> _Trimming:
        return self

    def __next__(self) -> Any:
        batch = next(self._iterator if self._dealing is None else self._dealing)
        if self._failed:
            return batch
        try:
            short = trimmed(batch, self._setting["sequence"], self._setting["image"])
        except Exception as err:  # whatever the script's own types raise
            self._failed = True
            self._target.fail(err)
            return batch
        if short is not batch:
            self._target.changed()
        return short

    def __len__(self) -> int:
        return len(self._iterator)

    def __getattr__(self, name: str) -> Any:
        if name == "_iterator":  # a copy under construction
            raise AttributeError(name)
        return getattr(self._iterator, name)


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """Advice at the line that pads."""
    advice = "Pad to the longest sample of each batch, not to one length for all (in a collate function)."
    if setting["pool"]:
        advice += " Put samples of like length into one batch (a batch sampler with buckets of length)."
    return [Edit("advice", place(*finding.where).file, place(*finding.where).line, advice=advice)]
