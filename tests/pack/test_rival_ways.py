"""Other loading libraries read what the pack's own ways read, fail alone, and leave nothing behind."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pack_support import jpeg, mixed

from hotlap.cli.main import main
from hotlap.pack import Clip, Flat, HotlapError, Image, Pack, PackedDataset, Padded, rival_ways, ways
from hotlap.pack.rival_in_place import hugging_ways
from hotlap.pack.rival_samples import Samples
from hotlap.pack.rival_ways import RIVALS, Rival, rivals_here
from hotlap.pack.way import FirstRows, Reading, Way, endless, said
from hotlap.pack.ways import Comparison, compare_ways

Make = Callable[..., Pack]
VIEWS = {"image": Image((8, 6), flip=0.5), "audio": Clip(20), "boxes": None, "label": None, "file": None, "name": None}


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where temporary files go; a short path, as sockets need."""
    with tempfile.TemporaryDirectory(prefix="t-") as folder, monkeypatch.context() as patched:
        patched.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


def stored(samples: Samples, pack: Pack, rows: list[int]) -> list[dict[str, bytes]]:
    return [samples.stored(pack, row) for row in rows]


def same(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert list(found) == list(wanted)
    for name, value in wanted.items():
        if isinstance(value, torch.Tensor):
            assert found[name].dtype == value.dtype, name
            assert found[name].stride() == value.stride(), name
            torch.testing.assert_close(found[name], value, rtol=0, atol=1e-6)
        else:
            assert found[name] == value, name


@pytest.mark.parametrize("views", [
    {"image": Image((8, 6), at="center", flip=1.0), "audio": Clip(20, at="center"), "boxes": Flat(), "file": None},
    {"image": Image(mean=[1, 2, 3], std=7, layout="channels_last"), "audio": Clip(20, at="start", short="zero")},
    {"image": Image((8, 6), at="center", dtype=torch.uint8), "audio": Clip(9, at="start", dtype=None), "boxes": None},
    {"audio": Padded(-1), "name": None, "label": None},
    {"hwc": Image((8, 6), at="center", flip=1.0), "grey": Image((8, 6), at="center", flip=1.0), "grey16": None},
    {"hwc": Image(mean=3.0, layout="channels_last", dtype=torch.float16), "stereo": Clip(7, at="center")},
])  # fmt: skip
def test_samples_do_what_views_do(make: Make, views: dict[str, Any]) -> None:
    rng, rows = np.random.default_rng(1), mixed(12)
    for k, row in enumerate(rows):
        row["hwc"] = rng.integers(0, 256, (12, 10, 3), dtype=np.uint8)
        row["grey"], row["grey16"] = row["hwc"][..., 0], row["hwc"][..., 0].astype(np.uint16)
        row["stereo"] = rng.integers(-99, 99, (k, 2), dtype=np.int16)
    pack = make(rows, ragged=frozenset({"stereo"}))
    samples, chosen = Samples(pack, views), [7, 0, 3, 11, 3]
    same(samples.collate(stored(samples, pack, chosen)), PackedDataset(pack.folder, views).__getitems__(chosen))
    total = sum(len(value) for row in stored(samples, pack, list(range(12))) for value in row.values())
    assert samples.sizes(pack).sum() == total


def test_encoded_samples_do_what_views_do(make: Make) -> None:
    pack = make([{"image": jpeg(k, (20 + k, 24), "PNG" if k % 2 else "JPEG")} for k in range(6)])
    views, chosen = {"image": Image((16, 18), at="center", flip=1.0)}, [5, 0, 1, 2]
    samples = Samples(pack, views)
    found = samples.collate(stored(samples, pack, chosen))["image"]
    wanted = PackedDataset(pack.folder, views).__getitems__(chosen)["image"]
    torch.testing.assert_close(found, wanted, rtol=0, atol=2)  # a decoder of the crop alone rounds at its edges
    with pytest.raises(HotlapError, match="smaller than the crop"):
        Samples(pack, {"image": Image((16, 21))}).collate(stored(samples, pack, [0]))


def test_crops_are_random_windows_that_columns_share(make: Make) -> None:
    rows = mixed(30)
    for row in rows:
        row["again"] = row["image"].transpose(1, 2, 0)
    pack, view = make(rows), Image((8, 6), flip=0.5)
    samples = Samples(pack, {"image": view, "again": view})
    batch = samples.collate(stored(samples, pack, list(range(30))))
    assert torch.equal(batch["image"], batch["again"])
    places = set()
    for row, found in zip(rows, batch["image"].numpy(), strict=True):
        for mirrored in (False, True):
            window = found[:, :, ::-1] if mirrored else found
            places |= {(y, x, mirrored) for y in range(5) for x in range(5)
                       if np.array_equal(row["image"][:, y : y + 8, x : x + 6], window)}  # fmt: skip
    assert len({p[0] for p in places}) == len({p[1] for p in places}) == 5 and len({p[2] for p in places}) == 2


class OtherView:
    flip_share = 0.0


def test_a_view_that_copies_cannot_have_is_refused(make: Make) -> None:
    pack = make(mixed(3))
    samples = Samples(pack, {"label": OtherView()})  # type: ignore[dict-item]
    with pytest.raises(HotlapError, match="OtherView"):
        samples.collate(stored(samples, pack, [0]))


def epoch(way: Way, rows: int) -> list[dict[str, Any]]:
    """Batches until ``rows`` rows are read."""
    found: list[dict[str, Any]] = []
    batches = way.open()
    while sum(len(batch["label"]) for batch in found) < rows:
        found.append(next(batches))
    return found


@pytest.mark.parametrize("rival", RIVALS, ids=lambda rival: rival.module)
def test_batches_are_the_packs_rows(rival: Rival, make: Make, temporary: Path) -> None:
    if rival.version() is None:
        pytest.skip(f"{rival.name} is not installed: pip install {rival.distributions[0]}")
    rows = mixed(50)
    for k, row in enumerate(rows):
        row["label"], row["audio"] = k, np.arange(k, dtype=np.int16)
    reading = Reading(make(rows), 8, VIEWS, 50)
    wanted = reading.data().__getitems__(list(range(8)))
    with rivals_here(reading, print, rivals=[rival]) as found:
        assert not found.told and found.libraries == [f"{rival.name} {rival.version()}"]
        assert len(found.ways) == 2
        for way in found.ways:
            batches = epoch(way, 50)
            assert sorted(k for batch in batches for k in batch["label"].tolist()) == list(range(50)), way.name
            assert max(len(batch["label"]) for batch in batches) == 8
            for batch in batches:
                assert set(batch) == set(wanted)
                check_rows(batch, rows)
                for name, value in wanted.items():
                    assert type(batch[name]) is type(value)
                    if isinstance(value, torch.Tensor):
                        assert batch[name].dtype == value.dtype and batch[name].shape[2:] == value.shape[2:]
            assert way.library == found.libraries[0]
    assert list(temporary.iterdir()) == []


def check_rows(batch: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    """What belongs together came together."""
    assert batch["image"].shape[1:] == (3, 8, 6) and batch["audio"].shape[1:] == (20,)
    for place, k in enumerate(batch["label"].tolist()):
        row, count = rows[k], int(batch["boxes_length"][place])
        assert batch["name"][place] == row["name"] and batch["file"][place] == row["file"]
        assert np.array_equal(batch["boxes"][place][:count].numpy(), row["boxes"])
        assert batch["audio"][place].max() <= k / 32768
        assert np.isin(batch["image"][place].numpy(), row["image"]).all()


class _Table:
    """As much of HF datasets as is used."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def with_format(self, name: str) -> _Table:
        assert name == "arrow"
        return self

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __getitem__(self, indices: list[int]) -> Any:
        import pyarrow as pa

        return pa.concat_tables([self._table.slice(k, 1) for k in indices])


def test_arrow_files_are_read_where_they_lie(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    fake: Any = types.ModuleType("datasets")
    fake.Dataset, fake.table = _Table, types.SimpleNamespace(InMemoryTable=lambda table: table)
    monkeypatch.setitem(sys.modules, "datasets", fake)
    rows = mixed(40)
    for k, row in enumerate(rows):
        row["label"], row["audio"] = k, np.arange(k, dtype=np.int16)
    pack = make(rows)
    assert len(pack.manifest.parts) > 1
    plain, workers = hugging_ways(fake, "9", Reading(pack, 8, VIEWS, 30), None)
    assert (plain.name, workers.name) == ("HF datasets, DataLoader", "HF datasets, DataLoader, 2 workers")
    batches = epoch(plain, 30)
    assert sorted(k for batch in batches for k in batch["label"].tolist()) == list(range(30))
    for batch in batches:
        check_rows(batch, rows)


def batches_of(reading: Reading, failing_at: int | None = None) -> Iterator[dict[str, Any]]:
    for number, order in enumerate(reading.orders()):
        if number == failing_at:
            raise ValueError("its\nown reason")
        yield {"label": order}


def fake(name: str, failing_at: int | None = None, write: Any = None) -> Rival:
    """A library that is installed (by numpy's name), and gives the numbers of rows."""

    def open_ways(library: Any, version: str, reading: Reading, folder: Path | None) -> list[Way]:
        return [Way(name, partial(batches_of, reading, failing_at), library=f"{name} {version}")]

    return Rival(name, ("numpy",), "numpy", open_ways, write)


def writes(library: Any, reading: Reading, folder: Path) -> None:
    folder.mkdir()
    (folder / "rows").write_text(str(reading.rows))


def compare(pack: Pack, monkeypatch: pytest.MonkeyPatch, rivals: list[Rival], **more: Any) -> Comparison:
    monkeypatch.setattr(ways, "rivals_here", partial(rivals_here, rivals=rivals))
    return compare_ways(pack, 4, {"label": None, "image": None}, 0.2, rounds=2, **more)


def test_what_fails_is_told_and_the_others_go_on(make: Make, monkeypatch: pytest.MonkeyPatch, temporary: Path) -> None:
    def cannot_write(*_: Any) -> None:
        (temporary / next(temporary.iterdir()) / "half").write_text("written")
        raise OSError("cannot write this")

    rivals = [fake("Good"), fake("Fails at once", 0), fake("Fails later", 3), fake("Refuses", write=cannot_write)]
    rivals.append(Rival("Breaks", ("numpy",), "numpy.no_such", rivals[0].ways))
    found = compare(make(mixed(20)), monkeypatch, rivals)
    names = [m.name for m in found.table]
    assert "Good" in names and "hotlap.pack, inline" in names and "DataLoader, whole batches, 2 workers" in names
    assert (
        found.libraries == [f"torch {torch.__version__}", f"Good {np.__version__}"]
        and found.missing == []
        and found.rows == 20
    )
    told = "\n".join(sorted(found.told))
    assert told == (f"Breaks {np.__version__}: not timed (ModuleNotFoundError: No module named 'numpy.no_such')\n"
                    f"Fails at once: not timed (Fails at once {np.__version__}: ValueError: its own reason)\n"
                    f"Fails later: not timed (Fails later {np.__version__}: ValueError: its own reason)\n"
                    f"Refuses {np.__version__}: not timed (OSError: cannot write this)")  # fmt: skip
    assert list(temporary.iterdir()) == []


def test_our_own_failure_is_none_to_go_on_from(make: Make, monkeypatch: pytest.MonkeyPatch, temporary: Path) -> None:
    wrote: list[str] = []
    monkeypatch.setattr(ways, "rivals_here", partial(rivals_here, rivals=[fake("Copies", write=writes)]))
    with pytest.raises(HotlapError, match="does not fit"):
        compare_ways(make(mixed(20)), 4, {"image": Image((99, 99))}, 0.2, tell=wrote.append)
    assert wrote == []


def test_what_is_not_installed_is_not_imported(make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "streaming_of_mine").mkdir()
    (tmp_path / "streaming_of_mine" / "__init__.py").write_text("raise AssertionError('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))  # a folder of the user's, which is no library
    absent = [Rival("Absent", ("absent-library",), "absent_library.part", fake("x").ways),
              Rival("Folder", ("absent-library",), "streaming_of_mine", fake("x").ways)]  # fmt: skip
    before = set(sys.modules)
    with rivals_here(Reading(make(mixed(3)), 2, {"label": None}, 3), pytest.fail, rivals=absent) as found:
        assert found.missing == ["Absent", "Folder"] and not found.ways and not found.told
    assert not {name for name in set(sys.modules) - before if "absent" in name or "mine" in name}


@pytest.mark.parametrize("ending", [None, KeyboardInterrupt, ValueError])
def test_copies_are_removed(make: Make, temporary: Path, ending: type[BaseException] | None) -> None:
    lines: list[str] = []
    reading = Reading(make(mixed(20)), 4, {"label": None}, 20)
    caught: BaseException | None = None
    try:
        with rivals_here(reading, lines.append, rivals=[fake("Copies", write=writes)]) as found:
            assert [path.read_text() for path in temporary.rglob("rows")] == ["20"] and found.ways
            if ending is not None:
                raise ending
    except BaseException as err:
        caught = err
    assert type(caught) is (ending or type(None))
    assert list(temporary.iterdir()) == []
    assert len(lines) == 1 and "20 rows for Copies" in lines[0] and "removed" in lines[0]


def test_copies_are_removed_if_writing_them_is_interrupted(make: Make, temporary: Path) -> None:
    def interrupted(*arguments: Any) -> None:
        writes(*arguments)
        raise KeyboardInterrupt

    reading = Reading(make(mixed(20)), 4, {"label": None}, 20)
    with pytest.raises(KeyboardInterrupt), rivals_here(reading, print, rivals=[fake("X", write=interrupted)]):
        pytest.fail("the block is not reached")
    assert list(temporary.iterdir()) == []


def test_an_interrupt_waits_until_a_way_has_started(
    make: Make, monkeypatch: pytest.MonkeyPatch, temporary: Path
) -> None:
    """Within a fork Python would drop it."""
    started: list[str] = []

    def interrupted(reading: Reading) -> Iterator[dict[str, Any]]:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)
        started.append("whole")
        yield {"label": [1]}

    def open_ways(library: Any, version: str, reading: Reading, folder: Path | None) -> list[Way]:
        return [Way("Forks", partial(interrupted, reading), apart=True, library="Forks 1")]

    rival = Rival("Forks", ("numpy",), "numpy", open_ways, writes)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            compare(make(mixed(20)), monkeypatch, [rival])
    finally:
        signal.signal(signal.SIGINT, before)
    assert started == ["whole"] and list(temporary.iterdir()) == []


def test_threads_that_open_a_data_set_at_once_get_whole_batches(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    pack = make(mixed(20))

    def slow(*arguments: Any) -> Pack:
        time.sleep(0.1)
        return Pack(*arguments)

    monkeypatch.setattr("hotlap.pack.dataset.Pack", slow)
    monkeypatch.setattr("hotlap.pack.dataset.Whole", lambda: time.sleep(0.1) or Padded())
    data = PackedDataset(pack.folder, {"boxes": None})
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(data.__getitems__, [0, 1])
        time.sleep(0.15)  # the pack is open, its views are not
        second = threads.submit(data.__getitems__, [0, 1])
        assert set(first.result()) == set(second.result()) == {"boxes", "boxes_length"}


def test_copies_are_of_a_part_and_all_ways_read_it(
    make: Make, monkeypatch: pytest.MonkeyPatch, temporary: Path
) -> None:
    monkeypatch.setattr(rival_ways, "MOST_BYTES", 3000)  # eight rows of 368 bytes
    pack, seen = make(mixed(40)), set()
    found = compare(pack, monkeypatch, [fake("Copies", write=writes), fake("In place")])
    assert found.rows == 8 and {m.name for m in found.table} >= {"Copies", "In place"}
    for way in [*ways._own_ways(Reading(pack, 4, {"label": None, "name": None}, 8))]:
        if way.name.startswith("DataLoader, sample by sample"):
            continue
        for batch in islice(way.open(), 4):
            seen |= set(batch["name"])
    assert seen == {f"größe-{k}" for k in range(8)}
    assert compare(pack, monkeypatch, [fake("In place")]).rows == 40
    without = compare(pack, monkeypatch, [fake("Copies", write=writes)], copies=False)
    assert without.rows == 40 and without.told[0].startswith("Copies: not timed") and "--no-copies" in without.told[0]


def test_no_copies_where_there_is_no_room(make: Make, monkeypatch: pytest.MonkeyPatch, temporary: Path) -> None:
    pack, rivals = make(mixed(40)), [fake("Copies", write=writes)]
    reading = Reading(pack, 16, {"image": None}, 40)
    full = types.SimpleNamespace(total=1 << 40, used=0, free=9999)
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "disk_usage", lambda _: full)
        with rivals_here(reading, pytest.fail, rivals=rivals) as found:
            assert "9,999" in found.told[0] and "TMPDIR" in found.told[0] and found.reading.rows == 40
    monkeypatch.setattr(rival_ways, "MOST_BYTES", 4000)
    with rivals_here(reading, pytest.fail, rivals=rivals) as found:
        assert "less than a batch" in found.told[0] and not found.ways


def test_ffcv_is_named_where_it_is(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    reading = Reading(make(mixed(3)), 2, {"label": None}, 3)
    monkeypatch.setattr(rival_ways, "find_spec", lambda name: name if name == "ffcv" else None)
    with rivals_here(reading, print) as found:
        assert len(found.told) == 1 and "FFCV" in found.told[0]
        assert len(found.missing) == len(RIVALS)


def test_bench_tells_what_is_not_there(
    make: Make, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], temporary: Path
) -> None:
    absent = Rival("Absent", ("absent-library",), "absent_library", fake("x").ways)
    rivals = [fake("Good", write=writes), fake("Bad", 0), absent]
    monkeypatch.setattr(ways, "rivals_here", partial(rivals_here, rivals=rivals))
    monkeypatch.setattr(rival_ways, "MOST_ROWS", 8)
    folder = str(make(mixed(20)).folder)
    assert main(["pack", "bench", folder, "--batch", "4", "--budget", "0.5"]) == 0
    shown = capsys.readouterr()
    assert "writing 8 rows for Good" in shown.err
    lines = shown.out.splitlines()
    assert f"with torch {torch.__version__}, Good {np.__version__}" in lines
    assert any(line.startswith("All ways read the first 8 of 20 rows") for line in lines)
    assert any(line.startswith("Bad: not timed") and "ValueError: its own reason" in line for line in lines)
    assert lines[-1] == "not installed here, so not timed: Absent"


def test_what_was_made_ahead_is_not_timed() -> None:
    batches = iter(range(1, 99))
    ways._turn(batches, 0.0, ahead=4)
    assert next(batches) == 7  # five let go, one timed


def test_endless_ends_where_there_is_nothing() -> None:
    assert list(islice(endless([{"a": 1}]), 3)) == [{"a": 1}] * 3
    with pytest.raises(HotlapError, match="no batch"):
        next(endless([]))


def test_orders_hold_each_row_once(make: Make) -> None:
    pack = make(mixed(20))
    reading = Reading(pack, 4, {}, 10)
    first = list(islice(reading.orders(), 6))
    assert [len(order) for order in first] == [4, 4, 2] * 2
    assert sorted(chain(*first[:3])) == sorted(chain(*first[3:])) == list(range(10))
    assert sorted(FirstRows(10).rows(pack, 3)) == list(range(10))


def test_errors_in_one_line() -> None:
    assert said(ValueError("a\n  b")) == "ValueError: a b"
    assert said(KeyboardInterrupt()) == "KeyboardInterrupt" and len(said(OSError("x" * 999))) < 220
