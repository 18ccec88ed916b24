"""Processes that Hotlap did not come into are named, with the reason and what to write instead."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hotlap.trial.shut_out import ShutOut, _keeps_out

pytestmark = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="no /proc")
ENTRANCE = Path("/opt/hotlap/inject/bootstrap")
LIKE_TORCH = """\
import mmap, os, sys, time
library = mmap.mmap(os.open(sys.argv[1], os.O_RDONLY), 0, access=mmap.ACCESS_READ)
if os.environ.get("WORKER"):
    os.fork()
print("ready", flush=True)
time.sleep(60)
"""
"""What maps a file called so looks like a process that has imported torch, and starts at once."""


@contextmanager
def training(folder: Path, *options: str, library: str = "libtorch_cpu.so", **env: str) -> Iterator[int]:
    """A running script of that name; yields its process id."""
    (folder / library).write_bytes(b"x" * 100)
    (folder / "train.py").write_text(LIKE_TORCH)
    words = [sys.executable, *options, "train.py", str(folder / library)]
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, env=env, process_group=0) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        try:
            yield process.pid
        finally:
            os.killpg(process.pid, 9)


def look(folder: Path, pid: int) -> list[str]:
    return ShutOut(ENTRANCE, folder).look(pid)


def test_a_replaced_pythonpath_is_told_with_what_to_write(tmp_path: Path) -> None:
    with training(tmp_path, HOTLAP_CALL="call.json", PYTHONPATH="src") as pid:
        watch = ShutOut(ENTRANCE, tmp_path)
        (told,) = watch.look(pid)
        assert watch.look(pid) == [], "once"
    name = f"`{Path(sys.executable).name} train.py"
    assert told.startswith(name) and "PYTHONPATH=src;" in told
    assert told.endswith("write PYTHONPATH=src:$PYTHONPATH")
    assert (tmp_path / f"call.json.{pid}.error").read_text() == f"{told}\n"


def test_an_environment_of_its_own(tmp_path: Path) -> None:
    with training(tmp_path) as pid:
        (told,) = look(tmp_path, pid)
    assert "without HOTLAP_CALL and PYTHONPATH" in told


def test_an_option_that_keeps_out(tmp_path: Path) -> None:
    with training(tmp_path, "-uE", HOTLAP_CALL="call.json", PYTHONPATH=str(ENTRANCE)) as pid:
        (told,) = look(tmp_path, pid)
    assert told.endswith("reads no environment, by which Hotlap comes in: leave -E away")


def test_who_has_the_door_open_or_no_torch_is_nobodys_matter(tmp_path: Path) -> None:
    with training(tmp_path, HOTLAP_CALL="call.json", PYTHONPATH=f"src{os.pathsep}{ENTRANCE}") as pid:
        assert look(tmp_path, pid) == []
    with training(tmp_path, library="libc10.so", PYTHONPATH="src") as pid:
        assert look(tmp_path, pid) == []
    assert not list(tmp_path.glob("*.error"))


def test_a_worker_of_one_that_is_told_is_not_told_again(tmp_path: Path) -> None:
    with training(tmp_path, WORKER="1", HOTLAP_CALL="call.json", PYTHONPATH="src") as pid:
        time.sleep(0.2)
        assert len(look(tmp_path, pid)) == 1
    assert len(list(tmp_path.glob("*.error"))) == 1


def test_a_process_that_is_gone_is_no_error(tmp_path: Path) -> None:
    assert look(tmp_path, 2**22 + 1) == []


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ("train.py -E", None), ("-E train.py", "E"), ("-uI -m x", "I"), ("-m x -I", None), ("-c pass -S", None),
        ("-X dev -S x.py", "S"), ("-XE x.py", None), ("-W error x.py -E", None), ("- -E", None), ("-um x -E", None),
    ],
)  # fmt: skip
def test_options_are_read_as_python_reads_them(words: str, option: str | None) -> None:
    assert _keeps_out(words.split()) == option
