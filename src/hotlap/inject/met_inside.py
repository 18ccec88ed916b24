"""Networks that a trained module calls in its forward without having them as parts: a teacher kept beside it."""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import Any

from hotlap.probe.model_facts import is_compiled
from hotlap.probe.module_walk import modules_of, parameters_of

__all__ = ["LOOKS", "frozen_inside"]

LOOKS = 3
"""Calls of a module that are looked into; what is called later than that is not met."""


def frozen_inside(root: Any, call: Callable[[], Any]) -> tuple[Any, list[Any]]:
    """What ``call`` of ``root`` returns, and the frozen networks called in it which are no parts of it, outermost ones.

    By a global hook for the time of this call. A compiled root is left alone: its code would be compiled anew.
    """
    import torch

    if is_compiled(torch, root):
        return call(), []
    thread, met = get_ident(), []
    known = {id(module) for module in modules_of(root)}

    def before(module: Any, args: Any) -> None:
        if get_ident() != thread or id(module) in known:
            return
        known.update(id(part) for part in modules_of(module))
        own = [p.requires_grad for p in parameters_of(module)]
        if own and not any(own):
            met.append(module)

    handle = torch.nn.modules.module.register_module_forward_pre_hook(before)
    try:
        return call(), met
    finally:
        handle.remove()
