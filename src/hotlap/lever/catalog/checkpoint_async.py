"""Write checkpoints in the background.

Evidence: torch.save holds the step while it serialises and writes.

Gain: The step pays for a copy of the state in memory; writing overlaps with the next steps.

Runtime: torch.save to a path copies the state and returns; one thread writes the files in order, each in a temporary
folder first and then renamed, so that a crash leaves the old file or the new one. Of saves to one path that come faster
than they can be written, the newest is written, once a second at most. Whoever looks for the file (torch.load, open,
rename, remove, stat, listing its folder, another process, a barrier or message to other ranks, a signal) waits until it
is there, and so does the end of the script; where half of twelve saves were waited for, further ones are made in place.
What cannot be written beside is written in place; where that fails too, the error is raised at the next save, once that
one is made, or shown at the end (status 120). Taken over are tensors, arrays, numbers, text and the like in dicts,
lists and argparse namespaces; a whole model, an object of another class, what cannot be copied, and what goes to no
plain file is saved as before.

Source: Copy the state dict (copy.deepcopy) and call torch.save in a thread; join it before the next save.

Risk: The copy needs memory as large as the checkpoint (files up to 256 MiB together: three copies, one kept for the
next save). Other machines or processes that watch the folder, a loader's workers and running pools see the file a
little later. kill -9 may lose the checkpoint being written, and those of the second before (an older one stays).
"""

from __future__ import annotations

from typing import Any

from hotlap.lever.checks import Rule, check_setting
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.evidence import first, place
from hotlap.lever.gains import bounded
from hotlap.lever.pending_saves import PendingSaves
from hotlap.lever.settling import settle_before
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

ID = "checkpoint-async"
TREATS = ("checkpoint-blocking",)
PRESERVES = "bits"
CONFLICTS = ()
NUMERIC = False

RULES = {"pending": Rule(int, 1, 8)}


def evidence(findings: Findings) -> Finding | None:
    """Checkpoints on the step's path."""
    return first(findings, TREATS)


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """One checkpoint being written while the next is made."""
    return [{"pending": 1}]


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """Half to nine tenths of the checkpoint's share: the copy stays, and writing takes some of a core."""
    saving = findings.step_model.checkpoint_s or finding.seconds_per_step
    return bounded(findings, 0.4 * saving, 0.9 * saving, "modelled")


def check(setting: Setting, machine: Machine) -> str | None:
    """Types and range."""
    return check_setting(setting, RULES)


def environment(setting: Setting) -> dict[str, str]:
    """None needed."""
    return {}


def apply(target: Target, setting: Setting) -> None:
    """Hand each ``torch.save`` to a path to the writer; let those who look for the file wait."""
    pending = PendingSaves(setting["pending"])

    def save(real: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if pending.submit(real, args, kwargs):
            target.changed()
            return None
        return real(*args, **kwargs)

    target.around_save(save)
    settle_before(target, pending)
    target.at_exit(pending.finish)


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """A function that copies the state and writes it in a thread, in place of torch.save."""
    where = place(*finding.where)
    return [Edit("replace_call", where.file, where.line, target="torch.save", code="save_later({arguments})")]
