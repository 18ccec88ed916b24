"""Starts two ranks as torchrun does, without the process that watches over them, which is as slow as a rank."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

__all__ = ["on_two_ranks"]

HERE = Path(__file__).parent


def on_two_ranks(script: str, *arguments: str) -> str:
    """What both print, of a script of this folder. Raises AssertionError where one of them fails."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    source = HERE.parents[1] / "src"
    common = {"PYTHONPATH": f"{source}{os.pathsep}{HERE}", "OMP_NUM_THREADS": "1", "WORLD_SIZE": "2",
              "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}  # fmt: skip
    command = [sys.executable, str(HERE / script), *arguments]
    ranks = [
        subprocess.Popen(command, env={**os.environ, **common, "RANK": str(k), "LOCAL_RANK": str(k)}, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for k in range(2)
    ]  # fmt: skip
    said = [rank.communicate(timeout=120)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], said
    return "".join(said)
