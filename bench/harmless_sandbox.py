"""Does a trial harm anything? A script that does what it can to its own folder, run in the sandbox.

Functions for ``bench/harmless.py``; each returns a :class:`Check`. By itself: ``python bench/harmless_sandbox.py``.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from hotlap.records.errors import HotlapError
from hotlap.trial.arm import Arm, ArmSpec
from hotlap.trial.sandbox import Sandbox, available

__all__ = ["Check", "checks", "hash_tree", "processes_with"]

WORD = "hotlap-harmless-bench"
VANDAL = f"""
import os, pathlib, shutil, subprocess, sys, time
pathlib.Path("model.pt").write_bytes(os.urandom(1 << 20))
pathlib.Path("best.pt").unlink()
shutil.move("data", "data-renamed") if {os.geteuid() == 0} else None
with open("log.txt", "a") as log: log.write("again")
os.makedirs("new/deep"); pathlib.Path("new/deep/file").write_text("x")
os.chmod("script-made.sh", 0o700); os.utime("notes.txt", (0, 0))
os.symlink("log.txt", "link")
late = "import pathlib, time; time.sleep(1); pathlib.Path('late').write_text('x'); time.sleep(600)"
subprocess.Popen([sys.executable, "-c", late, {WORD!r}], start_new_session=True)
pathlib.Path.home().joinpath("{WORD}").write_text("x")
print("done", flush=True)
"""


@dataclass(frozen=True)
class Check:
    """One claim and whether it held."""

    name: str
    held: bool
    detail: str = ""


def hash_tree(folder: Path) -> str:
    """Names, kinds, modes, times and contents of everything below ``folder``."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        facts = path.lstat()
        digest.update(f"{path.relative_to(folder)} {facts.st_mode} {facts.st_mtime_ns} {facts.st_ino}\n".encode())
        if path.is_symlink():
            digest.update(os.readlink(path).encode())
        elif path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()


def processes_with(word: str) -> list[int]:
    """Living processes that have ``word`` as an argument."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        if word in (process.info["cmdline"] or []) and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process.pid)
    return found


def _until(test: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not test():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def _user_folder(base: Path) -> Path:
    folder = base / "user"
    (folder / "data").mkdir(parents=True)
    for name in ("model.pt", "best.pt", "log.txt", "notes.txt", "script-made.sh", "data/a.wav"):
        (folder / name).write_text(f"the user's {name}")
    return folder


def check_folder_untouched(base: Path) -> list[Check]:
    """A script that overwrites, deletes, renames, appends and leaves a daemon behind."""
    folder, runs = _user_folder(base), base / "runs"
    runs.mkdir()
    before = hash_tree(folder)
    box = Sandbox.plan([runs])
    spec = ArmSpec("vandal", [sys.executable, "-c", VANDAL], dict(os.environ), runs, folder, box, runs / "out.txt")
    arm = Arm(spec)
    arm.start()
    ended = _until(lambda: not arm.alive, 60)
    arm.stop()
    time.sleep(1.2)  # the daemon would have written by now
    said = spec.output.read_text()
    return [
        Check("the script ran to its end", ended and arm.exit_code == 0 and said.endswith("done\n"), said[-200:]),
        Check("its folder is byte-identical", hash_tree(folder) == before),
        Check("nothing new in the home folder", not (Path.home() / WORD).exists()),
        Check("its daemon is gone", not processes_with(WORD), str(processes_with(WORD))),
    ]


def check_killed_host(base: Path) -> list[Check]:
    """kill -9 of Hotlap while one arm runs and another one is frozen: no process is left."""
    code = f"""
import os, sys, time
from pathlib import Path
from hotlap.trial.arm import Arm, ArmSpec
from hotlap.trial.sandbox import Sandbox
base = Path({str(base)!r})
sleep = "import time; time.sleep(600)"
child = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {{sleep!r}}, {WORD!r}])"
command = [sys.executable, "-c", child + "; time.sleep(600)", {WORD!r}]
for name in ("running", "frozen"):
    (base / name).mkdir()
    box, output = Sandbox.plan([base / name]), base / (name + ".txt")
    arm = Arm(ArmSpec(name, command, dict(os.environ), base / name, base, box, output))
    arm.start()
    time.sleep(1.0)
    if name == "frozen":
        arm.freeze()
    globals()[name] = arm
print("ready", flush=True)
time.sleep(600)
"""
    host = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert host.stdout is not None
    ready = host.stdout.readline() == "ready\n"
    seen = len(processes_with(WORD))
    host.kill()
    host.wait()
    host.stdout.close()
    gone = _until(lambda: not processes_with(WORD), 10)
    return [
        Check("both arms were alive before the kill", ready and seen >= 4, f"{seen} processes"),
        Check("kill -9 of Hotlap leaves no process", gone, str(processes_with(WORD))),
    ]


def checks() -> list[Check]:
    """All checks; one failed check with the reason where no sandbox can be made."""
    if available() == "none":
        try:
            Sandbox.plan([])
        except HotlapError as err:
            return [Check("a sandbox can be made here", False, str(err))]
    with tempfile.TemporaryDirectory(prefix="harmless-") as first, tempfile.TemporaryDirectory() as second:
        return [*check_folder_untouched(Path(first)), *check_killed_host(Path(second))]


if __name__ == "__main__":
    results = checks()
    for result in results:
        print(f"{'ok  ' if result.held else 'FAIL'} {result.name} {'' if result.held else result.detail}")
    print(f"sandbox {available()}: {sum(r.held for r in results)} of {len(results)} checks held")
    sys.exit(not all(r.held for r in results))
