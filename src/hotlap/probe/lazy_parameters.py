"""Parameters without a shape yet (``LazyLinear``) let functions through by identity: replacements are made known."""

from __future__ import annotations

from typing import Any

from hotlap.probe.context import Context

__all__ = ["let_through"]


def let_through(ctx: Context, original: Any, ours: Any) -> None:
    """Where such a parameter may be given to ``original`` (``Tensor.to``, ``cuda``, ``cpu``), it may to ``ours``."""
    allowed = ctx.torch.nn.parameter.UninitializedTensorMixin._allowed_methods
    if original in allowed:
        allowed.append(ours)
        ctx.undo.add(lambda: allowed.remove(ours))
