"""Keep what a network that is not trained (a teacher, a frozen trunk) gave for each sample, and give it again.

Evidence: In training steps a network is called of whose parameters none is trained.

Gain: Once samples come again the network costs a hash of its input, a look at its weights and a copy of its outputs.
What that saves is the network's share of the step: most of it where a large teacher stands beside a small student,
nothing where inputs never come again.

Runtime: Each sample's input is known by a hash of its bytes (BLAKE2b, 128 bits). In the first epoch outputs are kept.
When samples come again, their outputs are computed all the same and compared, for three batches' worth, and later for
one in 64; only then are they given from memory. Of a batch in which some are new (pictures mirrored at random), those
alone are computed. The lever ends, and says why, where inputs do not come again (random crops), where the network is in
training mode, draws random numbers, keeps something in an attribute, gives no row per sample, has hooks inside or is
changed (its weights, or an attribute), and where the outputs do not fit. Weights are looked at in every call: all of
them where torch counts a change, else an eighth of them in turn, so that a moving average written through ``.data`` is
seen at once.

Source: Compute the network's outputs once for all samples, keep them by index, and let the data set give them too.

Risk: A sample may have been computed at another place in its batch, which can round differently in the last bits.
What the network does beside its output (printing, counting in a global) is not done again. A single tensor of its
weights that is changed through ``.data`` or numpy, alone, is seen within eight calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from hotlap.lever.checks import MAX_BYTES, check_max_bytes
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.evidence import first, place
from hotlap.lever.frozen_parts import frozen_parts
from hotlap.lever.gains import bounded
from hotlap.lever.recalled import Recalled
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

if TYPE_CHECKING:
    from torch import nn
    from torch.utils.data import DataLoader

ID = "cache-teacher"
TREATS = ("frozen-subnetwork",)
PRESERVES = "maths"
CONFLICTS = ()
NUMERIC = False
RULES = MAX_BYTES
"""On a resident batch the network would cost nothing from the second step on, which is no roof of a training."""


def evidence(findings: Findings) -> Finding | None:
    """A network that is called and not trained."""
    return first(findings, TREATS)


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """A quarter of the free memory, shared by the ranks."""
    known = finding.evidence
    if findings.script.device != "cpu":
        return Refusal("To look at its inputs the host would wait for the accelerator in every step.")
    if known.get("frozen") is False:
        return Refusal("Its parameters require gradients: call requires_grad_(False) on it first.")
    if known.get("asked"):
        return Refusal("Gradients pass through it to its input.")
    if known.get("training"):
        return Refusal("It is in training mode, in which its output depends on more than its input: call eval() on it.")
    room = machine.memory_available_bytes // 4 // max(findings.script.world_size, 1)
    if room < 1 << 20:
        return Refusal("No memory is free.")
    return [{"max_bytes": room // (1 << 20) * (1 << 20)}]


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """Up to nine tenths of the network's time; nothing if its inputs do not come again, which a trial shows."""
    seconds = finding.evidence.get("network_s")
    most = float(seconds) if isinstance(seconds, int | float) else finding.seconds_per_step
    return bounded(findings, 0.0, 0.9 * most, "modelled")


def check(setting: Setting, machine: Machine) -> str | None:
    """Types, and no more than the machine's memory."""
    return check_max_bytes(setting, machine)


def environment(setting: Setting) -> dict[str, str]:
    """None needed."""
    return {}


def apply(target: Target, setting: Setting) -> None:
    """A forward that remembers, for each frozen network that has a plain one."""
    kept: WeakSet[Recalled] = WeakSet()
    longest: list[int] = []

    def remember(module: nn.Module) -> None:
        import torch

        theirs = type(module).__module__.startswith(("torch.distributed", "torch.nn.parallel"))
        single = sum(1 for _ in module.modules()) == 1  # a layer is no network
        if theirs or single or "forward" in vars(module) or isinstance(module, torch.jit.ScriptModule):
            return
        recalled = Recalled(module, target, setting["max_bytes"])
        recalled.dataset_len = max(longest, default=None)
        target.replace(module, "forward", recalled)
        kept.add(recalled)

    def look_inside(root: nn.Module) -> None:
        import torch

        if not any(isinstance(part, torch.nn.DataParallel) for part in root.modules()):  # it copies its parts
            for part in list(frozen_parts(root)):
                remember(part)

    def measure(loader: DataLoader[Any]) -> None:
        dataset: Any = loader.dataset
        try:
            longest.append(len(dataset))
        except (TypeError, NotImplementedError):  # a stream
            return
        for recalled in kept:
            recalled.dataset_len = max(longest)

    target.on_frozen(remember)
    target.on_model(look_inside)
    target.on_loader(measure)


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """Advice: where outputs are kept is the user's decision."""
    where = place(*finding.where)
    advice = (
        "If its inputs never change: compute this network's outputs once for all samples, keep them in one array by "
        "index, and let the data set give them with the sample."
    )
    return [Edit("advice", where.file, where.line, target="forward", advice=advice)]
