"""The user's command runs as they would run it: exit code, signals, clear errors for what cannot run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from hotlap.inject.run_script import check_command, module_of, name_of, run_script, script_of
from hotlap.records.errors import HotlapError


def children_called(parent: int, name: str) -> list[psutil.Process]:
    """The children of a process that are called so."""
    return [child for child in psutil.Process(parent).children() if child.name() == name]


@pytest.mark.parametrize(
    ("command", "script"),
    [
        (["python", "train.py", "--x", "other.py"], "train.py"),
        (["python3.11", "-u", "train.py"], "train.py"),
        (["python", "-X", "dev", "-W", "error", "train.py"], "train.py"),
        (["python", "-m", "pkg.train"], None),
        (["python", "-c", "pass"], None),
        (["torchrun", "train.py"], None),
        (["python", "-um", "pkg.train", "x.py"], None),
        (["python", "-Bm", "pkg.train"], None),
        (["python", "-uc", "import x"], None),
        (["python", "-cpass", "x.py"], None),
        (["python", "-uW", "error", "train.py"], "train.py"),
        (["python", "-Wmodule", "-Xdev", "train.py"], "train.py"),
        (["python", "-X", "importtime", "-u", "-"], None),
        (["python", "--check-hash-based-pycs", "never", "train.py"], "train.py"),
        (["python", "-u", "--", "train.py"], "train.py"),
    ],
)
def test_script_of(command: list[str], script: str | None) -> None:
    assert script_of(command) == script


@pytest.mark.parametrize(
    ("words", "module"),
    [("-m pkg.train", "pkg.train"), ("-um pkg.train", "pkg.train"), ("-mpkg.train", "pkg.train"),
     ("train.py -m x", None), ("-c x -m y", None), ("-m", None)],
)  # fmt: skip
def test_module_of(words: str, module: str | None) -> None:
    assert module_of(["python", *words.split()]) == module


@pytest.mark.parametrize(
    ("words", "name"),
    [("python train.py other.py", "train.py"), ("python -m pkg.train a.py", "pkg.train"), ("make train", "make"),
     ("torchrun --nproc-per-node=2 tools/train.py", "tools/train.py"), ("env A=1 python train.py", "train.py"),
     ("bash run.sh train.py", "run.sh"), ("sh -c x", "sh")],
)  # fmt: skip
def test_what_a_command_is_called(words: str, name: str) -> None:
    assert name_of(words.split()) == name


def test_a_folder_or_an_archive_is_a_script(tmp_path: Path) -> None:
    with pytest.raises(HotlapError, match=r"a folder without __main__\.py"):
        check_command([sys.executable, str(tmp_path)])
    (tmp_path / "__main__.py").write_text("raise SystemExit(5)\n")
    assert run_script(check_command([sys.executable, str(tmp_path)]), os.environ) == 5
    (tmp_path / "train.pyz").write_bytes(b"PK")
    check_command([sys.executable, str(tmp_path / "train.pyz")])


def test_no_command() -> None:
    with pytest.raises(HotlapError, match="no command after") as err:
        check_command([])
    assert err.value.exit_code == 2


def test_unknown_program() -> None:
    with pytest.raises(HotlapError, match="'no-such-program' was not found"):
        check_command(["no-such-program"])


def test_script_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(HotlapError, match=r"gone\.py' is not there"):
        check_command([sys.executable, str(tmp_path / "gone.py")])
    with pytest.raises(HotlapError, match="is a folder"):
        check_command([sys.executable, str(tmp_path)])


def test_script_without_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("pass\n")
    with pytest.raises(HotlapError) as err:
        check_command(["./train.py"])
    assert "python ./train.py" in err.value.hint


@pytest.mark.parametrize("code", [0, 3, 255])
def test_exit_code(code: int) -> None:
    assert run_script([sys.executable, "-c", f"raise SystemExit({code})"], os.environ) == code


def test_killed_by_a_signal() -> None:
    assert run_script([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"], os.environ) == 137


HOST = """
import os, signal, sys
from hotlap.inject.run_script import run_script
numbers = [getattr(signal, "SIG" + name) for name in sys.argv[2].split()]
before = [signal.getsignal(number) for number in numbers]
code = run_script([sys.executable, "-c", *sys.argv[1:]], os.environ)
sys.exit(code if [signal.getsignal(number) for number in numbers] == before else 99)
"""
SCRIPT = """
import os, signal, sys, time
names, seen = sys.argv[1].split(), []
for name in names:
    signal.signal(getattr(signal, "SIG" + name), lambda number, frame: seen.append(number))
for name in names:
    number = getattr(signal, "SIG" + name)
    os.kill(os.getppid(), number)
    until = time.monotonic() + (10 if name not in ("INT", "QUIT") else 0.1)
    while number not in seen and time.monotonic() < until:
        time.sleep(0.005)
