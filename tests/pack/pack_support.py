"""Sources and files that the tests of packing share."""

from __future__ import annotations

import http.server
import io
import struct
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np


@contextmanager
def served(folder: Path, broken: str = "") -> Iterator[str]:
    """``folder`` by HTTP, on loopback. Of a file named ``broken`` half is sent before the connection ends."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

        def copyfile(self, source: Any, outputfile: Any) -> None:
            content = source.read()
            is_broken = broken and self.path.endswith(f"/{broken}")
            outputfile.write(content[: len(content) // 2] if is_broken else content)

    found = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=found.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{found.server_address[1]}"
    finally:
        found.shutdown()
        found.server_close()


class Rows:
    """A source made of a list; a row that is an exception is raised."""

    def __init__(self, rows: list[Any], ragged: frozenset[str] = frozenset()) -> None:
        self.rows, self.ragged, self.metadata = rows, ragged, {"made_by": "test"}
        self.asked: list[int] = []

    def __len__(self) -> int:
        return len(self.rows)

    def name(self, index: int) -> str:
        return f"row-{index}"

    def row(self, index: int) -> dict[str, Any]:
        self.asked.append(index)
        if isinstance(self.rows[index], BaseException):
            raise self.rows[index]
        return dict(self.rows[index])

    def fingerprint(self) -> str:
        return f"rows {len(self.rows)}"


def mixed(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Rows of every kind of column."""
    rng = np.random.default_rng(seed)
    return [
        {
            "image": rng.integers(0, 256, (3, 12, 10), dtype=np.uint8),
            "label": k % 5,
            "audio": rng.integers(-99, 99, int(rng.integers(0, 50)), dtype=np.int16),
            "boxes": rng.random((k % 4, 4), dtype=np.float32),
            "file": rng.bytes(k % 9),
            "name": f"größe-{k}",
        }
        for k in range(count)
    ]


RAGGED = frozenset({"audio", "boxes"})


def jpeg(seed: int, size: tuple[int, int] = (32, 24), kind: str = "JPEG") -> bytes:
    """A smooth random picture, (width, height)."""
    from PIL import Image

    rng = np.random.default_rng(seed)
    small = Image.fromarray(rng.integers(0, 256, (4, 4, 3), dtype=np.uint8))
    out = io.BytesIO()
    small.resize(size).save(out, kind)
    return out.getvalue()


def tar(path: Path, files: dict[str, bytes] | list[tuple[str, bytes]]) -> None:
    with tarfile.open(path, "w") as out:
        for name, content in files.items() if isinstance(files, dict) else files:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            out.addfile(member, io.BytesIO(content))


def record(label: float | list[float], content: bytes) -> bytes:
    many = label if isinstance(label, list) else []
    head = struct.pack("<IfQQ", len(many), 0.0 if many else label, 0, 0) + struct.pack(f"<{len(many)}f", *many)
    body = head + content
    return struct.pack("<II", 0xCED7230A, len(body)) + body + b"\0" * (-len(body) % 4)
