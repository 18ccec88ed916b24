"""The residual, shared out by stacks: waiting for an iterator, logging, saving, and the script's own work."""

from __future__ import annotations

from hotlap.diagnose.kinds import is_checkpoint, is_logging, is_next, is_torch
from hotlap.diagnose.stacks import Sampled, StackBook
from hotlap.diagnose.view import View

__all__ = ["residual_kind", "residual_seconds"]


def residual_kind(book: StackBook, sample: Sampled, has_loader: bool) -> str:
    """``checkpoint``, ``logging``, ``iterator``, ``compute`` or ``work``; exactly one for each sample."""
    if is_checkpoint(book, sample):
        return "checkpoint"
    if is_logging(book, sample):
        return "logging"
    if is_next(book, sample) and not has_loader:
        return "iterator"
    return "compute" if is_torch(book, sample) else "work"


def residual_seconds(view: View, kind: str) -> tuple[float, StackBook]:
    """Seconds per step of that part of the residual, and its samples. Without any sample all of it is work."""
    book = view.stacks.phase("residual")
    total = book.total()
    residual_s = view.seconds("residual")
    if not total:
        return (residual_s if kind == "work" else 0.0), book
    has_loader = view.loader is not None
    part = book.where(lambda sample: residual_kind(book, sample, has_loader) == kind)
    return residual_s * part.total() / total, part
