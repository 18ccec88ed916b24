"""Dynamic loss scaling for fp16 that the script does not see: gradients are true ones whenever it looks at them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hotlap.lever.contract import Target
from hotlap.lever.knob import Knob

if TYPE_CHECKING:
    from torch import Tensor, nn

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

    def watch(self, module: nn.Module) -> None:
        """Unscale what reaches this module's parameters; taken off when the lever is undone."""
        for parameter in module.parameters():
            if parameter.requires_grad:
                self._target.replace(Knob(lambda: None, _HookSwitch(parameter, self._unscale)), "value", True)
                self._target.changed(-1)

    def _unscale(self, grad: Tensor) -> Tensor | None:
        return None if self._inverse is None else grad * self._inverse

    def backward(self, backward: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """``torch.autograd.backward`` of a scalar loss, scaled; other calls pass through."""
        import torch

        loss = args[0] if args else kwargs.get("tensors")
        given = args[1] if len(args) > 1 else kwargs.get("grad_tensors")
        single = loss[0] if isinstance(loss, tuple | list) and len(loss) == 1 else loss
        ones = given is None or (isinstance(given, tuple | list) and all(g is None for g in given))
        if not isinstance(single, torch.Tensor) or single.numel() != 1 or not ones:
            return backward(*args, **kwargs)
        rest = {k: v for k, v in kwargs.items() if k not in ("tensors", "grad_tensors")}
        self._inverse = 1.0 / self.scale
        try:
            return backward((single * self.scale,), None, *args[2:], **rest)
        finally:
            self._inverse = None

    def step(self, optimizer: Any, step: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The optimizer's step, unless a gradient is not finite."""
        import torch

        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        total = torch.stack([n.float() for n in torch._foreach_norm(grads)]).sum() if grads else torch.zeros(())
        if not bool(torch.isfinite(total)):
            self.scale, self._good_steps = max(self.scale / 2, 1.0), 0
            return None
        self._good_steps += 1
        if self._good_steps == self.GROWTH_STEPS:
            self.scale, self._good_steps = self.scale * 2, 0
        return step(*args, **kwargs)


class _HookSwitch:
    """Called with True: hang the hook onto the tensor; with anything else: take it off."""

    def __init__(self, tensor: Tensor, hook: Any) -> None:
        self._tensor = tensor
        self._hook = hook
        self._handle: Any = None

    def __call__(self, on: object) -> None:
        if on is True and self._handle is None:
            tensor: Any = self._tensor
            self._handle = tensor.register_hook(self._hook)
        elif on is not True and self._handle is not None:
            self._handle.remove()
            self._handle = None
