"""Take a cause away, in a throw-away trial: the same step without it shows what it costs.

``data``: the training loader gives its first batch again and again. ``validation``: the function that validates returns
what it returned the first time. ``checkpoint``: ``torch.save`` writes the first file of a training, and links to it for
the others. ``logging``: printing, logging and trackers do nothing.
"""

from __future__ import annotations

import builtins
import logging
import os
import sys
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

from hotlap.inject.on_import import on_import
from hotlap.inject.resident import ResidentBatch
from hotlap.probe.hook_points import HookPoints
from hotlap.probe.undo import Undo
from hotlap.probe.watch import Watch
from hotlap.records.call import Call

__all__ = ["ablate"]


def ablate(what: str, call: Call, points: HookPoints, undo: Undo, watch: Watch) -> None:
    """Install the ablation ``what`` (one of :data:`hotlap.records.call.ABLATIONS`)."""

    def applied(why: str = "") -> None:
        watch.set_mark("ablation", what, "applied", 1, why)

    def no_effect(why: str) -> None:
        watch.set_mark("ablation", what, "no-effect", 0, why)

    if what == "data":
        on_import("torch.utils.data.dataloader", lambda module: _resident_batch(module, points, undo, applied))
    elif what == "validation":
        where = call.extra.get("validation") or {}
        _replay_validation(where, points, undo, applied, no_effect)
    elif what == "checkpoint":
        _skip_saving(points, applied)
    elif what == "logging":
        _silence(undo, applied)


class _Resident:
    """The first batch, as often as the epoch is long."""

    def __init__(self, batch: ResidentBatch, length: int | None) -> None:
        self._batch = batch
        self._left = length

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._left is not None:
            if self._left <= 0:
                raise StopIteration
            self._left -= 1
        return self._batch.give()

    def __len__(self) -> int:
        return self._left or 0


def _length(loader: Any) -> int | None:
    try:
        return len(loader)
    except TypeError:  # an iterable data set does not know
        return None


def _resident_batch(module: ModuleType, points: HookPoints, undo: Undo, applied: Callable[[], None]) -> None:
    loader_class = module.DataLoader
    original = loader_class.__iter__
    batches: dict[int, tuple[ResidentBatch, Any]] = {}

    def iterate(loader: Any) -> Any:
        if points.validating:
            return original(loader)
        if id(loader) not in batches:
            iterator = original(loader)
            batches[id(loader)] = (ResidentBatch(next(iterator)), loader)
            del iterator  # its workers end here
            applied()
        return _Resident(batches[id(loader)][0], _length(loader))

    undo.replace(loader_class, "__iter__", iterate)


def _find_function(where: dict[str, Any]) -> tuple[Any, str, FunctionType] | None:
    """Owner, name and function object whose code is at ``where`` (file, function), among loaded modules and classes."""
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) is None and getattr(module, "__name__", "") != "__main__":
            continue
        for name, value in list(vars(module).items()):
            owners: list[tuple[Any, str, Any]] = [(module, name, value)]
            if isinstance(value, type) and value.__module__ == module.__name__:
                owners += [(value, n, v) for n, v in vars(value).items()]
            for owner, attribute, candidate in owners:
                inner = candidate
                while hasattr(inner, "__wrapped__"):  # torch.no_grad() as a decorator
                    inner = inner.__wrapped__
                code = getattr(inner, "__code__", None)
                if code is not None and code.co_name == where["function"] and _same(code.co_filename, where["file"]):
                    return owner, attribute, candidate
    return None


def _same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _on_stack(where: dict[str, Any]) -> bool:
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == where["function"] and _same(frame.f_code.co_filename, where["file"]):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def _replay_validation(
    where: dict[str, Any],
    points: HookPoints,
    undo: Undo,
    applied: Callable[[], None],
    no_effect: Callable[[str], None],
) -> None:
    """Wrap the validating function once training runs: its first call is real, later ones return its result."""

    looked: list[int] = []

    def install(step: int) -> None:
        if looked:
            return
        looked.append(step)
        if not where or _on_stack(where):
            no_effect("validation is written inside the training loop, so it cannot be taken away")
            return
        found = _find_function(where)
        if found is None:
            no_effect(f"the function {where['function']} was not found in a module")
            return
        owner, name, function = found
        results: list[Any] = []

        def replayed(*args: Any, **kwargs: Any) -> Any:
            if not results:
                results.append(function(*args, **kwargs))
                applied()
            return results[0]

        undo.replace(owner, name, replayed)

    points.on_step_end.append(install)


def _skip_saving(points: HookPoints, applied: Callable[[], None]) -> None:
    """Saves of the training's own course are left out, but for the first. What a script saves before it trains, and
    what it reads back, it finds: later files are links to that first one."""
    trained: list[int] = []
    first: list[int] = []
    """An open handle: the file may have got another name since."""

    def begun(step: int) -> None:
        if not trained:
            trained.append(step)

    def skip(save: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        target = kwargs.get("f", args[1] if len(args) > 1 else None)
        if not trained:
            return save(*args, **kwargs)
        applied()
        if not isinstance(target, str | os.PathLike):
            return None
        if not first:
            said = save(*args, **kwargs)
            first.append(_opened(target))
            return said
        if not os.path.exists(target) or not os.path.getsize(target):
            _link(first[0], target)
        return None

    points.on_step_end.append(begun)
    points.around_save.append(skip)


def _opened(path: str | os.PathLike[str]) -> int:
    """A handle of the file; -1 where it is not there yet (a lever writes it in the background)."""
    try:
        return os.open(path, os.O_RDONLY)
    except OSError:
        return -1


def _link(handle: int, target: str | os.PathLike[str]) -> None:
    """Another name for an open file; an empty file where the system has no such thing, so that a rename still works."""
    try:
        if os.path.exists(target):
            os.unlink(target)
        os.link(f"/proc/self/fd/{handle}", target, src_dir_fd=handle)  # which makes it follow the link in /proc
    except OSError:
        with open(target, "wb"):
            pass


def _silence(undo: Undo, applied: Callable[[], None]) -> None:
    def nothing(*args: Any, **kwargs: Any) -> None:
        return None

    undo.replace(builtins, "print", nothing)
    undo.replace(logging.Logger, "callHandlers", nothing)
    undo.replace(os, "fsync", nothing)

    def tensorboard(module: ModuleType) -> None:
        for name in ("add_scalar", "add_scalars", "add_histogram", "add_image", "add_images", "add_figure", "flush"):
            if hasattr(module.SummaryWriter, name):
                undo.replace(module.SummaryWriter, name, nothing)

    on_import("torch.utils.tensorboard.writer", tensorboard)
    on_import("wandb", lambda module: undo.replace(module, "log", nothing) and None)
    applied()
