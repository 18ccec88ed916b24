"""Changing what a script hands to DistributedDataParallel, whoever makes the wrapper (the script, a framework)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from hotlap.lever.contract import Target

__all__ = ["change_ddp"]


def change_ddp(target: Target, wanted: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
    """From now on, each wrapper is made with ``wanted(arguments)`` on top of the script's own arguments.

    Arguments that this torch does not know are left out. Each wrapper that is made differently counts as one change.
    """

    def ready(module: ModuleType) -> None:
        wrapper = module.DistributedDataParallel
        real = wrapper.__init__
        signature = inspect.signature(real)

        @functools.wraps(real)
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            try:
                bound = signature.bind(self, *args, **kwargs)
            except TypeError:
                real(self, *args, **kwargs)  # which says what is wrong
                return
            given = {name: p.default for name, p in signature.parameters.items()} | bound.arguments
            new = {name: value for name, value in wanted(given).items() if name in signature.parameters}
            if any(given[name] != value for name, value in new.items()):
                bound.arguments.update(new)
                target.changed()
            real(*bound.args, **bound.kwargs)

        target.replace(wrapper, "__init__", __init__)
        target.changed(-1)

    target.on_import("torch.nn.parallel.distributed", ready)
