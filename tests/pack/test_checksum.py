"""The checksum of a chunk is zlib's, whoever computes it."""

from __future__ import annotations

import shutil
import zlib

import numpy as np
import pytest

from hotlap.pack import kernel
from hotlap.pack.checksum import crc32

MIB = 1 << 20


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("size", [0, 1, 1000, MIB - 1, MIB, MIB + 1, MIB + 63, MIB + 64, MIB + 200])
@pytest.mark.parametrize("before", [0, 1, 0xDEADBEEF])
def test_as_zlib(size: int, before: int) -> None:
    assert kernel.ready(wait=True), kernel.state()
    data = np.random.default_rng(size).integers(0, 256, size + 3, np.uint8)
    assert crc32(data[3:].data, before) == zlib.crc32(data[3:].tobytes(), before), "it need not be aligned"
    assert crc32(data.tobytes(), before) == zlib.crc32(data.tobytes(), before)


def test_wide_numbers_are_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = np.arange(MIB // 4 + 50, dtype=np.int64)
    for ready in (kernel.ready, lambda: False):
        monkeypatch.setattr(kernel, "ready", ready)
        assert crc32(numbers.data) == zlib.crc32(numbers.tobytes())
