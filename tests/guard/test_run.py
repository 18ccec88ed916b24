"""The guard at work: on a timeline that lies there, and beside a real script."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from guarded import Run, write_timeline

from hotlap.cli.commands import run as run_command
from hotlap.cli.guarding import shown
from hotlap.cli.main import build_parser, main
from hotlap.guard import export
from hotlap.guard.guard import Guard, Wishes
from hotlap.guard.hook import Hook
from hotlap.guard.metrics import CONTENT_TYPE, MetricsServer, exposition
from hotlap.guard.status import Earlier, Status, read_status
from hotlap.records.call import Call
from hotlap.records.codec import loads
from hotlap.records.errors import HotlapError, RecordError
from hotlap.records.figures import NAME
from hotlap.records.findings import Roof, Where
from hotlap.records.guard import Alarm, GuardRecord
from hotlap.records.run import RunRecord
from hotlap.records.run_folder import RunFolder
from hotlap.report.guard_status import Shown, status_line
from hotlap.report.guard_words import alarm_line
from hotlap.testing.timelines import TimelineBuilder, cpu_machine

ALARM = Alarm(
    1200, 1500, 60.0, 30.0, 0.2, 0.3, "data_wait", False, "storage-read", [Where("train.py", 48, "load")], "Look."
)


def test_a_drift_is_said_written_down_and_given_to_the_hook(tmp_path: Path) -> None:
    folder = RunFolder.create("train.py", tmp_path)
    slow = Run().go(60.0).go(60.0, residual=0.1)
    write_timeline(slow.builder.build(), folder.timeline_dir("run"))
    said: list[str] = []
    command = 'echo "$HOTLAP_DRIFT_CAUSE $HOTLAP_DRIFT_PHASE $HOTLAP_DRIFT_STEP" && ls "$HOTLAP_RUN" && exit 3'
    guard = Guard(folder, cpu_machine(), Wishes(said.append, hook=Hook(command, folder.path), look_s=30.0))
    guard.start(os.getpid())
    guard.stop()
    record = folder.read("guard.json", GuardRecord)
    assert record is not None and len(record.alarms) == 1
    alarm = record.alarms[0]
    assert said[0] == alarm_line(alarm) and "steps got slower from step" in said[0]
    log = (folder.path / "on-drift.log").read_text()
    assert log.startswith(f"{alarm.cause} residual {alarm.at_step}\n") and "timelines" in log
    assert said[1].startswith("--on-drift: the command exited with 3") and len(said) == 2
    assert record.steps == slow.builder.step_index


def test_a_guard_that_fails_says_so_and_ends(tmp_path: Path) -> None:
    folder = RunFolder.create("train.py", tmp_path)
    (folder.timeline_dir("run") / "1.jsonl").write_text("no json\n")
    said: list[str] = []
    guard = Guard(folder, cpu_machine(), Wishes(said.append, look_s=30.0))
    guard.start(os.getpid())
    guard.stop()
    assert len(said) == 1 and "gave up" in said[0] and "corrupt" in said[0]


def until(done: Callable[[], object]) -> None:
    """Wait for what the guard's thread does."""
    end = time.monotonic() + 20.0
    while not done() and time.monotonic() < end:
        time.sleep(0.01)


