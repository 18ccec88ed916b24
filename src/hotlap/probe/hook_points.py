"""Where the injected side may hang code onto the points that the probes watch.

The probes call these lists from their own replacements, inside the phase that is open, so that what a lever does is
booked where it happens. An empty list costs one truth test, on the outermost call only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["HookPoints"]


@dataclass
class HookPoints:
    """Lists of callables; order is order of registration, the last one registered is the outermost wrapper."""

    on_loader: list[Callable[[Any, bool], None]] = field(default_factory=list)
    """``(loader, validating)`` at each ``DataLoader.__iter__``, before the iterator is made."""
    wrap_iterator: list[Callable[[Any, Any, bool], Any]] = field(default_factory=list)
    """``(loader, iterator, validating) -> iterator`` at each ``DataLoader.__iter__``."""
    next_index: list[Callable[[Any, Any], Any]] = field(default_factory=list)
    """``(loader_iter, indices) -> indices``: may change which samples the next batch is made of."""
    around_forward: list[Callable[[Any, Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]] = field(
        default_factory=list
    )
    """``(module, call, args, kwargs)`` around each outermost Module call on the training thread, of any module."""
    around_backward: list[Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]] = field(
        default_factory=list
    )
    """``(backward, args, kwargs)`` around each ``torch.autograd.backward``."""
    after_backward: list[Callable[[], None]] = field(default_factory=list)
    """After each ``torch.autograd.backward`` of the training thread, when its phase has ended; also in brief."""
    before_step: list[Callable[[Any], None]] = field(default_factory=list)
    """``(optimizer)`` before each optimizer step."""
    around_save: list[Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]] = field(
        default_factory=list
    )
    """``(save, args, kwargs)`` around each ``torch.save``."""
    on_validation_begin: list[Callable[[Any], None]] = field(default_factory=list)
    """``(frame or None)``: the user's frame that began the validation."""
    on_validation_end: list[Callable[[], None]] = field(default_factory=list)
    on_step_end: list[Callable[[int], None]] = field(default_factory=list)
    """``(step index)`` after each step was closed."""
    validating: bool = False
    """Whether a validation is open now. Kept by the probe."""
    roots: dict[int, Any] = field(default_factory=dict)
    """Weak references to the root modules seen training (owner of optimizer parameters), by id. Kept by the probe."""
