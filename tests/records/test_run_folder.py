"""The run folder: names, atomic writes (also on a full disk), listing; and what errors say."""

from __future__ import annotations

import errno
import os
import socket
import time
from pathlib import Path

import pytest

from hotlap.records.errors import EXIT_FAILED, EXIT_USAGE, HotlapError, RecordError
from hotlap.records.plan import Plan
from hotlap.records.run_folder import RunFolder, list_runs, write_atomic


def test_two_runs_in_one_second_get_two_folders_that_git_ignores(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    found = {RunFolder.create("dir/my train.py", runs).path.name for _ in range(3)}
    assert len(found) == 3 and all("my-train" in name for name in found)
    assert (runs / ".gitignore").read_text() == "*\n"


def test_an_array_of_tasks_that_start_in_one_second_all_get_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "strftime", lambda form: "20260301-101500-")
    few = [RunFolder.create("train.py", tmp_path).path.name for _ in range(9)]
    assert few == sorted(few) and few[:2] == ["20260301-101500-train", "20260301-101500-train-2"]
    monkeypatch.setattr(socket, "gethostname", lambda: "node7.cluster")
    for process in range(110):
        monkeypatch.setattr(os, "getpid", lambda number=5000 + process: number)
        few.append(RunFolder.create("train.py", tmp_path).path.name)
    assert len(set(few)) == 119 and few[-1] == "20260301-101500-train-node7-5109"
    assert RunFolder.create("train.py", tmp_path).path.name == f"{few[-1]}-2", "a process may begin two"


def test_a_folder_of_the_users_keeps_its_files_in_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    RunFolder.create("train.py", tmp_path)
    assert not (tmp_path / ".gitignore").exists()
    (tmp_path / ".hotlap").mkdir()
    RunFolder.create("train.py", tmp_path / ".hotlap")
    assert (tmp_path / ".hotlap" / ".gitignore").exists(), "that one is ours, whoever made it"

    def full(*args: object, **more: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", full)
    assert RunFolder.create("train.py", tmp_path / "new").path.is_dir()


def test_documents_come_back_and_what_is_missing_is_none(tmp_path: Path) -> None:
    run = RunFolder.create("train.py", tmp_path)
    run.write("plans/fast.json", Plan([], script="train.py"))
    assert run.read("plans/fast.json", Plan) == Plan([], script="train.py")
    assert run.read("proof.json", Plan) is None
    assert run.timeline_dir("baseline").is_dir()


def test_a_broken_document_is_named_by_its_path(tmp_path: Path) -> None:
    run = RunFolder.create("train.py", tmp_path)
    (run.path / "plan.json").write_text('{"moves": [], "speed": 3}')
    with pytest.raises(RecordError, match=r"plan\.json has an unknown key 'speed'. Did you mean 'speedup'"):
        run.read("plan.json", Plan)


def test_a_command_with_a_byte_that_is_no_text_has_its_page(tmp_path: Path) -> None:
    write_atomic(tmp_path / "report.html", "python train.py --data /srv/Donn\udce9es")
    assert (tmp_path / "report.html").read_text("utf-8").endswith("/srv/Donn?es")


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_document_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    path = tmp_path / "findings.json"
    write_atomic(path, "old")

    def full(*args: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, broken, full)
    with pytest.raises(HotlapError, match=r"Cannot write .*findings\.json: No space left on device. Free some space"):
        write_atomic(path, "new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["findings.json"]


def test_a_document_that_cannot_be_said_in_json_leaves_no_file(tmp_path: Path) -> None:
    run = RunFolder.create("train.py", tmp_path)
    with pytest.raises(ValueError, match="JSON"):
        run.write("plan.json", Plan([], speedup=float("inf")))
    assert not (run.path / "plan.json").exists()


def test_a_place_that_cannot_be_written_is_said_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HotlapError, match=r"Cannot make the run folder .*--runs DIR"):
        RunFolder.create("train.py", tmp_path / "file")


def test_runs_are_listed_oldest_first(tmp_path: Path) -> None:
    assert list_runs(tmp_path / "none") == []
    for name in ("20260102-000000-b", "20260101-000000-a", "unfinished"):
        (tmp_path / name).mkdir()
    for name in ("20260102-000000-b", "20260101-000000-a"):
        (tmp_path / name / "run.json").write_text("{}")
    assert [run.path.name for run in list_runs(tmp_path)] == ["20260101-000000-a", "20260102-000000-b"]


def test_errors_say_what_then_what_to_do() -> None:
    err = HotlapError("The disk is full.", "Free some space.")
    assert str(err) == "The disk is full. Free some space." and err.exit_code == EXIT_FAILED
    assert str(HotlapError("Only what.")) == "Only what."
    assert RecordError("Wrong.").exit_code == EXIT_USAGE


class _Killed(BaseException):
    """What kill -9 is to the code around it: the end, with no cleaning up."""


def test_a_kill_leaves_nothing_beside_the_users_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    users, ours = tmp_path / "project", tmp_path / "project" / ".hotlap"
    ours.mkdir(parents=True)

    def killed(*_: object) -> None:
        raise _Killed

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", killed)
        with pytest.raises(_Killed):
            write_atomic(users / "fast.yaml", "moves: []\n", aside=ours)
    assert [path.name for path in users.iterdir()] == [".hotlap"]
    write_atomic(users / "fast.yaml", "moves: []\n", aside=ours)
    assert (users / "fast.yaml").read_text() == "moves: []\n"


def test_text_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_bytes(b"{}\xff")
    with pytest.raises(RecordError, match=r"run\.json is not UTF-8 text: .* byte 2"):
        RunFolder(tmp_path).read("run.json", Plan)


def test_a_file_that_cannot_be_written_says_what_to_do_instead(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "x.json", tmp_path / "gone" / "x.json", tmp_path):
        with pytest.raises(HotlapError, match=r"Cannot write .* Name a file in a folder that you can write\."):
            write_atomic(path, "text")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_document_that_is_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.json")
    with pytest.raises(RecordError, match=r"run\.json is no regular file"):
        RunFolder(tmp_path).read("run.json", Plan)


@pytest.mark.parametrize("data", [b"{", b"\xff", b'{"moves": 3}', b'{"moves": [], "schema": "hotlap.plan/0x"}'])
def test_a_spoilt_document_says_what_to_do(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "plan.json").write_bytes(data)
    with pytest.raises(RecordError) as err:
        RunFolder(tmp_path).read("plan.json", Plan)
    assert str(tmp_path / "plan.json") in err.value.what and err.value.hint
