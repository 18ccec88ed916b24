"""Small data sets, made for each test. Where a library is missing that packing needs, each file is skipped aloud."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from pack_support import RAGGED, Rows, jpeg  # a helper beside the tests, which are no package

from hotlap.pack import Pack, PackSettings, pack

MISSING = [name for name in ("pyarrow", "PIL", "soundfile") if find_spec(name) is None]


class Unpackable(pytest.Module):
    """A test file that cannot be imported here: one skip with its reason, in place of the file's tests."""

    def collect(self) -> list[pytest.Item]:
        pytest.skip(f"not installed: {', '.join(MISSING)}; pip install 'hotlap[dev]' brings them")


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Skips are told, never silent: a run without these libraries must not look like one that tested packing."""
    return Unpackable.from_parent(parent, path=module_path) if MISSING else None  # type: ignore[no-any-return]


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Pack]:
    """Packs rows in several small parts and chunks, and opens the pack."""

    def _make(rows: list[dict[str, Any]], name: str = "data.pack", **settings: Any) -> Pack:
        given = {"chunk_bytes": 2000, "part_bytes": 8000, **settings}
        ragged = RAGGED & set(rows[0])
        pack(Rows(rows, ragged), tmp_path / name, PackSettings(**given))
        return Pack(tmp_path / name)

    return _make


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """A folder of two classes with three JPEGs each."""
    root = tmp_path / "pictures"
    for k in range(6):
        path = root / ("cat" if k < 3 else "dog") / f"{k}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(jpeg(k))
    return root
