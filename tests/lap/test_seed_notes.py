"""What ends a proof over seeds before it has begun."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hotlap.lap.seed_notes import failed
from hotlap.records.errors import HotlapError


def test_a_door_that_did_not_open_says_where_to_look(tmp_path: Path) -> None:
    (tmp_path / "1.error").write_text("no torch\n")
    arm: Any = SimpleNamespace(spec=SimpleNamespace(timeline_dir=tmp_path))
    run: Any = SimpleNamespace(status="finished", reason="the script ended", steps=0)
    with pytest.raises(HotlapError, match=r"attach to the script: no torch\. Does `hotlap doctor` say ok\?"):
        failed({"baseline": arm}, {"baseline": run}, first=True)
