"""Short steps: most are measured in brief, and their rows say what they do not know."""

from __future__ import annotations

from typing import Any

import pytest

from hotlap.diagnose.over_time import over_time
from hotlap.diagnose.periodic import epoch_starts
from hotlap.diagnose.phases import mean_s, measured_steps
from hotlap.records.rows import PHASES, Step

pytestmark = pytest.mark.flaky(reruns=2)
# Shares of the time of a real training: on a shared machine one of three runs may tell.

LOOP = """
import time
model, lossf = net(), nn.CrossEntropyLoss()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
train, val = loader(800), loader(16)
PRINT = 0
def evaluate():
    model.eval()
    with torch.no_grad():
        for x, y in val: model(x); time.sleep(0.002)
    model.train()
step = 0
for epoch in range(6):
    for x, y in train:
        opt.zero_grad(); loss = lossf(model(x), y); loss.backward(); opt.step(); step += 1
        if PRINT and step % PRINT == 0: print(loss.item())
        if step % 130 == 0: torch.save(model.state_dict(), "m.pt")
    if epoch % 2: evaluate()
"""


def measured(row: Step, phase: str) -> bool:
    return row.p[PHASES.index(phase)] is not None


def test_most_short_steps_are_in_brief_and_nothing_rare_is_missed(watched: Any) -> None:
    timeline, _ = watched(LOOP)
    rows = timeline.step
    assert [row.i for row in rows] == [sum(r.n for r in rows[:k]) for k in range(len(rows))]
    assert timeline.n_steps == 600 and sum(r.s for r in rows) == 4800 and sum(r.m for r in rows) == 600
    brief = [row for row in rows if not measured(row, "forward")]
    assert all(row.n == 1 for row in rows[:101]) and not set(map(id, brief)) & set(map(id, rows[:101]))
    assert sum(row.n for row in brief) > 300
    assert len([row for row in rows[101:] if measured(row, "forward")]) > 5
    for row in rows:
        known = sum(v or 0 for v in row.p)
        assert known <= row.w and row.w >= row.mx >= row.w // row.n
        if measured(row, "forward"):
            assert known == row.w and row.n == 1 and row.l
        else:
            assert not any(measured(row, p) for p in ("backward", "optimizer", "zero_grad", "residual"))
            assert all(measured(row, p) for p in ("data_wait", "validation", "checkpoint", "gc"))
            assert row.n == 1 or not (row.lo_n or row.p[PHASES.index("validation")])
    kinds = [event.kind for event in timeline.event]
    assert (kinds.count("validation"), kinds.count("checkpoint"), kinds.count("loader_start")) == (3, 4, 6)
    assert [e.i for e in timeline.event if e.kind == "loader_start"] == list(range(0, 600, 100))
    assert [e.i for e in timeline.event if e.kind == "checkpoint"] == [130, 260, 390, 520]
    assert sum(row.lo_n for row in rows) == 6
    assert epoch_starts(rows, None).every == 100
    assert mean_s(rows, "validation", list(PHASES)) * 600 >= 2 * 2 * 0.002  # the last one comes after the last step


def test_rare_prints_are_timed_in_every_step(watched: Any) -> None:
    rare, _ = watched(LOOP.replace("PRINT = 0", "PRINT = 60"))
    assert all(measured(row, "logging") and measured(row, "sync") for row in rare.step)
    assert sum(site.n for site in rare.site if site.kind == "logging") == 10


def test_frequent_prints_are_timed_in_full_steps_only(watched: Any) -> None:
    often, _ = watched(LOOP.replace("PRINT = 0", "PRINT = 1"))
    assert [r for r in often.step if measured(r, "logging") and not measured(r, "forward")] == []
    steps = measured_steps(often.step, "logging", list(PHASES))
    assert 101 < steps < 500
    assert sum(site.n for site in often.site if site.kind == "logging") in (
        steps - 1,
        steps,
    )  # a print after the last step


def test_the_sum_over_time_leaves_out_steps_that_were_not_measured() -> None:
    full = Step(0, 1, 0, 100, [10, None, 50, 30, 5, 5, 0, 0, 0, 0, 0, 0], 8, 1)
    brief = Step(1, 9, 100, 900, [90, None, *[None] * 4, 0, 0, 0, 0, 0, None], 72, 9)
    (point,) = over_time([full, brief], list(PHASES), 1)
    assert point["phases"]["forward"] == 50 / 1e9 and point["phases"]["data_wait"] == 10 / 1e9


def test_a_validation_begun_inside_a_forward_is_none(watched: Any) -> None:
    timeline, _ = watched("""
    class Frozen(nn.Module):
        def __init__(self): super().__init__(); self.inner = net(); self.norm = nn.BatchNorm1d(4)
        def forward(self, x):
            self.norm.eval()
            return self.inner(self.norm(x))
    model = Frozen(); opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for x, y in loader(2400):
            opt.zero_grad(); model(x).sum().backward(); opt.step()
    """)
    assert timeline.n_steps == 600 and not [e for e in timeline.event if e.kind == "validation"]
    assert any(row.n > 1 for row in timeline.step)


def test_stacks_of_steps_in_brief_are_told_by_phase(watched: Any) -> None:
    timeline, _ = watched("""
    class Slow(nn.Module):
        def __init__(self): super().__init__(); self.inner = net()
        def forward(self, x):
            for k in range(12000): pass
            return self.inner(x)
    model = Slow(); opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader(16000):
        opt.zero_grad(); model(x).sum().backward(); opt.step()
    """)
    names = {k: [timeline.frame[f].func for f in stack.f] for k, stack in timeline.stack.items()}
    inside = [(phase, n) for row in timeline.hits for k, phase, n in row.h if names[k][-1:] == ["forward"]]
    assert sum(n for _, n in inside) > 5 and {phase for phase, _ in inside} == {PHASES.index("forward")}
    assert sum(row.n for row in timeline.step if row.n > 1) > 1000


def test_trials_measure_every_step_in_full(watched: Any) -> None:
    _, out = watched("""
    undo.undo_all(); watch.close()
    watch = install(Call(timeline_dir=sys.argv[1] + "/trial", mode="trial", flush_s=0.1), points, undo, on_import)
    model = net(); opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader(2400):
        opt.zero_grad(); model(x).sum().backward(); opt.step()
    watch.close()
    from pathlib import Path
    from hotlap.records.timeline import training_timeline
    print([sum(r.n > 1 for r in training_timeline(Path(sys.argv[1]) / "trial").step)])
    """)
    assert out.strip() == "[0]"
