"""Networks that are given gradients and never trained: a teacher that nobody froze."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from hotlap.lever.contract import Target
from hotlap.lever.fingerprints import WeightsPrint
from hotlap.lever.knob import Knob
from hotlap.lever.nested_rows import Unfit

if TYPE_CHECKING:
    from torch import nn

__all__ = ["freeze_untrained", "untrained_networks"]


def untrained_networks() -> list[nn.Module]:
    """The largest modules alive whose parameters hold gradients while no optimizer holds any of them.

    Asked of the garbage collector, since a script may keep them anywhere. A single layer counts as a network.
    """
    from torch.nn import Module
    from torch.optim import Optimizer

    held: set[int] = set()
    modules: list[Module] = []
    for found in gc.get_objects():
        kind = type(found)  # isinstance would wake lazy objects by asking their __class__
        if issubclass(kind, Optimizer):
            held.update(id(p) for group in found.param_groups for p in group["params"])
        elif issubclass(kind, Module):
            modules.append(found)

    def given_for_nothing(module: Module) -> bool:
        own = list(module.parameters())
        graded = [p for p in own if p.requires_grad]
        return bool(graded) and all(p.grad is not None for p in graded) and not any(id(p) in held for p in own)

    fit = [module for module in modules if given_for_nothing(module)]
    inner = {id(child) for module in fit for child in module.modules() if child is not module}
    return [module for module in fit if id(module) not in inner]


def freeze_untrained(target: Target, then: Callable[[nn.Module], None]) -> None:
    """Before the second optimizer step, take ``requires_grad`` from untrained networks, and hand each to ``then``.

    Left alone: one whose weights somebody has changed since the first step (an update by hand), whose gradients were
    changed between backward and step (clipped together with the others), one of 16-bit weights (an optimizer may hold
    fp32 copies of them), and every network of a training on several ranks, where the gradients of all parameters are
    waited for. An optimizer that is given such parameters later gets them back as they were; so does the script when
    their weights have changed all the same, which is looked at after 4, 8, 16, … steps.
    """
    untrained = _Untrained(target, then)
    target.around_backward(untrained.backward)
    target.around_step(untrained.step)


class _Untrained:
    """What is seen in the first two steps, and what was frozen."""

    def __init__(self, target: Target, then: Callable[[nn.Module], None]) -> None:
        self._target = target
        self._then = then
        self._steps = 0
        self._is_giving_back = False
        self._first: list[tuple[nn.Module, _Weights, _Grads]] = []
        """At the first step: each network, its weights, and its gradients."""
        self._given: list[_Grads] = []
        """The gradients of each after the last backward before the second step."""
        self._frozen: WeakKeyDictionary[nn.Module, _Switch] = WeakKeyDictionary()
        self._watched: WeakKeyDictionary[nn.Module, list[Any]] = WeakKeyDictionary()
        """Frozen networks, and their weights then."""

    def backward(self, backward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        out = backward(*args, **kwargs)
        if self._steps == 1:
            self._given = [_gradients(module) for module, _, _ in self._first]
        return out

    def step(self, optimizer: Any, step: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._steps += 1
        if self._steps == 1 and not _several_ranks():
            self._first = [(m, _weights(m), _gradients(m)) for m in untrained_networks() if not _is_narrow(m)]
        elif self._steps == 2:
            for (module, weights, before), given in zip(self._first, self._given, strict=False):
                still = weights is not None and _weights(module) == weights and _gradients(module) == given
                if still and given != before:  # a network of an earlier training gets none any more
                    self._freeze(module)
            self._first = []
        elif self._steps & (self._steps - 1) == 0:
            self._look_again()
        return step(*args, **kwargs)

    def _freeze(self, module: nn.Module) -> None:
        if not self._is_giving_back:
            self._give_back_to_optimizers()
        self._frozen[module] = _Switch(module)
        self._watched[module] = _bits(module)
        self._target.replace(Knob.of(module, True, self._frozen[module]), "value", False)
        self._then(module)

    def _look_again(self) -> None:
        """Somebody who changes the weights now may want gradients for it."""
        for module, bits in list(self._watched.items()):
            if _bits(module) != bits:
                del self._watched[module]
                self._frozen[module](module, True)

    def _give_back_to_optimizers(self) -> None:
        from torch.optim import Optimizer

        real = Optimizer.add_param_group

        @functools.wraps(real)
        def add_param_group(optimizer: Any, group: Any) -> None:
            real(optimizer, group)
            wanted = {id(p) for p in optimizer.param_groups[-1]["params"]}
            for module, switch in list(self._frozen.items()):
                if any(id(p) in wanted for p in switch.of(module)):
                    switch(module, True)

        self._is_giving_back = True
        self._target.replace(Optimizer, "add_param_group", add_param_group)
        self._target.changed(-1)


class _Switch:
    """Takes ``requires_grad`` from the parameters of a network that have it now, and gives it back to the same."""

    def __init__(self, module: nn.Module) -> None:
        self._graded = {name for name, p in module.named_parameters() if p.requires_grad}

    def __call__(self, module: nn.Module, on: bool) -> None:
        for parameter in self.of(module):
            parameter.requires_grad_(on)

    def of(self, module: nn.Module) -> list[Any]:
        """The parameters."""
        return [p for name, p in module.named_parameters() if name in self._graded]


_Grads = list[tuple[int, int]]
"""Of each parameter: which tensor its gradient is, and how often that was changed in place."""


def _gradients(module: nn.Module) -> _Grads:
    return [(id(p.grad), -1 if p.grad is None else p.grad._version) for p in module.parameters()]


_Weights = tuple[list[int], list[Any]] | None
"""Torch's count of changes, and the bits, which also show changes through ``.data``; None where they cannot be had."""


def _weights(module: nn.Module) -> _Weights:
    try:
        return [p._version for p in module.parameters()], _bits(module)
    except Unfit:
        return None


def _bits(module: nn.Module) -> list[Any]:
    _, bits = WeightsPrint().take(list(module.parameters()))
    return list(bits)


def _is_narrow(module: nn.Module) -> bool:
    return any(p.is_floating_point() and p.element_size() < 4 for p in module.parameters())


def _several_ranks() -> bool:
    from torch import distributed

    return distributed.is_available() and distributed.is_initialized()
