"""One arm: freezing all of its tree, ending all of it, and the reasons it gives."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import shutil
import struct
import subprocess
import sys
import termios
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from trial_support import QUICK, MakeArm

from hotlap.machine.scratch import make_scratch, remove_scratch
from hotlap.records.errors import HotlapError, RecordError
from hotlap.trial import terminal
from hotlap.trial.arm import Arm
from hotlap.trial.reasons import explain, last_error
from hotlap.trial.sandbox import FAILED, Sandbox, available
from hotlap.trial.single import run_until
from hotlap.trial.tail import Tail

FAMILY = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
busy = "import itertools; all(True for _ in itertools.repeat(0))"
subprocess.Popen([sys.executable, "-c", busy, "family-of-a-test"])
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    os.execv(sys.executable, [sys.executable, "-c", busy, "family-of-a-test"])
time.sleep(100)
"""
HEADER = {
    "k": "header", "schema": "hotlap.timeline/1", "hotlap": "0", "role": "train", "pid": 1, "ppid": 0, "rank": 0,
    "world": 1, "argv": [], "cwd": "/", "python": "3", "torch": "2", "device": "cpu", "t": 0, "unix_s": 0.0,
}  # fmt: skip
KINDS = ["plain", *([available()] if available() != "none" else [])]


def living(word: str) -> list[psutil.Process]:
    """Processes with that word in their command line. One that ends while they are looked at is none of them."""
    return [
        p
        for p in psutil.process_iter(["cmdline", "status"])
        if word in (p.info["cmdline"] or []) and p.info["status"] not in (None, psutil.STATUS_ZOMBIE)
    ]


def family() -> list[psutil.Process]:
    return living("family-of-a-test")


def until_true(test: object, seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if test():  # type: ignore[operator]
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("kind", KINDS)
def test_freeze_thaw_and_stop_reach_children_and_daemons(make_arm: MakeArm, tmp_path: Path, kind: str) -> None:
    box = None if kind == "plain" else Sandbox.plan([tmp_path], None)
    arm = make_arm("family", box, [sys.executable, "-c", FAMILY])
    arm.start()
    assert until_true(lambda: len(family()) == 2)
    arm.freeze()
    assert arm.frozen and all(p.status() == psutil.STATUS_STOPPED for p in family())
    arm.thaw()
    assert until_true(lambda: all(p.status() != psutil.STATUS_STOPPED for p in family()))
    arm.freeze()
    arm.stop()
    assert not family() and not arm.alive and arm.exit_code is not None


def test_a_daemon_ends_with_its_script_without_a_sandbox_too(make_arm: MakeArm) -> None:
    arm = make_arm("family", None, [sys.executable, "-c", FAMILY.replace("time.sleep(100)", "sys.exit(0)")])
    arm.start()
    assert until_true(lambda: not arm.alive) and arm.exit_code == 0
    assert not family()


def test_steps_are_followed_while_they_are_written(make_arm: MakeArm) -> None:
    arm = make_arm("arm", step_s=0.01)
    arm.start()
    assert until_true(lambda: arm.steps_done() >= 3)
    arm.freeze()
    first = arm.steps_done()
    time.sleep(0.2)
    assert arm.steps_done() == first
    arm.thaw()
    assert until_true(lambda: arm.steps_done() > first)
    timeline = arm.read()
    assert timeline is not None and timeline.n_steps >= first and arm.failure() == "no progress"


def test_output_goes_to_the_file_and_stdin_is_empty(make_arm: MakeArm, capfd: pytest.CaptureFixture[str]) -> None:
    arm = make_arm("arm", None, [sys.executable, "-c", "print('hello'); input()"])
    arm.start()
    assert until_true(lambda: not arm.alive)
    assert "hello" in arm.spec.output.read_text() and "asked for input" in arm.failure()
    assert capfd.readouterr() == ("", "")


WIDE = """
import os, subprocess, sys
print(os.isatty(0), subprocess.run(["stty", "size"], capture_output=True, text=True).stdout.split())
for _ in range(3):
    try:
        print("read", input("which? "))
    except EOFError:
        print("nothing to read")
"""


def test_where_the_user_sits_at_a_terminal_the_script_finds_one(
    make_arm: MakeArm, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 101, 0, 0))
    os.write(ours, b"typed by the user\n")
    monkeypatch.setattr(terminal, "OWN", theirs)
    open_before = len(os.listdir("/proc/self/fd"))
    arm = make_arm("arm", None, [sys.executable, "-c", WIDE])
    arm.start()
    assert until_true(lambda: not arm.alive)
    arm.stop()
    assert arm.spec.output.read_text().splitlines() == ["True ['33', '101']", *["which? nothing to read"] * 3]
    assert len(os.listdir("/proc/self/fd")) == open_before
    assert os.read(theirs, 100) == b"typed by the user\n"
    for end in (ours, theirs):
        os.close(end)


