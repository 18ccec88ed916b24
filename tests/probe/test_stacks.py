"""The sampler of stacks: no faster than it may cost."""

from __future__ import annotations

from typing import Any

import pytest

from hotlap.probe.sites import Pace

LOOP = """
import time
if SLOW:
    from hotlap.probe.frames import FrameTable
    whole = FrameTable.stack
    def stack(self, frame):
        time.sleep(0.002)
        return whole(self, frame)
    FrameTable.stack = stack
model = net(); opt = torch.optim.SGD(model.parameters(), lr=0.1)
end = time.perf_counter() + 3
while time.perf_counter() < end:
    opt.zero_grad(); model(torch.randn(8, 4)).sum().backward(); opt.step()
"""


@pytest.mark.flaky(reruns=2)  # counts samples of processor time
def test_samples_that_cost_much_become_rare_and_stand_for_more(watched: Any) -> None:
    timeline, _ = watched(LOOP.replace("SLOW", "True"))
    periods = [row.every_ns for row in timeline.hits]
    assert periods[0] == 20_000_000 and max(periods) > 200_000_000, "2 ms a sample: 50 at first, then few"
    taken = sum(n for row in timeline.hits for _, _, n in row.h)
    assert 50 <= taken < 120


def test_samples_go_on(watched: Any) -> None:
    timeline, _ = watched(LOOP.replace("SLOW", "False"))
    assert sum(n for row in timeline.hits for _, _, n in row.h) > 60
    assert timeline.hits[0].every_ns == 20_000_000


@pytest.mark.parametrize(("handler", "least", "most"), [("signal.SIG_DFL", 60, 1000), ("print", 0, 40)])
def test_who_puts_the_default_handler_back_takes_nothing(watched: Any, handler: str, least: int, most: int) -> None:
    once = "if not seen and time.perf_counter() > end - 2.5: seen.append(signal.signal(signal.SIGALRM, HANDLER))"
    loop = LOOP.replace("SLOW", "False").replace("    opt.z", f"    {once}\n    opt.z").replace("HANDLER", handler)
    timeline, _ = watched("import signal\nseen = []\n" + loop)
    assert least <= sum(n for row in timeline.hits for _, _, n in row.h) <= most, "of 150 in three seconds"


def test_rows_stay_fresh_where_a_guard_asks_for_it() -> None:
    for most_s, wait_s in ((0.0, 720), (15.0, 15)):
        pace, hour = Pace(1.0, 0.02, most_s), 3600 * 10**9
        assert not pace.due(1) and pace.due(10 * hour)
        assert not pace.due(10 * hour + (wait_s - 1) * 10**9)
        assert pace.due(10 * hour + round(wait_s * 1.03) * 10**9)
