"""The script's code that draws samples: from a data set, by a sampler's indices, into batches."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any

from hotlap.lever.sample_purity import EveryReading
from hotlap.lever.users_code import is_users, is_users_module
from hotlap.lever.watched_kinds import attributes_of

if TYPE_CHECKING:
    from torch import nn
    from torch.utils.data import DataLoader

__all__ = ["Drawing", "path_of"]

_DRAWN_BY = ("__call__", "__getitem__", "__getitems__", "__iter__", "__next__")


class Drawing(EveryReading):
    """Functions that drawing from a loader may call, and what they read. Nothing is run."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self.functions: dict[FunctionType, bool] = {}
        """Each with whether its first argument is the object that it is a method of."""
        self.classes: set[str] = set()
        """Of the script, with methods among them."""
        self._collate = loader.collate_fn
        super().__init__(loader.dataset, loader.collate_fn, loader.sampler, loader.batch_sampler)
        self.places = {(path_of(function), function.__code__.co_firstlineno) for function in self.functions}

    def _begin(self, function: FunctionType | None) -> None:
        self._names.update(_DRAWN_BY)
        super()._begin(function)

    def _is_followed(self, function: FunctionType) -> bool:
        return _is_scripts(function)

    def _follow(self, function: FunctionType, makes: bool = False, of: type | None = None) -> None:
        if _is_scripts(function) and not makes and function not in self.functions:
            self.functions[function] = of is not None
            kinds = of.__mro__ if of is not None else ()
            self.classes.update(kind.__name__ for kind in kinds if is_users_module(kind.__module__))
        super()._follow(function, makes, of)

    @property
    def variables(self) -> list[tuple[Mapping[str, Any], str]]:
        """Each that the code reads of a module, or of a class: among which names, and its own."""
        return list(self._globals.values())

    def weights(self) -> list[nn.Parameter]:
        """Of models that the code names, or that the collate function is given."""
        values = [names.get(name) for names, name in self.variables]
        for things in self._objects.values():
            values += [v for thing in things for name, v in attributes_of(thing).items() if name in self._names]
        if isinstance(self._collate, functools.partial):
            values += [*self._collate.args, *self._collate.keywords.values()]
        torch = sys.modules["torch"]
        return [weight for value in values if isinstance(value, torch.nn.Module) for weight in value.parameters()]


def _is_scripts(function: FunctionType) -> bool:
    """Hotlap stands before functions of torch, and need not be installed as packages are."""
    return is_users(function) and str(function.__globals__.get("__name__")).partition(".")[0] != "hotlap"


def path_of(function: FunctionType) -> str:
    """Of the file that it came from."""
    return os.path.realpath(function.__code__.co_filename)