def test_a_command_that_is_not_there(make_arm: MakeArm) -> None:
    arm = make_arm("arm", None, ["no-such-program-at-all"])
    arm.start()
    assert until_true(lambda: not arm.alive) and arm.exit_code == 127
    assert "cannot start no-such-program-at-all" in arm.spec.output.read_text()


def test_a_folder_that_was_deleted_meanwhile_ends_in_no_traceback(make_arm: MakeArm) -> None:
    arm = make_arm("arm", None, [sys.executable, "-c", "raise SystemExit(3)"])
    for _ in range(2):
        arm.start()
        assert until_true(lambda: not arm.alive)
        shutil.rmtree(arm.spec.timeline_dir)
        assert arm.failure() == "crashed with exit code 3"


def test_starting_twice_is_an_error(make_arm: MakeArm) -> None:
    arm = make_arm("arm")
    arm.start()
    with pytest.raises(HotlapError, match="running already"):
        arm.start()


def test_leaving_python_ends_all_arms(tmp_path: Path) -> None:
    code = f"""
import os, sys
from pathlib import Path
from hotlap.trial.arm import Arm, ArmSpec
command = [sys.executable, "-c", "import time; time.sleep(60)", "left-by-a-test"]
folder = Path({str(tmp_path)!r})
arm = Arm(ArmSpec("a", command, dict(os.environ), folder, Path("/"), None, folder / "o"))
arm.start(); arm.freeze(); print(arm._process.pid)
raise ValueError
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert done.stdout.strip() and not psutil.pid_exists(int(done.stdout))
    assert not [p for p in psutil.process_iter(["cmdline"]) if "left-by-a-test" in (p.info["cmdline"] or [])]


@pytest.mark.parametrize("kind", KINDS)
def test_killing_hotlap_ends_running_and_frozen_arms(tmp_path: Path, kind: str) -> None:
    box = "None" if kind == "plain" else f"Sandbox.plan([Path({str(tmp_path)!r})])"
    code = f"""
import os, sys, time
from pathlib import Path
from hotlap.trial.arm import Arm, ArmSpec
from hotlap.trial.sandbox import Sandbox
from hotlap.trial.tree import descendants
folder = Path({str(tmp_path)!r})
sleep = "import time; time.sleep(60)"
child = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {{sleep!r}}, 'killed-by-a-test']).wait()"
arms = []
for name in "ab":
    command = [sys.executable, "-c", child, "killed-by-a-test"]
    arms.append(Arm(ArmSpec(name, command, dict(os.environ), folder, folder, {box}, folder / name)))
    arms[-1].start()
while any(len(descendants(arm._process.pid)) < {2 if kind == "plain" else 3} for arm in arms):
    time.sleep(0.05)
