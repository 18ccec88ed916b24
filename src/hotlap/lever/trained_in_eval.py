"""Tells models that are trained in evaluation mode (a backbone whose BatchNorm is kept) from ones that are validated.

To put such a model in that mode, at the start of an epoch, looks as the beginning of a validation does.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hotlap.lever.contract import Target

if TYPE_CHECKING:
    from torch import nn

__all__ = ["TrainedInEval"]


class TrainedInEval:
    """Watches which models in evaluation mode, and which loaders, a backward has followed."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._called: weakref.WeakSet[nn.Module] = weakref.WeakSet()
        """Models that were called in evaluation mode since the last backward."""
        self._trained: weakref.WeakSet[nn.Module] = weakref.WeakSet()
        self._begun: weakref.ref[Any] | None = None
        """The loader of the last pass that has begun outside of a validation, until a backward follows."""
        self._loaders: dict[int, weakref.ref[Any]] = {}
        """Those that are trained on, by id."""
        self._validating = self._on_training_data = False
        target.around_backward(self._backward)
        target.on_validation(self._begin, self._end)
        target.on_import("torch.utils.data", self._watch)

    def called(self, module: nn.Module) -> bool:
        """Note a call of a model in evaluation mode; whether it may be one of a training step."""
        self._called.add(module)
        return self._on_training_data or module in self._trained

    def _backward(self, backward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for module in self._called:
            if not module.training:  # it was not validated before the training went on
                self._trained.add(module)
        self._called.clear()
        if self._begun is not None:
            alive = {key: loader for key, loader in self._loaders.items() if loader() is not None}
            self._loaders = {**alive, id(self._begun()): self._begun}
            self._begun = None
        return backward(*args, **kwargs)

    def _begin(self) -> None:
        self._validating = True

    def _end(self) -> None:
        self._validating = self._on_training_data = False

    def _watch(self, data: ModuleType) -> None:
        iterate = data.DataLoader.__iter__

        @functools.wraps(iterate)
        def __iter__(loader: Any) -> Any:
            if self._validating:
                known = self._loaders.get(id(loader))
                self._on_training_data = known is not None and known() is loader
            else:
                self._begun = weakref.ref(loader)
            return iterate(loader)

        self._target.replace(data.DataLoader, "__iter__", __iter__)
        self._target.changed(-1)
