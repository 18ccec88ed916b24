"""Looking at the machine while a script runs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hotlap.guard.look_around import Surroundings, looking_around
from hotlap.trial.shut_out import ShutOut


class Asked(ShutOut):
    """Counts how often it is asked."""

    def __init__(self) -> None:
        super().__init__(Path("entrance"), Path("timelines"))
        self.asked = 0

    def look(self, root: int) -> list[str]:
        self.asked += 1
        return []


@pytest.mark.skipif(not os.path.exists("/proc/stat"), reason="no /proc")
def test_what_others_take_is_seen_from_the_start_of_the_script_on() -> None:
    shut_out = Asked()
    with looking_around(shut_out, 0.02) as (started, seen):
        time.sleep(0.1)
        assert seen == [], "nothing has been started"
        started(os.getpid())
        until = time.monotonic() + 10.0
        while len(seen) < 8 and time.monotonic() < until:
            time.sleep(0.02)
    assert 4 <= shut_out.asked < len(seen), "ever more seldom"
    assert len(seen) >= 2 and all(look.others_cores is not None and look.others_cores >= 0.0 for look in seen)
    before = len(seen)
    time.sleep(0.1)
    assert len(seen) == before, "it has ended"


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="this kernel does not count waiting for a core")
def test_what_the_training_thread_waits_for_a_core_is_seen_of_the_process_that_trains() -> None:
    """Two processes that want the one core that both may use: each waits for half of the time."""
    core = min(os.sched_getaffinity(0))
    pinned = f"import os; os.sched_setaffinity(0, [{core}])\nwhile True: pass"
    around = Surroundings(os.getpid())
    one = subprocess.Popen([sys.executable, "-c", pinned])
    try:
        around.look(one.pid)
        time.sleep(0.5)
        assert (alone := around.look(one.pid)) is not None and alone.waited_frac is None, "counted from here on"
        with subprocess.Popen([sys.executable, "-c", pinned]) as two:
            try:
                time.sleep(2.0)
                seen = around.look(one.pid)
            finally:
                two.kill()
        assert seen is not None and seen.waited_frac is not None and seen.waited_frac > 0.2
        assert (other := around.look(os.getpid())) is not None and other.waited_frac is None, "another process' count"
        assert (unknown := around.look()) is not None and unknown.waited_frac is None
    finally:
        one.kill()
        one.wait()


def test_a_process_that_is_gone_takes_no_cores() -> None:
    with looking_around(Asked(), 0.01) as (started, seen):
        started(2**22 + 1)
        until = time.monotonic() + 10.0
        while len(seen) < 2 and time.monotonic() < until:
            time.sleep(0.02)
    assert len(seen) >= 2, "the looks go on"
