"""A look at a timeline: bounded, and right where it can be checked against all of its rows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hotlap.guard.status import Earlier, read_status
from hotlap.records.errors import RecordError
from hotlap.records.timeline import read_timeline
from hotlap.testing.run_folders import timeline_text
from hotlap.ui import glimpse
from hotlap.ui.glimpse import MOST_POINTS, look, trained


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def short_steps(steps: int, step_ns: int, twice_from: int) -> str:
    """A timeline of one row per step, twice as slow from a step on."""
    lines, at = [timeline_text(1).splitlines()[0]], 0
    for step in range(steps):
        wall = step_ns * (2 if step >= twice_from else 1)
        row = f'"i":{step},"n":1,"t":{at},"w":{wall},"p":[{wall},0,0,0,0,0,0,0,0,0,0,0],"s":32,"m":1'
        lines.append(f'{{"k":"step",{row}}}')
        at += wall
    return "\n".join([*lines, ""])


def test_a_long_run_is_looked_at_in_places_and_every_point_is_a_row_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = timeline_text(1_000_000)
    path = written(tmp_path / "1.jsonl", text)
    read = 0

    def counted(file: object, at: int, size: int) -> bytes:
        nonlocal read
        raw = genuine(file, at, size)  # type: ignore[arg-type]
        read += len(raw)
        return raw

    genuine = glimpse._read
    monkeypatch.setattr(glimpse, "_read", counted)
    found = look(path)
    assert found is not None and found.steps == 1_000_000
    assert read < len(text) * 0.8 and read <= 3000 * 4096 + glimpse.TAIL_BYTES + glimpse.HEAD_BYTES
    assert 500 < len(found.starts) <= MOST_POINTS
    rows = {int(line.split('"i":')[1].split(",")[0]): int(line.split('"t":')[1].split(",")[0])
            for line in text.splitlines()[1:] if '"k":"step"' in line}  # fmt: skip
    assert all(rows[step] == at for step, at in found.starts[:-1])
    gaps = [b[0] - a[0] for a, b in zip(found.starts, found.starts[1:], strict=False)]
    assert max(gaps) < 10_000  # evenly over the steps: nothing of the run is left out


def test_a_short_run_has_every_step_and_the_numbers_of_all_its_rows(tmp_path: Path) -> None:
    path = written(tmp_path / "1.jsonl", timeline_text(500))
    found, whole = look(path), read_timeline(path)
    assert found is not None and whole is not None
    assert found.starts[:-1] == [(row.i, row.t) for row in whole.step]
    assert found.recent.step == whole.step and not found.ended
    assert found.train_s == (whole.step[-1].t + whole.step[-1].w - whole.step[0].t) / 1e9


def test_a_row_that_is_being_written_waits(tmp_path: Path) -> None:
    text = timeline_text(30)
    whole, torn = look(written(tmp_path / "1.jsonl", text)), look(written(tmp_path / "2.jsonl", text[:-40]))
    assert whole is not None and torn is not None and (whole.steps, torn.steps) == (30, 29)
    assert look(written(tmp_path / "3.jsonl", text[:50])) is None
    assert look(written(tmp_path / "4.jsonl", "")) is None


def test_long_rows_at_the_end_do_not_hide_the_last_steps(tmp_path: Path) -> None:
    tail = '{"k":"note","what":"x","why":"' + "y" * 200_000 + '"}\n'
    found = look(written(tmp_path / "1.jsonl", timeline_text(2000) + tail))
    assert found is not None and found.recent.step and found.steps == 2000


def test_the_last_half_minute_is_all_of_it_however_short_the_steps(tmp_path: Path) -> None:
    path = written(tmp_path / "1.jsonl", short_steps(20_000, 2_000_000, 17_500))  # 10 s of steps of 4 ms at the end
    found, whole = look(path), read_timeline(path)
    assert found is not None and whole is not None
    seen, told = read_status(found.recent, 0, Earlier()), read_status(whole, 0, Earlier())
    assert seen.step_s == told.step_s and seen.phases == told.phases
    assert seen.step_s is not None and 0.002 < seen.step_s < 0.004
    assert len(found.recent.step) < 20_000, "no more than it takes"


def test_what_was_said_of_the_device_once_is_known_in_a_long_timeline(tmp_path: Path) -> None:
    lines = timeline_text(5_000).splitlines(keepends=True)
    row = '{"k":"setting","name":"device","value":{"name":"mps","type":"mps","index":null}}\n'
    path = written(tmp_path / "1.jsonl", "".join([*lines[:2], row, *lines[2:]]))
    found = look(path)
    assert found is not None and found.header.device == "cpu" and found.recent.device == "mps"
    short = look(written(tmp_path / "2.jsonl", "".join([*lines[:2], row, *lines[2:50]])))
    assert short is not None and len(short.recent.setting) == 1, "nothing is read twice"


@pytest.mark.parametrize("tail", ['{"k":"step","i":"x"}\n', "nonsense\n", '{"k":"what"}\n', "\udcff\n"])
def test_a_corrupt_end_is_an_error_that_names_the_place(tmp_path: Path, tail: str) -> None:
    path = tmp_path / "1.jsonl"
    path.write_bytes((timeline_text(10) + tail).encode("utf-8", "surrogateescape"))
    with pytest.raises(RecordError, match="from the end"):
        look(path)


def test_the_first_rank_that_trains_and_has_not_ended_is_shown(tmp_path: Path) -> None:
    written(tmp_path / "a.jsonl", timeline_text(90, rank=1))
    written(tmp_path / "b.jsonl", timeline_text(50) + '{"k":"end","t":1,"reason":"exit"}\n')
    written(tmp_path / "c.jsonl", timeline_text(20))
    found = trained(tmp_path)
    assert found is not None and found.header.rank == 0 and found.steps == 20
    later = re.sub(r'"t":(\d+)', lambda found: f'"t":{int(found[1]) + 10**12}', timeline_text(5))
    written(tmp_path / "d.jsonl", later)
    found = trained(tmp_path)
    assert found is not None and found.steps == 5, "what it took the place of was killed: it has no end"
    (tmp_path / "d.jsonl").unlink()
    (tmp_path / "c.jsonl").unlink()
    found = trained(tmp_path)
    assert found is not None and found.steps == 50 and found.ended


def test_of_many_ranks_one_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    genuine = glimpse._read
    monkeypatch.setattr(
        glimpse, "_read", lambda file, at, size: read.append(len(raw := genuine(file, at, size))) or raw
    )
    for rank in range(8):
        written(tmp_path / f"{rank}.jsonl", timeline_text(4_000, rank=rank))
    assert look(tmp_path / "7.jsonl") is not None
    alone = sum(read)
    read.clear()
    found = trained(tmp_path)
    assert found is not None and found.header.rank == 0
    assert sum(read) <= alone + 7 * 1000
    written(tmp_path / "0.jsonl", timeline_text(1).splitlines(keepends=True)[0])
    found = trained(tmp_path)
    assert found is not None and found.header.rank == 1, "the first rank has made no step"
