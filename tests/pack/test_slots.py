"""Slots: what is taken is nobody else's, what is given back is used again, and together it stays as small as it can."""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from hotlap.pack.libc import libc
from hotlap.pack.slots import Slots

PAGE = mmap.PAGESIZE
ROOM = 256 << 20

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux alone reads past the page cache")


@pytest.fixture
def first() -> Iterator[int]:
    lib = libc()
    found = lib.mmap(None, ROOM, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    yield found
    lib.munmap(found, ROOM)


def bytes_at(address: int, size: int) -> memoryview:
    return memoryview((ctypes.c_uint8 * size).from_address(address)).cast("B")


def test_no_two_slots_share_a_byte_and_what_is_free_is_used_again(first: int) -> None:
    slots, g = Slots(first, first + ROOM), np.random.default_rng(1)
    held: list[tuple[int, int, int]] = []
    most = 0
    for number in range(3000):
        size = PAGE * int(g.integers(1, 900))
        address = slots.take(size)
        assert address is not None and (address - first) % PAGE == 0
        assert all(address + size <= other or other + length <= address for other, length, _ in held)
        mark = number % 251
        bytes_at(address, size)[0] = bytes_at(address, size)[size - 1] = mark
        held.append((address, size, mark))
        most = max(most, sum(length for _, length, _ in held))
        if len(held) > 20:  # about first in, first out, as stretches are let go
            other, length, mark = held.pop(int(g.integers(3)))
            assert bytes_at(other, length)[0] == bytes_at(other, length)[length - 1] == mark
            slots.give_back(other)
    used = slots._end - first
    assert used < 1.5 * most + (64 << 20), "fragments are few, and memory grows by so much at once"
    for other, _, _ in held:
        slots.give_back(other)
    assert slots._free == [(first, used)], "all of it one piece again"


def test_a_range_that_is_used_up_gives_none(first: int) -> None:
    slots = Slots(first, first + 4 * PAGE)
    assert slots.take(3 * PAGE) == first and slots.take(2 * PAGE) is None
    assert slots.take(PAGE) == first + 3 * PAGE and slots.take(PAGE) is None
    slots.give_back(first)
    assert slots.take(2 * PAGE) == first


def test_memory_that_is_free_goes_back(first: int) -> None:
    slots = Slots(first, first + ROOM)
    one, other = slots.take(PAGE), slots.take(PAGE)
    assert one is not None and other is not None
    bytes_at(one, PAGE)[7] = bytes_at(other, PAGE)[7] = 1
    slots.give_back(one)
    slots.release()
    assert bytes_at(one, PAGE)[7] == 0 and bytes_at(other, PAGE)[7] == 1
