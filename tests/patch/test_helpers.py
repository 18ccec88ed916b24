"""The functions that a patch writes into a script."""

from __future__ import annotations

import importlib
import io
import itertools
import os
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from hotlap.patch.helpers.decode_once import decode_once
from hotlap.patch.helpers.fetch_ahead import fetch_ahead
from hotlap.patch.helpers.save_later import save_later

BIG = 1 << 30


def test_a_file_is_decoded_once_and_each_caller_has_a_copy(tmp_path: Path) -> None:
    path, calls = tmp_path / "a.npy", []
    np.save(path, np.arange(6))

    def read(name: str, scale: int = 1) -> np.ndarray:
        calls.append(name)
        return np.load(name) * scale

    first = decode_once(BIG, read, str(path))
    first[:] = 0
    assert decode_once(BIG, read, str(path)).tolist() == [0, 1, 2, 3, 4, 5] and len(calls) == 1
    assert decode_once(BIG, read, str(path), scale=2).tolist() == [0, 2, 4, 6, 8, 10] and len(calls) == 2
    np.save(path, np.arange(6) + 1)  # as long as before
    os.utime(path, ns=(1, 1))
    assert decode_once(BIG, read, str(path)).tolist() == [1, 2, 3, 4, 5, 6] and len(calls) == 3


def test_arrays_of_an_archive_are_decoded_once(tmp_path: Path) -> None:
    path, calls = tmp_path / "a.npz", []
    np.savez_compressed(path, image=np.arange(6.0), label=7)

    def read(name: str) -> object:
        calls.append(name)
        return np.load(name)

    for _ in range(3):
        with decode_once(BIG, read, str(path)) as item:
            assert item["image"].tolist() == [0, 1, 2, 3, 4, 5] and int(item["label"]) == 7
            assert item.files == ["image", "label"] and item.f.image.sum() == 15 and "label" in item
            item["image"][:] = -1
    assert len(calls) == 1


