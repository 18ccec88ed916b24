"""A guest ends with Hotlap, and with no other process that has its number elsewhere."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hotlap.inject.host import CHECK_S, let_go, whereabouts

GUEST = """
import sys, time
from hotlap.inject import host
host.CHECK_S = 0.05
host.end_with(int(sys.argv[1]), sys.argv[2], sys.argv[3])
time.sleep(1.5)
print("went on")
"""


@pytest.mark.parametrize("here", [True, False], ids=["here", "on another node"])
def test_a_guest_ends_with_the_process_that_it_can_see(here: bool, tmp_path: Path) -> None:
    host = subprocess.Popen([sys.executable, "-c", "pass"])
    host.wait()  # gone, as after kill -9
    where = whereabouts() if here else f"{whereabouts()}, not"
    words = [sys.executable, "-c", GUEST, str(host.pid), where, str(tmp_path)]
    guest = subprocess.run(words, capture_output=True, text=True)
    ended = (-signal.SIGKILL, "") if here else (0, "went on\n")
    assert (guest.returncode, guest.stdout) == ended, guest.stderr


def test_a_guest_that_was_let_go_outlives_its_host(tmp_path: Path) -> None:
    host = subprocess.Popen([sys.executable, "-c", "pass"])
    host.wait()
    let_go(str(tmp_path))
    words = [sys.executable, "-c", GUEST, str(host.pid), whereabouts(), str(tmp_path)]
    guest = subprocess.run(words, capture_output=True, text=True)
    assert (guest.returncode, guest.stdout) == (0, "went on\n"), guest.stderr


def test_a_guest_goes_on_while_its_host_lives(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as host:
        words = [sys.executable, "-c", GUEST, str(host.pid), whereabouts(), str(tmp_path)]
        guest = subprocess.run(words, capture_output=True, text=True)
        host.terminate()
    assert (guest.returncode, guest.stdout) == (0, "went on\n")


def test_processes_of_one_machine_are_known_by_the_same_words() -> None:
    words = "from hotlap.inject.host import whereabouts; print(whereabouts())"
    other = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True).stdout
    assert other.strip() == whereabouts() and 0 < CHECK_S <= 5
