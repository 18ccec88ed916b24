"""Packing: killed, full, damaged, repeated, appended to; one process or several give the same pack."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from pack_support import RAGGED, Rows, mixed

from hotlap.pack import Pack, PackSettings, helpers, open_source, pack, verify
from hotlap.pack.job import _list_left_out
from hotlap.records.errors import HotlapError

SMALL = {"chunk_bytes": 2000, "part_bytes": 8000}

SLOW = """
import sys, time
import numpy as np
from hotlap.pack import PackSettings, pack

class Slow:
    ragged, metadata, may_fork = frozenset(), {}, len(sys.argv) > 5
    def __len__(self): return 60
    def name(self, index): return str(index)
    def row(self, index):
        open(sys.argv[2], "a").write(f"{index}\\n")
        time.sleep(float(sys.argv[3]))
        return {"x": np.full(100, index), "label": index}
    def fingerprint(self): return "slow"

if __name__ == "__main__":
    pack(Slow(), sys.argv[1], PackSettings(int(sys.argv[4]), chunk_bytes=2000, part_bytes=8000))
"""


def run_slow(tmp_path: Path, wait_s: str, processes: int = 1, may_fork: bool = False) -> subprocess.Popen[bytes]:
    script = tmp_path / "slow.py"
    script.write_text(SLOW)
    words = [str(script), str(tmp_path / "p"), str(tmp_path / "log"), wait_s, str(processes)] + ["fork"] * may_fork
    return subprocess.Popen([sys.executable, *words])


def test_a_killed_packing_is_no_pack_and_goes_on(tmp_path: Path) -> None:
    first = run_slow(tmp_path, "0.03")
    deadline = time.monotonic() + 60
    while len(list((tmp_path / "p").glob(".packing/part-*.json"))) < 2:
        assert time.monotonic() < deadline and first.poll() is None
        time.sleep(0.01)
    first.send_signal(signal.SIGKILL)
    first.wait()
    with pytest.raises(HotlapError, match="interrupted"):
        Pack(tmp_path / "p")
    before = len((tmp_path / "log").read_text().splitlines())
    assert run_slow(tmp_path, "0").wait(60) == 0
    found = Pack(tmp_path / "p")
    assert found.values("label").tolist() == list(range(60))
    assert np.array_equal(found.values("x")[:, 0], np.arange(60))
    read_again = len((tmp_path / "log").read_text().splitlines()) - before
    assert read_again < 60 - 10, "finished parts must not be packed again"
    assert verify(tmp_path / "p") == []
    assert not [p for p in (tmp_path / "p").iterdir() if p.name.startswith(".")], "nothing temporary may be left"


@pytest.mark.parametrize("may_fork", [True, False])
def test_processes_of_a_killed_packing_end_too(may_fork: bool, tmp_path: Path) -> None:
    first = run_slow(tmp_path, "0.05", processes=3, may_fork=may_fork)
    whole, deadline = psutil.Process(first.pid), time.monotonic() + 60
    log = tmp_path / "log"
    while not log.exists() or len(log.read_text().splitlines()) < 3:  # the first row is asked for by the packer itself
        assert time.monotonic() < deadline and first.poll() is None
        time.sleep(0.01)
    below = whole.children(recursive=True)
    first.kill()
    first.wait()
    _, alive = psutil.wait_procs(below, timeout=20)
    for process in alive:
        process.kill()
    assert len(below) >= 2 and not alive


def test_another_source_does_not_continue_an_interrupted_packing(tmp_path: Path) -> None:
    rows: list[Any] = mixed(40)
    rows[35] = ValueError("broken")
    with pytest.raises(HotlapError, match="row-35: ValueError: broken"):
        pack(Rows(rows, RAGGED), tmp_path / "p", PackSettings(**SMALL))
    with pytest.raises(HotlapError, match="interrupted packing of another source"):
        pack(Rows(mixed(41), RAGGED), tmp_path / "p", PackSettings(**SMALL))
    again = Rows(mixed(40), RAGGED)
    pack(again, tmp_path / "p", PackSettings(**SMALL))
    assert 0 < len(again.asked) < 40


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_make_the_same_pack(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helpers, "_start_method", lambda may_fork: method)
    one = pack(Rows(mixed(80), RAGGED), tmp_path / "one", PackSettings(**SMALL))
    two = pack(Rows(mixed(80), RAGGED), tmp_path / "two", PackSettings(processes=2, **SMALL))
    assert one.rows == two.rows == 80
    a, b = Pack(tmp_path / "one"), Pack(tmp_path / "two")
    assert all(np.array_equal(a.row(k)["image"], b.row(k)["image"]) for k in range(80))


class OneFile(Rows):
    """Reads its rows from a file that it holds open."""

    def __init__(self, path: Path) -> None:
        super().__init__([None] * 80)
        self.path, self.file = path, open(path, "rb", buffering=0)  # noqa: SIM115

    def __reduce__(self) -> Any:
        return OneFile, (self.path,)

    def row(self, index: int) -> dict[str, Any]:
        self.file.seek(8 * index)
        time.sleep(0.005)
        return {"label": int.from_bytes(self.file.read(8), "little"), "x": np.zeros(100)}


def test_a_copy_of_this_process_reads_from_a_file_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helpers, "_start_method", lambda may_fork: "fork")
    (tmp_path / "numbers").write_bytes(np.arange(80).tobytes())
    pack(OneFile(tmp_path / "numbers"), tmp_path / "p", PackSettings(processes=2, **SMALL))
    assert Pack(tmp_path / "p").values("label").tolist() == list(range(80))


def test_a_copy_of_this_process_does_not_answer_signals_as_it_does() -> None:
    script = (
        "import signal, time\n"
        "from hotlap.pack import helpers\n"
        "class SlowElsewhere:\n"
        "    def __reduce__(self): return time.sleep, (30.0,)\n"
        "    def __call__(self, part, report): time.sleep(0.2)\n"
        "signal.signal(signal.SIGTERM, lambda *_: print('told', flush=True))\n"
        "helpers.pack_together([('a', 0, 1), ('b', 1, 2)], 2, SlowElsewhere(), lambda rows: None, may_fork=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=15)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


class SlowElsewhere(Rows):
    """Takes half a minute to arrive in another process."""

    def __reduce__(self) -> Any:
        return time.sleep, (30.0,)


def test_nobody_waits_for_a_process_that_has_nothing_to_pack_yet(tmp_path: Path) -> None:
    begun = time.monotonic()
    done = pack(SlowElsewhere(mixed(80), RAGGED), tmp_path / "p", PackSettings(processes=2, **SMALL))
    assert done.rows == 80 and time.monotonic() - begun < 15
    assert not multiprocessing.active_children()


def test_a_source_that_cannot_be_sent_is_packed_here(tmp_path: Path) -> None:
    source = Rows(mixed(80), RAGGED)
    source.held = open(os.devnull)  # type: ignore[attr-defined]  # noqa: SIM115
    assert pack(source, tmp_path / "p", PackSettings(processes=2, **SMALL)).rows == 80


class NotElsewhere(Rows):
    """Cannot be read in another process, which takes up the parts otherwise: rows are slow here."""

    def __reduce__(self) -> Any:
        return open, ("/nowhere/at/all",)

    def row(self, index: int) -> Any:
        time.sleep(0.01)
        return super().row(index)


def test_a_source_that_cannot_be_read_elsewhere_is_packed_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helpers, "_start_method", lambda may_fork: "fork")
    source = NotElsewhere(mixed(80), RAGGED)
    assert pack(source, tmp_path / "p", PackSettings(processes=2, **SMALL)).rows == 80


class BadElsewhere(Rows):
    """Its rows fail in every process but the first, which waits for that."""

    def __init__(self, rows: list[Any], ragged: frozenset[str], folder: Path) -> None:
        super().__init__(rows, ragged)
        self.folder, self.first = folder, os.getpid()

    def row(self, index: int) -> Any:
        mark = self.folder / "failed"
        if os.getpid() != self.first:
            mark.touch()
            raise ValueError("not here")
        if index == 40:
            while not mark.exists():
                time.sleep(0.01)
        return super().row(index)


def test_what_fails_in_another_process_is_told_with_its_row(tmp_path: Path) -> None:
    source = BadElsewhere(mixed(80), RAGGED, tmp_path)
    with pytest.raises(HotlapError, match=r"Cannot pack .*: ValueError: not here"):
        pack(source, tmp_path / "p", PackSettings(processes=2, **SMALL))
    assert not (tmp_path / "p" / "pack.json").exists()


def test_ctrl_c_while_a_part_is_brought_to_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("hotlap.pack.part_writer.crc32", interrupted)
        with pytest.raises(KeyboardInterrupt):
            pack(Rows(mixed(20), RAGGED), tmp_path / "p", PackSettings(**SMALL))
    assert not list((tmp_path / "p").glob(".*.tmp"))
    assert pack(Rows(mixed(20), RAGGED), tmp_path / "p", PackSettings(**SMALL)).rows == 20


def test_stop_leaves_no_pack_behind(tmp_path: Path) -> None:
    rows: list[Any] = [OSError("gone"), *mixed(3)]
    with pytest.raises(HotlapError, match="Cannot pack row-0: gone"):
        pack(Rows(rows, RAGGED), tmp_path / "p")
    assert not (tmp_path / "p").exists()


def test_quarantine_leaves_out_and_lists(tmp_path: Path) -> None:
    rows: list[Any] = mixed(40)
    wrong = mixed(1)[0] | {"image": np.zeros((3, 5, 5), np.uint8)}
    rows[0], rows[7], rows[8] = ValueError("bad magic"), wrong, {"other": 1}
    shown: list[tuple[int, int]] = []
    found = pack(Rows(rows, RAGGED), tmp_path / "p", PackSettings(on_error="quarantine", **SMALL),
                 lambda done, total: shown.append((done, total)))  # fmt: skip
    assert found.rows == 37 and found.left_out == 3
    listed = [json.loads(line) for line in (tmp_path / "p" / "left_out.jsonl").read_text().splitlines()]
    assert [entry["name"] for entry in listed] == ["row-0", "row-7", "row-8"]
    assert "bad magic" in listed[0]["reason"] and "(3, 5, 5)" in listed[1]["reason"]
    assert Pack(tmp_path / "p").row(0)["name"] == "größe-1"
    assert shown[0] == (0, 40) and shown[-1] == (40, 40) and shown == sorted(shown)


def test_nothing_can_be_packed(tmp_path: Path) -> None:
    rows: list[Any] = [ValueError("no")] * 3
    for how in ("stop", "quarantine"):
        with pytest.raises(HotlapError, match="no"):
            pack(Rows(rows), tmp_path / how, PackSettings(on_error=how))
    with pytest.raises(HotlapError, match="empty"):
        pack(Rows([]), tmp_path / "none")


def test_append(tmp_path: Path) -> None:
    pack(Rows(mixed(20), RAGGED), tmp_path / "p", PackSettings(**SMALL))
    reader = Pack(tmp_path / "p")
    with pytest.raises(HotlapError, match="--append"):
        pack(Rows(mixed(5), RAGGED), tmp_path / "p", PackSettings(**SMALL))
    pack(Rows(mixed(15, seed=1), RAGGED), tmp_path / "p", PackSettings(append=True, **SMALL))
    assert len(reader) == 20 and reader.row(19)["name"] == "größe-19", "a reader keeps what it opened"
    grown = Pack(tmp_path / "p")
    assert len(grown) == 35
    assert np.array_equal(grown.row(20)["image"], mixed(1, seed=1)[0]["image"])
    assert verify(tmp_path / "p") == []
    with pytest.raises(HotlapError, match="has columns"):
        pack(Rows([{"x": 1}]), tmp_path / "p", PackSettings(append=True))
    assert len(Pack(tmp_path / "p")) == 35


def test_numbers_that_mean_something_else_are_not_appended(tmp_path: Path) -> None:
    def source(*classes: str) -> Rows:
        rows = Rows([{"label": k} for k in range(2)])
        rows.metadata = {"classes": list(classes), "source": "/".join(classes)}
        return rows

    pack(source("cat", "dog"), tmp_path / "p")
    with pytest.raises(HotlapError, match=r'classes are \["cat", "dog"\], those of the source \["bird", "cat"\]'):
        pack(source("bird", "cat"), tmp_path / "p", PackSettings(append=True))
    assert len(Pack(tmp_path / "p")) == 2
    pack(source("cat", "dog"), tmp_path / "p", PackSettings(append=True))
    assert len(Pack(tmp_path / "p")) == 4


@pytest.mark.parametrize("named_first", [True, False])
def test_numbers_that_have_names_in_one_alone_are_not_appended(tmp_path: Path, named_first: bool) -> None:
    named, bare = Rows([{"label": 0}]), Rows([{"label": 0}])
    named.metadata = {"classes": ["cat"]}
    first, second = (named, bare) if named_first else (bare, named)
    pack(first, tmp_path / "p")
    with pytest.raises(HotlapError, match=r'names its classes \(\["cat"\]\), the (source|pack) does not'):
        pack(second, tmp_path / "p", PackSettings(append=True))
    assert len(Pack(tmp_path / "p")) == 1


def test_columns_are_told_by_a_row_that_shows_them(tmp_path: Path) -> None:
    empty, full = np.array([]), np.array([[1, 2, 3, 4]])
    pack(Rows([{"boxes": empty}, {"boxes": full}, {"boxes": empty}], RAGGED), tmp_path / "p")
    column = Pack(tmp_path / "p").columns["boxes"]
    assert (column.dtype, column.shape) == ("int64", (4,)) and Pack(tmp_path / "p").row(1)[
        "boxes"
    ].tolist() == full.tolist()
    pack(Rows([{"boxes": empty}], RAGGED), tmp_path / "none")


def test_a_packing_that_was_killed_at_its_very_end_is_not_added_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hotlap.pack import job

    pack(Rows(mixed(20), RAGGED), tmp_path / "p", PackSettings(**SMALL))
    with monkeypatch.context() as patch:
        patch.setattr(job, "remove_notes", lambda job: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            pack(Rows(mixed(15, seed=1), RAGGED), tmp_path / "p", PackSettings(append=True, **SMALL))
    with pytest.raises(HotlapError, match="has these rows already"):
        pack(Rows(mixed(15, seed=1), RAGGED), tmp_path / "p", PackSettings(append=True, **SMALL))
    assert len(Pack(tmp_path / "p")) == 35 and not (tmp_path / "p" / ".packing").exists()


@pytest.mark.parametrize("append", [False, True])
def test_a_source_that_changes_meanwhile_is_packed_anew(tmp_path: Path, append: bool) -> None:
    class Growing(Rows):
        stamp = 0

        def row(self, index: int) -> dict[str, Any]:
            self.stamp += index == 39
            return super().row(index)

        def fingerprint(self) -> str:
            return f"stamp {self.stamp}"

    settings = PackSettings(append=append, **SMALL)
    if append:
        pack(Rows(mixed(20), RAGGED), tmp_path / "p", PackSettings(**SMALL))
    with pytest.raises(HotlapError, match="changed while it was packed"):
        pack(Growing(mixed(40), RAGGED), tmp_path / "p", settings)
    left = sorted(p.name for p in (tmp_path / "p").iterdir()) if append else []
    assert not any(name.startswith(".") for name in left) and (tmp_path / "p").exists() == append
    pack(Rows(mixed(40, seed=1), RAGGED), tmp_path / "p", settings)
    assert len(Pack(tmp_path / "p")) == 40 + 20 * append and verify(tmp_path / "p") == []


def test_a_container_that_is_written_meanwhile(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((50, 9)))
    source = open_source(str(tmp_path / "a.npy"))

    def written(done: int, total: int) -> None:
        if done == total:
            np.save(tmp_path / "b.npy", np.ones((50, 9)))
            os.replace(tmp_path / "b.npy", tmp_path / "a.npy")

    with pytest.raises(HotlapError, match="changed while it was packed"):
        pack(source, tmp_path / "p", progress=written)


def test_a_name_with_line_ends_of_its_own_stays_one_line(tmp_path: Path) -> None:
    path = tmp_path / "left_out.jsonl"
    names = ["a\u2028b", "c\u0085d", "e"]
    _list_left_out(path, 0, [(name, "why\u2029") for name in names])
    _list_left_out(path, 2, [("f", "why")])
    assert [json.loads(line)["name"] for line in path.read_text("utf-8").split("\n")[:-1]] == [*names[:2], "f"]


def test_a_kill_at_the_end_lists_what_was_left_out_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hotlap.pack import job

    rows: list[Any] = [*mixed(20), ValueError("no")]
    for append in (False, True):
        settings = PackSettings(on_error="quarantine", append=append, **SMALL)
        with monkeypatch.context() as patch:
            patch.setattr(job.Manifest, "to_json", lambda self: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                pack(Rows(rows, RAGGED), tmp_path / "p", settings)
        pack(Rows(rows, RAGGED), tmp_path / "p", settings)
        lines = (tmp_path / "p" / "left_out.jsonl").read_text().splitlines()
        assert len(lines) == Pack(tmp_path / "p").manifest.left_out == 1 + append


def test_what_a_kill_left_half_written_is_removed(tmp_path: Path) -> None:
    (tmp_path / "p" / ".packing").mkdir(parents=True)
    names = (".part-00000.arrow.1.tmp", ".pack.json.1.tmp", ".left_out.jsonl.1.tmp", ".packing/.plan.json.1.tmp")
    for name in names:
        (tmp_path / "p" / name).write_text("{")
    pack(Rows(mixed(3), RAGGED), tmp_path / "p")
    assert not any(path.name.startswith(".") for path in (tmp_path / "p").iterdir())


def test_two_packings_of_one_folder(tmp_path: Path) -> None:
    from hotlap.pack.lock import locked

    with locked(tmp_path / "p"), pytest.raises(HotlapError, match="packed by another process"):
        pack(Rows(mixed(3), RAGGED), tmp_path / "p")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk_is_told_and_finished_parts_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hotlap.pack import part_writer

    def full(self: Any) -> None:
        raise OSError(28, "No space left on device")

    whole = part_writer.PartWriter._write_chunk
    calls = iter(range(1000))
    monkeypatch.setattr(part_writer.PartWriter, "_write_chunk",
                        lambda self: full(self) if next(calls) >= 9 else whole(self))  # fmt: skip
    with pytest.raises(HotlapError, match=r"disk of .* is full"):
        pack(Rows(mixed(60), RAGGED), tmp_path / "p", PackSettings(**SMALL))
    kept = sorted(p.name for p in (tmp_path / "p").glob("part-*.arrow"))
    assert kept and not list((tmp_path / "p").glob("*.tmp")) and not list((tmp_path / "p").glob(".part*"))
    monkeypatch.undo()
    pack(Rows(mixed(60), RAGGED), tmp_path / "p", PackSettings(**SMALL))
    assert len(Pack(tmp_path / "p")) == 60


def test_values_that_do_not_fit(make: Callable[..., Pack], tmp_path: Path) -> None:
    good = {"x": np.zeros(3, np.uint8)}
    for bad, message in (({"x": np.zeros(4, np.uint8)}, "shape"), ({"x": np.zeros(3)}, "holds uint8"),
                         ({"x": np.array([1, 2, 300])}, "beyond"), ({"x": "text"}, "cannot|holds|shape"),
                         ({}, "has columns")):  # fmt: skip
        with pytest.raises(HotlapError, match=message):
            pack(Rows([good, bad]), tmp_path / message)
    with pytest.raises(HotlapError, match="cannot store"):
        pack(Rows([{"x": np.array([object()])}]), tmp_path / "object")
    with pytest.raises(HotlapError, match="cannot store"):
        pack(Rows([{"x": 1 + 2j}]), tmp_path / "complex")


def test_whole_numbers_in_a_column_of_floats(tmp_path: Path) -> None:
    first = {"x": np.zeros(3, np.float32), "y": 0.5}
    for number, x in enumerate(([1, 2, 3], np.array([True, False, True]))):
        pack(Rows([first, {"x": x, "y": np.uint8(1)}]), tmp_path / f"p{number}")
        assert Pack(tmp_path / f"p{number}").row(1)["x"].tolist() == list(x)
    for x in (np.zeros(3, np.int16), np.zeros(3, np.uint8)):
        with pytest.raises(HotlapError, match=r"holds float32, this row has .*another scale"):
            pack(Rows([first, {"x": x, "y": 1}]), tmp_path / x.dtype.name)


def test_what_cannot_be_packed_says_what_to_look_at(tmp_path: Path) -> None:
    with pytest.raises(HotlapError, match="Is it the right SRC"):
        pack(Rows([]), tmp_path / "p", PackSettings(1))
    (tmp_path / "file").write_text("")
    with pytest.raises(HotlapError, match=r"failed: .*Is it a folder that you can write"):
        pack(Rows(mixed(3)), tmp_path / "file" / "p", PackSettings(1))
