"""A server over an empty folder, and who asks it. ``ui_client`` is importable however pytest is started."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from ui_client import Client, serve


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[Client]:
    """A client that was told nothing."""
    yield from serve(tmp_path / "runs")


@pytest.fixture
def client(stranger: Client) -> Client:
    """A client that has the cookie."""
    stranger.enter()
    return stranger
