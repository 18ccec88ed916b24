"""Reading ahead changes when the disk is read, never what a batch holds; damage that it finds reaches the training."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pack_support import mixed

from hotlap.pack import BlockShuffle, Loader, LoaderSettings, Pack, Shuffle, batches, direct
from hotlap.pack.available import cores, memory_bytes
from hotlap.pack.read_ahead import ReadAhead
from hotlap.pack.resident import Resident
from hotlap.records.errors import HotlapError

Make = Callable[..., Pack]
ORDERS = [Shuffle(1), BlockShuffle(1, block_rows=8, window_blocks=3)]


def loader(pack: Pack, order: Any, ahead: int, **more: Any) -> Loader:
    return Loader(Pack(pack.folder), 8, {"image": None, "audio": None}, order,
                  settings=LoaderSettings(read_ahead=ahead, **more))  # fmt: skip


def seen(found: Loader, epochs: int = 2) -> list[torch.Tensor]:
    return [batch[name].clone() for _ in range(epochs) for batch in found for name in ("row", "image", "audio")]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("how", [{"mode": "inline"}, {"mode": "background", "threads": 2}])
def test_batches_are_the_same(make: Make, order: Any, how: dict[str, Any]) -> None:
    pack = make(mixed(200))
    early = loader(pack, order, 2, **how)
    plain = seen(loader(pack, order, 0, **how))
    assert all(torch.equal(a, b) for a, b in zip(seen(early), plain, strict=True))
    early.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("hotlap-pack")]


@pytest.mark.parametrize("order", ORDERS)
def test_all_is_read_and_checked_before_its_batch(make: Make, order: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    early = loader(make(mixed(200)), order, 2, mode="inline")
    read_by: set[str] = set()
    check = early.pack.check_chunk

    def noted(number: int, moved: int) -> None:
        read_by.add(threading.current_thread().name.split("_")[0])
        check(number, moved)

    monkeypatch.setattr(early.pack, "check_chunk", noted)
    seen(early, 3)
    early.load_state_dict(early.state_dict() | {"epoch": 0, "batch": 5})
    assert len(seen(early, 1)) == 3 * 20
    assert read_by == {"hotlap-pack-read"}, "a batch must never be the one to wait for a checksum"
    assert early.pack.trusted(early.pack.chunks_of(early.pack.numbers(range(200)))).all()


@pytest.mark.parametrize("order", ORDERS)
def test_damage_reaches_the_training(make: Make, order: Any) -> None:
    pack = make(mixed(200))
    part = pack.folder / pack.manifest.parts[1].file
    content = bytearray(part.read_bytes())
    at = pack.manifest.parts[1].chunks[0].start
    content[at + 300] ^= 1
    part.write_bytes(content)
    with pytest.raises(HotlapError, match="the checksum does not match"):
        seen(loader(pack, order, 2, mode="background"))


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose memory holds two windows and not the pack."""
    monkeypatch.setattr(batches, "memory_bytes", lambda: 600_000)


def resident(found: Loader) -> Resident | None:
    """The pack that batches are made of, where it is read past the page cache."""
    assert found._maker.read_ahead is not None
    return found._maker.read_ahead._resident


def private_kib(pack: Resident) -> int:
    """What of the pack's addresses is memory of our own instead of a file's."""
    base, behind = pack.memory.tensor.data_ptr(), pack.memory.tensor.data_ptr() + pack.memory.tensor.numel()
    inside, found = False, 0
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first, _, rest = line.partition(" ")
        if "-" in first:
            inside = base <= int(first.split("-")[0], 16) < behind
        elif inside and first == "Anonymous:":
            found += int(rest.split()[0])
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone reads past the page cache")
@pytest.mark.parametrize("how", [{"mode": "inline"}, {"mode": "background", "threads": 2}])
def test_past_the_page_cache_batches_are_the_same(make: Make, how: dict[str, Any], little_memory: None) -> None:
    pack = make(mixed(2000), chunk_bytes=16_000, part_bytes=200_000)
    order = BlockShuffle(1, block_rows=20, window_blocks=8)
    plain = seen(loader(pack, order, 0, **how))
    early = loader(pack, order, 2, **how)
    inner = resident(early)
    assert inner is not None
    held: list[int] = []
    for _ in range(2):
        held += [sum(inner._slots._taken.copy().values()) for _ in early]
    if not max(held):
        pytest.skip("the file system has no O_DIRECT")
    of_pack = max(held) / early.pack.memory.size_bytes
    assert of_pack < 0.6, "two windows of 8 %, of blocks that lie in two chunks each, and whole pages for these"
    early.load_state_dict(early.state_dict() | {"epoch": 0, "batch": 5})
    early.load_state_dict(early.state_dict() | {"epoch": 0, "batch": 0})
    assert all(torch.equal(a, b) for a, b in zip(seen(early), plain, strict=True))
    early.close()
    assert private_kib(inner) == 0 and not inner._slots._taken and early.pack.row(3)["name"] == "größe-3"
    assert all(torch.equal(a, b) for a, b in zip(seen(early), seen(loader(pack, order, 0, **how), 4)[-len(plain) :],
                                                 strict=True)), "closed, and opened again"  # fmt: skip


