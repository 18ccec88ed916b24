"""Hotlap: find what makes a PyTorch training slow, take it away by measurement, prove it.

The package imports nothing heavy: it is loaded into the user's own process.
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"
__all__ = ["__version__", "attach", "load_ipython_extension"]


def attach(plan: str) -> None:
    """Apply a plan file to this process (one line at the top of a training script).

    ``plan`` is the path of a plan written by ``hotlap speedup``. Raises
    :class:`hotlap.records.errors.HotlapError` when the plan cannot be read or this machine cannot do it.
    """
    from hotlap.attach_plan import attach_plan

    attach_plan(plan)


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext hotlap`` in a notebook: gives it ``%%hotlap diagnose``."""
    from hotlap.cli.notebook.magic import register

    register(shell)
