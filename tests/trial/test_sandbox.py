"""A sandboxed command sees the file system as it is and changes nothing in it."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from hotlap.records.errors import HotlapError
from hotlap.trial import sandbox as module
from hotlap.trial.sandbox import Sandbox, available, launcher

HARM = """
import os, pathlib, subprocess, sys
folder = pathlib.Path(sys.argv[1]); os.chdir(folder)
(folder / "model.pt").write_bytes(b"overwritten")
(folder / "old.txt").unlink()
with open("log.txt", "a") as log: log.write("appended")
if os.geteuid() == 0 and sys.argv[2] == "root": os.rename("data", "renamed")
(folder / "new").mkdir(); (folder / "new/file").write_text("x")
pathlib.Path.home().joinpath("hotlap-test-stray").write_text("x")
code = f"import time; time.sleep(0.5); open({str(folder / 'late')!r}, 'w').write('x'); time.sleep(60)"
subprocess.Popen([sys.executable, "-c", code, "stray-daemon-of-a-test"], start_new_session=True)
assert (folder / "model.pt").read_bytes() == b"overwritten"
(folder / "kept" / "timeline").write_text("kept")
print(os.getcwd(), sys.argv[3:], os.environ["MARK"])
sys.exit(3)
"""


def hash_tree(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.name == "kept" or path.parent.name == "kept":
            continue
        facts = path.lstat()
        digest.update(f"{path} {facts.st_mode} {facts.st_mtime_ns} {facts.st_ino}".encode())
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()


def strays(word: str) -> list[int]:
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        if word in (process.info["cmdline"] or []) and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process.pid)
    return found


def works(mode: str) -> bool:
    return sys.platform.startswith("linux") and module._try(mode, ["--no-folders"]) is None


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "user" / "data").mkdir(parents=True)
    (tmp_path / "user" / "kept").mkdir()
    for name in ("model.pt", "old.txt", "log.txt", "data/a.wav"):
        (tmp_path / "user" / name).write_text(name)
    (tmp_path / "harm.py").write_text(HARM)
    return tmp_path / "user"


@pytest.mark.parametrize("mode", ["root", "userns"])
def test_the_users_folder_is_untouched(mode: str, folder: Path) -> None:
    if not works(mode):
        pytest.skip(f"no sandbox of kind {mode} here")
    before = hash_tree(folder)
    box = Sandbox(mode, (folder / "kept",), None, 64 << 20)
    command = [sys.executable, str(folder.parent / "harm.py"), str(folder), mode, "a b", "--x=*"]
    done = subprocess.run(
        box.wrap(command), cwd=folder, env={**os.environ, "MARK": "seen"}, capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 3, done.stderr
    assert done.stdout.split() == [str(folder), "['a", "b',", "'--x=*']", "seen"]
    assert (folder / "kept" / "timeline").read_text() == "kept"
    assert not strays("stray-daemon-of-a-test")
    time.sleep(0.6)  # the daemon would have written by now
    assert not (Path.home() / "hotlap-test-stray").exists()
    assert hash_tree(folder) == before


@pytest.mark.parametrize("mode", ["root", "userns"])
def test_a_file_has_other_content_in_the_sandbox_alone(mode: str, folder: Path) -> None:
    if not works(mode):
        pytest.skip(f"no sandbox of kind {mode} here")
    config, new = folder / "config.yaml", folder / "kept" / "new.yaml"
    config.write_text("interval: 1 # and so on\n")
    new.write_text("interval: 2\n")
    (folder / "link.yaml").symlink_to(config)
    before = hash_tree(folder)
    box = Sandbox(mode, (folder / "kept",), None, 64 << 20)
    for named in ("config.yaml", "link.yaml"):
        command = box.wrap(["cat", "config.yaml"], {folder / named: new})
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=30)
        assert (done.returncode, done.stdout, done.stderr) == (0, "interval: 2\n", "")
    assert hash_tree(folder) == before and config.read_text() == "interval: 1 # and so on\n"


@pytest.mark.parametrize("mode", ["root", "userns"])
def test_a_file_that_stays_real_is_never_given_other_content(mode: str, folder: Path) -> None:
    if not works(mode):
        pytest.skip(f"no sandbox of kind {mode} here")
    config, new = folder / "kept" / "config.yaml", folder / "new.yaml"
    config.write_text("1")
    new.write_text("2")
    box = Sandbox(mode, (folder / "kept",), None, 64 << 20)
    done = subprocess.run(box.wrap(["true"], {config: new}), cwd=folder, capture_output=True, text=True, timeout=30)
    assert done.returncode == module.FAILED and config.read_text() == "1"
    assert done.stderr.startswith(module.SAYS) and "stays real, so its values cannot be changed" in done.stderr


@pytest.mark.skipif(not sys.platform.startswith("linux") or os.geteuid() != 0, reason="needs root to become a user")
def test_a_user_without_privileges_is_protected_too(folder: Path) -> None:
    python = "/usr/bin/python3"  # a test's own Python may lie in a folder that other users cannot enter
    if not os.access(python, os.X_OK):
        pytest.skip("no system Python")
    for path in (folder, *folder.rglob("*")):
        os.chown(path, 12345, 12345)
    top = folder
    while top != top.parent:  # pytest makes its folders for the owner alone
        top = top.parent
        if top.stat().st_mode & 0o777 == 0o700:
            top.chmod(0o711)
    before = hash_tree(folder)
    words = launcher(
        "userns", [f"--keep={folder}/kept"], ["sh", "-c", "echo x > model.pt; echo y > kept/k; id -u; cat model.pt"]
    )
    enter = folder.parent / "launcher"
    enter.mkdir()
    for name in ("enter.py", "layers.py"):
        (enter / name).write_text(module.LAUNCHER.with_name(name).read_text())
    words = [python, "-I", "-S", str(enter / "enter.py"), *words[4:]]
    done = subprocess.run(
        words, cwd=folder, user=12345, group=12345, extra_groups=[], capture_output=True, text=True, timeout=30,
        env={"PATH": os.environ["PATH"], "HOME": str(folder)},
    )  # fmt: skip
    if "namespaces" in done.stderr:
        pytest.skip(f"no user namespaces here: {done.stderr}")
    assert (done.returncode, done.stdout.split()) == (0, ["12345", "x"]), done.stderr
    assert hash_tree(folder) == before and (folder / "kept" / "k").read_text() == "y\n"


needs_sandbox = pytest.mark.skipif(available() == "none", reason="no sandbox here")


@needs_sandbox
def test_the_network_and_devices_stay(folder: Path) -> None:
    code = (
        "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); "
        "socket.create_connection(s.getsockname()); open('/dev/null', 'w').write('x'); print('ok')"
    )
    box = Sandbox.plan([folder / "kept"], None)
    done = subprocess.run(box.wrap([sys.executable, "-c", code]), capture_output=True, text=True, timeout=30)
    assert done.stdout == "ok\n", done.stderr


@needs_sandbox
def test_exit_codes_and_signals_come_through() -> None:
    box = Sandbox.plan([], None)
    for code, expected in (("exit 0", 0), ("exit 77", 77), ("kill -TERM $$", -15), ("kill -9 $$", -9)):
        assert subprocess.run(box.wrap(["sh", "-c", code]), timeout=30).returncode == expected
    missing = subprocess.run(box.wrap(["no-such-program"]), capture_output=True, text=True, timeout=30)
    assert missing.returncode == 127 and "cannot start no-such-program" in missing.stderr


@needs_sandbox
def test_a_full_layer_is_the_trials_problem_alone(folder: Path) -> None:
    box = Sandbox(available(), (), None, 1 << 20)
    code = "open('big', 'wb').write(bytes(8 << 20))"
    done = subprocess.run(
        box.wrap([sys.executable, "-c", code]), cwd=folder, capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 1 and "No space left on device" in done.stderr
    assert not (folder / "big").exists()


@needs_sandbox
def test_killing_the_launchers_parent_ends_everything(folder: Path) -> None:
    box = Sandbox.plan([], None)
    inner = box.wrap([sys.executable, "-c", "import time; time.sleep(60)", "orphan-of-a-test"])
    code = f"import subprocess; subprocess.Popen({inner!r}).wait()"
    parent = subprocess.Popen([sys.executable, "-c", code])
    until = time.monotonic() + 10
    while len(strays("orphan-of-a-test")) < 3 and time.monotonic() < until:
        time.sleep(0.05)
    assert len(strays("orphan-of-a-test")) == 3  # launcher, init, command
    parent.kill()
    parent.wait()
    until = time.monotonic() + 5
    while strays("orphan-of-a-test") and time.monotonic() < until:
        time.sleep(0.05)
    assert not strays("orphan-of-a-test")


def test_no_permission_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_tried", lambda: ("none", "unshare: Operation not permitted"))
    with pytest.raises(HotlapError, match="Operation not permitted") as caught:
        Sandbox.plan([], None)
    assert "--no-sandbox" in caught.value.hint and "--cap-add" in caught.value.hint


@needs_sandbox
def test_a_folder_that_cannot_be_covered_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/")
    if not os.access("/", os.W_OK):
        pytest.skip("/ cannot be written here anyway")
    with pytest.raises(HotlapError, match="/ cannot be covered"):
        Sandbox.plan([tmp_path], None)


def test_a_kept_path_must_exist(tmp_path: Path) -> None:
    if available() == "none":
        pytest.skip("no sandbox here")
    with pytest.raises(HotlapError, match="does not exist"):
        Sandbox.plan([tmp_path / "nowhere"], None)
