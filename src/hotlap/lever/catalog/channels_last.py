"""Keep convolution weights and images in channels-last order in memory.

Evidence: Convolutions compute in NCHW, and the machine's kernels are faster with channels last.

Gain: Kernels that want channels last need not reorder each layer's input and output. It grows with the share of the
step that is convolutions, and counts more in bf16, where reordering is a larger part of what is left; with next to no
convolutions there is nothing.

Runtime: Just before its first training forward each model with 2-d convolutions is converted in place, and 4-d inputs
are converted at each forward. Only before the optimizer has state, so that state and weights agree, and not where the
weights lie in shared memory or are parts of one buffer. States loaded later are laid out as the weights. safetensors,
which takes no other layout, is given the usual one when it saves.

Source: model.to(memory_format=torch.channels_last), and images.contiguous(memory_format=torch.channels_last).

Risk: On a CPU a fused optimizer trains wrong weights, without an error, if the layout changes after its state exists or
if it resumes from a checkpoint in the other layout: the two are never used together. Code that calls view() on
activations may need reshape(): such a script fails at its first step, and the lever is put back.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

from hotlap.lever.checks import check_setting
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.dense_saves import save_in_the_usual_layout
from hotlap.lever.evidence import first, place
from hotlap.lever.gains import of_compute
from hotlap.lever.knob import Knob
from hotlap.lever.nested import map_tensors
from hotlap.lever.weight_places import lay_out_states, why_weights_stay
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

ID = "channels-last"
TREATS = ("memory-format",)
PRESERVES = "maths"
CONFLICTS = ("optimizer-fused",)
NUMERIC = True


def evidence(findings: Findings) -> Finding | None:
    """Convolutions in NCHW."""
    return first(findings, TREATS)


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """On or not at all."""
    model = findings.script.model
    if model.get("conv2d_layers", model.get("conv_layers")) == 0:
        return Refusal("The model has no 2-d convolutions.")
    if model.get("channels_last"):
        return Refusal("The model is channels-last already.")
    if findings.script.device == "cpu" and any(o.get("fused") for o in findings.script.optimizers):
        return Refusal("The optimizer is fused: on a CPU it trains wrong weights when layouts differ.")
    return [{}]


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """Prior: 1.02 to 1.23 times on the compute part, by the share of convolutions where it is known."""
    model = findings.script.model
    share = model.get("conv2d_frac", model.get("conv_frac"))
    mostly = share is None or share > 0.5
    return of_compute(findings, 1.05 if mostly else 1.0, 1.23 if mostly else 1.08)


def check(setting: Setting, machine: Machine) -> str | None:
    """There is nothing to set."""
    return check_setting(setting, {})


def environment(setting: Setting) -> dict[str, str]:
    """None needed."""
    return {}


def apply(target: Target, setting: Setting) -> None:
    """Convert each trained model with convolutions, and its images."""
    import weakref

    converted: weakref.WeakSet[nn.Module] = weakref.WeakSet()

    def convert(module: nn.Module) -> None:
        import torch

        if not any(isinstance(m, torch.nn.Conv2d | torch.nn.ConvTranspose2d) for m in module.modules()):
            return
        if (why := why_weights_stay(module)) is not None:
            target.unfit(why)
            return

        def lay_out(module: nn.Module, last: Any) -> None:
            layout = torch.channels_last if last else torch.contiguous_format
            # As module.to, which refuses a model that has 3-d convolutions, too. Not `contiguous`: to that a kernel of
            # one channel is in either format already, and keeps strides by which another algorithm is chosen.
            module._apply(lambda t: t.to(memory_format=layout) if t.dim() == 4 else t)  # type: ignore[no-untyped-call]

        target.replace(Knob.of(module, False, lay_out), "value", True)
        converted.add(module)

    def forward(module: nn.Module, call: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        import torch

        if module not in converted:
            return call(*args, **kwargs)

        def last(tensor: torch.Tensor) -> torch.Tensor:
            is_image = tensor.dim() == 4 and tensor.is_floating_point()
            return tensor.contiguous(memory_format=torch.channels_last) if is_image else tensor

        args = tuple(map_tensors(a, last) for a in args)
        return call(*args, **{k: map_tensors(v, last) for k, v in kwargs.items()})

    def ready(torch: ModuleType) -> None:
        optimizer = torch.optim.Optimizer
        load = optimizer.load_state_dict

        def load_state_dict(self: Optimizer, state_dict: dict[str, Any]) -> None:
            load(self, state_dict)
            lay_out_states(self, [p for module in converted for p in module.parameters()])

        target.replace(optimizer, "load_state_dict", load_state_dict)
        target.changed(-1)

    target.on_import("torch", ready)
    target.around_forward(forward)  # before on_model: the conversion then wraps it, and the first forward is laid out
    target.on_model(convert)
    save_in_the_usual_layout(target)


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """The model after it was built; the images at the forward."""
    where = place(*finding.where)
    code = "{module} = {module}.to(memory_format=torch.channels_last)"
    advice = "Give the model images.contiguous(memory_format=torch.channels_last)."
    return [
        Edit("insert_after", where.file, where.line, target="model:Conv", code=code),
        Edit("advice", where.file, where.line, advice=advice),
    ]
