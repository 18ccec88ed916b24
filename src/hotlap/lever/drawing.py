"""The script's code that draws samples: from a data set, by a sampler's indices, into batches."""

from __future__ import annotations

import ast
import functools
import os
import sys
from collections.abc import Iterator, Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any

from hotlap.lever.sample_purity import EveryReading
from hotlap.lever.source_tree import source_tree
from hotlap.lever.users_code import is_users, is_users_module
from hotlap.lever.watched_kinds import attributes_of

if TYPE_CHECKING:
    from torch import nn
    from torch.utils.data import DataLoader

__all__ = ["Drawing", "names_of", "path_of"]

_BY_SAMPLERS = ("__iter__", "__next__")


class Drawing(EveryReading):
    """Functions that drawing from a loader may call, and what they read. Nothing is run."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._all: dict[FunctionType, type | None] = {}
        self._collate = loader.collate_fn
        super().__init__(loader.dataset, loader.collate_fn, loader.sampler, loader.batch_sampler)
        self.functions = self._called()
        """Each with the class that it is a method of, and its code as a tree. Code that cannot be found is left out."""
        self.classes = frozenset().union(*(names_of(of) for of, _ in self.functions.values()))
        """Names of the script's, with methods among the functions."""
        self.places = {(path_of(function), function.__code__.co_firstlineno) for function in self.functions}

    def _begin(self, function: FunctionType | None) -> None:
        self._names.update(_BY_SAMPLERS)
        super()._begin(function)

    def _is_followed(self, function: FunctionType) -> bool:
        return _is_scripts(function)

    def _follow(self, function: FunctionType, makes: bool = False, of: type | None = None) -> None:
        if _is_scripts(function) and not makes:
            self._all.setdefault(function, of)
        super()._follow(function, makes, of)

    def _called(self) -> dict[FunctionType, tuple[type | None, ast.AST]]:
        """What is read follows each name to all that it may stand for. Of methods that are named, ``self.count`` of one
        object may be a number where another's is a method: only those count that somebody calls."""
        trees = {function: tree for function in self._all if (tree := _tree_of(function)) is not None}
        found: dict[FunctionType, tuple[type | None, ast.AST]] = {}
        names, before = set[str](), -1
        while before != len(found):
            before = len(found)
            for function, tree in trees.items():
                of, name = self._all[function], function.__name__
                by_itself = of is None or name.startswith("__") or function is self._collate_function
                if function not in found and (
                    by_itself or name in names or isinstance(getattr(of, name, None), property)
                ):
                    found[function] = of, tree
                    names.update(_names_called(tree))
        return found

    @property
    def _collate_function(self) -> Any:
        return getattr(self._collate, "__func__", self._collate)

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


def _tree_of(function: FunctionType) -> ast.AST | None:
    tree = source_tree(function)
    if tree is None or function.__name__ != "<lambda>":
        return tree
    return ast.Module([ast.Expr(node) for node in ast.walk(tree) if isinstance(node, ast.Lambda)], [])


def _names_called(tree: ast.AST) -> Iterator[str]:
    """Of methods and functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.func.attr
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id


def _is_scripts(function: FunctionType) -> bool:
    """Hotlap stands before functions of torch, and need not be installed as packages are."""
    return is_users(function) and str(function.__globals__.get("__name__")).partition(".")[0] != "hotlap"


def names_of(kind: type | None) -> frozenset[str]:
    """Of a class and those that it comes from, the script's."""
    kinds = kind.__mro__ if kind is not None else ()
    return frozenset(one.__name__ for one in kinds if is_users_module(one.__module__))


def path_of(function: FunctionType) -> str:
    """Of the file that it came from."""
    return os.path.realpath(function.__code__.co_filename)