sys.exit(10 + len(seen))
"""


@pytest.mark.parametrize(("names", "reach"), [("TERM HUP USR1 USR2", 4), ("INT QUIT", 0)])
def test_signals_that_are_meant_for_the_script_reach_it_and_none_ends_hotlap(names: str, reach: int) -> None:
    done = subprocess.run([sys.executable, "-c", HOST, SCRIPT, names], capture_output=True, text=True, timeout=60)
    assert done.returncode == 10 + reach, done.stderr


GROUP = """
import os, sys, time
from hotlap.inject import group
from hotlap.inject.run_script import run_script
group.WAIT_S = float(sys.argv[2])
sys.exit(run_script([sys.executable, "-c", *sys.argv[1:]], os.environ))
"""
COUNTS = """
import os, signal, sys, time
seen = []
signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))
if sys.argv[2] == "own":
    os.setpgid(0, 0)
print(flush=True)
until = time.monotonic() + 20
while not seen and time.monotonic() < until:
    time.sleep(0.01)
time.sleep(0.5)
sys.exit(10 + len(seen))
"""


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="there are no process groups here")
@pytest.mark.parametrize(
    ("to", "own", "wait_s"), [("group", "no", 20.0), ("group", "own", 0.1), ("hotlap", "no", 0.1), ("both", "no", 20.0)]
)
def test_a_signal_to_the_whole_group_reaches_the_script_once(to: str, own: str, wait_s: float) -> None:
    """Also where the script has left the group, or is sent to twice, as by ``timeout``: to Hotlap, and to the group."""
    command = [sys.executable, "-c", GROUP, COUNTS, str(wait_s), own]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as host:
        assert host.stdout is not None and host.stdout.readline()
        until = time.monotonic() + 20
        while not (beside := children_called(host.pid, "cat")) and time.monotonic() < until:
            time.sleep(0.01)
        if to in ("hotlap", "both"):
            os.kill(host.pid, signal.SIGTERM)
        if to in ("group", "both"):
            os.killpg(host.pid, signal.SIGTERM)
        assert host.wait(60) == 11
    assert beside and not any(process.is_running() for process in beside)


EARLY = """
import os, signal, subprocess, sys
from hotlap.inject import run_script
number = getattr(signal, "SIG" + sys.argv[1])
popen = subprocess.Popen
def slow(*args, **kwargs):
    process = popen(*args, **kwargs)
    process.stdout.readline()  # it has set its handler
    os.kill(os.getpid(), number)  # while Hotlap is still about to start it
    return process
run_script.subprocess.Popen = lambda *args, **kwargs: slow(*args, **kwargs, stdout=subprocess.PIPE)
script = ("import signal, sys, time\\nsignal.signal(int(sys.argv[1]), lambda *_: sys.exit(7))\\n"
          "print(flush=True)\\ntime.sleep(float(sys.argv[2]))\\n")
sys.exit(run_script.run_script([sys.executable, "-c", script, str(int(number)), sys.argv[2]], os.environ))
"""


@pytest.mark.parametrize(("name", "sleep_s", "code"), [("TERM", "30", 7), ("INT", "0.1", 0)])
def test_a_signal_that_comes_while_the_script_starts_is_not_lost_and_ends_nobody(
    name: str, sleep_s: str, code: int
) -> None:
    command = [sys.executable, "-c", EARLY, name, sleep_s]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done.stderr


@pytest.mark.parametrize(("text", "why", "hint"), [("echo hello\n", "Exec format error", "what runs it"),
                                                  ("#!/no/such/sh\n", "No such file", "")])  # fmt: skip
def test_a_command_that_cannot_be_executed(tmp_path: Path, text: str, why: str, hint: str) -> None:
    path = tmp_path / "train"
    path.write_text(text)
    path.chmod(0o755)
    with pytest.raises(HotlapError, match=f"cannot be executed: {why}") as err:
        run_script(check_command([str(path)]), os.environ)
    assert err.value.exit_code == 2 and hint in err.value.hint


WITHOUT = """
import signal
del signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT
from hotlap.inject.run_script import PASSED_ON, THE_TERMINALS
print(*[n.name for n in PASSED_ON + THE_TERMINALS])
"""


def test_a_system_without_some_signals() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "SIGTERM SIGINT\n"


def test_what_the_shell_opened_for_the_script_is_open_in_it() -> None:
    """``hotlap run -- python cat.py <(zcat data)`` hands it over as an open file; none of ours is."""
    script = "import os, sys; sys.exit(int(os.read(int(sys.argv[1]), 9)))"
    host = (
        "import os, sys; from hotlap.inject.run_script import run_script; ours = open(os.devnull)\n"
        "sys.exit(run_script([sys.executable, '-c', *sys.argv[1:]], os.environ))"
    )
    reading, writing = os.pipe()
    os.write(writing, b"7")
    os.close(writing)
    try:
        done = subprocess.run([sys.executable, "-c", host, script, str(reading)], pass_fds=[reading], timeout=60)
    finally:
        os.close(reading)
    assert done.returncode == 7
    seen = "import os; print(sorted(map(int, os.listdir('/proc/self/fd')))[:-1])"
    told = subprocess.run([sys.executable, "-c", host, seen], capture_output=True, text=True, timeout=60).stdout
    assert told == "[0, 1, 2]\n" or not Path("/proc/self/fd").exists()
