"""Rows on their way to the disk: a disk that refuses costs what it refused, and nothing that comes later."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from hotlap.probe import load_time
from hotlap.probe.load_time import LoadMeter
from hotlap.probe.recorder import Recorder
from hotlap.probe.writer import Writer, free_path
from hotlap.records.rows import End, Load, Note
from hotlap.records.timeline import read_timeline
from hotlap.testing.timelines import TimelineBuilder


@pytest.mark.parametrize("taken", [None, 20])
@pytest.mark.parametrize("refused", [1, 2])
def test_a_disk_that_is_full_at_first_gets_the_header_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: int | None, refused: int
) -> None:
    """``taken``: bytes that it still takes of the first write; None: it raises."""
    left, write = [refused], os.write

    def full(fd: int, data: bytes) -> int:
        if not left[0]:
            return write(fd, data)
        left[0] -= 1
        if taken is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(fd, data[:taken])

    monkeypatch.setattr(os, "write", full)
    rec, header = Recorder(), TimelineBuilder().build().header
    writer = Writer(rec, str(tmp_path / "100.jsonl"), 1.0, lambda: header)
    rec.sign_of_training()
    rec.emit(Note("first", "lost"))
    writer.flush()
    rec.emit(Note("second", "kept"))
    writer.close(End(1, "exit"))
    found = read_timeline(tmp_path / "100.jsonl")
    assert found is not None and found.header == header and found.end is not None
    assert [note.what for note in found.note] == (["second"] if refused == 1 else []) and writer.file.lost == refused


def test_a_worker_that_got_the_process_id_of_an_earlier_one_has_a_file_of_its_own(tmp_path: Path) -> None:
    first = free_path(str(tmp_path), "worker-7")
    Path(first).touch()
    second = free_path(str(tmp_path), "worker-7")
    assert second != first and os.path.basename(second).startswith("worker-") and second.endswith(".jsonl")


@pytest.mark.parametrize(("most_s", "gap_s"), [(15.0, 20.0), (0.0, 40.0)])
def test_a_guard_hears_of_loading_often_enough_however_old_the_run(
    monkeypatch: pytest.MonkeyPatch, most_s: float, gap_s: float
) -> None:
    now, rows = [10**9], list[Load]()
    monkeypatch.setattr(load_time, "time", SimpleNamespace(monotonic_ns=lambda: now[0]))
    monkeypatch.setattr(load_time, "_thread_read_bytes", lambda: None)
    meter = LoadMeter(rows.append, lambda: False, most_s)
    for _ in range(20 * 3600 // 10):
        now[0] += 10 * 10**9
        meter.fetched(10**9, 10**8, 32)
    assert (rows[-1].t - rows[-2].t) / 1e9 == gap_s
