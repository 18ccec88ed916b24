"""Looking at the machine while a script runs."""

from __future__ import annotations

import os
import time

import pytest

from hotlap.guard.look_around import looking_around


@pytest.mark.skipif(not os.path.exists("/proc/stat"), reason="no /proc")
def test_what_others_take_is_seen_from_the_start_of_the_script_on() -> None:
    with looking_around(0.02) as (started, seen):
        time.sleep(0.1)
        assert seen == [], "nothing has been started"
        started(os.getpid())
        until = time.monotonic() + 10.0
        while len(seen) < 2 and time.monotonic() < until:
            time.sleep(0.02)
    assert len(seen) >= 2 and all(look.others_cores is not None and look.others_cores >= 0.0 for look in seen)
    before = len(seen)
    time.sleep(0.1)
    assert len(seen) == before, "it has ended"


def test_a_process_that_is_gone_takes_no_cores() -> None:
    with looking_around(0.01) as (started, seen):
        started(2**22 + 1)
        until = time.monotonic() + 10.0
        while len(seen) < 2 and time.monotonic() < until:
            time.sleep(0.02)
    assert len(seen) >= 2, "the looks go on"
