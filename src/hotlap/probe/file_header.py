"""The first row of a timeline's file: whose it is."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import hotlap
from hotlap.records.rows import SCHEMA, Header

__all__ = ["header"]


def header(torch: Any, role: str, worker_id: int | None) -> Header:
    """The header of this process' file; ``role`` is ``train`` or ``worker``."""
    rank, world = _ranks(torch)
    device = torch.cuda.get_device_name() if role == "train" and torch.cuda.is_initialized() else "cpu"
    return Header(
        schema=SCHEMA,
        hotlap=hotlap.__version__,
        role=role,
        pid=os.getpid(),
        ppid=os.getppid(),
        rank=rank,
        world=world,
        argv=[str(a) for a in getattr(sys, "argv", [])],
        cwd=_cwd(),
        python=sys.version.split()[0],
        torch=str(torch.__version__),
        device=device,
        t=time.monotonic_ns(),
        unix_s=time.time(),
        worker=worker_id,
    )


def _ranks(torch: Any) -> tuple[int, int]:
    """Rank and world: the process group's (spawned ranks have no variables), else the launcher's."""
    group = torch.distributed
    if group.is_available() and group.is_initialized():
        return int(group.get_rank()), int(group.get_world_size())
    return _number("RANK", 0), _number("WORLD_SIZE", 1)


def _number(name: str, default: int) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isdigit() else default


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return ""
