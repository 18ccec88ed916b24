"""A training small enough for milliseconds, and where the real data are."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # helpers beside the tests, which are no package

ROOT = Path(__file__).parents[2]


@pytest.fixture
def real_data() -> Callable[[str], Path]:
    """``real_data("speech_sv")`` is that folder of the real data, or the test is skipped with the reason."""

    def find(name: str) -> Path:
        folder = Path(os.environ.get("HOTLAP_REAL_DATA", ROOT.parent / "shared" / "data")) / name
        if not folder.is_dir():
            pytest.skip(f"no {name} in HOTLAP_REAL_DATA or ../shared/data")
        return folder

    return find
