"""Load batches into pinned memory, and copy them to the device without waiting.

Evidence: A visible part of the step copies batches to an accelerator, and the DataLoader does not pin them.

Gain: A device reads pinned memory by itself, at the full rate of the bus and while the host goes on; from pageable
memory the driver first copies into a pinned buffer of its own, and the host waits. With workers a thread of the loader
pins; without, the training thread does, and little may be left of the gain.

Runtime: Before the training loader is first iterated, its pin_memory is set in place. With non_blocking, Tensor.to and
Tensor.cuda of a pinned tensor, called with a device alone, are given non_blocking=True. Without an accelerator nothing
is changed, nor where the dataset holds tensors of a device, which cannot be pinned.

Source: DataLoader(..., pin_memory=True), and .to(device, non_blocking=True).

Risk: Pinned memory cannot be swapped out, and some batches of it are held. A script that writes into a batch on the
host right after it copied it may change what arrives; losses equal bit for bit are the proof that none does.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hotlap.lever.checks import Rule, check_setting
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.evidence import first, place
from hotlap.lever.gains import bounded
from hotlap.lever.pinned_copies import without_waiting
from hotlap.lever.worker_safety import lies_on_device
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

if TYPE_CHECKING:
    from torch.utils.data import DataLoader

ID = "pin-memory"
TREATS = ("h2d-copy",)
PRESERVES = "bits"
CONFLICTS = ()
NUMERIC = False
DEVICE = "cuda"
IDLE_ON_CPU = True

RULES = {"non_blocking": Rule(bool)}
_COPIES = re.compile(r"\.(to|cuda)\(")


def _impossible(machine: Machine) -> str | None:
    """Why nothing is to be pinned here."""
    return None if machine.has_gpu else "Pinned memory serves copies to an accelerator, and torch sees none."


def evidence(findings: Findings) -> Finding | None:
    """Copies from pageable memory."""
    return first(findings, TREATS)


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """With copies that do not wait; then pinned alone."""
    reason = _impossible(machine)
    if reason is not None:
        return Refusal(reason)
    loader = findings.script.loader
    if loader is None:
        return Refusal("The script has no DataLoader.")
    if loader.pin_memory:
        return Refusal("The loader pins its batches already.")
    return [{"non_blocking": True}, {"non_blocking": False}]


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """Prior: nothing to nearly all of the copies; to half of them where the host still waits."""
    part = 0.9 if setting["non_blocking"] else 0.5
    return bounded(findings, 0.0, part * finding.seconds_per_step, "prior")


def check(setting: Setting, machine: Machine) -> str | None:
    """True or false; and an accelerator."""
    return check_setting(setting, RULES) or _impossible(machine)


def environment(setting: Setting) -> dict[str, str]:
    """None needed."""
    return {}


def apply(target: Target, setting: Setting) -> None:
    """Change each training loader just before it is first iterated; the copies with the first of them."""
    copies: list[bool] = []

    def no_wait() -> None:
        import torch

        for method in ("to", "cuda"):
            real = getattr(torch.Tensor, method)
            target.replace(torch.Tensor, method, without_waiting(real, method))

    def pin(loader: DataLoader[Any]) -> None:
        import torch

        if not torch.cuda.is_available() or loader.pin_memory or lies_on_device(loader.dataset):
            return
        target.replace(loader, "pin_memory", True)
        if setting["non_blocking"] and not copies:
            copies.append(True)
            no_wait()

    target.on_loader(pin)


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """Keywords of the DataLoader and of the copies, where their lines are known; advice where not."""
    found = []
    if setting["non_blocking"]:
        for copy in (w for w in finding.where if _COPIES.search(w.text)):
            keywords = {"non_blocking": True}
            found.append(Edit("set_keyword", copy.file, copy.line, target="to|cuda", keywords=keywords))
    made = next((w for w in finding.where if "DataLoader(" in w.text), None)
    if made is not None:
        found.append(Edit("set_keyword", made.file, made.line, target="DataLoader", keywords={"pin_memory": True}))
    else:
        where = place(*finding.where)
        found.append(Edit("advice", where.file, where.line, advice="Pass pin_memory=True to the training DataLoader."))
    return found
