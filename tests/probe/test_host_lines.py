"""Lines of dear calls, what the script keeps, and tools of the interpreter, in real small trainings."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from hotlap.diagnose.stacks import user_where
from hotlap.records.timeline import Timeline
from hotlap.trial.collect import annotate

pytestmark = pytest.mark.flaky(reruns=2)
# Shares of the time of a real training: on a shared machine one of three runs may tell.

LOOP = """
model, lossf = net(), nn.CrossEntropyLoss()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(8, 4), torch.randint(0, 2, (8,))
def step():
    loss = lossf(model(x), y)
    opt.zero_grad(); loss.backward(); opt.step()
    return loss
"""


def settings(timeline: Any, name: str) -> list[Any]:
    return [row for row in timeline.setting if row.name == name]


def test_collections_by_hand_and_by_themselves(watched: Any) -> None:
    timeline, out = watched(
        LOOP
        + """
import gc, inspect
class Node:
    def __init__(self): self.me = self
def churn():
    return [Node() for _ in range(500_000)]
step()
churn()
for i in range(12):
    step()
    gc.collect()
gc.collect(0)
print(gc.collect(generation=1) >= 0, str(inspect.signature(gc.collect)))
try:
    gc.collect(7)
except ValueError as err:
    print(err)
"""
    )
    assert out.splitlines() == ["True (generation=2)", "invalid generation"]
    calls: Counter[int] = Counter()
    spent: Counter[int] = Counter()
    for site in timeline.site:
        if (site.kind, site.op) == ("gc", "collect"):
            calls[site.frame] += site.n
            spent[site.frame] += site.w
    assert sorted(calls.values()) == [1, 1, 1, 12]
    assert spent[calls.most_common(1)[0][0]] > 12 * 100_000, "twelve full collections of a process with torch in it"
    full = [site for site in timeline.site if (site.kind, site.op) == ("gc", "full")]
    assert full, "half a million new objects make Python collect by itself"
    assert {timeline.frame[site.frame].func for site in full} <= {"churn", "__init__", "<listcomp>"}
    collector = settings(timeline, "collector")[0].value
    assert collector["enabled"] and collector["frozen"] == 0


def test_what_is_kept(watched: Any) -> None:
    timeline, out = watched(
        LOOP
        + """
import weakref
class Trainer:
    def __init__(self): self.history = []; self.values = []
    def fit(self):
        total = 0.0
        clean = 0.0
        for i in range(30):
            loss = step()
            big = torch.zeros(1000)
            alive.append(weakref.ref(big))
            total += loss
            clean += loss.detach()
            self.history.append((i, loss))
            self.values.append(loss.item())
            kept_names.update(locals_of())
alive, kept_names = [], set()
def locals_of():
    return ()
Trainer().fit()
print(sum(ref() is not None for ref in alive))
def hides():
    held = locals()
    keep = []
    for i in range(8):
        keep.append(step())
    return sorted(held)
print(hides())
"""
    )
    assert out.splitlines() == ["0", "[]"], "nothing is held after the frame, and locals() is the script's own"
    rows = settings(annotate(timeline), "retained")
    lengths: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        for name, kind, length in row.value["found"]:
            lengths.setdefault((name, kind), []).append(length)
    assert lengths[("total", "sum")][-2:] == [6, 20] and lengths[("self.history", "graph")][-2:] == [6, 20]
    assert {name for name, _ in lengths} == {"total", "self.history"}
    at = {
        key.rpartition(":")[2]: timeline.source[f"{key.rpartition(':')[0]}:{line}"]
        for key, line in timeline.kept.items()
    }
    assert at == {"total": "total += loss", "self.history": "self.history.append((i, loss))"}


def test_a_look_holds_no_tensor_of_the_step(watched: Any) -> None:
    _, out = watched(
        LOOP
        + """
import weakref
def main():
    gone = []
    for i in range(24):
        big = torch.zeros(10)
        ref = weakref.ref(big)
        step()
        del big
        gone.append(ref() is None)
    return all(gone)
print(main())
"""
    )
    assert out.split() == ["True"]


def text_at(timeline: Timeline, frame: int | None) -> str | None:
    where = user_where(annotate(timeline), frame_id=frame)
    return where.text if where else None


def test_tools_of_the_interpreter(watched: Any) -> None:
    timeline, _ = watched(
        "import tracemalloc\n"
        + LOOP
        + """
tracemalloc.start()
for i in range(10):
    step()
tracemalloc.stop()
"""
    )
    row = settings(timeline, "tracing")[0]
    assert row.value["tracemalloc"] and not row.value["profile"]
    assert timeline.frame[row.frame].func == "<module>"


def test_a_profile_object(watched: Any) -> None:
    profiled, _ = watched(
        LOOP
        + """
