"""Checkpoints written in the background are the files that torch.save would have left."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from hotlap.lever import pending_saves
from hotlap.lever.catalog import checkpoint_async
from hotlap.lever.pending_saves import FATES
from hotlap.testing.lever_target import LocalTarget

REAL_SAVE, REAL_LOAD, REAL_STAT, REAL_LISTDIR = torch.save, torch.load, os.stat, os.listdir


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalTarget]:
    def slow(obj: Any, f: Any, **rest: Any) -> None:
        time.sleep(0.15)
        REAL_SAVE(obj, f, **rest)

    monkeypatch.setattr(torch, "save", slow)
    with LocalTarget(str(tmp_path)) as target:
        checkpoint_async.apply(target, {"pending": 1})
        yield target
    assert target.problems == []


def state(value: float = 1.0) -> dict[str, Any]:
    weight = torch.full((20, 20), value)
    return {"a": weight, "tied": weight, "part": weight[3:5], "step": 3, "names": ["x"]}


def test_same_file_as_torch_save(target: LocalTarget, tmp_path: Path) -> None:
    path, other = tmp_path / "m.pt", tmp_path / "other" / "m.pt"
    other.parent.mkdir()
    REAL_SAVE(state(), other)
    started = time.perf_counter()
    torch.save(state(), path)
    assert time.perf_counter() - started < 0.1
    assert path.read_bytes() == other.read_bytes()
    assert target.changes == 1


class Recorded:
    """An event of a stream, and the threads that waited for it before anything was written."""

    def __init__(self, path: Path) -> None:
        self._path, self.waited = path, list[str]()

    def synchronize(self) -> None:
        assert not list(self._path.parent.glob(f"{self._path.name}*"))
        self.waited.append(threading.current_thread().name)


def test_the_thread_waits_for_the_copies(target: LocalTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    event = Recorded(tmp_path / "m.pt")
    monkeypatch.setattr(pending_saves, "copies_made", lambda taken: [event])
    torch.save(state(), tmp_path / "m.pt")
    assert torch.load(tmp_path / "m.pt")["step"] == 3 and event.waited == ["hotlap-checkpoint"]


@pytest.mark.gpu
def test_a_copy_on_a_stream_of_the_scripts_own_is_whole(target: LocalTarget, tmp_path: Path) -> None:
    weight, stream = torch.zeros(1 << 22, device="cuda"), torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(1 << 30)  # the copy is queued behind it
        weight.fill_(1.0)
        torch.save({"w": weight}, tmp_path / "m.pt")
    assert bool((torch.load(tmp_path / "m.pt", map_location="cpu")["w"] == 1).all())


def test_later_changes_of_the_weights_do_not_reach_the_file(target: LocalTarget, tmp_path: Path) -> None:
    held = state()
    torch.save(held, tmp_path / "m.pt")
    held["a"].zero_()
    assert torch.load(tmp_path / "m.pt")["a"].sum() == 400


@pytest.mark.parametrize(
    "look",
    [
        lambda p: p.exists(), lambda p: os.path.getsize(p) > 0, lambda p: p.name in os.listdir(p.parent),
        lambda p: list(p.parent.glob("*.pt")) == [p], lambda p: p.parent.stat().st_mtime_ns >= p.stat().st_mtime_ns,
        lambda p: os.replace(p, p.with_name("best.pt")) is None,
        lambda p: shutil.copy(p, p.with_name("copy.pt")), lambda p: os.remove(p) is None,
        lambda p: len(p.read_bytes()) > 0, lambda p: os.system(f"test -e {p}") == 0,
        lambda p: os.chmod(p, 0o600) is None, lambda p: os.utime(p) is None, lambda p: os.truncate(p, 1) is None,
    ],
)  # fmt: skip
def test_who_looks_for_the_file_finds_it(target: LocalTarget, tmp_path: Path, look: Any) -> None:
    torch.save(state(), tmp_path / "m.pt")
    assert look(tmp_path / "m.pt")


@pytest.mark.flaky(reruns=2)  # who waits is told by the clock
@pytest.mark.parametrize(
    "look",
    [
        lambda p: os.listdir(p.parent.parent), lambda p: list(p.parent.parent.glob("checkpoint-*")),
        lambda p: os.access(p.parent, os.R_OK), lambda p: torch.save(state(), p.with_name("schedule.pt")) is None,
    ],
)  # fmt: skip
def test_who_cannot_see_the_file_waits_for_nothing(target: LocalTarget, tmp_path: Path, look: Any) -> None:
    path = tmp_path / "checkpoint-2" / "m.pt"
    path.parent.mkdir()
    started = time.perf_counter()
    torch.save(state(), path)
    torch.save(state(), path.with_name("optimizer.pt"))
    assert look(path)
    assert time.perf_counter() - started < 0.14
    shutil.rmtree(tmp_path)
    assert not tmp_path.exists(), "nothing is written into a folder while it is removed"


def test_a_script_that_looks_at_once_is_left_alone(tmp_path: Path) -> None:
    with LocalTarget(str(tmp_path)) as target:
        checkpoint_async.apply(target, {"pending": 1})
        for number in range(2 * FATES):
            torch.save(state(number), tmp_path / f"{number}.pt")
            assert os.path.getsize(tmp_path / f"{number}.pt") > 0
    assert target.changes == FATES


def test_a_save_in_place_comes_after_an_older_one(target: LocalTarget, tmp_path: Path) -> None:
    torch.save(state(), tmp_path / "m.pt")
    torch.save({"graph": torch.ones(3, requires_grad=True) * 2}, tmp_path / "m.pt")
    assert "graph" in torch.load(tmp_path / "m.pt")


@pytest.mark.flaky(reruns=2)  # who waits is told by the clock
def test_saves_do_not_pile_up(target: LocalTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hotlap.lever.pending_saves.REST_MOST_S", 0.1)
    begun, waits = time.perf_counter(), []
    for number in range(8):
        torch.save(state(), tmp_path / f"{number}.pt")
        waits.append(time.perf_counter() - begun)
        time.sleep(0.02)
    assert waits[-1] > 0.3 and waits[3] < waits[-1] / 2, "one that waited for a tenth of a second lets none behind it"


def test_order_is_kept(target: LocalTarget, tmp_path: Path) -> None:
    for value in range(3):
        torch.save(state(value), tmp_path / "m.pt")
    assert torch.load(tmp_path / "m.pt")["a"][0, 0] == 2


def test_of_saves_to_one_path_the_newest_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[float] = []

    def slow(state: Any, path: Any) -> None:
        written.append(float(state["a"][0, 0]))
        time.sleep(0.02)
        REAL_SAVE(state, path)

    monkeypatch.setattr(torch, "save", slow)
    with LocalTarget(str(tmp_path)) as target:
        checkpoint_async.apply(target, {"pending": 1})
        for value in range(30):
            torch.save(state(value), tmp_path / "m.pt")
        assert torch.load(tmp_path / "m.pt")["a"][0, 0] == 29
        for value in range(30, 33):
            torch.save(state(value), tmp_path / f"{value}.pt")
    assert len(written) < 10, "a look at the folder, to take a save over, waits for nothing"
    assert written[-4:] == [29, 30, 31, 32], "other paths are other files"
    assert target.changes == 33


def test_a_rest_ends_when_somebody_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hotlap.lever.pending_saves.REST_FACTOR", 1e9)
    monkeypatch.setattr("hotlap.lever.pending_saves.REST_MOST_S", 60.0)
    with LocalTarget(str(tmp_path)) as target:
        checkpoint_async.apply(target, {"pending": 1})
        torch.save(state(1), tmp_path / "m.pt")
        assert torch.load(tmp_path / "m.pt")["a"][0, 0] == 1
        torch.save(state(2), tmp_path / "m.pt")
        time.sleep(0.05)
        assert torch.load(tmp_path / "m.pt")["a"][0, 0] == 2
        torch.save(state(3), tmp_path / "m.pt")
    assert REAL_LOAD(tmp_path / "m.pt")["a"][0, 0] == 3, "neither does the end of the script wait"


def test_a_forked_child_does_not_wait_for_ever(target: LocalTarget, tmp_path: Path) -> None:
    torch.save(state(), tmp_path / "m.pt")
    child = os.fork()
    if child == 0:
        os.stat(tmp_path)
        os._exit(7)
    until = time.monotonic() + 5
    while (done := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < until:
        time.sleep(0.01)
    if done == (0, 0):
        os.kill(child, signal.SIGKILL)
        done = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(done[1]) == 7


def test_what_cannot_be_copied_is_saved_as_before(target: LocalTarget, tmp_path: Path) -> None:
    leaf = torch.ones(3, requires_grad=True)
    torch.save({"graph": leaf * 2}, tmp_path / "m.pt")
    assert (tmp_path / "m.pt").exists() and target.changes == 0


def test_a_missing_folder_fails_at_the_call(target: LocalTarget, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError):
        torch.save(state(), tmp_path / "nowhere" / "m.pt")


def test_an_error_of_writing_is_raised_at_the_next_save(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(state: Any, path: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", full)
    with LocalTarget(str(tmp_path)) as target:
        checkpoint_async.apply(target, {"pending": 1})
        torch.save(state(), tmp_path / "m.pt")
        assert not (tmp_path / "m.pt").exists()
        with pytest.raises(OSError, match="No space"):
            torch.save(state(), tmp_path / "m.pt")
    assert list(tmp_path.iterdir()) == []


def test_a_save_behind_one_that_failed_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(state: Any, path: Any) -> None:
        if "last" in os.fspath(path):
            raise OSError(28, "No space left on device")
        REAL_SAVE(state, path)

    monkeypatch.setattr(torch, "save", full)
    with LocalTarget(str(tmp_path)) as target:
        checkpoint_async.apply(target, {"pending": 1})
        torch.save(state(), tmp_path / "last.pt")
        assert not (tmp_path / "last.pt").exists()
        with pytest.raises(OSError, match="No space") as caught:
            torch.save(state(7), tmp_path / "best.pt")
        assert "last.pt" in caught.value.__notes__[0]
        assert REAL_LOAD(tmp_path / "best.pt")["a"][0, 0] == 7, "a script that catches errors for each save goes on"
        torch.save(state(8), tmp_path / "best.pt")
    assert REAL_LOAD(tmp_path / "best.pt")["a"][0, 0] == 8 and target.changes == 2


def test_what_pickle_refuses_fails_at_the_call(target: LocalTarget, tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 2)
    model.register_forward_hook(lambda *_: None)
    try:
        torch.save(model, tmp_path / "m.pt")
    except Exception:
        torch.save(model.state_dict(), tmp_path / "m.pt")
    assert torch.load(tmp_path / "m.pt").keys() == {"weight", "bias"} and target.changes == 1


def test_a_model_is_saved_with_the_attributes_of_its_parameters(target: LocalTarget, tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 2)
    model.bias._no_weight_decay = True  # type: ignore[assignment]
    torch.save(model, tmp_path / "m.pt")
    assert torch.load(tmp_path / "m.pt", weights_only=False).bias._no_weight_decay
    torch.save({"bias": model.bias}, tmp_path / "m.pt")
    assert torch.load(tmp_path / "m.pt", weights_only=False)["bias"]._no_weight_decay and target.changes == 0


def test_what_cannot_be_written_beside_is_written_in_place(target: LocalTarget, tmp_path: Path) -> None:
    (tmp_path / f".m.pt.{os.getpid()}.tmp").mkdir()  # in the way
    torch.save(state(), tmp_path / "m.pt")
    assert torch.load(tmp_path / "m.pt")["step"] == 3 and target.changes == 1


def test_a_link_stays_a_link_and_who_reads_through_it_waits(target: LocalTarget, tmp_path: Path) -> None:
    (tmp_path / "last.pt").symlink_to(tmp_path / "epoch3.pt")
    torch.save(state(1), tmp_path / "last.pt")
    assert torch.load(tmp_path / "last.pt")["a"][0, 0] == 1
    torch.save(state(2), tmp_path / "epoch3.pt")
    assert torch.load(tmp_path / "last.pt")["a"][0, 0] == 2
    assert (tmp_path / "last.pt").is_symlink() and target.changes == 2


def test_devices_and_files_of_two_names_are_saved_in_place(target: LocalTarget, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    first, second = tmp_path / "first.pt", tmp_path / "second.pt"
    REAL_SAVE(state(1), first)
    os.link(first, second)
    torch.save(state(2), first)
    torch.save(state(2), os.devnull)
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    torch.save({}, tmp_path / "pipe", _use_new_zipfile_serialization=False)
    assert os.read(reader, 1 << 16)
    os.close(reader)
    assert REAL_LOAD(second)["a"][0, 0] == 2 and not os.path.isfile(os.devnull) and target.changes == 0


def test_a_save_by_keywords_comes_after_an_older_one(target: LocalTarget, tmp_path: Path) -> None:
    torch.save(state(1), tmp_path / "m.pt")
    torch.save(obj=state(2), f=tmp_path / "m.pt")
    assert REAL_LOAD(tmp_path / "m.pt")["a"][0, 0] == 2


def forked(path: Path) -> int:
    child = os.fork()
    if child == 0:
        os._exit(0 if REAL_STAT(path) else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def started(path: Path) -> int | None:
    process = multiprocessing.get_context("fork").Process(target=REAL_STAT, args=(path,))
    process.start()
    process.join()
    return process.exitcode


def told(path: Path) -> int:
    """As a trainer of several processes that tells a helper by a signal."""
    found = []
    before = signal.signal(signal.SIGUSR1, lambda *_: found.append(path.name in REAL_LISTDIR(path.parent)))
    try:
        os.kill(os.getpid(), signal.SIGUSR1)
        signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    return 0 if found == [True, True] else 1


def passed(path: Path) -> int:
    with pytest.raises(ValueError, match="process group"):
        torch.distributed.barrier()
    return 0 if REAL_STAT(path) else 1


@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch was built without ranks")
@pytest.mark.parametrize("other", [forked, started, passed, told])
def test_another_process_finds_the_file(target: LocalTarget, tmp_path: Path, other: Any) -> None:
    torch.save(state(), tmp_path / "m.pt")
    assert other(tmp_path / "m.pt") == 0


def slowly(state: Any, path: Any) -> None:
    time.sleep(0.3)
    REAL_SAVE(state, path)


@pytest.mark.parametrize(
    "end",
    [lambda: os.kill(os.getpid(), signal.SIGKILL), lambda: signal.raise_signal(signal.SIGTERM), lambda: os.abort()],
)
def test_a_script_that_ends_itself_leaves_its_file(
    end: Callable[[], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "save", slowly)
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        with LocalTarget(str(tmp_path)) as target:
            checkpoint_async.apply(target, {"pending": 1})
            torch.save(state(), tmp_path / "m.pt")
            end()
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    assert REAL_LOAD(tmp_path / "m.pt")["step"] == 3


def test_it_is_asked_whether_somebody_lives_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = threading.Event()
    monkeypatch.setattr(torch, "save", lambda state, path: REAL_SAVE(state, path) if written.wait(10) else None)
    with LocalTarget(str(tmp_path)) as target:
        checkpoint_async.apply(target, {"pending": 1})
        torch.save(state(), tmp_path / "m.pt")
        os.kill(os.getpid(), 0)
        written.set()


def test_a_loaders_worker_is_begun_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = threading.Event()
    monkeypatch.setattr(torch, "save", lambda state, path: REAL_SAVE(state, path) if written.wait(10) else None)

    def worker() -> None:
        return

    worker.__module__ = "torch.utils.data._utils.worker"
    with LocalTarget(str(tmp_path)) as target:
        checkpoint_async.apply(target, {"pending": 1})
        torch.save(state(), tmp_path / "m.pt")
        process = multiprocessing.get_context("fork").Process(target=worker)
        process.start()
        with pytest.raises(FileNotFoundError):
            REAL_STAT(tmp_path / "m.pt")
        written.set()
        process.join()
    assert REAL_STAT(tmp_path / "m.pt")
