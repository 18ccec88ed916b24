"""Where the number of threads is written: at the start, or in place of what the script says itself."""

from __future__ import annotations

import pytest

from hotlap.lever.catalog import threads
from hotlap.patch.patch import Wanted, patch_file
from hotlap.records.findings import Finding, Where

pytest.importorskip("libcst")
OWN = "import torch\ndef setup(job):\n    torch.set_num_threads(job['threads'])\n    torch.set_num_interop_threads(4)\n"


def patched(source: str, line: int) -> tuple[str, list[str]]:
    """The source with one thread, and what is left to do by hand."""
    text = source.splitlines()[line - 1].strip()
    finding = Finding("thread-contention", 0.5, 0.01, False, [Where("s.py", line, "main", text)], "")
    edits = threads.edits(finding, {"torch_threads": 1, "passive": False})
    done = patch_file("s.py", source.encode(), [Wanted(edit, "threads") for edit in edits])
    return done.after.decode(), [told.text for told in done.by_hand]


def test_the_scripts_own_number_is_replaced_and_not_set_before_it() -> None:
    after, by_hand = patched(OWN, 3)
    assert after == OWN.replace("torch.set_num_threads(job['threads'])", "torch.set_num_threads(1)") and not by_hand
    assert patched(after, 3)[0] == after, "a second patch changes nothing"


def test_a_variable_is_the_users_to_change() -> None:
    source = "import os\nos.environ['OMP_NUM_THREADS'] = '16'\nimport torch\n"
    after, by_hand = patched(source, 2)
    assert after == source and by_hand == ["Set these variables to 1."]


def test_where_nothing_is_said_it_is_set_before_the_loop() -> None:
    source = "import torch\nfor x in loader:\n    step(x)\n"
    assert patched(source, 2)[0] == source.replace("\nfor", "\ntorch.set_num_threads(1)\nfor")