@pytest.mark.parametrize("refused", ["guard.json", "figures", "--on-drift"])
def test_what_is_refused_for_a_moment_is_told_once_and_tried_again(
    refused: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [3]

    def moody(work: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            left[0] -= 1
            if left[0] >= 0:
                raise OSError(28, "No space left on device")
            return work(*args, **more)

        return call

    owner, name = {
        "guard.json": (RunFolder, "write"),
        "figures": (export, "write_atomic"),
        "--on-drift": (Hook, "start"),
    }[refused]
    folder = RunFolder.create("train.py", tmp_path)
    slow = Run().go(60.0).go(60.0, residual=0.1)
    write_timeline(slow.builder.build(), folder.timeline_dir("run"))
    monkeypatch.setattr(owner, name, moody(getattr(owner, name)))
    said: list[str] = []
    hook = Hook("true", folder.path)
    guard = Guard(folder, cpu_machine(), Wishes(said.append, hook=hook, export=True, look_s=0.01))
    guard.start(os.getpid())
    until(lambda: left[0] < 0)
    assert guard.status.steps == slow.builder.step_index, "it goes on"
    guard.stop()
    record = folder.read("guard.json", GuardRecord)
    assert record is not None and len(record.alarms) == 1 and record.notes == [] and record.current == record.alarms[0]
    assert (folder.timeline_dir("run") / NAME).exists() and hook.log.exists()
    assert sum("failed, the run goes on: " in line for line in said) == 1 and len(said) == 2, said


def test_nothing_stale_is_served_by_a_guard_that_gave_up_and_what_it_saw_is_kept(tmp_path: Path) -> None:
    folder = RunFolder.create("train.py", tmp_path)
    path = write_timeline(TimelineBuilder().steps(100, forward=0.1).build(), folder.timeline_dir("run"))
    said: list[str] = []
    guard = Guard(folder, cpu_machine(), Wishes(said.append, look_s=0.01))
    guard.start(os.getpid())
    until(lambda: guard.status.steps)
    with open(path, "a") as file:
        file.write("no json\n")
    until(lambda: said)
    assert guard.status == Status(watched=False)
    assert "_total" not in exposition(guard.status, "train.py"), "no counter is set back to nought"
    guard.stop()
    record = folder.read("guard.json", GuardRecord)
    assert record is not None and record.steps == 100 and "gave up" in record.notes[0]


def test_a_drift_of_a_process_that_is_gone_does_not_go_on(tmp_path: Path) -> None:
    folder = RunFolder.create("train.py", tmp_path)
    slow = Run().go(60.0).go(60.0, residual=0.1)
    write_timeline(slow.builder.build(), folder.timeline_dir("run"))
    guard = Guard(folder, cpu_machine(), Wishes(lambda line: None, look_s=0.01))
    guard.start(os.getpid())
    until(lambda: (folder.path / "guard.json").exists())
    again = TimelineBuilder(start_s=500.0).steps(100, forward=0.1).build()
    write_timeline(replace(again, header=replace(again.header, pid=101)), folder.timeline_dir("run"))
    guard.stop()
    record = folder.read("guard.json", GuardRecord)
    assert record is not None and len(record.alarms) == 1 and record.current is None


def test_ctrl_c_while_a_hook_is_waited_for_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = RunFolder.create("train.py", tmp_path)
    hook = Hook(f"sleep 60 & echo $! > {tmp_path / 'pid'}; wait", folder.path)
    guard = Guard(folder, cpu_machine(), Wishes(lambda line: None, hook=hook))
    hook.start(ALARM, "slower")
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())

    def interrupted(self: Hook) -> list[str]:
        raise KeyboardInterrupt

    monkeypatch.setattr(Hook, "finish", interrupted)
    with pytest.raises(KeyboardInterrupt):
        guard.stop()
    stat = Path("/proc") / (tmp_path / "pid").read_text().strip() / "stat"
    until(lambda: not stat.exists() or ") Z " in stat.read_text())
    assert not stat.exists() or ") Z " in stat.read_text()


def test_status_of_a_run() -> None:
    timeline = TimelineBuilder().steps(100, forward=0.1, backward=0.1).ticks(3, rss=2**30).build()
    roof = Roof(samples_per_s=320.0, step_s=0.1, share=0.5, how="resident batch")
    status = read_status(timeline, 3200, Earlier(roof, 400))
    assert (status.steps, status.rss_bytes, status.left_s) == (100, 2**30, pytest.approx(60.0))
    assert status.samples_per_s == pytest.approx(160.0) and status.roof_share == pytest.approx(0.5)
    assert status.phases["forward"] == pytest.approx(0.1)
    assert read_status(timeline, 0, Earlier(steps=50)).left_s is None and read_status(None, 0, Earlier()).steps == 0
    line = status_line(Shown("train.py", status.steps, status.step_s, status.samples_per_s, status.roof_share,
                             status.phases, status.rss_bytes, left_s=status.left_s, drift=ALARM))  # fmt: skip
    assert line == (
        "step 100 · 160 samples/s, 50 % of the roof · forward 50 %, backward 50 % · 1.0 GiB · 60.0 s left · "
        "slower: storage-read"
    )


def test_a_script_that_makes_no_step_has_no_pace() -> None:
    timeline = TimelineBuilder().steps(100, forward=0.1, backward=0.1).build()
    end = timeline.step[-1].t + timeline.step[-1].w
    lately = read_status(timeline, 3200, Earlier(steps=400), ALARM, 1, end + 20 * 10**9)
    assert lately.step_s is not None and lately.last_step_age_s == pytest.approx(20.0)
    silent = read_status(timeline, 3200, Earlier(steps=400), ALARM, 1, end + 100 * 10**9)
    assert (silent.step_s, silent.samples_per_s, silent.phases, silent.left_s) == (None, None, {}, None)
    assert (silent.steps, silent.samples, silent.drift) == (100, 3200, ALARM)
    text = exposition(silent, "train.py")
    assert 'hotlap_last_step_age_seconds{script="train.py"} 100.0' in text and "hotlap_step_seconds" not in text
    assert status_line(shown(silent, "train.py")).startswith("step 100 · no step for 100 s")
    slow = TimelineBuilder().steps(20, forward=50.0).build()
    end = slow.step[-1].t + slow.step[-1].w
    assert read_status(slow, 0, Earlier(), now_ns=end + 150 * 10**9).step_s == pytest.approx(50.0), "slow steps"


def test_exposition_is_what_prometheus_reads() -> None:
    status = Status(steps=7, samples=70, step_s=0.5, phases={"forward": 0.25}, rss_bytes=10, drift=ALARM, drifts=1)
    text = exposition(status, 'a"b\\c\n.py')
    sample = re.compile(r'hotlap_\w+\{(\w+="(\\.|[^"\\\n])*",?)*\} -?[0-9.e+-]+')
    lines = text.splitlines()
    assert all(line.startswith(("# HELP hotlap_", "# TYPE hotlap_")) or sample.fullmatch(line) for line in lines)
    assert text.endswith("\n") and 'script="a\\"b\\\\c\\n.py"' in text
    values = {line.split("{")[0]: line.rsplit(" ", 1)[1] for line in lines if not line.startswith("#")}
    assert values["hotlap_steps_total"] == "7" and values["hotlap_drift"] == "1.0"
    assert values["hotlap_phase_seconds"] == "0.25" and "hotlap_samples_per_second" not in text, "not measured"
    assert 'cause="storage-read"' in text


def test_metrics_are_served_and_the_port_is_given_back() -> None:
    server = MetricsServer("127.0.0.1", 0, lambda: exposition(Status(steps=3), "train.py"))
    port = int(server.address.split(":")[2].split("/")[0])
    server.start()
    with urllib.request.urlopen(server.address, timeout=5) as answer:
        assert answer.headers["Content-Type"] == CONTENT_TYPE
        assert 'hotlap_steps_total{script="train.py"} 3' in answer.read().decode()
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(server.address + "/other", timeout=5)
    with pytest.raises(HotlapError, match="Cannot serve"):
        MetricsServer("127.0.0.1", port, lambda: "")
    server.stop()
    MetricsServer("127.0.0.1", port, lambda: "").stop()


def test_the_record_is_strict() -> None:
    with pytest.raises(HotlapError, match="unknown key"):
        loads(GuardRecord, '{"steps": 1, "samples": 0, "train_s": 1.0, "alarm": []}')
    with pytest.raises(HotlapError, match="newer Hotlap"):
        loads(GuardRecord, '{"steps": 1, "samples": 0, "train_s": 1.0, "schema": "hotlap.guard/9"}')


SCRIPT = """
import os, sys, time, urllib.request, torch
assert "hotlap" not in str(os.environ.get("HOTLAP_DRIFT_CAUSE", ""))
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(40):
    optimizer.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    print(step, flush=True)
print(model.weight.sum().item() > -1e9, file=sys.stderr)
raise SystemExit(5)
"""


def test_a_guarded_run_without_a_plan_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    command = [sys.executable, "train.py"]
    env = {**os.environ, "COLUMNS": "200"}
    alone = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    done = subprocess.run(
        [sys.executable, "-m", "hotlap", "run", "--metrics", "0", "--", *command],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, env=env,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (alone.returncode, alone.stdout) == (5, alone.stdout)
    ours = [line for line in done.stderr.splitlines(keepends=True) if line.startswith("hotlap: ")]
    assert "".join(line for line in done.stderr.splitlines(keepends=True) if line not in ours) == alone.stderr
    assert len(ours) == 2 and "metrics at http://127.0.0.1:" in ours[0] and "40 steps" in ours[1], ours
    assert sorted(p.name for p in tmp_path.iterdir()) == [".hotlap", "train.py"]
    run = next((tmp_path / ".hotlap").glob("*train"))
    for words, expected in (
        (["report"], "no drift was seen"),
        (["runs"], "finished"),
        (["watch", "--once"], "step 40"),
    ):
        told = subprocess.run(
            [sys.executable, "-m", "hotlap", *words], cwd=tmp_path, capture_output=True, text=True, timeout=60, env=env
        )
        assert told.returncode == 0 and expected in told.stdout, told.stdout + told.stderr
    assert (run / "guard.json").is_file()
    call = loads(Call, (run / "timelines" / "run" / "call.json").read_text())
    assert (call.mode, call.moves) == ("run", []) and call.stack_hz > 0.0 and call.hits_most_s > 0.0


def test_a_run_without_a_step_says_that_nothing_was_watched(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hotlap", "run", "--", sys.executable, "-c", "print('no training')"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "no training\n")
    assert done.stderr == "hotlap: no training step was seen: there was nothing to watch\n"


@pytest.mark.parametrize(("words", "export"), [([], True), (["--no-export"], False), (["--no-guard"], False)])
def test_figures_are_exported_unless_somebody_says_no(
    words: list[str], export: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_command, "read_machine", cpu_machine)
    assert main(["run", "--runs", str(tmp_path), *words, "--", sys.executable, "-c", "pass"]) == 0
    (path,) = tmp_path.glob("*/timelines/run/call.json")
    assert loads(Call, path.read_text()).export is export


def test_one_of_several_that_a_launcher_started_here_knows_that_it_shares_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_command, "read_machine", cpu_machine)
    monkeypatch.setenv("SLURM_STEP_TASKS_PER_NODE", "4(x2)")
    assert main(["run", "--runs", str(tmp_path), "--", sys.executable, "-c", "pass"]) == 0
    (path,) = tmp_path.glob("*/timelines/run/call.json")
    assert loads(Call, path.read_text()).scratches == 4


def refuse(*_: object) -> None:
    raise RecordError("The disk is full.")


@pytest.mark.parametrize("trouble", ["run.json", "timeline", "Ctrl-C"])
def test_trouble_after_the_scripts_end_leaves_its_exit_code(
    trouble: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write = RunFolder.write

    def full(self: RunFolder, name: str, document: Any) -> Path:
        if name == "run.json" and document.status == "finished":
            refuse()
        return write(self, name, document)

    def interrupted(self: Guard) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run_command, "read_machine", cpu_machine)
    if trouble == "run.json":
        monkeypatch.setattr(RunFolder, "write", full)
    elif trouble == "timeline":
        monkeypatch.setattr(run_command, "training_timeline", refuse)
    else:
        monkeypatch.setattr(Guard, "stop", interrupted)
    assert main(["run", "--runs", str(tmp_path), "--", sys.executable, "-c", "raise SystemExit(3)"]) == 3
    why = "interrupted" if trouble == "Ctrl-C" else "The disk is full."
    assert f"after the script's end: {why}" in capsys.readouterr().err
    (path,) = tmp_path.glob("*/timelines/run/call.json")
    assert not Path(loads(Call, path.read_text()).scratch).exists()
    if trouble != "run.json":
        record = RunFolder(path.parents[2]).read("run.json", RunRecord)
        assert record is not None and (record.status, record.exit_code) == ("finished", 3)


@pytest.mark.parametrize("words", [["run"], ["diagnose"]])
def test_a_command_that_cannot_be_executed_is_a_run_that_failed(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run_command, "read_machine", cpu_machine)
    script = tmp_path / "train"
    script.write_text("echo\n")
    script.chmod(0o755)
    assert main([*words, "--runs", str(tmp_path / "runs"), "--", str(script)]) == 2
    assert "cannot be executed: Exec format error." in capsys.readouterr().err
    (path,) = (tmp_path / "runs").glob("*/run.json")
    assert loads(RunRecord, path.read_text()).status == "failed"


@pytest.mark.parametrize("words", [["--metrics", "70000"], ["--total-steps", "0"], ["--status", "often"]])
def test_options_that_cannot_be_meant(words: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        build_parser().parse_args(["run", *words])
