"""What a lever is, and what it may touch.

A lever is a module under ``hotlap/lever/catalog/`` with the names of :class:`Lever`. Its docstring has five headings:
``Evidence:``, ``Gain:``, ``Runtime:``, ``Source:``, ``Risk:``; its documentation page is made from them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer
    from torch.utils.data import DataLoader

__all__ = ["Gain", "Lever", "Refusal", "Setting", "Target"]

Setting = dict[str, Any]
"""A lever's parameters, JSON values only, so that they can stand in a plan."""


@dataclass(frozen=True)
class Refusal:
    """Why this lever cannot be used here, in one sentence for the user."""

    reason: str


@dataclass(frozen=True)
class Gain:
    """Predicted saving, seconds per step, as an interval, with its basis: ``measured``, ``modelled`` or ``prior``."""

    low_s: float
    high_s: float
    basis: str
    startup_s: float = 0.0
    """Cost paid once per start (compilation)."""


class Target(Protocol):
    """The user's process as a lever may touch it: every change goes through here, is counted and can be undone.

    Callbacks run on the training thread at the script's own call. An exception in one undoes the lever and is
    reported as ``failed``; the script goes on as if the lever were not there.
    """

    cores: int
    """Cores this training may use."""
    scratch: str
    """Folder for the lever's own files, on fast storage; removed after the run."""
    scratches: int
    """How many such folders this machine's processes of the training have: 1, or one for each rank. Memory that a
    setting allows to whoever shares a folder is divided by it."""

    def replace(self, owner: object, name: str, new: object) -> None:
        """Set an attribute (a guarded one in ``__dict__``); restored on undo. Counts one change."""

    def on_import(self, module: str, callback: Callable[[ModuleType], None]) -> None:
        """Call back when ``module`` has been imported (now, if it is), before the importer sees it."""

    def on_loader(self, callback: Callable[[DataLoader[Any]], None]) -> None:
        """Call back once for each training DataLoader, just before it is iterated for the first time."""

    def wrap_iterator(self, wrapper: Callable[[DataLoader[Any], Any], Any]) -> None:
        """Let ``wrapper(loader, iterator)`` return the iterator that the script gets, at each epoch of a training
        loader."""

    def on_model(self, callback: Callable[[nn.Module], None]) -> None:
        """Call back once for each root module being trained, just before its first training forward."""

    def on_frozen(self, callback: Callable[[nn.Module], None]) -> None:
        """Call back once for each outermost module with parameters of which none requires a gradient (a teacher), just
        before a call of it outside validations; one that a trained root calls and does not have as a part, just after
        its first call. A frozen part of a trained root is not told: look for it in :meth:`on_model`."""

    def around_forward(
        self, wrapper: Callable[[nn.Module, Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]
    ) -> None:
        """Run ``wrapper(module, call, args, kwargs)`` in place of each outermost forward of a trained root (also in
        validation: look at ``module.training``)."""

    def on_optimizer(self, callback: Callable[[Optimizer], None]) -> None:
        """Call back once for each optimizer, just before its first step."""

    def around_backward(self, wrapper: Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]) -> None:
        """Run ``wrapper(backward, args, kwargs)`` in place of each ``torch.autograd.backward``."""

    def around_step(
        self, wrapper: Callable[[Optimizer, Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]
    ) -> None:
        """Run ``wrapper(optimizer, step, args, kwargs)`` in place of each optimizer step."""

    def around_save(self, wrapper: Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]) -> None:
        """Run ``wrapper(save, args, kwargs)`` in place of each ``torch.save``."""

    def on_validation(self, begin: Callable[[], None], end: Callable[[], None]) -> None:
        """Call back when a validation begins and when it has ended."""

    def at_exit(self, callback: Callable[[], None]) -> None:
        """Call back when the script has ended, before the interpreter goes (flush what is still being written)."""

    def changed(self, count: int = 1) -> None:
        """Count changes that did not go through :meth:`replace` (a wrapped forward, a cached sample)."""

    def fail(self, error: BaseException) -> None:
        """Undo the lever and report it as failed: for what is not a callback (an iterator that the loop holds)."""

    def unfit(self, why: str) -> None:
        """Say, in one sentence, why there was nothing to change: shown where the lever ends as *no effect*."""


class Lever(Protocol):
    """The names a lever module must have (checked by :mod:`hotlap.testing.lever_kit`)."""

    __doc__: str | None
    ID: str
    TREATS: Sequence[str]
    """Cause ids, from :data:`hotlap.records.findings.CAUSES`."""
    PRESERVES: str
    """``bits``, ``maths``, ``distribution`` or ``goal``."""
    CONFLICTS: Sequence[str]
    """Ids of levers that cannot be on together with this one."""
    NUMERIC: bool
    """True: changes how the resident-batch step computes, so it belongs to the roof.

    Where it holds, a lever also says ``PROCESS_WIDE = True`` (it finds something to change in any process),
    ``DEVICE = "cuda"`` (it is for accelerators alone), ``IDLE_ON_CPU = True`` (without one it changes nothing),
    ``RANKS = True`` (it changes something in trainings of several ranks alone), ``AT_LAUNCH = True`` (its environment
    does everything; ``apply`` only looks whether it took hold), ``ADVICE = True`` (a person has to do it: ``settings``
    always refuses, with what to do and where; a plan may hold it, for the sake of its edits), ``SHARED_CACHE = "NAME"``
    (the environment variable of a folder whose contents serve any process: all trials of a lap share one),
    ``RULES = {…}`` (what each key of its setting may hold, as :func:`hotlap.lever.checks.check_setting` takes it;
    without it a setting has no keys).
    """

    def evidence(self, findings: Findings) -> Finding | None:
        """The finding that speaks for this lever, or None: nothing here to treat."""

    def settings(self, finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
        """Values worth trying, best first, or why not."""

    def gain(self, finding: Finding, findings: Findings, setting: Setting) -> Gain:
        """What the setting would save."""

    def check(self, setting: Setting, machine: Machine) -> str | None:
        """Why a (hand-edited) setting is invalid or impossible on this machine, or None."""

    def environment(self, setting: Setting) -> dict[str, str]:
        """Environment variables that must be set before the process starts (often none)."""

    def apply(self, target: Target, setting: Setting) -> None:
        """Register the change with the target. Called before the script's first line."""

    def edits(self, finding: Finding, setting: Setting) -> list[Edit]:
        """The same change as source edits."""
