"""Advice names the line that it is about."""

from __future__ import annotations

import pytest

from hotlap.lever.by_hand import at
from hotlap.records.findings import Where


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("return flip(x)", "train.py:48 (return flip(x))"),
        ("loader = DataLoader(", "train.py:48 (loader = DataLoader(…))"),
        ("sizes = [", "train.py:48 (sizes = […])"),
        ("", "train.py:48"),
    ],
)
def test_the_line_is_told_as_a_whole(text: str, told: str) -> None:
    assert at(Where("train.py", 48, "main", text=text)) == told
