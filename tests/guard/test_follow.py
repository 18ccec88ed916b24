"""Reading a timeline while it grows: in pieces, torn anywhere, folded when it gets long."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from guarded import write_timeline

from hotlap.guard import follow
from hotlap.guard.follow import FOLD, Follower, fold_hits, fold_loads, fold_steps
from hotlap.records.errors import RecordError
from hotlap.records.rows import Hits, Load
from hotlap.records.timeline import read_timeline
from hotlap.testing.timelines import TimelineBuilder


def test_pieces_make_the_whole(tmp_path: Path) -> None:
    timeline = TimelineBuilder().steps(60, forward=0.01).stack("forward", 3, ("train.py", 4, "main", "")).build()
    whole = write_timeline(timeline, tmp_path).read_bytes()
    folder = tmp_path / "growing"
    folder.mkdir()
    follower = Follower(folder)
    assert not follower.poll() and follower.training is None
    for end in range(0, len(whole) + 701, 701):
        (folder / "100.jsonl").write_bytes(whole[:end])
        follower.poll()
    assert follower.training == read_timeline(tmp_path / "100.jsonl")
    assert follower.samples == 60 * 32 and not follower.poll()


def test_a_row_without_an_end_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_timeline(TimelineBuilder().steps(60, forward=0.01).build(), tmp_path)
    with open(tmp_path / "100.jsonl", "a") as file:
        file.write("x" * 3000)
    monkeypatch.setattr(follow, "MOST_BYTES", 2000)
    follower = Follower(tmp_path)
    with pytest.raises(RecordError, match="is longer than 2000 bytes"):
        while True:
            follower.poll()


def test_a_command_that_trains_twice_is_followed_from_one_to_the_other(tmp_path: Path) -> None:
    first, second = TimelineBuilder().steps(50, forward=0.01).build(), TimelineBuilder().steps(9, forward=0.01).build()
    second = replace(second, header=replace(second.header, pid=101))
    write_timeline(first, tmp_path)
    follower = Follower(tmp_path)
    follower.poll()
    assert follower.training is not None and follower.training.header.pid == 100
    with open(tmp_path / "100.jsonl", "a") as file:
        file.write('{"k": "end", "t": 1, "reason": "exit"}\n')
    write_timeline(second, tmp_path)
    follower.poll()
    assert follower.training.header.pid == 101
    with open(tmp_path / "101.jsonl", "a") as file:
        file.write('{"k": "end", "t": 1, "reason": "exit"}\n')
    follower.poll()
    assert follower.training.header.pid == 101, "the last one, at the end"


def test_a_process_that_was_killed_is_left_for_the_one_that_took_its_place(tmp_path: Path) -> None:
    first = TimelineBuilder().steps(50, forward=0.01).build()
    second = TimelineBuilder(start_s=70.0).steps(9, forward=0.01).build()
    second = replace(second, header=replace(second.header, pid=101))
    beside = TimelineBuilder().steps(9, forward=0.01).build()
    beside = replace(beside, header=replace(beside.header, pid=102))
    write_timeline(first, tmp_path)
    write_timeline(beside, tmp_path)
    follower = Follower(tmp_path)
    follower.poll()
    assert follower.training is not None and follower.training.header.pid == 100, "both train at once"
    path = write_timeline(second, tmp_path)
    follower.poll()
    assert follower.training.header.pid == 101, "it began after the other's last step, which has no end"
    with open(path, "a") as file:
        file.write('{"k": "end", "t": 1, "reason": "exit"}\n')
    follower.poll()
    assert follower.training.header.pid == 101


def test_of_two_that_train_at_once_one_is_stayed_with_while_it_goes_on(tmp_path: Path) -> None:
    def wrote(pid: int, steps: int, start_s: float = 1.0, end: bool = False) -> None:
        made = TimelineBuilder(start_s=start_s).steps(steps, forward=0.1).build()
        path = write_timeline(replace(made, header=replace(made.header, pid=pid)), tmp_path)
        if end:
            path.write_text(path.read_text() + '{"k": "end", "t": 1, "reason": "exit"}\n')
        follower.poll()

    def followed() -> int:
        assert follower.training is not None
        return follower.training.header.pid

    follower = Follower(tmp_path)
    wrote(100, 50)
    assert followed() == 100
    wrote(101, 80)
    assert followed() == 100, "in the background, and ahead"
    wrote(102, 100, start_s=10.0)
    assert followed() == 100, "a probe for some seconds, while it waits"
    wrote(101, 700)
    assert followed() == 101, "for a minute it has made no step"
    wrote(100, 900)
    assert followed() == 101, "though it goes on"
    wrote(101, 700, end=True)
    assert followed() == 100


def test_what_is_no_timeline_is_told(tmp_path: Path) -> None:
    (tmp_path / "1.jsonl").write_text('{"k": "step"\n')
    with pytest.raises(RecordError, match="corrupt"):
        Follower(tmp_path).poll()


def test_folding_keeps_the_sums_and_what_was_not_measured() -> None:
    builder = TimelineBuilder()
    for _ in range(20):
        builder.steps(1, forward=0.01, data_wait=0.002).steps(9, rows_of=9, forward=None, data_wait=0.002)
    rows = builder.build().step
    folded = fold_steps(rows)
    assert len(folded) < len(rows) / 4
    for name in ("n", "w", "s", "m"):
        assert sum(getattr(r, name) for r in folded) == sum(getattr(r, name) for r in rows)
    full = [r for r in folded if r.p[2] is not None]
    assert sum(r.n for r in full) == 20 and sum(r.p[2] or 0 for r in full) == 20 * 10_000_000
    assert [r.i for r in folded] == sorted(r.i for r in folded)


def test_folding_of_samples() -> None:
    rows = [Hits(k, 10, [[1, 2, 1], [2, 2, 3]]) for k in range(FOLD + 1)] + [Hits(99, 20, [[1, 2, 5]])]
    assert fold_hits(rows) == [
        Hits(FOLD - 1, 10, [[1, 2, FOLD], [2, 2, 3 * FOLD]]), Hits(FOLD, 10, [[1, 2, 1], [2, 2, 3]]),
        Hits(99, 20, [[1, 2, 5]]),
    ]  # fmt: skip


def test_folding_of_loads() -> None:
    rows = [Load(k, 10, 1, 32, 2, 3, 4, 5, sq=0.5) for k in range(FOLD)] + [
        Load(99, 10, 1, 32, 2, 3, 4, validation=True)
    ]
    assert fold_loads(rows) == [
        Load(FOLD - 1, 10 * FOLD, FOLD, 32 * FOLD, 2 * FOLD, 3 * FOLD, 4 * FOLD, 5 * FOLD, sq=0.5 * FOLD), rows[-1],
    ]  # fmt: skip


def test_ranks_that_were_left_for_hours_are_bounded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "MOST_ROWS", 400)
    write_timeline(TimelineBuilder().steps(5000, forward=0.01).build(), tmp_path)
    follower = Follower(tmp_path)
    assert follower.poll(every_rank=True), "all of it in one look"
    timeline = follower.training
    assert timeline is not None and len(timeline.step) <= 400 and timeline.n_steps == 5000


def test_a_long_run_stays_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "MOST_ROWS", 400)
    write_timeline(TimelineBuilder().steps(5000, forward=0.01).build(), tmp_path)
    follower = Follower(tmp_path)
    monkeypatch.setattr(follow, "MOST_BYTES", 20_000)
    while follower.poll():
        pass
    timeline = follower.training
    assert timeline is not None and len(timeline.step) < 700 and timeline.n_steps == 5000
    assert follower.samples == 5000 * 32
