"""The optional kernel: compiled once, never waited for, and never needed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")

RUN = """
from hotlap.pack import kernel
print(kernel.ready(), kernel.state())
print(kernel.ready(wait=True), kernel.state())
"""


SLOWLY = """
import shutil, time
remove = shutil.rmtree
shutil.rmtree = lambda *given, **more: time.sleep(1) or remove(*given, **more)
from hotlap.pack import kernel
kernel.ready()
time.sleep(0.5)
print(kernel.ready(wait=True), kernel.state())
"""


def run(home: Path, script: str = RUN, **env: str) -> list[str]:
    found = {"XDG_CACHE_HOME": str(home), "PYTHONPATH": ":".join(p for p in sys.path if p), **env}
    done = subprocess.run(
        [sys.executable, "-c", script], env=found, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout.splitlines()


@needs_compiler
def test_compiled_once_beside_the_training(tmp_path: Path) -> None:
    path = str(Path(shutil.which("cc") or "").parent) + ":/usr/bin"
    assert run(tmp_path, PATH=path) == ["False compiling", "True ready"]
    assert run(tmp_path, PATH=path) == ["True ready", "True ready"], "the second process finds it"
    assert [p.suffix for p in (tmp_path / "hotlap").iterdir()] == [".so"]


def test_without_a_compiler_or_switched_off(tmp_path: Path) -> None:
    assert run(tmp_path, PATH=str(tmp_path))[1] == "False no C compiler"
    assert run(tmp_path, PATH=str(tmp_path), HOTLAP_FUSED="0")[1] == "False switched off (HOTLAP_FUSED=0)"
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\necho 'no such flag' >&2\nexit 1\n")
    broken.chmod(0o755)
    assert run(tmp_path, SLOWLY, PATH=str(tmp_path))[0] == f"False {broken} failed: no such flag"
    (tmp_path / "hotlap").rmdir()
    (tmp_path / "hotlap").write_text("a file where the folder should be")
    assert "cannot be compiled" in run(tmp_path, PATH=str(tmp_path))[1]
