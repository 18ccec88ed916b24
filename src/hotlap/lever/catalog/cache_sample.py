"""Keep whole samples of a data set that always gives the same sample for an index, or the parts that never change.

Evidence: The step waits for decoding or for Python work per sample, and the samples, or parts of which they are made (a
photo read and resized, before it is mirrored at random), do not change between epochs.

Gain: After the first epoch a sample costs one copy from memory, a part of one what comes after it: for the share of the
samples that fits. Samples of one shape that torch's own collate function stacks are rows: a batch is one gather.

Runtime: Before the first epoch the data set has to prove itself: drawn twice, several samples are equal bit for bit, no
random state has moved, and all of the user's code that it reaches names nothing random, keeps no generator, writes no
state and knows no epoch. Then __getitem__ of that data set looks into a cache in memory first, shared with forked
workers. What the data set holds, and what its code reads besides, is compared at each epoch, attributes at each use:
one that the script has changed is drawn from again. So is a sample of which a file that Python opened has changed, and
one in 64 in any case: where it is another, nothing is kept any more, and the run says so. Without workers, and where
torch stacks samples of one shape, the loader gathers its batches from a table of them; the first must be equal both
ways. Of any other data set, the outermost functions that it calls with plain arguments, and that change nothing, draw
nothing and open files once (HDF5), prove themselves by calls made twice.

Source: A loader without worker processes is given its data set wrapped: whole samples are kept once some have proven,
each drawn twice, that they are constant and draw nothing random. With workers, or where parts of samples were what did
not change, by hand: compute the features once (a packed file, a list of tensors) and index those.

Risk: Randomness hidden from all of these tests (a C extension with its own state) would freeze until a sample that is
drawn again shows it. For a moment so would what the script changes in place within an epoch, or in a file that a
library opens by its name without Python. The tests draw a few samples more. Memory, as given in the setting.
"""

from __future__ import annotations

from hotlap.lever.cache_room import cache_settings
from hotlap.lever.checks import MAX_BYTES, check_max_bytes
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.evidence import first, place
from hotlap.lever.gains import bounded, load_seconds, step_with_loader
from hotlap.lever.sample_keeping import SampleKeeping
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

ID = "cache-sample"
TREATS = (
    "decode", "augment", "storage-read", "network-storage", "small-files", "reopened-per-sample", "parsed-per-sample",
    "whole-file-read", "linear-search", "too-few-workers",
)  # fmt: skip
PRESERVES = "bits"
CONFLICTS = ()
NUMERIC = False
RULES = MAX_BYTES


def evidence(findings: Findings) -> Finding | None:
    """The largest cause of waiting for samples of a map-style data set."""
    loader = findings.script.loader
    return first(findings, TREATS) if loader is not None and not loader.iterable else None


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """Half of the free memory (and of the memory file system), if the samples fit."""
    loader = findings.script.loader
    if loader is None or loader.iterable:
        return Refusal("There is no map-style data set.")
    return cache_settings(loader, machine, "The samples do")


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
    target.on_loader(SampleKeeping(target, ID, setting["max_bytes"] // target.scratches).consider)


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """A data set that keeps its samples, once they prove to be constant, around the one of a loader without workers."""
    where = place(*finding.where)
    code = f"keep_samples({{dataset}}, {setting['max_bytes']})"
    by_hand = "The samples never change: compute them once, keep them in one array, and index that here."
    return [Edit("wrap_dataset", where.file, where.line, target="DataLoader", code=code, advice=by_hand)]
