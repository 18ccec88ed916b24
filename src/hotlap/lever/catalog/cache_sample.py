"""Keep whole samples of a data set that always gives the same sample for an index, or the parts that never change.

Evidence: The step waits for decoding or for Python work per sample, and the samples, or parts of which they are made (a
photo read and resized, before it is mirrored at random), do not change between epochs.

Gain: After the first epoch a sample costs one copy from memory, a part of one what comes after it: for the share of the
samples that fits. Samples of one shape that torch's own collate function stacks are rows: a batch is one gather.

Runtime: Before the first epoch the data set has to prove itself: drawn twice, several samples are equal bit for bit, no
random state has moved, and all of the user's code that it reaches names nothing random, keeps no generator, writes no
state and knows no epoch. Then __getitem__ of that data set looks into a cache in memory first, shared with forked
workers. What the data set holds is compared at each epoch, its attributes at each use: one that the script has changed
is drawn from again. Without workers, and where torch stacks samples of one shape, the loader gathers its batches from a
table of them; the first must be equal both ways. Of any other data set, the outermost functions that it calls with
plain arguments, and that change nothing, draw nothing and open files once (HDF5), prove themselves by calls made twice.

Source: Compute the features once (a packed file, a list of tensors) and index those.

Risk: Randomness hidden from all of these tests (a C extension with its own state) would freeze, and for a moment what
the script changes in place within an epoch. The tests draw a few samples more. Memory, as given in the setting.
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any

from hotlap.lever.checks import MAX_BYTES, check_max_bytes
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.evidence import first, place
from hotlap.lever.fetching_threads import FetchingThreads
from hotlap.lever.file_cache import FileCache
from hotlap.lever.gains import bounded, load_seconds, step_with_loader
from hotlap.lever.gathered import GatheredDataset, base_of, fetch_gathered
from hotlap.lever.kept_parts import KeptParts
from hotlap.lever.kept_samples import KeptSamples
from hotlap.lever.purity import IN_PLACE_OF, impure_reason
from hotlap.lever.sample_proof import proven
from hotlap.lever.sample_table import SampleTables
from hotlap.lever.used_mark import watch_mark
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

if TYPE_CHECKING:
    from torch.utils.data import DataLoader

ID = "cache-sample"
TREATS = (
    "decode", "augment", "storage-read", "network-storage", "small-files", "reopened-per-sample", "parsed-per-sample",
    "whole-file-read", "linear-search", "too-few-workers",
)  # fmt: skip
PRESERVES = "bits"
CONFLICTS = ()
NUMERIC = False
RULES = MAX_BYTES

_DRAWN = "they did when drawn twice, or what they come from cannot be watched, or is opened at its first use"


def evidence(findings: Findings) -> Finding | None:
    """The largest cause of waiting for samples of a map-style data set."""
    loader = findings.script.loader
    return first(findings, TREATS) if loader is not None and not loader.iterable else None


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """Half of the free memory (and of the memory file system), if the samples fit."""
    room = machine.memory_available_bytes // 2
    if machine.shm_bytes is not None:
        room = min(room, machine.shm_bytes // 2)
    loader = findings.script.loader
    if loader is None or loader.iterable:
        return Refusal("There is no map-style data set.")
    if loader.sample_bytes and loader.dataset_len and loader.sample_bytes * loader.dataset_len > room:
        return Refusal("The samples do not fit half of the free memory.")
    if room < 1 << 20:
        return Refusal("No memory is free.")
    return [{"max_bytes": room // (1 << 20) * (1 << 20)}]


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """The step model with loading reduced to collating: for a data set that proves to be deterministic (one that does
    not is found out before the first step)."""
    model = findings.step_model
    load = load_seconds(model)
    left = min(load, (model.collate_s or 0.0) + 0.05 * load)
    best, _ = step_with_loader(model, model.workers, None, left)
    most = model.data_wait_s + model.compute_s - best
    return bounded(findings, 0.8 * most, most, "modelled")


def check(setting: Setting, machine: Machine) -> str | None:
    """Types, and no more than the machine's memory."""
    return check_max_bytes(setting, machine)


def environment(setting: Setting) -> dict[str, str]:
    """None needed."""
    return {}


def apply(target: Target, setting: Setting) -> None:
    """Let each training data set prove itself, then put the cache before its ``__getitem__``, and a table of its
    samples before loaders that stack them as torch does; or before the parts of its samples that never change."""
    cache, fetching = FileCache(os.path.join(target.scratch, ID), setting["max_bytes"]), FetchingThreads()
    tables, kept = SampleTables(cache.reserve), KeptSamples(cache, fetching)
    parts, standing = KeptParts(target, cache, fetching, watch_mark(target, ID)), list[Any]()

    def consider(loader: DataLoader[Any]) -> None:
        from torch.utils.data import Subset

        dataset: Any = loader.dataset
        while isinstance(dataset, Subset):
            dataset = dataset.dataset
        kind = type(dataset)
        if dataset in kept or not hasattr(kind, "__getitem__"):
            return
        own = getattr(kind.__getitem__, IN_PLACE_OF, kind.__getitem__)
        draw = functools.partial(own, dataset)
        witness = proven(dataset, draw)
        if witness is None:
            if not parts.keep(dataset):
                reason = impure_reason(dataset) or _DRAWN
                target.unfit(f"samples of {kind.__name__} may change between draws ({reason})")
            return
        if not len(kept):
            fetch_gathered(target, choose)
            fetching.watch(target)
        kept.add(dataset, witness)
        if kind.__getitem__ not in standing:
            standing.append(kept.before(own))
            target.replace(kind, "__getitem__", standing[-1])
        else:  # of the class, or of one that it inherits from
            target.changed()
        tables.add(dataset, draw, witness.stands)

    def choose(dataset: Any, collate: Any) -> GatheredDataset | None:
        kept.look(base_of(dataset))  # an epoch begins, here or in a worker that was forked a moment ago
        return tables.choose(dataset, collate)

    target.on_loader(consider)


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """Advice: where to keep the samples is the user's decision."""
    where = place(*finding.where)
    advice = "The samples never change: compute them once, keep them in one array, and index that here."
    return [Edit("advice", where.file, where.line, advice=advice)]
