"""README and the tutorial show what `bench/demo.py --save` kept of a real run, letter by letter."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PRINTED = (ROOT / "bench" / "results" / "demo.txt").read_text()


def blocks(page: str) -> list[str]:
    """Blocks of what a terminal showed, without the command."""
    found = re.findall(r"```(?:console|text)\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    return [re.sub(r"^\$.*\n", "", block) for block in found if "samples/s" in block]


@pytest.mark.parametrize(("page", "count"), [("README.md", 1), ("docs/tutorial.md", 2)])
def test_a_page_shows_what_was_printed(page: str, count: int) -> None:
    shown = blocks(page)
    assert len(shown) == count
    assert all(block in PRINTED for block in shown), page
