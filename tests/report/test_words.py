"""Settings in words."""

from __future__ import annotations

from typing import Any

import pytest

from hotlap.report.words import setting_text


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ({"workers": 2, "persistent": True}, "workers 2, persistent"),
        ({"option": "--batch-size", "value": "32"}, "--batch-size 32"),
        ({"option": "train.batch=", "value": 32}, "train.batch=32"),
        ({"file": "c.yaml", "key": "a.b", "value": False}, "a.b false in c.yaml"),
        ({"option": "--batch-size", "value": "32", "more": 1}, "option --batch-size, value 32, more 1"),
    ],
)
def test_a_setting_reads_as_it_is_written(setting: dict[str, Any], text: str) -> None:
    assert setting_text(setting) == text
