"""Networks inside a trained model that are not trained themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn

__all__ = ["frozen_parts"]


def frozen_parts(root: nn.Module) -> Iterator[nn.Module]:
    """The largest parts of ``root`` of whose parameters none requires a gradient; a single layer is no network."""
    for child in root.children():
        own = [p.requires_grad for p in child.parameters()]
        if own and not any(own):
            if sum(1 for _ in child.modules()) > 1:
                yield child
        elif own:
            yield from frozen_parts(child)
