"""Damaged timelines and documents are refused in words, by every reader; nothing else ever escapes."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.records.damage import damaged
from tests.records.test_codec import json_values
from tests.records.test_timeline import header, line, step

from hotlap.guard.follow import Follower
from hotlap.records.codec import dumps
from hotlap.records.errors import HotlapError
from hotlap.records.plan import Move, Plan
from hotlap.records.rows import Event, Frame, Hits, Load, Mark, Setting
from hotlap.records.run_folder import RunFolder
from hotlap.records.timeline import ROW_KINDS, read_timeline
from hotlap.records.trials import Interval, Trial, Window
from hotlap.trial.tail import Tail

ROWS = (
    header(), step(0), step(1, 4), Frame(3, "a.py", 7, "f", True), Hits(5, 10, [[1, 2, 3]]), Load(0, 5, 1, 32, 2, 1, 3),
    Event("validation", 1, 2, 3), Setting("loader", {"workers": 2}), Mark("lever", "autocast", "applied", 1),
)  # fmt: skip
READERS: dict[str, Callable[[Path], object]] = {
    "whole": lambda path: read_timeline(path),
    "by the guard": lambda path: Follower(path.parent).poll(),
    "by a trial": lambda path: Tail(path.parent).poll(),
}
TRIAL = Trial("x", {"a": 1}, "measured", interval=Interval(1.0, 0.9, 1.1), windows=[Window("baseline", 1, 2, 3, 0.1)])
DOCUMENTS = [(Trial, dumps(TRIAL)), (Plan, dumps(Plan([Move("autocast", {"dtype": "bf16"}, "maths", 1.5)])))]


def read(data: bytes, reader: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.jsonl"
        path.write_bytes(data)
        with contextlib.suppress(HotlapError):
            READERS[reader](path)


@pytest.mark.parametrize("reader", READERS)
@given(data=damaged(b"".join(map(line, ROWS))))
@settings(max_examples=60, deadline=None)
def test_a_damaged_timeline_is_read_or_refused(reader: str, data: bytes) -> None:
    read(data, reader)


@pytest.mark.parametrize("reader", READERS)
@given(
    kind=st.sampled_from(sorted(ROW_KINDS)) | json_values,
    fields=st.dictionaries(
        st.sampled_from(["t", "w", "n", "p", "h", "l", "id", "kind", "value"]), json_values, max_size=4
    ),
)
@settings(max_examples=60, deadline=None)
def test_a_row_of_anything_is_read_or_refused(reader: str, kind: Any, fields: dict[str, Any]) -> None:
    read(line(header()) + json.dumps({"k": kind, **fields}).encode() + b"\n" + line(step(0)), reader)


@pytest.mark.parametrize(("kind", "text"), DOCUMENTS, ids=["trial", "plan"])
@given(data=st.data())
@settings(max_examples=80, deadline=None)
def test_a_damaged_document_is_read_or_refused(kind: type[Any], text: str, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "x.json").write_bytes(data.draw(damaged(text.encode())))
        with contextlib.suppress(HotlapError):
            RunFolder(Path(folder)).read("x.json", kind)