def test_damage_is_found_past_the_page_cache(make: Make, little_memory: None) -> None:
    pack = make(mixed(2000), chunk_bytes=16_000, part_bytes=200_000)
    part = pack.manifest.parts[1]
    content = bytearray((pack.folder / part.file).read_bytes())
    content[part.chunks[2].start + 300] ^= 1
    (pack.folder / part.file).write_bytes(content)
    early = loader(pack, BlockShuffle(1, block_rows=20, window_blocks=8), 2, mode="background", threads=2)
    with pytest.raises(HotlapError, match="the checksum does not match"):
        seen(early)
    assert resident(early) is not None


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone reads past the page cache")
def test_a_file_system_without_direct_reads(make: Make, little_memory: None, monkeypatch: pytest.MonkeyPatch) -> None:
    pack = make(mixed(2000))
    order = BlockShuffle(1, block_rows=20, window_blocks=8)
    plain = seen(loader(pack, order, 0, mode="inline"))
    opened = os.open

    def refused(path: Any, flags: int, *more: Any, **given: Any) -> int:
        if flags & os.O_DIRECT:
            raise OSError(22, "Invalid argument")
        return opened(path, flags, *more, **given)

    monkeypatch.setattr(os, "open", refused)
    early = loader(pack, order, 2, mode="inline")
    assert all(torch.equal(a, b) for a, b in zip(seen(early), plain, strict=True))
    inner = resident(early)
    assert inner is not None and not inner._direct._handles


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone reads past the page cache")
def test_files_are_left_for_the_training_to_open(
    make: Make, little_memory: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = make(mixed(2000), chunk_bytes=16_000, part_bytes=100_000)
    order = BlockShuffle(1, block_rows=20, window_blocks=8)
    plain = seen(loader(pack, order, 0, mode="inline"))
    monkeypatch.setattr(direct, "_most_files", lambda: 3)
    early = loader(pack, order, 2, mode="inline")
    assert all(torch.equal(a, b) for a, b in zip(seen(early), plain, strict=True))
    inner = resident(early)
    assert inner is not None and len(pack.manifest.parts) > 3 == len(inner._direct._handles)


def test_ranks_share_a_window_and_the_page_cache(make: Make, little_memory: None) -> None:
    order = BlockShuffle(1, block_rows=20, window_blocks=8)
    pack = make(mixed(2000))
    makers = [loader(pack, order, 2, world=world)._maker for world in (1, 4)]
    alone, shared = (maker.read_ahead for maker in makers)
    assert alone is not None and shared is not None
    assert (alone._reach, shared._reach) == (160, 40)
    assert alone._resident is not None and shared._resident is None


def test_a_range_over_the_edge_of_two_files(make: Make) -> None:
    pack = Resident(make(mixed(200)), 0)
    edge = int(pack.memory.starts[1])
    start, size = edge - 5000, 9000
    moved = pack.load(start, size)
    if moved is None:
        pytest.skip("the file system has no O_DIRECT")
    memory = pack.memory.array
    assert moved > 0 and (memory[start : start + size] == memory[start + moved : start + moved + size]).all()
    pack.let_go(start, moved)
    assert pack.load(start, size) == moved, "the memory is used again"


def test_rows_are_found_where_they_were_read_to_by_their_holder_alone(make: Make) -> None:
    pack = Resident(make(mixed(200)), 0)
    rows = np.arange(*pack.chunk_rows[1:3])
    moved = pack.load(*pack.chunk_range(1))
    if moved is None:
        pytest.skip("the file system has no O_DIRECT")
    at = {name: pack.starts(name, rows) for name in pack.columns}
    with pack.using([([1], moved)]):
        assert all((pack.starts(name, rows) == at[name] + moved).all() for name in pack.columns)
        assert (pack.starts("image", np.array([199])) < pack.memory.size_bytes).all(), "another chunk's rows stay"
        row = pack.row(int(rows[0]))
        elsewhere = ThreadPoolExecutor(1)
        assert (elsewhere.submit(pack.starts, "image", rows).result() == at["image"]).all()
        elsewhere.shutdown()
    assert (pack.starts("image", rows) == at["image"]).all()
    assert row["name"] == f"größe-{rows[0]}" and torch.equal(row["image"], pack.row(int(rows[0]))["image"])


def test_what_a_batch_is_made_of_is_not_used_again_meanwhile(make: Make, little_memory: None) -> None:
    pack = make(mixed(2000), chunk_bytes=16_000, part_bytes=200_000)
    reading = ReadAhead(Resident(pack, 0), ["image"], 20, in_blocks=True)
    inner = reading._resident
    assert inner is not None
    given: list[int] = []
    give_back = inner._slots.give_back
    inner._slots.give_back = lambda address: given.append(address) or give_back(address)  # type: ignore[method-assign, func-returns-value]
    rows = np.arange(20)
    reading.follows(0)
    reading.ask(rows, 0)
    with reading.ready(rows):
        if not inner._direct._handles:
            pytest.skip("the file system has no O_DIRECT")
        for place in range(20, 400, 20):  # the training is far beyond it
            reading.ask(np.arange(place, place + 20), place)
            with reading.ready(np.arange(place, place + 20)):
                pass
        places = inner._base + inner.starts("image", rows)
        assert given and (inner.starts("image", rows) > pack.memory.size_bytes).all()
        assert not any(address <= place < address + 16_384 for address in given for place in places)
        assert torch.equal(inner.row(3)["image"], pack.row(3)["image"])
        before = len(given)
    assert len(given) > before
    reading.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_reads_the_files(make: Make, little_memory: None) -> None:
    pack = make(mixed(2000), chunk_bytes=16_000, part_bytes=200_000)
    order = BlockShuffle(1, block_rows=20, window_blocks=8)
    plain = seen(loader(pack, order, 0, mode="inline"), 1)
    early = loader(pack, order, 2, mode="inline")
    batches_of = iter(early)
    for _ in range(7):
        next(batches_of)
    child = os.fork()
    if not child:
        early.load_state_dict(early.state_dict() | {"epoch": 0, "batch": 0})
        same = all(torch.equal(a, b) for a, b in zip(seen(early, 1), plain, strict=True))
        os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    early.load_state_dict(early.state_dict() | {"epoch": 0, "batch": 0})
    assert all(torch.equal(a, b) for a, b in zip(seen(early, 1), plain, strict=True))


def test_pages_of_windows_that_have_passed_are_let_go(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    early = loader(make(mixed(200)), ORDERS[1], 2, mode="inline")
    gone: list[int] = []
    monkeypatch.setattr(early.pack.memory, "let_go", lambda start, size: gone.append(start))
    seen(early, 2)
    assert isinstance(early._maker.read_ahead, ReadAhead)
    assert gone and len(gone) >= early.pack.manifest.parts[0].chunks.__len__()
    monkeypatch.undo()
    early.pack.memory.let_go(0, early.pack.memory.size_bytes)
    assert early.pack.row(3)["name"] == "größe-3", "what was let go is read again"


def test_memory_limits_of_both_kinds_of_groups(tmp_path: Path) -> None:
    groups = tmp_path / "groups"
    everything = memory_bytes(tmp_path / "none", tmp_path)
    groups.write_text("7:memory:/a/b\n0::/c/d\n")
    assert memory_bytes(groups, tmp_path) == everything
    (tmp_path / "memory/a/b").mkdir(parents=True)
    (tmp_path / "memory/a/b/memory.limit_in_bytes").write_text("9223372036854771712\n")
    assert memory_bytes(groups, tmp_path) == everything
    (tmp_path / "memory/a/memory.limit_in_bytes").write_text("2000\n")
    assert memory_bytes(groups, tmp_path) == 2000
    (tmp_path / "c/d").mkdir(parents=True)
    (tmp_path / "c/memory.max").write_text("1000\n")
    (tmp_path / "c/d/memory.max").write_text("max\n")
    assert memory_bytes(groups, tmp_path) == 1000


def test_quotas_of_both_kinds_of_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(6), raising=False)
    groups = tmp_path / "groups"
    assert cores(tmp_path / "none", tmp_path) == 6
    groups.write_text("4:cpu,cpuacct:/a/b\n2:cpuset:/e\n0::/c/d\n")
    assert cores(groups, tmp_path) == 6
    inner = tmp_path / "cpu,cpuacct/a/b"
    inner.mkdir(parents=True)
    for quota, found in (("-1", 6), ("450000", 4), ("50000", 1)):
        (inner / "cpu.cfs_quota_us").write_text(f"{quota}\n")
        (inner / "cpu.cfs_period_us").write_text("100000\n")
        assert cores(groups, tmp_path) == found
    (inner / "cpu.cfs_quota_us").write_text("-1\n")
    (tmp_path / "c/d").mkdir(parents=True)
    (tmp_path / "c/d/cpu.max").write_text("max 100000\n")
    assert cores(groups, tmp_path) == 6
    (tmp_path / "c/cpu.max").write_text("350000 100000\n")
    assert cores(groups, tmp_path) == 3
