"""What a model is made of, as far as it matters for speed."""

from __future__ import annotations

from typing import Any

from hotlap.probe.module_walk import modules_of, parameters_of

__all__ = ["is_compiled", "model_facts"]

STEPWISE_BELOW = 256
"""Units of a GRU or RNN below which a CPU goes through it one small matrix at a time, and casts cost more than bf16
saves: in bf16 a GRU of 96 units ran at 0.73 times its speed, one of 512 at 1.7 times, LSTMs of 256 and 512 at 2.3
(32 sequences of 32 steps, a two-core guest with AMX)."""


def is_compiled(torch: Any, root: Any) -> bool:
    """Whether the module, or one of its children, was given to ``torch.compile``."""
    for module in modules_of(root):
        if vars(module).get("_compiled_call_impl") is not None or type(module).__name__ == "OptimizedModule":
            return True
        if hasattr(vars(module).get("forward"), "_torchdynamo_orig_callable"):
            return True
    return False


def model_facts(torch: Any, root: Any) -> dict[str, Any]:
    """Value of the ``model`` setting (without what only the forward knows)."""
    nn = torch.nn
    total = conv = linear = recurrent = stepwise = 0
    convs = images = image = norms = modules = votes = spatial = 0
    types: dict[str, int] = {}
    device = "cpu"
    for parameter in parameters_of(root):
        name = str(parameter.dtype).removeprefix("torch.")
        types[name] = types.get(name, 0) + _size(nn, parameter)
        total += _size(nn, parameter)
        device = str(parameter.device)
    for module in modules_of(root):
        modules += 1
        if isinstance(module, nn.modules.conv._ConvNd):
            convs += 1
            weight = _own(module, "weight")
            size = _size(nn, weight) + _size(nn, _own(module, "bias"))
            conv += size
            if weight is not None and weight.dim() == 4:  # channels-last is an order of 4-d tensors alone
                images += 1
                image += size
            if weight is not None and weight.dim() == 4 and weight.shape[1] > 1 and max(weight.shape[2:]) > 1:
                spatial += 1
                votes += weight.is_contiguous(memory_format=torch.channels_last) and not weight.is_contiguous()
        elif "norm" in type(module).__name__.lower() and not module._modules:  # torch's, and those of libraries
            norms += 1
        elif isinstance(module, nn.Linear):
            linear += sum(_size(nn, _own(module, name)) for name in ("weight", "bias"))
        elif isinstance(module, nn.RNNBase):
            size = sum(_size(nn, p) for p in module.parameters(recurse=False))
            recurrent += size
            stepwise += size * (not isinstance(module, nn.LSTM) and module.hidden_size < STEPWISE_BELOW)
    return {
        "class": type(root).__name__,
        "class_of_torch": getattr(type(root).forward, "__module__", "").startswith("torch.nn.modules."),
        "parameters": total,
        "dtype": max(types, key=lambda k: types[k], default=None),
        "device": device,
        "conv_layers": convs,
        "conv_frac": round(conv / total, 4) if total else 0.0,
        "conv2d_layers": images,
        "conv2d_frac": round(image / total, 4) if total else 0.0,
        "norm_layers": norms,
        "stepwise_frac": round(stepwise / max(1, conv + linear + recurrent), 4),
        "channels_last": votes * 2 > spatial,
        "compiled": is_compiled(torch, root),
        "modules": modules,
    }


def _own(module: Any, name: str) -> Any:
    """What the module holds by that name, or what it is made of; None where there is none. Of a parametrized module the
    attribute itself is computed at each look, and a spectral norm takes a step of its own there."""
    found = module._parameters.get(name)
    if found is not None:
        return found
    made = module._modules.get("parametrizations")
    if made is not None and name in made._modules:
        return next(iter(made._modules[name]._parameters.values()), None)
    return module._parameters.get(f"{name}_orig", vars(module).get(name))


def _size(nn: Any, parameter: Any) -> int:
    unknown = parameter is None or isinstance(parameter, nn.parameter.UninitializedTensorMixin)
    return 0 if unknown else int(parameter.numel())
