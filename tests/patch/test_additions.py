"""Helpers and imports that a patch adds: beside whatever names the script has, and where they are seen in time."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import torch

from hotlap.patch.additions import add_helpers
from hotlap.records.errors import HotlapError


def run(text: str) -> dict[str, object]:
    names: dict[str, object] = {"__name__": "script"}
    exec(compile(add_helpers(text, "s.py"), "s.py", "exec"), names)
    return names


def test_modules_of_a_helper_leave_the_script_its_names(tmp_path: Path) -> None:
    source = f"""\
import torch
from time import time
from copy import copy

def _kind(path):
    return path

def train():
    save_later(obj={{"a": copy(1)}}, f="{tmp_path}/a.pt")
    return time(), _kind("x")
"""
    names = run(source)
    assert names["train"]()[1] == "x"
    [t.join() for t in names["_threading"].enumerate() if "_write_all" in t.name]
    assert torch.load(tmp_path / "a.pt") == {"a": 1}


def test_a_queue_of_the_script_stays_one() -> None:
    names = run("import torch\nqueue = [3]\nfound = [b for b in fetch_ahead(range(4), depth=2)]\n")
    assert names["queue"] == [3] and names["found"] == [0, 1, 2, 3]


def test_a_helper_stands_above_its_first_use(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("7")
    source = f"from pathlib import Path\nmean = decode_once(100, Path.read_text, Path('{path}'))\nimport sys\nx = sys\n"
    assert run(source)["mean"] == "7"


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("def save_later(a): pass", "save_later"),
        ("save_later = print", "save_later"),
        ("for _waiting in range(3): pass", "_waiting"),
        ("from mine import threads as _threading", "_threading"),
        ("def f():\n    global _failed\n    _failed = 1", "_failed"),
    ],
)
def test_a_name_of_the_scripts_own_is_not_overwritten(line: str, name: str) -> None:
    with pytest.raises(HotlapError, match=rf"s\.py:[23]: {name} is the script's own"):
        add_helpers(f"import torch\n{line}\nsave_later(a, 'x')\n", "s.py")


def test_what_an_earlier_patch_added_is_not_added_again() -> None:
    once = add_helpers("import torch\nsave_later(a, 'x')\n", "s.py")
    assert once.count("def save_later") == 1 == once.count("import torch\n") and add_helpers(once, "s.py") == once


USE = "\ndef main():\n    torch.set_num_threads(1)\n"


@pytest.mark.parametrize(
    ("head", "line"),
    [
        ('import os\nos.environ["OMP_NUM_THREADS"] = "1"\nfrom torch import nn\n', 3),
        ('import os\nos.environ["OMP_NUM_THREADS"] = "1"\nfrom model import Net\n', 3),
        ('import os\nfrom model import Net\nos.environ["OMP_NUM_THREADS"] = "1"\n', 4),
        ('"""Train.\n\n    import torch\n"""\nfrom torch import nn\n', 5),
        ("from torch import nn\n\ndef export():\n    import torch\n    torch.save(1, 'x')\n", 1),
        ("#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n# Train.\n", 3),
        ("if TYPE_CHECKING:\n    import torch\n", 1),
        ("from __future__ import annotations\nimport os\nimport torch.nn as nn\n", 3),
    ],
)
def test_torch_is_imported_beside_its_others_and_behind_what_it_is_to_see(head: str, line: int) -> None:
    done = add_helpers(head + USE, "s.py")
    assert done.split("\n")[line - 1] == "import torch"
    ast.parse(done)


@pytest.mark.parametrize(
    "source",
    [
        f"import torch\n{USE}",
        f"import torch.nn\n{USE}",
        f"try:\n    import torch\nexcept ImportError:\n    torch = None\n{USE}",
        "def main():\n    import torch\n    torch.set_num_threads(1)\n",
        "def main(torch):\n    torch.set_num_threads(1)\n",
    ],
)
def test_torch_is_imported_only_where_it_is_missing(source: str) -> None:
    assert add_helpers(source, "s.py") == source
