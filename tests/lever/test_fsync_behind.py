"""The lever that pays fsync later: nothing overtakes what is owed, nothing stays owed."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hotlap.lever import owed_syncs
from hotlap.lever.registry import lever
from hotlap.testing.lever_kit import findings_of
from hotlap.testing.lever_target import LocalTarget


class Disk:
    """Remembers what was really forced, in order."""

    def __init__(self) -> None:
        self.forced: list[str] = []
        self.error: OSError | None = None

    def fsync(self, fd: object) -> None:
        if self.error is not None:
            raise self.error
        number = fd if isinstance(fd, int) else fd.fileno()  # type: ignore[attr-defined]
        self.forced.append(os.path.basename(os.readlink(f"/proc/self/fd/{number}")))


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    found = Disk()
    monkeypatch.setattr(os, "fsync", found.fsync)
    return found


@pytest.fixture
def target(disk: Disk, tmp_path: Path) -> Iterator[LocalTarget]:
    with LocalTarget(str(tmp_path)) as found:
        lever("fsync-behind").apply(found, {"within_s": 3.0})
        yield found


def force(path: Path, times: int) -> None:
    with open(path, "a") as file:
        for _ in range(times):
            file.write("line\n")
            file.flush()
            os.fsync(file.fileno())


def test_a_log_is_forced_later_and_at_the_end(disk: Disk, tmp_path: Path) -> None:
    with LocalTarget(str(tmp_path)) as target:
        lever("fsync-behind").apply(target, {"within_s": 3.0})
        force(tmp_path / "log", 10)
        assert disk.forced == ["log", "log"] and target.changes == 8
        assert (tmp_path / "log").read_text() == "line\n" * 10, "every reader sees it at once"
    assert disk.forced == ["log"] * 3, "one for the eight that were owed"
    assert not any(t.name == "hotlap-fsync" for t in threading.enumerate())


def test_it_is_paid_in_time(disk: Disk, tmp_path: Path) -> None:
    with LocalTarget(str(tmp_path)) as target:
        lever("fsync-behind").apply(target, {"within_s": 0.05})
        force(tmp_path / "log", 5)
        limit = time.monotonic() + 10
        while len(disk.forced) < 3 and time.monotonic() < limit:
            time.sleep(0.01)
        assert disk.forced == ["log"] * 3


def test_nothing_overtakes_what_is_owed(disk: Disk, target: LocalTarget, tmp_path: Path) -> None:
    force(tmp_path / "log", 5)
    force(tmp_path / "checkpoint", 1)
    assert disk.forced == ["log", "log", "log", "checkpoint"], "a new file is forced at once, after what is owed"
    force(tmp_path / "log", 5)
    os.replace(tmp_path / "checkpoint", tmp_path / "latest")
    assert disk.forced[4:] == ["log"]
    os.remove(tmp_path / "latest")
    assert disk.forced[4:] == ["log"], "nothing was owed any more"


def test_an_error_of_the_disk_is_raised(disk: Disk, tmp_path: Path) -> None:
    with LocalTarget(str(tmp_path)) as target:
        lever("fsync-behind").apply(target, {"within_s": 3.0})
        force(tmp_path / "log", 5)
        disk.error = OSError(5, "Input/output error")
        os.rename(tmp_path / "log", tmp_path / "old")
        disk.error = None
        with pytest.raises(OSError, match="Input/output"):
            force(tmp_path / "old", 1)


def test_what_cannot_be_forced_fails_as_before(disk: Disk, target: LocalTarget) -> None:
    with pytest.raises((OSError, FileNotFoundError)):
        os.fsync(987654)


def test_a_forked_child_owes_nothing(disk: Disk, target: LocalTarget, tmp_path: Path) -> None:
    force(tmp_path / "log", 5)
    child = os.fork()
    if child == 0:
        force(tmp_path / "log", 1)
        os._exit(0 if disk.forced == ["log", "log", "log"] else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert disk.forced == ["log", "log"], "the parent still owes its own"


def is_locked(path: Path) -> bool:
    """Whether another process meets a record lock on the file."""
    child = os.fork()
    if child == 0:
        try:
            with open(path, "r+") as file:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


def test_the_scripts_record_locks_stay(disk: Disk, tmp_path: Path) -> None:
    """Any close of a file, by whatever descriptor, lets go of all that the process holds on it."""
    with open(tmp_path / "log", "a") as held, LocalTarget(str(tmp_path)) as target:
        lever("fsync-behind").apply(target, {"within_s": 3.0})
        fcntl.lockf(held, fcntl.LOCK_EX)
        for _ in range(2):
            for _ in range(5):
                os.fsync(held.fileno())
            (tmp_path / "paid").touch()
            os.remove(tmp_path / "paid")
        assert disk.forced == ["log"] * 4 and is_locked(tmp_path / "log")


def test_a_lock_of_the_whole_file_goes_with_the_scripts_descriptor(target: LocalTarget, tmp_path: Path) -> None:
    for _ in range(5):
        with open(tmp_path / "log", "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.fsync(file.fileno())


def test_few_descriptors_are_kept(
    disk: Disk, target: LocalTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owed_syncs, "MOST_KEPT", 2)
    before = len(os.listdir("/proc/self/fd"))
    for name in "abc":
        force(tmp_path / name, 4)
    assert len(os.listdir("/proc/self/fd")) == before + 2
    assert disk.forced == ["a"] * 3 + ["b"] * 3 + ["c"] * 4 and target.changes == 4


def test_a_log_that_is_gone_is_not_kept(target: LocalTarget, tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    force(tmp_path / "old", 4)
    os.remove(tmp_path / "old")
    force(tmp_path / "new", 4)
    os.remove(tmp_path / "new")
    assert len(os.listdir("/proc/self/fd")) == before + 1, "what was removed behind the last payment"


def test_nearly_all_of_the_time_inside_fsync_is_predicted_to_go() -> None:
    """Not what else the logging costs: of 30 ms of logging, 20 are inside fsync."""
    findings = findings_of("logging-forced")
    finding = replace(findings.findings[0], evidence={"fsync_s": 0.02})
    gain = lever("fsync-behind").gain(finding, findings, {"within_s": 0.5})
    assert (gain.low_s, gain.high_s) == pytest.approx((0.018, 0.02))
