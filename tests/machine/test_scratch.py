"""Folders in memory go with their owner, also after kill -9; those of the living stay."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hotlap.machine import scratch
from hotlap.machine.scratch import launched_here, make_scratch, remove_scratch
from hotlap.records.errors import HotlapError

OTHER = "from hotlap.machine.scratch import make_scratch; print(make_scratch(), flush=True); input()"


def test_a_killed_owners_folder_is_removed_and_a_living_ones_is_not() -> None:
    owner = subprocess.Popen([sys.executable, "-c", OTHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    theirs = Path(owner.stdout.readline().strip())
    (theirs / "cache").write_bytes(b"x" * 1000)
    first = make_scratch()
    try:
        assert theirs.is_dir() and (theirs / "cache").exists()
        owner.kill()
        owner.wait()
        second = make_scratch()
        assert not theirs.exists() and first.is_dir()
        remove_scratch(second)
        assert not second.exists()
    finally:
        owner.kill()
        owner.communicate()
        remove_scratch(first)


@pytest.mark.parametrize(
    ("environment", "count"),
    [
        ({}, 1),
        ({"LOCAL_WORLD_SIZE": "4"}, 4),
        ({"SLURM_STEP_TASKS_PER_NODE": "4(x2),3"}, 4),
        ({"SLURM_STEP_TASKS_PER_NODE": "1(x16)", "LOCAL_WORLD_SIZE": "8"}, 8),
        ({"SLURM_NTASKS_PER_NODE": "4"}, 1),  # of the batch script, which may launch one command alone
        ({"MPI_LOCALNRANKS": ""}, 1),
    ],
)
def test_processes_that_make_a_folder_each(environment: dict[str, str], count: int) -> None:
    assert launched_here(environment) == count


def test_what_is_not_ours_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hotlap-by-hand").mkdir()
    (tmp_path / "hotlap-by-hand" / "notes").write_text("mine")
    (tmp_path / "hotlap-file").write_text("mine")
    scratch._remove_orphans(tmp_path)
    assert (tmp_path / "hotlap-by-hand" / "notes").exists() and (tmp_path / "hotlap-file").exists()


def test_a_folder_that_is_not_there_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(HotlapError, match="name another with --scratch"):
        make_scratch(tmp_path / "gone")


def test_a_folder_that_takes_no_files_is_an_error_for_people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As /proc is, which says that root may write there."""

    def refused(**options: object) -> str:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(scratch.tempfile, "mkdtemp", refused)
    with pytest.raises(HotlapError, match=r"No scratch folder can be made in .*: No such file .*--scratch"):
        make_scratch(tmp_path)