def test_an_open_file_is_left_where_reading_leaves_it(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    with path.open("wb") as file:
        np.save(file, np.arange(3))
        np.save(file, np.arange(4))
    calls: list[object] = []

    def read(source: object) -> np.ndarray:
        calls.append(source)
        return np.load(source)  # type: ignore[arg-type]

    for opened in (lambda: path.open("rb"), lambda: io.BytesIO(path.read_bytes())) * 2:
        with opened() as file:
            assert [len(decode_once(BIG, read, file)) for _ in range(2)] == [3, 4], "one array behind the other"
            assert file.read() == b""
    assert len(calls) == 4
    np.save(path, np.arange(5))
    with path.open("rb") as file:
        assert len(decode_once(BIG, read, file)) == 5


def test_a_pipe_is_read_as_ever() -> None:
    for text in (b"one", b"two"):
        ours, theirs = os.pipe()
        os.write(theirs, text)
        os.close(theirs)
        with open(ours, "rb") as pipe:
            assert decode_once(BIG, io.BufferedReader.read, pipe) == text


def test_encoded_bytes_are_decoded_once() -> None:
    calls: list[object] = []

    def decode(data: object) -> np.ndarray:
        calls.append(data)
        return np.frombuffer(bytes(data), np.uint8)[::-1]  # type: ignore[call-overload]

    decode.__qualname__ = "imdecode"
    for _ in range(2):
        for given in (b"abc", np.frombuffer(b"abc", np.uint8)):
            assert bytes(decode_once(BIG, decode, given)) == b"cba"
        assert bytes(decode_once(BIG, decode, b"abd")) == b"dba"
    assert len(calls) == 2


def test_what_does_not_fit_is_read_as_before(tmp_path: Path) -> None:
    path, calls = tmp_path / "a.npy", []
    np.save(path, np.arange(6))

    def read(name: str) -> np.ndarray:
        calls.append(name)
        return np.load(name)

    assert [len(decode_once(0, read, str(path))) for _ in range(2)] == [6, 6] and len(calls) == 2


def test_batches_come_in_order_and_an_error_where_it_was() -> None:
    assert list(fetch_ahead(range(50), depth=2)) == list(range(50))

    def broken() -> object:
        yield 1
        raise ValueError("torn file")

    batches = fetch_ahead(broken(), depth=2)
    assert next(batches) == 1
    with pytest.raises(ValueError, match="torn file"):
        next(batches)


def test_a_loop_that_is_left_leaves_no_thread() -> None:
    before = threading.active_count()
    batches = fetch_ahead(itertools.count(), depth=2)
    assert next(batches) == 0
    batches.close()
    assert threading.active_count() == before


def test_a_checkpoint_is_the_state_of_its_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained, save = threading.Event(), torch.save

    def slow(*args: object) -> None:
        assert trained.wait(10)
        save(*args)

    monkeypatch.setattr(torch, "save", slow)
    weight = torch.zeros(3)
    save_later({"w": weight}, tmp_path / "a.pt")
    weight += 1
    trained.set()
    save_later({"w": weight}, tmp_path / "b.pt")
    join_all()
    assert torch.load(tmp_path / "a.pt")["w"].tolist() == [0, 0, 0]
    assert torch.load(tmp_path / "b.pt")["w"].tolist() == [1, 1, 1]


def test_the_thread_waits_for_copies_on_a_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[str] = []

    class Recorded:
        def __init__(self, device: int) -> None:
            assert device == 1

        def record_event(self) -> Recorded:
            return self

        def synchronize(self) -> None:
            assert not list(tmp_path.iterdir())
            waited.append(threading.current_thread().name)

    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    monkeypatch.setattr(torch.cuda, "current_stream", Recorded)
    save_later({"w": torch.ones(3)}, tmp_path / "a.pt")
    join_all()
    assert len(waited) == 1 and "_write_all" in waited[0]
    assert torch.load(tmp_path / "a.pt")["w"].tolist() == [1, 1, 1]


def test_without_room_for_a_copy_it_is_written_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    later = importlib.import_module("hotlap.patch.helpers.save_later")

    def full(*_: object) -> None:
        raise torch.cuda.OutOfMemoryError

    monkeypatch.setattr(later, "_copied", full)
    save_later({"w": torch.ones(3)}, tmp_path / "a.pt")
    assert torch.load(tmp_path / "a.pt")["w"].tolist() == [1, 1, 1]
    assert not later._waiting and not later._writers


def test_a_copy_on_a_device_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    later = importlib.import_module("hotlap.patch.helpers.save_later")
    later._spare.clear()
    monkeypatch.setattr(later, "_tensors", lambda state: [SimpleNamespace(is_cuda=state == "device")])
    later._keep_spare("device")
    assert later._spare == {}
    later._keep_spare("host")
    assert later._spare == {"state": "host"}
    later._spare.clear()


def test_of_checkpoints_faster_than_the_disk_the_newest_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, save = [], torch.save

    def slow(state: dict[str, int], path: str) -> None:
        written.append(state["step"])
        time.sleep(0.02)
        save(state, path)

    monkeypatch.setattr(torch, "save", slow)
    for step in range(50):
        save_later({"step": step}, tmp_path / "a.pt")
    join_all()
    assert torch.load(tmp_path / "a.pt")["step"] == 49 and len(written) < 10


def join_all() -> None:
    for thread in threading.enumerate():
        if "_write_all" in thread.name:  # other threads are pytest's own
            thread.join(5)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_failed_checkpoint_is_told(tmp_path: Path) -> None:
    save_later({}, tmp_path / "nowhere" / "a.pt")
    join_all()
    with pytest.raises((OSError, RuntimeError)):
        save_later({}, tmp_path / "b.pt")


def test_a_state_is_copied_into_the_memory_of_one_that_was_written() -> None:
    later = importlib.import_module("hotlap.patch.helpers.save_later")
    state = {"model": {"w": torch.zeros(4)}, "lr": [0.1, torch.ones(2)], "n": 1}
    written = later._copied(state, None)
    where = written["model"]["w"].data_ptr()
    state["model"]["w"] += 1
    state["n"] = 2
    again = later._copied(state, written)
    assert again["model"]["w"].data_ptr() == where != state["model"]["w"].data_ptr()
    assert again["model"]["w"].tolist() == [1.0] * 4 and again["lr"][1].tolist() == [1.0, 1.0] and again["n"] == 2
    assert later._copied({"model": {"w": torch.zeros(5)}}, again)["model"]["w"].shape == (5,)
    shared = torch.ones(4)
    tied = later._copied({"a": shared, "b": shared[:2]}, {"a": torch.zeros(4), "b": torch.zeros(2)})
    assert tied["a"].data_ptr() == tied["b"].data_ptr()


def test_each_save_holds_its_own_state_however_they_follow(tmp_path: Path) -> None:
    weight = torch.zeros(64)
    for number in range(20):
        weight.fill_(number)
        save_later({"w": weight}, tmp_path / f"{number % 3}.pt")
    join_all()
    assert [torch.load(tmp_path / f"{k}.pt")["w"].unique().tolist() for k in range(3)] == [[18.0], [19.0], [17.0]]


def test_a_link_stays_a_link_and_a_device_is_saved_to_at_once(tmp_path: Path) -> None:
    (tmp_path / "last.pt").symlink_to(tmp_path / "epoch3.pt")
    save_later({"step": 3}, tmp_path / "last.pt")
    join_all()
    assert (tmp_path / "last.pt").is_symlink() and torch.load(tmp_path / "epoch3.pt")["step"] == 3
    save_later({"step": 4}, os.devnull)
    join_all()
    assert not os.path.isfile(os.devnull)
