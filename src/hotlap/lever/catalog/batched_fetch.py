"""Draw a batch from a TensorDataset by one gather, not sample by sample.

Evidence: The step waits while single samples are taken out of tensors and stacked into a batch again.

Gain: One gather per tensor and batch, in place of an index, a tuple and a place in a stack for each sample: what Python
and torch spend per call goes away, as often as a batch has samples. It counts where samples are small and steps short;
copying the rows stays.

Runtime: A loader whose data set is exactly torch's TensorDataset, or Subsets of one, and whose collate function is
torch's own, hands the indices of a batch to one index_select per tensor. The first batches of a data set are made both
ways; unless they are equal bit for bit, samples are drawn one by one as before. Loader processes that are spawned, not
forked, stay as they are.

Source: DataLoader(dataset, sampler=BatchSampler(RandomSampler(dataset), batch_size, drop_last=False), batch_size=None):
a TensorDataset takes a list of indices.

Risk: None known: the same rows are copied, and no random numbers are drawn. Data sets of the script's own, which may do
anything per sample, are left alone.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from hotlap.lever.checks import check_setting
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.evidence import first, place
from hotlap.lever.gains import bounded, load_seconds
from hotlap.lever.gathered import GatheredDataset, Trust, fetch_gathered
from hotlap.lever.tensor_rows import can_gather, gather_from
from hotlap.lever.used_mark import watch_mark
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

if TYPE_CHECKING:
    from torch.utils.data import DataLoader

ID = "batched-fetch"
TREATS = ("augment", "collate", "too-few-workers")
PRESERVES = "bits"
CONFLICTS = ()
NUMERIC = False


def evidence(findings: Findings) -> Finding | None:
    """Drawing or collating that holds the step."""
    return first(findings, TREATS)


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """One: on. Of a Subset it is not known what it is a part of, until the lever looks."""
    loader = findings.script.loader
    if loader is None or loader.batch_size is None or loader.iterable:
        return Refusal("No loader puts batches together from a map-style data set.")
    if loader.dataset not in ("TensorDataset", "Subset"):
        return Refusal(f"{loader.dataset or 'The data set'} is no TensorDataset: what it does per sample is its own.")
    return [{}]


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """Nothing where the data set is none of torch's; else up to nine tenths of the loading that the step waits for."""
    model, loader = findings.step_model, findings.script.loader
    most = min(load_seconds(model), model.data_wait_s)
    sure = loader is not None and loader.dataset == "TensorDataset"
    return bounded(findings, 0.5 * most if sure else 0.0, 0.9 * most, "modelled")


def check(setting: Setting, machine: Machine) -> str | None:
    """It has no keys."""
    return check_setting(setting, {})


def environment(setting: Setting) -> dict[str, str]:
    """None needed."""
    return {}


def apply(target: Target, setting: Setting) -> None:
    """Before the first training loader is iterated: fetchers get a data set that gathers. A gathered batch counts."""
    used = watch_mark(target, ID)
    trusts: weakref.WeakKeyDictionary[Any, Trust] = weakref.WeakKeyDictionary()
    done: list[bool] = []

    def choose(dataset: Any, collate: Any) -> GatheredDataset | None:
        if not can_gather(dataset, collate):
            return None
        return GatheredDataset(dataset, collate, gather_from(dataset), trusts.setdefault(dataset, Trust()), used)

    def ready(loader: DataLoader[Any]) -> None:
        if not done:
            done.append(True)
            fetch_gathered(target, choose)

    target.on_loader(ready)


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """Advice: how batches are drawn is written in several ways."""
    where = place(*finding.where)
    advice = (
        "Draw whole batches: DataLoader(dataset, batch_size=None, sampler=BatchSampler(RandomSampler(dataset), "
        "batch_size, drop_last=False))."
    )
    return [Edit("advice", where.file, where.line, advice=advice)]
