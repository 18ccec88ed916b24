"""The bench for a GPU, as far as a machine without one can try it: its budget, its parts' figures, its refusal."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from hotlap.records.rows import PHASES, Event, Step
from hotlap_workloads.catalogue import NAMES

GPU = Path(__file__).parents[2] / "bench" / "gpu"
RESULTS = GPU.parent / "results" / "gpu.json"


def module(name: str) -> ModuleType:
    sys.path.insert(0, str(GPU))
    try:
        return __import__(name)
    finally:
        sys.path.remove(str(GPU))


names = ("gpu_budget", "gpu_commands", "gpu_copies", "gpu_ladder", "gpu_loop", "gpu_overhead", "gpu_phases", "run")
budget, commands, copies, ladder, loop, overhead, phases, bench = map(module, names)
needs_no_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is here")


def part(code: str, share: float = 1.0, **more: Any) -> Any:
    return budget.Part("x", (sys.executable, "-c", code, budget.LIMIT, budget.FIGURES), share, **more)


WRITES = "import sys, pathlib; pathlib.Path(sys.argv[2]).write_text('[1]'); print('limit', sys.argv[1]);"


def test_time_that_a_part_does_not_need_goes_to_the_later_ones() -> None:
    parts = [part("", share) for share in (1.0, 1.0, 2.0)]
    assert budget.limit_s(400.0, parts[0], parts[1:]) == 100.0
    assert budget.limit_s(390.0, parts[1], parts[2:]) == 130.0, "the first needed ten seconds"
    assert budget.limit_s(50.0, parts[2], []) == 50.0


@pytest.mark.parametrize("parts", [bench.parts, bench.behaviour])
def test_all_shares_together_stay_under_ten_minutes(monkeypatch: pytest.MonkeyPatch, parts: Any) -> None:
    now = [0.0]

    def play(part: Any, limit: float, env: dict[str, str], cwd: Path) -> dict[str, Any]:
        now[0] += max(0.0, limit)  # each takes all that it may
        return {"status": "cut off", "limit": limit}

    monkeypatch.setattr(budget, "play", play)
    found = budget.play_all(parts(), bench.BUDGET_S, {}, GPU, lambda line: None, lambda: now[0])
    assert now[0] == pytest.approx(bench.BUDGET_S) and bench.BUDGET_S < 590
    assert list(found) == [p.name for p in parts()] and all(r["limit"] > 30 for r in found.values())


def test_there_are_two_commands_and_the_tests_have_their_time() -> None:
    fast, right = ([part.name for part in parts] for parts in (bench.parts(), bench.behaviour()))
    assert fast == ["phases", "overhead", "copies", "ladder"] and sorted(ladder.ORDER) == sorted(NAMES)
    assert right == ["commands", "tests"], "what the commands do not need goes to the tests"
    assert bench.BUDGET_S * bench.behaviour()[1].share / sum(part.share for part in bench.behaviour()) >= 180


def play(code: str, limit: float = 20.0, **more: Any) -> dict[str, Any]:
    return dict(budget.play(part(code, **more), limit, dict(os.environ), GPU))


def test_a_part_that_is_done_hands_over_its_figures() -> None:
    found = play(WRITES)
    assert (found["status"], found["figures"], found["told"]) == ("done", [1], ["limit 18"]), "less than its limit"
    assert budget.shown("x", found).startswith("x: done after")


def test_a_part_that_fails_is_told_with_what_it_said() -> None:
    found = play(WRITES + "print('no driver'); sys.exit(7)")
    assert (found["status"], found["why"], found["figures"]) == ("failed", "it ended with 7", [1])
    assert found["told"][-1] == "no driver"
    assert "no figures" in play("pass")["why"]


def test_a_part_that_hangs_is_cut_off_with_its_children(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(budget, "LEAST_S", 0.1)
    child = f"import time, pathlib; time.sleep(3); pathlib.Path({str(tmp_path / 'lived')!r}).touch()"
    code = WRITES + f"import subprocess, time; subprocess.Popen([sys.executable, '-c', {child!r}]); time.sleep(60)"
    found = play(code, 1.5)
    assert found["status"] == "cut off" and found["seconds"] < 10 and found["figures"] == [1]
    assert not (tmp_path / "lived").exists()


def test_what_a_part_began_in_a_session_of_its_own_ends_with_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(budget, "LEAST_S", 0.0)
    child = f"import time, pathlib; time.sleep(4); pathlib.Path({str(tmp_path / 'lived')!r}).touch()"
    code = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child!r}], start_new_session=True)"
    assert play(f"{code}; time.sleep(60)", 2.0)["status"] == "cut off"
    time.sleep(3.0)
    assert not (tmp_path / "lived").exists(), "it would be measured along with the next part"


def test_parts_of_an_earlier_run_stay_on_such_a_machine_alone() -> None:
    device = {"cuda": "13", "cudnn": 9, "devices": ["X"], "driver": ["1"]}
    before = {"device": device, "parts": {"a": {"status": "done"}, "b": {"status": "failed"}, "gone": {}}}
    now = {"device": device, "parts": {"b": {"status": "done"}}}
    found = bench.together(before, now, ["a", "b", "c"])["parts"]
    assert found == {"a": {"status": "done"}, "b": {"status": "done"}, "c": {"status": "not measured"}}
    other = bench.together({**before, "device": {**device, "devices": ["Y"]}}, now, ["a", "b"])["parts"]
    assert other["a"] == {"status": "not measured"} == bench.together({}, now, ["a", "b"])["parts"]["a"]


def test_a_part_without_time_is_not_begun() -> None:
    assert play("raise SystemExit(1)", 3.0)["status"] == "no time"


def bare_step(index: int, forward_ns: int) -> Step:
    p: list[int | None] = [0] * len(PHASES)
    p[PHASES.index("forward")] = forward_ns
    return Step(index, 1, index * 10**7, 10**7, p, 8, 1, 0, 0, 10**7, [])


def test_phases_are_compared_in_the_same_steps() -> None:
    truth = [{"forward": 0.002 + 0.001 * i, "backward": 0.004} | ({"step": 0.01} if i else {}) for i in range(6)]
    events = [
        Event("device_step", 0, 11_000_000, i, d={"forward": 1e9 * truth[i]["forward"] + 1e5, "backward": 4e6})
        for i in (1, 3, 5)
    ]
    events += [Event("validation", 0, 1, 2), Event("device_step", 0, 1, 99, d={"forward": 1.0})]
    found = phases.compare(truth, events, [bare_step(i, 500_000) for i in range(6)])
    assert found["steps"] == 3 and found["enough"]
    forward = found["phases"]["forward"]
    assert forward["truth_s"] == pytest.approx(0.005) and forward["difference_s"] == pytest.approx(1e-4)
    assert forward["host_s"] == pytest.approx(0.0005) and found["phases"]["backward"]["worst_s"] == pytest.approx(0.0)
    assert found["phases"]["step"]["difference_s"] == pytest.approx(0.001) and found["phases"]["optimizer"] is None
    lines = phases.table("loop", found)
    assert "3 steps" in lines[0] and any("optimizer" in line and "not told" in line for line in lines)
    assert any(line.split() == ["forward", "5.000", "5.100", "0.100", "0.100", "+1.0%", "0.500"] for line in lines)
    assert not phases.compare(truth, events[:2], [])["enough"]


def test_overhead_is_paired_by_rounds() -> None:
    seen = {arm: [1.0, 2.0, 4.0] for arm in overhead.ARMS} | {"guarded": [1.01, 2.02, 4.04]}
    found = overhead.figures(seen)
    assert found["overhead_percent"]["guarded"] == pytest.approx((1.0, 1.0, 1.0)) and found["rounds"] == 3
    assert found["overhead_percent"]["bare again"] == (0.0, 0.0, 0.0) and found["step_s"] == 2.0


SMALL = {"steps": 6, "warm": 2, "width": 8, "depth": 2, "batch": 4, "device": "cpu"}


def test_the_loop_trains_and_times_itself() -> None:
    found = loop.train(SMALL)
    assert found["step_s"] > 0 and found["events"] == []


def test_at_a_gate_the_loop_takes_a_turn_for_each_line(monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n\n"))
    assert loop.train({**SMALL, "gate": True}) == {"steps": 12}
    ready, *turns = capfd.readouterr().out.split()
    assert ready == "ready" and len(turns) == 2 and all(float(turn) > 0 for turn in turns)


def test_arms_train_in_turn_and_the_first_round_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    now = [0.0]

    class Arm:
        def __init__(self, arm: str, asked: dict[str, Any], folder: Path) -> None:
            self.arm, self.process = arm, SimpleNamespace(kill=lambda: None)
            self.said, self.end = iter(["a warning", "ready"]).__next__, lambda: None

        def turn(self) -> float:
            order.append(self.arm)
            now[0] += 1.0
            return float(len(order))

    with monkeypatch.context() as patch:
        patch.setattr(overhead, "Run", Arm)
        patch.setattr(overhead, "time", SimpleNamespace(monotonic=lambda: now[0]))
        seen = overhead.rounds(SMALL, 13.0, tmp_path)  # a round takes four seconds
    arms = list(overhead.ARMS)
    assert order == arms[::-1] + arms + arms[::-1], "three rounds fit, every other one backwards"
    assert seen["bare"] == [5.0, 12.0], "the first of three is not counted"


@pytest.mark.cousin
def test_where_one_round_fits_it_is_all_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = overhead.rounds(SMALL, 0.0, tmp_path)
    assert set(seen) == set(overhead.ARMS) and all(len(values) == 1 for values in seen.values())
    monkeypatch.setattr(overhead, "ARMS", ("bare",))
    with pytest.raises(SystemExit, match="the loop ended with 1"):
        overhead.rounds({**SMALL, "device": "nowhere"}, 0.0, tmp_path)


def ladder_runner(monkeypatch: pytest.MonkeyPatch, folder: Path, code: str, name: str = "slow") -> Any:
    script = folder / f"{len(list(folder.iterdir()))}.py"
    script.write_text(code)
    monkeypatch.setattr(ladder, "SCRIPT", script)
    return ladder.Runner("speaker_verify", name, {}, folder)


TURN = {"step_s": 0.5, "epoch_start_s": 0.0, "epoch_start_every_steps": 10, "data_wait_s": 0.1, "in_step_s": 0.4,
        "samples": 10, "roof_step_s": 0.25, "busy_frac": 0.5, "host_bytes": 1}  # fmt: skip
TAKES_TURNS = (
    "import sys\nprint('warning: x')\nprint('ready', flush=True)\n"
    f"for _ in sys.stdin: print('{json.dumps(TURN)}', flush=True)"
)


def test_a_ladder_prepares_side_by_side_and_is_measured_in_turn(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fast = TAKES_TURNS.replace('"step_s": 0.5', '"step_s": 0.25')
    found = [ladder_runner(monkeypatch, tmp_path, TAKES_TURNS),
             ladder_runner(monkeypatch, tmp_path, fast, ladder.TOGETHER)]  # fmt: skip
    try:
        ladder.play(found, 3.0)
    finally:
        for runner in found:
            runner.end()
    told = ladder.documents(found)["speaker_verify"]
    assert told["failed"] == {} and [row["name"] for row in told["rows"]] == ["slow", ladder.TOGETHER]
    assert told["rows"][1]["cumulated"]["median"] == 2.0 and told["rows"][1]["of_roof"] == 1.0
    assert told["rows"][1]["turns"] > 1, "as many rounds as fit"


@pytest.mark.parametrize(
    ("code", "why"),
    [("raise SystemExit('no memory')", "no memory"), ("import time; time.sleep(60)", "it was not done in time")],
)
def test_a_training_that_fails_is_told_and_leaves_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str, why: str
) -> None:
    bad = ladder_runner(monkeypatch, tmp_path, code, ladder.TOGETHER)
    good = ladder_runner(monkeypatch, tmp_path, TAKES_TURNS)
    try:
        ladder.play([bad, good], 4.0)
    finally:
        good.end()
    told = ladder.documents([good, bad])["speaker_verify"]
    assert told["failed"] == {ladder.TOGETHER: why} and good.turns and told["rows"] == []


def test_the_loop_brackets_its_own_phases(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(1000))

    class Mark:
        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None:
            self.ms = next(now)

        def elapsed_time(self, end: Any) -> int:
            return int(end.ms - self.ms)

    monkeypatch.setattr(torch.cuda, "Event", Mark)
    small = {"steps": 3, "warm": 1, "width": 8, "depth": 1, "batch": 4, "device": "cpu", "events": True}
    rows = loop.train(small)["events"]
    assert [set(row) - set(loop.PHASES) for row in rows] == [set(), {"step"}, {"step"}]
    assert all(row[phase] == 0.001 for row in rows for phase in loop.PHASES) and rows[1]["step"] == 0.008


def test_every_way_onto_the_device_gives_whole_batches(tmp_path: Path) -> None:
    import numpy as np

    path = tmp_path / "rows.npy"
    np.save(path, np.full((2 * copies.BATCH + 5, *copies.SHAPE), 51, np.uint8))
    known = {name: make for name, make in copies.ways(path, "cpu").items() if "workers, pinned" not in name}
    for name, make in known.items():
        batch = next(make()())
        assert batch.shape == (copies.BATCH, *copies.SHAPE) and batch.dtype == torch.float32, name
        assert "copied" in name or torch.allclose(batch, torch.tensor(0.2)), name


def test_ways_are_set_against_the_bus() -> None:
    found = copies.summary({copies.LIMIT: [10.0, 20.0, 30.0], copies.OURS: [5.0], "broken": []}, {"broken": "why"})
    assert found["ways"][copies.OURS]["of_limit"] == 0.25 and found["failed"] == {"broken": "why"}
    assert "broken" not in found["ways"] and found["ways"][copies.LIMIT]["turns"] == 3


def test_what_pytest_says_is_read(tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    path.write_text(
        '<testsuites><testsuite tests="3" failures="1" errors="0" skipped="1"><testcase name="a"/><testcase name="b">'
        '<failure/></testcase><testcase name="c"><skipped/></testcase></testsuite></testsuites>'
    )
    assert bench.junit(path) == {"tests": 3, "failures": 1, "errors": 0, "skipped": 1, "failed": ["b"]}
    path.write_text("<testsuites")
    with pytest.raises(ValueError, match=r"no element|unclosed"):
        bench.junit(path)
    assert any(name.endswith("gpu/test_on_device.py") for name in bench.marked(GPU.parents[1] / "tests"))


@needs_no_gpu
def test_without_a_gpu_it_refuses_loudly(tmp_path: Path) -> None:
    command, before = [sys.executable, str(GPU / "run.py")], RESULTS.read_bytes() if RESULTS.exists() else None
    done = subprocess.run([*command, "--save"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stdout == ""
    assert "needs a GPU" in done.stderr and "Nothing was measured" in done.stderr
    assert (RESULTS.read_bytes() if RESULTS.exists() else None) == before and list(tmp_path.iterdir()) == []


def test_arguments(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--budget-s", "0"], ["--only", "nothing"], ["--only", "tests"], ["--behaviour", "--only", "phases"]):
        monkeypatch.setattr(sys, "argv", ["run.py", *words])
        with pytest.raises(SystemExit, match="2"):
            bench.main()
    monkeypatch.setattr(sys, "argv", ["run.py", "--list", "--only", "phases", "copies", "--budget-s", "100"])
    capsys.readouterr()
    assert bench.main() == 0
    assert capsys.readouterr().out.split() == ["phases", "65", "s", "copies", "35", "s"]
    monkeypatch.setattr(sys, "argv", ["run.py", "--list", "--behaviour"])
    assert bench.main() == 0
    assert capsys.readouterr().out.split() == ["commands", "285", "s", "tests", "285", "s"]


def test_a_failing_test_fails_the_bench_and_none_at_all_is_told(tmp_path: Path) -> None:
    assert play(WRITES + "sys.exit(1)")["status"] == "failed", "what pytest ends with when a test fails"
    with pytest.raises(SystemExit, match=r"no test below .* is marked gpu"):
        bench.marked(tmp_path)


def test_nothing_is_opened_when_the_time_is_up() -> None:
    opened = []

    def way() -> Any:
        opened.append(1)
        return iter([torch.zeros(4)] * 3)

    assert copies.rate(way, 0.0, lambda: None) > 0 and len(opened) == 1


def test_arms_start_together_and_each_waits_for_its_turn(tmp_path: Path) -> None:
    runs = [overhead.Run(arm, SMALL, tmp_path) for arm in ("bare", "guarded")]
    assert [run.said() for run in runs] == ["ready", "ready"]
    assert runs[0].turn() > 0 and runs[0].turn() > 0 and runs[1].turn() > 0
    for run in runs:
        assert run.process.poll() is None, "it waits for another turn"
        run.end()


def test_too_few_rounds_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overhead, "rounds", lambda loop, limit, folder: {arm: [1.0, 1.0] for arm in overhead.ARMS})
    monkeypatch.setattr(sys, "argv", ["gpu_overhead.py", "--json", str(tmp_path / "x.json")])
    with pytest.raises(SystemExit, match="Fewer rounds than 5"):
        overhead.main()
    assert json.loads((tmp_path / "x.json").read_text())["rounds"] == 2, "what was measured is kept"


def lever(reason: str, measured: Any = None) -> dict[str, Any]:
    return {"id": "x", "kept": False, "measured": measured, "reason": reason, "more": ""}


def test_a_clear_outcome_has_a_verdict_and_a_reason_for_what_failed() -> None:
    told = {"status": "finished", "verdict": "1.2x faster", "notes": [], "levers": [lever("out of memory")]}
    assert commands.outcome(0, "", told)["ok"]
    for wrong in ({"status": "failed"}, {"verdict": ""}, {"levers": [lever("")]}):
        assert not commands.outcome(0, "", {**told, **wrong})["ok"], wrong
    assert not commands.outcome(1, "", told)["ok"] and not commands.outcome(0, "", None)["ok"]
    assert not commands.outcome(0, "Traceback (most recent call last):", told)["ok"]


def test_a_check_that_breaks_is_told_and_the_next_one_is_played(tmp_path: Path) -> None:
    found = tmp_path / "x.json"
    assert not commands.play({"a": lambda: 1 / 0, "b": lambda: {"ok": True, "why": ""}}, found)
    told = json.loads(found.read_text())
    assert "ZeroDivisionError" in told["a"]["why"] and told["b"]["ok"]


@pytest.mark.cousin
def test_a_script_that_chooses_its_device_late_is_the_same_when_watched(tmp_path: Path) -> None:
    found = commands.late(tmp_path)
    assert found["ok"], found
    assert found["said"][""][0].startswith("0 devices")
