"""Two gloo ranks: the same weights on both, one writer, exact resume, skips that all ranks agree on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from toy import losses

HERE = Path(__file__).parent


def two_ranks(out: Path, max_steps: int = 0, bad_row: int = -1) -> str:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*torchrun, str(HERE / "ddp_toy.py"), str(out), str(max_steps), str(bad_row)]
    source = HERE.parents[1] / "src"
    environment = {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{HERE}", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_two_ranks(tmp_path: Path) -> None:
    assert "skipped 2 samples 96" in two_ranks(tmp_path / "whole", bad_row=5)
    whole = losses(tmp_path / "whole")
    assert len(whole) >= 4
    two_ranks(tmp_path / "parts", max_steps=2, bad_row=5)
    two_ranks(tmp_path / "parts", bad_row=5)
    assert losses(tmp_path / "parts") == whole
