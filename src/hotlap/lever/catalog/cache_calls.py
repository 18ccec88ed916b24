"""Keep what the script's own pure functions gave for the same arguments: tokenising, parsing, looking up.

Evidence: The step waits for Python work per sample, in collating or in the data set.

Gain: A word, a line or a label that comes again costs one lookup in place of the work. How often they come again, the
timeline does not say.

Runtime: Of the functions that the data set and the collate function reach, those whose source can do nothing but
compute (no state written, no file, no random number, no unknown call) and whose arguments are text and numbers look
into a dict first. One in 64 results is computed all the same and compared; what a function reads beside its arguments
is looked at then too. A function that is quicker than a lookup is left alone. Results that can be changed are copied.

Source: functools.cache on the function, or the work done once, before the training.

Risk: A table that a function reads and that is changed in place, at the same length, between two looks, is noticed up
to 64 results late. Memory for the results, given in the setting for all processes of a machine together.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from hotlap.lever.checks import MAX_BYTES, check_max_bytes
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.evidence import first, place
from hotlap.lever.gains import bounded
from hotlap.lever.memo import Room, remembering
from hotlap.lever.pure_functions import pure_functions
from hotlap.lever.usage import Usage
from hotlap.lever.used_mark import watch_mark
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

if TYPE_CHECKING:
    from torch.utils.data import DataLoader

ID = "cache-calls"
TREATS = ("collate", "augment", "parsed-per-sample", "linear-search")
PRESERVES = "bits"
CONFLICTS = ()
NUMERIC = False
RULES = MAX_BYTES

MOST_BYTES = 1 << 30


def evidence(findings: Findings) -> Finding | None:
    """Python work on the way from a sample to a batch."""
    return first(findings, TREATS)


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """An eighth of the free memory, at most 1 GiB."""
    room = min(machine.memory_available_bytes // 8, MOST_BYTES) >> 20
    return [{"max_bytes": room << 20}] if room else Refusal("No memory is free.")


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """Nothing, or most of the work."""
    return bounded(findings, 0.0, 0.7 * finding.seconds_per_step, "prior")


def check(setting: Setting, machine: Machine) -> str | None:
    """Types, and no more than the machine's memory."""
    return check_max_bytes(setting, machine)


def environment(setting: Setting) -> dict[str, str]:
    """None needed."""
    return {}


def apply(target: Target, setting: Setting) -> None:
    """Look at each training loader once. What counts as a change is a result given from memory."""
    usage = Usage(os.path.join(target.scratch, f"{ID}.usage"), setting["max_bytes"] // target.scratches)
    room, used = Room(0, usage.take), watch_mark(target, ID)
    wrapped: set[Any] = set()

    def consider(loader: DataLoader[Any]) -> None:
        from torch.utils.data import Subset

        dataset: Any = loader.dataset
        while isinstance(dataset, Subset):
            dataset = dataset.dataset
        for pure in pure_functions(dataset, loader.collate_fn):
            if pure.function in wrapped:
                continue
            new = remembering(pure, room, used, target.unfit)
            wrapped.update((pure.function, new))
            target.replace(pure.owner, pure.function.__name__, new)
            target.changed(-1)

    target.on_loader(consider)


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """Advice: which function it is, is written in the user's own words."""
    where = place(*finding.where)
    advice = (
        "Do this once for each different input: functools.cache on a function of text and numbers, or before training."
    )
    return [Edit("advice", where.file, where.line, advice=advice)]
