"""Fetch the next batches in a thread while the step computes.

Evidence: The step waits for data, and the loader works in the training process: an IterableDataset, a dataset that
cannot be sent to worker processes, or a machine where workers cost more than they bring.

Gain: What loading does outside Python's lock (decoding, file reads, large tensor operations) overlaps with compute, so
that at best the data wait falls to max(0, load - compute). Pure Python work does not overlap.

Runtime: The iterator of each epoch is wrapped; one thread draws from it in the same order and keeps a few batches. An
exception reaches the loop where the batch would have been. The thread ends with the epoch, when the loop is left early,
and at exit. Where batches may lie in memory that is used again (no batch size, or a collate function of the script's),
it starts once as many as could be under way have lain apart, and never if two of them have not; nor where the loader,
its data set or a sampler says how far it has come (state_dict), or the script reads what draws leave behind, or trains
a model that they use.

Source: Wrap the loader: `for batch in fetch_ahead(loader, depth=2)` with a thread and a queue.

Risk: The thread draws random numbers while the model does (dropout), so the draws interleave in another order: same
law, other draws. A dataset that keeps state shared with the training loop without a lock is not safe. Ahead batches
cost memory.
"""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any

from hotlap.lever.checks import Rule, check_setting
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.drawing import Drawing
from hotlap.lever.evidence import first, place
from hotlap.lever.fetch_ahead import FetchAhead
from hotlap.lever.gains import bounded, load_seconds
from hotlap.lever.positions import why_not_ahead
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

if TYPE_CHECKING:
    from torch.utils.data import DataLoader

ID = "background-fetch"
TREATS = (
    "decode", "augment", "collate", "storage-read", "network-storage", "small-files", "page-cache-exhausted",
    "too-few-workers", "whole-file-read", "reopened-per-sample", "parsed-per-sample", "linear-search",
)  # fmt: skip
PRESERVES = "distribution"
CONFLICTS = ("loader-workers",)
NUMERIC = False

RULES = {"depth": Rule(int, 1, 64)}
_TRAINED = "its samples are drawn with a model that the steps in between may train"


def evidence(findings: Findings) -> Finding | None:
    """The largest cause of waiting for a DataLoader without workers."""
    loader = findings.script.loader
    return first(findings, TREATS) if loader is not None and loader.num_workers == 0 else None


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """A short queue; a longer one where batches are uneven."""
    loader = findings.script.loader
    if loader is None or loader.num_workers > 0:
        return Refusal("The loader has workers that fetch ahead already.")
    if machine.cores < 2 and findings.script.device == "cpu":
        return Refusal("There is one core, and the training uses it.")
    return [{"depth": 2}, {"depth": 8}]


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """At best half of the loading hides behind compute; at worst none of it does (Python's lock, and threads of the
    step that spin on all cores)."""
    model = findings.step_model
    hidden = min(load_seconds(model), model.compute_s)
    high = min(hidden, model.data_wait_s)
    if model.cores < 2:
        high = min(high, model.io_wait_s or 0.0)
    return bounded(findings, 0.0, (0.5 if model.torch_threads >= model.cores else 0.8) * high, "modelled")


def check(setting: Setting, machine: Machine) -> str | None:
    """Types and range."""
    return check_setting(setting, RULES)


def environment(setting: Setting) -> dict[str, str]:
    """None needed."""
    return {}


def apply(target: Target, setting: Setting) -> None:
    """Wrap each epoch's iterator of a loader without workers."""
    running: weakref.WeakSet[FetchAhead] = weakref.WeakSet()
    known: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()
    """Whether a loader's batches lie apart in memory."""
    refused: weakref.WeakKeyDictionary[Any, str | None] = weakref.WeakKeyDictionary()
    """Why one may not be drawn ahead, if so."""

    def learn(loader: weakref.ref[DataLoader[Any]], apart: bool) -> None:
        if (there := loader()) is not None:
            known[there] = apart
        if apart:
            target.changed()
        else:
            target.unfit("its data set uses the memory of a batch again, which a step may still be reading")

    def ahead(loader: DataLoader[Any], iterator: Any) -> Any:
        import torch

        if loader.num_workers > 0 or torch.get_default_device().type != "cpu":
            return iterator
        if loader not in refused:
            drawing = Drawing(loader)
            trained = any(weight.requires_grad for weight in drawing.weights())
            refused[loader] = _TRAINED if trained else why_not_ahead(loader, drawing)
        if (why := refused[loader]) is not None:
            target.unfit(why)
            return iterator
        apart = known.get(loader, _collates_anew(loader) or None)
        if apart is False:
            return iterator
        for old in list(running):
            if old.left:  # it may be at a batch still; one that is read goes on: a loop may draw from several
                old.stop()
        wrapped = FetchAhead(iterator, setting["depth"], functools.partial(learn, weakref.ref(loader)), apart)
        running.add(wrapped)
        return wrapped.outer()

    def stop() -> None:
        for old in list(running):
            old.stop()

    target.wrap_iterator(ahead)
    target.at_exit(stop)


def _collates_anew(loader: DataLoader[Any]) -> bool:
    """Whether torch's own function puts the samples of each batch together, which it does in new memory."""
    from torch.utils.data import default_collate

    return loader.batch_sampler is not None and loader.collate_fn is default_collate


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """The training loop goes over what a thread has fetched ahead."""
    where = place(*finding.where)
    code = f"fetch_ahead({{iterable}}, depth={setting['depth']})"
    return [Edit("replace_iterable", where.file, where.line, target="loop", code=code)]
