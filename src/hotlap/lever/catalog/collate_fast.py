"""Turn lists of arrays and of numbers into a batch tensor by one copy.

Evidence: The step waits while samples are put together, in a collate function that calls torch.tensor.

Gain: torch.tensor on a list converts number by number, each through a Python object; stacked first, the same is one
copy of memory. So it grows with the numbers in a batch. Lists of Python numbers gain less, since numpy has to look at
each of them too.

Runtime: While the training loader's collate function runs, torch.tensor is one that stacks a list of equal arrays, or
makes one array of nested lists of one Python type, and hands everything else to torch's own. Outside of collating
nothing is replaced.

Source: torch.from_numpy(numpy.stack(arrays)), or torch.from_numpy(numpy.array(rows)).to(torch.float32).

Risk: A collate function that imported the name itself (from torch import tensor), or stacks in another way, is not
helped.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from hotlap.lever.checks import check_setting
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.evidence import first, place
from hotlap.lever.fast_tensor import fast_tensor
from hotlap.lever.gains import bounded
from hotlap.lever.used_mark import UsedMark, watch_mark
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

if TYPE_CHECKING:
    from torch.utils.data import DataLoader

ID = "collate-fast"
TREATS = ("collate",)
PRESERVES = "bits"
CONFLICTS = ()
NUMERIC = False


def evidence(findings: Findings) -> Finding | None:
    """Collating that holds the step."""
    return first(findings, TREATS)


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """One: on. A loader that gives samples as they are has nothing to collate."""
    loader = findings.script.loader
    if loader is None or loader.batch_size is None:
        return Refusal("The loader does not collate.")
    return [{}]


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """Nothing, or nearly all of the collating: the timeline does not say what the collate function calls."""
    return bounded(findings, 0.0, 0.9 * finding.seconds_per_step, "prior")


def check(setting: Setting, machine: Machine) -> str | None:
    """It has no keys."""
    return check_setting(setting, {})


def environment(setting: Setting) -> dict[str, str]:
    """None needed."""
    return {}


class FastCollate:
    """A collate function during which ``torch.tensor`` is the fast one. Can be sent to a worker."""

    def __init__(self, collate: Any, used: UsedMark) -> None:
        self._collate = collate
        self._used = used
        """Called when a short way was taken."""

    def __call__(self, samples: Any) -> Any:
        import torch

        if threading.current_thread() is not threading.main_thread():
            return self._collate(samples)  # another thread may be computing, or compiling, meanwhile
        real = torch.tensor
        ours = fast_tensor(real, self._used)
        torch.tensor = ours
        try:
            return self._collate(samples)
        finally:
            if torch.tensor is ours:
                torch.tensor = real

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_collate":  # a copy under construction has no collate function yet
            raise AttributeError(name)
        return getattr(self._collate, name)


def apply(target: Target, setting: Setting) -> None:
    """Wrap the training loaders' collate functions. What counts as a change is a batch made the short way."""
    used = watch_mark(target, ID)

    def wrap(loader: DataLoader[Any]) -> None:
        if loader.collate_fn is not None and loader.batch_sampler is not None:
            target.replace(loader, "collate_fn", FastCollate(loader.collate_fn, used))
            target.changed(-1)

    target.on_loader(wrap)


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """Advice: which list is to be stacked is written in the user's own words."""
    where = place(*finding.where)
    advice = "Stack first: torch.from_numpy(numpy.stack(arrays)) in place of torch.tensor(arrays)."
    return [Edit("advice", where.file, where.line, advice=advice)]
