"""Dynamic loss scaling for fp16 that the script does not see: gradients are true ones whenever it looks at them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from hotlap.lever.closures import behind_closure
from hotlap.lever.contract import Target
from hotlap.lever.knob import Knob

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer

__all__ = ["LossScale"]


class LossScale:
    """The loss is multiplied before backward, each gradient divided before it accumulates (so accumulation and clipping
    see true values); a step whose gradients overflowed is skipped. Constants are those of ``torch.amp.GradScaler``."""

    GROWTH_STEPS = 2000

    def __init__(self, target: Target, scale: float = 65536.0) -> None:
        self._target = target
        self.scale = scale
        self._inverse: float | None = None
        self._good_steps = 0
        self._holders: WeakSet[nn.Module | Optimizer] = WeakSet()
        """Known modules and optimizers: whose parameters a backward may reach where its graph does not show it."""
        self._held: Any = None
        """Parameter: its hook, for as long as the parameter lives."""

    def watch(self, module: nn.Module) -> None:
        """Unscale what reaches this module's parameters; taken off when the lever is undone."""
        self._holders.add(module)
        for parameter in module.parameters():
            self._hook(parameter)

    def _hook(self, leaf: Tensor) -> Any:
        """Hang the hook onto a parameter, once; for another tensor the handle, which the caller takes off."""
        from torch import nn
        from torch.utils.weak import WeakTensorKeyDictionary

        if not leaf.requires_grad:
            return None
        if self._held is None:
            self._held = held = WeakTensorKeyDictionary()
            self._target.replace(Knob(lambda: True, lambda on: _take_off(held) if on else None), "value", False)
            self._target.changed(-1)
        if leaf in self._held:
            return None
        handle = leaf.register_hook(self._unscale)  # type: ignore[no-untyped-call]
        hooks: Any = leaf._backward_hooks
        for earlier in [key for key in hooks if key != handle.id]:  # the script's own run behind it
            hooks[earlier] = hooks.pop(earlier)
        if not isinstance(leaf, nn.Parameter):
            return handle
        self._held[leaf] = handle
        return None

    def _unscale(self, grad: Tensor) -> Tensor | None:
        return None if self._inverse is None else grad * self._inverse

    def _hook_leaves(self, loss: Tensor) -> list[Any]:
        """Hooks on all that this backward will reach: whatever the script has unfrozen, made or asks for since. Gives
        the handles of those that are no parameters."""
        leaves, hidden = _leaves(loss)
        if hidden:
            for holder in list(self._holders):
                groups = getattr(holder, "param_groups", None)
                leaves += holder.parameters() if groups is None else [p for g in groups for p in g["params"]]  # type: ignore[union-attr]
        return [handle for leaf in leaves if (handle := self._hook(leaf)) is not None]

    def backward(self, backward: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """``torch.autograd.backward`` of a scalar loss, scaled; other calls pass through."""
        import torch

        loss = args[0] if args else kwargs.get("tensors")
        given = args[1] if len(args) > 1 else kwargs.get("grad_tensors")
        single = loss[0] if isinstance(loss, tuple | list) and len(loss) == 1 else loss
        ones = given is None or (isinstance(given, tuple | list) and all(g is None for g in given))
        if self._inverse is not None or not isinstance(single, torch.Tensor) or single.numel() != 1 or not ones:
            return backward(*args, **kwargs)
        asked = args[5] if len(args) > 5 else kwargs.get("inputs")
        if any(not t.is_leaf for t in ((asked,) if isinstance(asked, torch.Tensor) else asked or ())):
            return backward(*args, **kwargs)  # it would get its gradient without passing a hook
        rest = {k: v for k, v in kwargs.items() if k not in ("tensors", "grad_tensors")}
        handles = self._hook_leaves(single)
        self._inverse = 1.0 / self.scale
        try:
            return backward((single * self.scale,), None, *args[2:], **rest)
        finally:
            self._inverse = None
            for handle in handles:
                handle.remove()

    def step(self, optimizer: Any, step: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The optimizer's step; one that updates nothing where a gradient is not finite."""
        self._holders.add(optimizer)
        held: _Gradients = []
        of_torch = type(optimizer).__module__.startswith("torch.optim.")

        def look() -> None:
            if self._overflowed(optimizer):
                held.extend(_taken(optimizer))

        given = behind_closure(look, self._target, args, kwargs)
        if given is not None and (not of_torch or type(optimizer).__name__ == "LBFGS"):
            why = "may compute gradients several times, and fp16 has to look at them before they are used"
            self._target.fail(NotImplementedError(f"{type(optimizer).__name__}.step(closure) {why}"))
            return step(*args, **kwargs)
        if given is None and self._overflowed(optimizer):
            if not of_torch:  # another optimizer may count steps, or need gradients
                return None
            held.extend(_taken(optimizer))
        try:  # one of torch's own, without gradients, updates nothing, and its hooks and schedules see a step
            return step(*args, **kwargs) if given is None else step(*given[0], **given[1])
        finally:
            for parameter, grad in held:
                parameter.grad = grad

    def _overflowed(self, optimizer: Any) -> bool:
        """Whether a gradient is not finite; the scale follows."""
        import torch

        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        # not bool(): a wait of ours is not to be told as one of the script's
        if grads and not torch._C.TensorBase.item(torch.isfinite(_size(grads))):
            self.scale, self._good_steps = max(self.scale / 2, 1.0), 0
            return True
        self._good_steps += 1
        if self._good_steps == self.GROWTH_STEPS:
            self.scale, self._good_steps = self.scale * 2, 0
        return False


_Gradients = list[tuple[Any, Any]]
"""Parameters and what they hold."""


def _taken(optimizer: Any) -> _Gradients:
    """The optimizer's gradients, taken away from its parameters."""
    held = [(p, p.grad) for group in optimizer.param_groups for p in group["params"]]
    for parameter, _ in held:
        parameter.grad = None
    return held


def _size(grads: list[Tensor]) -> Tensor:
    """A sum that is finite where they all are, wherever they lie."""
    import torch

    norms = torch._foreach_norm(grads)
    return torch.stack([n.float().to(norms[0].device) for n in norms]).sum()


def _take_off(held: Any) -> None:
    for handle in list(held.values()):
        handle.remove()
    held.clear()


def _leaves(loss: Tensor) -> tuple[list[Tensor], bool]:
    """The tensors in which a backward from ``loss`` ends, and whether a function written in Python is on the way, which
    may run another backward inside (reentrant checkpointing)."""
    from torch.autograd.function import BackwardCFunction

    if loss.grad_fn is None:
        return [loss], False
    found: list[Tensor] = []
    hidden = False
    seen: set[Any] = {loss.grad_fn}
    waiting: list[Any] = [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if type(node).__name__ == "AccumulateGrad":
            found.append(node.variable)
            continue
        hidden = hidden or isinstance(node, BackwardCFunction)
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)
    return found, hidden