arms[1].freeze()
print("ready", flush=True)
time.sleep(60)
"""

    def left() -> list[psutil.Process]:
        return living("killed-by-a-test")

    host = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert host.stdout is not None and host.stdout.readline() == "ready\n"
    assert len(left()) >= 4
    host.kill()
    host.wait()
    host.stdout.close()
    assert until_true(lambda: not left())


def test_run_until_stops_at_steps_seconds_or_the_end(make_arm: MakeArm) -> None:
    arm = make_arm("steps", step_s=0.01)
    outcome = run_until(arm, QUICK, steps=5)
    assert outcome.status == "enough" and outcome.steps >= 5 and arm.frozen and outcome.startup_s is not None
    assert run_until(arm, QUICK, seconds=0.2).status == "enough"
    done = run_until(make_arm("end", steps=4, step_s=0.01), QUICK, steps=100)
    assert (done.status, done.steps, done.exit_code) == ("finished", 4, 0)
    crash = run_until(make_arm("crash", at=2, how="sys.exit(9)"), QUICK, steps=100)
    assert crash.status == "failed" and crash.exit_code == 9 and "exit code 9" in crash.reason


def test_reasons() -> None:
    def say(code: int, text: str, memory_kill: bool = False) -> str:
        return explain(code, text, sandboxed=True, memory_kill=memory_kill)

    cuda = "Traceback\n  File x\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n"
    assert say(1, cuda).startswith("out of memory: torch.OutOfMemoryError")
    assert say(1, "RuntimeError: [enforce fail] DefaultCPUAllocator: can't allocate memory").startswith("out of memory")
    for rank_text in (
        "[rank0]: Traceback\n[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n",
        cuda + "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n====\ntrain.py FAILED\n",
        "[rank1]: torch.OutOfMemoryError: CUDA out of memory.\n[rank0]: torch.distributed.DistBackendError: NCCL\n",
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        "terminate called after throwing an instance of 'c10::OutOfMemoryError'\n",
    ):
        assert say(1, rank_text).startswith("out of memory: "), rank_text
    assert say(1, "when out of memory, use less\nKeyError: 'a'") == "crashed with exit code 1: KeyError: 'a'"
    logged = "CUDA out of memory, halving the batch\n"
    assert say(1, logged + "KeyError: 'a'") == "crashed with exit code 1: KeyError: 'a'"
    assert say(1, logged).startswith("out of memory: "), "it ended itself for it"
    missing = "python: can't open file '/w/train.py': [Errno 2] No such file"
    assert say(2, f"{missing}\n") == f"crashed with exit code 2: {missing}"
    assert say(1, "step 3\n") == "crashed with exit code 1", "the last line may be any"
    assert last_error("[rank0]: KeyError: 'a'\nx.errors.ChildFailedError: \n") == "KeyError: 'a'"
    assert last_error("x.errors.ChildFailedError: \n") == "x.errors.ChildFailedError:"
    assert say(-9, "", True) == "out of memory: the kernel ended it"
    assert say(1, "OSError: [Errno 28] No space left on device").startswith("scratch full")
    full = explain(1, "OSError: [Errno 28] No space left on device", sandboxed=True, memory_kill=False, disk_full=True)
    assert "disk of the run folder is full" in full
    assert say(FAILED, "hotlap sandbox: mount /x: no\n") == "no sandbox: mount /x: no"
    width = "OSError: [Errno 25] Inappropriate ioctl for device"
    assert say(1, width) == f"asked its output for the size of a terminal, and a trial's goes to a file: {width}"
    assert last_error("KeyError: 'a'\nprinted later\n") == "KeyError: 'a'" and last_error("fine") is None


def test_a_torn_row_waits_and_a_corrupt_one_is_an_error(tmp_path: Path) -> None:
    path, tail = tmp_path / "1.jsonl", Tail(tmp_path)
    with open(path, "w") as out:
        out.write('{"k": "mark", "kind": "lever", "id": "x", "state": "applied", "count": 1}\n{"k": "ma')
        out.flush()
        assert tail.poll() and len(tail.files[path].marks) == 1 and not tail.poll()
        out.write('rk", "kind": "lever", "id": "y", "state": "applied", "count": 1}\n')
        out.flush()
        assert tail.poll() and [m.id for m in tail.files[path].marks] == ["x", "y"]
        out.write("what\n")
        out.flush()
        with pytest.raises(RecordError, match="corrupt"):
            tail.poll()


def test_the_process_that_trains_is_the_one_that_goes_on(make_arm: MakeArm) -> None:
    fake = str(Path(__file__).parent / "fake_train.py")
    stages = f"{sys.executable} {fake} {{0}} steps=30 && {sys.executable} {fake} {{0}} steps=8"
    arm: Arm = make_arm("stages")
    arm = Arm(replace(arm.spec, command=["sh", "-c", stages.format(arm.spec.timeline_dir)]))
    try:
        arm.start()
        seen = []
        assert until_true(lambda: seen.append(arm.steps_done()) or not arm.alive)
        assert arm.steps_done() == 38 and seen == sorted(seen), "the second stage's steps come on top"
        assert [run.n_steps for run in arm.trainers()] == [30, 8] and arm.poll() is arm.trainers()[1]
    finally:
        arm.stop()


def test_ranks_and_a_helper_beside_the_training_are_no_stages(tmp_path: Path) -> None:
    rows = {"a": (0, 5, (100, 900)), "rank": (1, 9, (100, 950)), "helper": (0, 2, (300, 400))}
    for name, (rank, steps, (begin, end)) in rows.items():
        header = {**HEADER, "rank": rank, "world": 2}
        body = [{"k": "step", "i": i, "n": 1, "t": begin + i, "w": 1, "p": [0] * 12, "s": 1, "m": 1, "l": []}
                for i in range(steps)]  # fmt: skip
        lines = [header, *body, {"k": "end", "t": end, "reason": "end"}]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    tail = Tail(tmp_path)
    tail.poll()
    assert [f.path.stem for f in tail.trainers] == ["a"]


def test_ends_are_told_apart(make_arm: MakeArm) -> None:
    arm: Arm = make_arm("arm", steps=2)
    arm.start()
    assert until_true(lambda: not arm.alive)
    assert arm.failure("while warming up") == "script ended after 2 steps (while warming up)"


@pytest.mark.skipif(available() == "none" or not os.access("/dev/shm", os.W_OK), reason="no sandbox or shared memory")
def test_an_arm_that_ends_takes_its_own_layers_alone(make_arm: MakeArm, tmp_path: Path) -> None:
    folder = make_scratch(Path("/dev/shm"))
    try:
        box = Sandbox.plan([], folder)
        code = "import time; open('mine', 'w').write('x'); time.sleep(60)"
        arms = [make_arm(name, box, [sys.executable, "-c", code]) for name in ("one", "other")]
        for arm in arms:
            arm.start()
        assert until_true(lambda: len(list(folder.rglob("mine"))) == 2)
        arms[0].stop()
        assert len(list(folder.rglob("mine"))) == 1 and arms[1].alive and not (tmp_path / "mine").exists()
        arms[1].stop()
        assert not list(folder.glob("layers-*"))
    finally:
        remove_scratch(folder)
    assert not folder.exists()
