"""What a run starts with: read without harm, without git too, and never in the way of the run."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from hotlap.machine import origin as origin_module
from hotlap.machine.origin import read_origin
from hotlap.machine.packages import find_sites, read_packages
from hotlap.machine.repository import read_repository
from hotlap.records.codec import dumps, loads
from hotlap.records.origin import Origin
from hotlap.records.plan import Move

COMMAND = ["python", "train.py"]


def git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One commit of two files on a branch, with the script's folder below the top."""
    top = tmp_path / "my project"
    (top / "src").mkdir(parents=True)
    (top / "src" / "train.py").write_text("print('train')\n")
    (top / "data.py").write_text("clips = 3\n")
    git(tmp_path, "init", "-q", "-b", "trunk", str(top))
    git(top, "add", ".")
    git(top, "commit", "-qm", "one")
    monkeypatch.chdir(top / "src")
    return top


def fake_git(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    folder.mkdir()
    (folder / "git").write_text(f"#!/bin/sh\n{body}\n")
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def ended(pid: int) -> bool:
    """Whether the process is gone within two seconds (or dead, and nobody has collected it)."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_commit_branch_and_changed_files(repository: Path) -> None:
    clean = read_origin(COMMAND)
    assert clean.repository == str(repository) and clean.script == str(repository / "src" / "train.py")
    assert clean.commit == git(repository, "rev-parse", "HEAD") and clean.branch == "trunk"
    assert clean.changed == [] and list(clean.texts) == ["src/train.py"] and clean.notes == []
    assert clean.tracked is True
    (repository / "data.py").write_text("clips = 4\n")
    git(repository, "mv", "src/train.py", "src/train two.py")
    (repository / "untracked.py").write_text("")
    changed = read_origin(["torchrun", "--nproc", "2", "train two.py"])
    assert sorted(changed.changed or []) == ["data.py", "src/train two.py"]
    assert changed.texts["src/train two.py"] == clean.texts["src/train.py"] and "data.py" in changed.texts
    assert loads(Origin, dumps(changed)) == changed


def test_the_old_name_of_a_renamed_file_is_no_row(repository: Path) -> None:
    (repository / "1 a b c d e f old.py").write_text("some text of its own\n" * 9)
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "two")
    git(repository, "mv", "1 a b c d e f old.py", "new.py")
    assert read_origin(COMMAND).changed == ["new.py"]


def test_a_script_that_git_does_not_track_is_told_apart_by_its_text(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = repository / "scratch"
    scratch.mkdir()
    (scratch / "train.py").write_text("1\n")
    (scratch / "data.py").write_text("2\n")
    monkeypatch.chdir(scratch)
    found = read_origin(COMMAND)
    assert found.tracked is False and found.changed == [] and found.commit is not None
    assert sorted(found.texts) == ["scratch/data.py", "scratch/train.py"]


def test_reading_takes_no_lock_and_writes_nothing(repository: Path) -> None:
    os.utime(repository / "data.py", (1, 1))  # `git status` by itself would refresh its index for this
    index = repository / ".git" / "index"
    before = (index.stat().st_ino, index.read_bytes())
    assert read_origin(COMMAND).changed == []
    assert (index.stat().st_ino, index.read_bytes()) == before
    (repository / ".git" / "index.lock").touch()  # somebody commits right now
    assert read_origin(COMMAND).changed == []


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("echo 'fatal: detected dubious ownership' >&2; exit 128", "dubious ownership"),
        ('sleep 60 & echo $! > "$CHILD"; sleep 60', "took more than 0.2 s"),
    ],
)
def test_without_a_word_from_git_the_commit_is_read_by_hand(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, why: str
) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    child = tmp_path / "child"
    monkeypatch.setenv("CHILD", str(child))
    fake_git(tmp_path / "bin", monkeypatch, body)
    began = time.monotonic()
    found = read_repository(repository / "src", repository / "src" / "train.py", timeout_s=0.2)
    assert time.monotonic() - began < 5
    assert found is not None and (found.commit, found.branch, found.changed) == (commit, "trunk", None)
    assert why in found.note and "Which files were changed is not known" in found.note
    assert not child.exists() or ended(int(child.read_text())), "what git had started goes with it"


def test_without_git_packed_references_worktrees_and_a_detached_head_are_read(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    git(repository, "worktree", "add", "-q", str(tmp_path / "tree"), "-b", "side")
    git(repository, "pack-refs", "--all")
    git(repository, "worktree", "add", "-q", "--detach", str(tmp_path / "loose"))
    git(repository, "worktree", "add", "-q", str(tmp_path / "late"), "-b", "later")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    for folder, branch in (
        (repository, "trunk"),
        (tmp_path / "tree", "side"),
        (tmp_path / "late", "later"),
        (tmp_path / "loose", None),
    ):
        found = read_repository(folder)
        assert found is not None and (found.commit, found.branch) == (commit, branch), folder
        assert "git is not installed" in found.note


def test_a_new_or_broken_repository_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(tmp_path, "init", "-q", "-b", "trunk", ".")
    found = read_repository(tmp_path)
    assert found is not None and (found.commit, found.branch, found.changed) == (None, "trunk", [])
    (tmp_path / ".git" / "HEAD").unlink()
    broken = read_repository(tmp_path)
    assert broken is not None and broken.commit is None and "could not be read" in broken.note


def test_a_hooks_variables_do_not_lead_to_another_repository(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    git(tmp_path / "other", "init", "-q")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    assert read_origin(COMMAND).commit is not None


def test_without_a_repository_the_files_beside_the_script_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("1\n")
    (tmp_path / "data.py").write_text("2\n")
    (tmp_path / "big.py").write_bytes(b"#" * (origin_module.MOST_BYTES + 1))
    found = read_origin(COMMAND)
    assert found.repository is None and sorted(found.texts) == ["data.py", "train.py"]
    assert read_origin(["python", "-m", "pkg.train"]).script is None


def test_what_fails_is_a_note_and_never_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(origin_module, "read_repository", broken)
    move = Move("tf32", {}, "maths")
    found = read_origin(COMMAND, [move], {"OMP_NUM_THREADS": "3", "SECRET_TOKEN": "x"})
    assert "planted" in found.notes[0] and found.moves == [move]
    assert found.variables == {"OMP_NUM_THREADS": "3"}


def test_packages_by_their_folders_of_the_commands_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "venv" / "lib" / "python3.12" / "site-packages"
    for name in ("torch-2.9.0+cu130.dist-info", "Typing_Extensions-4.1.dist-info", "old-1.0-py3.12.egg-info", "numpy"):
        (site / name).mkdir(parents=True)
    expected = {"old": "1.0", "torch": "2.9.0+cu130", "typing-extensions": "4.1"}
    assert read_packages([tmp_path / "gone", site]) == expected
    program = tmp_path / "venv" / "bin" / "torchrun"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert find_sites([str(program), "train.py"]) == [site]
    script = tmp_path / "train.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    program.rename(program.with_name("python"))
    monkeypatch.setenv("PATH", str(program.parent))
    assert find_sites([str(script)]) == [site], "a shell script calls the first python on the path"
    assert "torch" in read_packages(find_sites(["%%hotlap diagnose", "cell In[3]"])), "a cell runs in this process"