import cProfile
profile = cProfile.Profile()
profile.enable()
for i in range(10):
    step()
profile.disable()
"""
    )
    row = settings(profiled, "tracing")[0]
    assert row.value["profile"] == "cProfile.Profile" or "cProfile" in row.value["monitoring"]
    assert text_at(profiled, row.frame) == "profile = cProfile.Profile()"


def test_anomaly_detection_around_the_backward_alone(watched: Any) -> None:
    timeline, _ = watched(
        LOOP
        + """
def checked():
    with torch.autograd.detect_anomaly(check_nan=False):
        step()
for i in range(10):
    checked()
"""
    )
    told = [row for row in settings(timeline, "debug") if row.value["anomaly"]]
    assert told and (text_at(timeline, told[0].frame) or "").startswith("with torch.autograd.detect_anomaly")


def test_the_line_of_torchs_profiler(watched: Any) -> None:
    profiled, _ = watched(
        LOOP
        + """
from torch.profiler import profile
with profile(with_stack=True, schedule=torch.profiler.schedule(wait=0, warmup=1, active=8)) as found:
    for i in range(30):
        step()
        found.step()
"""
    )
    row = settings(profiled, "tracing")[0]
    assert row.value["profile"] == "torch.profiler with_stack"
    assert (text_at(profiled, row.frame) or "").startswith("with profile(with_stack=True")
    debug = next(row for row in settings(profiled, "debug") if row.value["profiler"])
    assert debug.frame == row.frame


def test_a_profiler_that_rests_whenever_it_is_looked_at(watched: Any) -> None:
    profiled, _ = watched(
        LOOP
        + """
from torch.profiler import profile, schedule
def save(found):
    found.key_averages().table()
with profile(schedule=schedule(wait=8, warmup=2, active=4), on_trace_ready=save) as found:
    for i in range(30):
        step()
        found.step()
"""
    )
    debug = settings(profiled, "debug")
    assert debug[0].value["profiler"] is False and debug[0].value["profiler_frac"] == 0.0
    told = next(row for row in debug if row.value["profiler"])
    assert told.value["profiler_frac"] == pytest.approx(4 / 14, abs=0.001)
    assert (text_at(profiled, told.frame) or "").startswith("with profile(schedule=")


def test_the_line_that_set_the_threads(watched: Any) -> None:
    timeline, out = watched(
        """
import pickle
def setup(threads):
    torch.set_num_threads(threads)
setup(3)
print(pickle.loads(pickle.dumps(torch.set_num_threads)) is torch.set_num_threads, torch.get_num_threads())
try:
    torch.set_num_threads("many")
except RuntimeError as error:
    print(error.__traceback__.tb_next)
"""
        + LOOP
        + "for i in range(10): step()\n"
    )
    assert out.splitlines() == ["True 3", "None"], "it goes on as torch's own function"
    row = settings(timeline, "threads")[-1]
    assert row.value["torch"] == 3 and text_at(timeline, row.frame) == "torch.set_num_threads(threads)"


def test_the_line_that_made_each_optimizer(watched: Any) -> None:
    timeline, out = watched(
        """
import copy, inspect
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)
    def optimizer(self):
        return torch.optim.AdamW(
            self.layer.parameters(),
            lr=0.1,
        )
class Own(torch.optim.SGD):
    pass
print(inspect.signature(torch.optim.Optimizer.__init__))
try:
    torch.optim.SGD([], lr=0.1)
except ValueError as error:
    print(error, error.__traceback__.tb_next.tb_frame.f_code.co_name, error.__traceback__.tb_next.tb_next.tb_next)
net = Net()
first = net.optimizer()
second = Own(net.parameters(), lr=0.1)
copied = copy.deepcopy(second)
copied.param_groups[0]["params"] = list(net.parameters())
for i in range(10):
    for each in first, second, copied:
        each.zero_grad(); net.layer(torch.randn(8, 4)).sum().backward(); each.step()
"""
    )
    signature, refused = out.splitlines()
    assert signature.startswith("(self, params:") and refused == "optimizer got an empty parameter list __init__ None"
    rows = settings(timeline, "optimizer")
    lines = [text_at(timeline, row.frame) for row in rows]
    assert lines == ["return torch.optim.AdamW(", "second = Own(net.parameters(), lr=0.1)", None]


def test_no_tool(watched: Any) -> None:
    quiet, _ = watched(LOOP + "for i in range(10): step()\n")
    assert not settings(quiet, "tracing")
