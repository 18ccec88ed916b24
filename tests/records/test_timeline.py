"""Reading timelines: a crash costs the torn line alone; corruption and newer versions are said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hotlap.records.codec import encode
from hotlap.records.errors import RecordError
from hotlap.records.rows import PHASES, SCHEMA, End, Frame, Header, Load, Note, Stack, Step
from hotlap.records.timeline import ROW_KINDS, read_timeline, training_timeline


def header(**changed: Any) -> Header:
    values: dict[str, Any] = {
        "schema": SCHEMA, "hotlap": "0.1.0", "role": "train", "pid": 10, "ppid": 1, "rank": 0, "world": 1,
        "argv": ["train.py"], "cwd": "/home", "python": "3.11", "torch": "2.13", "device": "cpu", "t": 0, "unix_s": 1.0,
    }  # fmt: skip
    return Header(**{**values, **changed})


def step(i: int, n: int = 1) -> Step:
    return Step(i, n, i * 10**6, n * 10**6, [None] * len(PHASES), 32, 1, l=[0.5])


def line(row: Any) -> bytes:
    return json.dumps({"k": type(row).__name__.lower(), **encode(row)}).encode() + b"\n"


def write(path: Path, *rows: Any, tail: bytes = b"") -> Path:
    path.write_bytes(b"".join(line(row) for row in rows) + tail)
    return path


def test_rows_land_where_they_belong(tmp_path: Path) -> None:
    rows = [step(0), step(1, 4), Frame(3, "a.py", 7, "f", True), Stack(1, [3]), Note("sync", "odd"), End(9, "exit")]
    found = read_timeline(write(tmp_path / "t.jsonl", header(), *rows))
    assert found is not None
    assert found.n_steps == 5 and found.frame[3].line == 7 and found.stack[1].f == [3] and found.end == End(9, "exit")
    assert found.note == [Note("sync", "odd")]


def test_every_kind_of_row_has_a_place() -> None:
    assert set(ROW_KINDS) == {kind.__name__.lower() for kind in ROW_KINDS.values()}


@pytest.mark.parametrize("cut", [1, 7, 30])
def test_a_torn_last_line_is_dropped_and_the_rest_read(tmp_path: Path, cut: int) -> None:
    found = read_timeline(write(tmp_path / "t.jsonl", header(), step(0), tail=line(step(1))[:-cut]))
    assert found is not None and found.n_steps == 1 and found.end is None


def test_nothing_whole_yet_is_no_timeline(tmp_path: Path) -> None:
    assert read_timeline(write(tmp_path / "empty.jsonl")) is None
    assert read_timeline(write(tmp_path / "torn.jsonl", tail=line(header())[:-20])) is None


@pytest.mark.parametrize(
    ("middle", "message"),
    [
        (b'{"k": "step", "i": 0,\n', r"t\.jsonl:2 is corrupt"),
        (b"\x00\x00\xff\n", r"t\.jsonl:2 is corrupt"),
        (b"9" * 5000 + b"\n", r"t\.jsonl:2 is corrupt"),
        (b"[" * 100_000 + b"\n", r"t\.jsonl:2 is corrupt"),
        (b'{"k": "dance"}\n', r"t\.jsonl:2 is not a timeline row"),
        (b"[1, 2]\n", r"t\.jsonl:2 is not a timeline row"),
        (b'{"k": "note", "what": "x"}\n', r"t\.jsonl:2 lacks the key 'why'"),
        (b'{"k": ["step"]}\n', r"t\.jsonl:2 is not a timeline row"),
        (b'{"k": "tick", "t": ' + b"9" * 5000 + b"}\n", r"t\.jsonl:2 is corrupt"),
        (b"[" * 100_000 + b"\n", r"t\.jsonl:2 is corrupt"),
        (line(header()), r"second header .* process 10"),
    ],
)
def test_a_corrupt_middle_is_named_by_file_and_line(tmp_path: Path, middle: bytes, message: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(line(header()) + middle + line(step(1)))
    with pytest.raises(RecordError, match=message):
        read_timeline(path)


def test_a_newer_version_says_upgrade(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="Upgrade Hotlap"):
        read_timeline(write(tmp_path / "t.jsonl", header(schema="hotlap.timeline/99")))


def test_a_file_must_begin_with_its_header(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r":1 is not a timeline header"):
        read_timeline(write(tmp_path / "t.jsonl", step(0)))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"none\.jsonl: No such file"):
        read_timeline(tmp_path / "none.jsonl")


def test_the_process_that_trained_is_found_with_its_workers(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", header(pid=10, rank=1), *[step(i) for i in range(9)])
    write(tmp_path / "b.jsonl", header(pid=11, rank=0), step(0))
    write(tmp_path / "c.jsonl", header(pid=12, rank=0), step(0), step(1))
    write(tmp_path / "d.jsonl", header(pid=13, rank=0))
    load = Load(0, 5, 1, 32, 2, 1, 3)
    write(tmp_path / "w.jsonl", header(role="worker", pid=20, ppid=12, worker=0), load)
    write(tmp_path / "x.jsonl", header(role="worker", pid=21, ppid=11, worker=0), load)
    best = training_timeline(tmp_path)
    assert best is not None and best.header.pid == 12
    assert [w.header.pid for w in best.workers] == [20]
    assert training_timeline(tmp_path / "nowhere") is None


def test_processes_that_train_at_the_same_time_are_counted(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", header(pid=10), *[step(i) for i in range(9)])
    write(tmp_path / "b.jsonl", header(pid=11), *[step(i) for i in range(3, 6)])
    write(tmp_path / "c.jsonl", header(pid=12), *[step(i) for i in range(20, 24)])
    write(tmp_path / "d.jsonl", header(pid=13))
    best = training_timeline(tmp_path)
    assert best is not None and best.header.pid == 12 and best.beside == 0, "it trains by itself, after the others"
    write(tmp_path / "c.jsonl", header(pid=12))
    best = training_timeline(tmp_path)
    assert best is not None and best.header.pid == 10 and best.beside == 1
    write(tmp_path / "a.jsonl", header(pid=10, world=2), *[step(i) for i in range(9)])
    write(tmp_path / "b.jsonl", header(pid=11, world=2, rank=1), *[step(i) for i in range(3, 6)])
    best = training_timeline(tmp_path)
    assert best is not None and len(best.ranks) == 1 and best.beside == 0, "a rank"
