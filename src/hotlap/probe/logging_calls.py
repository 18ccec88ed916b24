"""Logging: prints, loggers, trackers, progress bars and forced writes on the training thread."""

from __future__ import annotations

import builtins
import functools
import logging
import os
from collections.abc import Callable
from typing import Any

from hotlap.probe.c_functions import as_unbound
from hotlap.probe.context import Context
from hotlap.probe.recorder import LOGGING
from hotlap.probe.sites import Sites, counted

__all__ = ["install"]

_BY_IMPORT: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("torch.utils.tensorboard.writer", "SummaryWriter", ("add_*", "flush")),
    ("tensorboardX.writer", "SummaryWriter", ("add_*", "flush")),
    ("wandb.sdk.wandb_run", "Run", ("log",)),
    (
        "mlflow.tracking.fluent",
        "",
        ("log_metric", "log_metrics", "log_param", "log_params", "log_artifact", "log_figure"),
    ),
    ("matplotlib.figure", "Figure", ("savefig",)),
    ("tqdm.std", "tqdm", ("refresh",)),
)
"""Module, class ("" for functions of the module), names."""


def install(ctx: Context, sites: Sites) -> None:
    """Replace what writes logs; each call's time and line are counted."""
    undo = ctx.undo
    undo.replace(builtins, "print", _watched(ctx, sites, builtins.print, "print"))
    undo.replace(logging.Logger, "callHandlers", _watched(ctx, sites, logging.Logger.callHandlers, "logger"))
    undo.replace(os, "fsync", _watched(ctx, sites, os.fsync, "fsync"))
    for module, owner, names in _BY_IMPORT:
        ctx.on_import(module, functools.partial(_on_import, ctx, sites, owner, names))


def _on_import(ctx: Context, sites: Sites, owner: str, names: tuple[str, ...], module: Any) -> None:
    holder = getattr(module, owner, None) if owner else module
    if holder is None:
        ctx.note("logging", f"{module.__name__} has no {owner}: its time shows as residual.")
        return
    for name in names:
        found = [n for n in vars(holder) if n.startswith(name[:-1])] if name.endswith("*") else [name]
        for each in found:
            if callable(getattr(holder, each, None)):
                label = f"{owner or module.__name__.partition('.')[0]}.{each}"
                ctx.undo.replace(holder, each, _watched(ctx, sites, getattr(holder, each), label))


def _watched(ctx: Context, sites: Sites, original: Callable[..., Any], op: str) -> Callable[..., Any]:
    compiling = ctx.torch.compiler.is_dynamo_compiling
    return as_unbound(original, counted(ctx.rec, sites, original, "logging", op, LOGGING, compiling))
