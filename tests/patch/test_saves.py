"""All saves of a file are put off by one writer, and none where another may write or read the same path."""

from __future__ import annotations

import textwrap

import pytest

from hotlap.patch.patch import Patched, Wanted, patch_file
from hotlap.records.edits import Edit

pytest.importorskip("libcst")


def put_off(source: str, **beside: str) -> Patched:
    text = textwrap.dedent(source)
    line = next(n for n, code in enumerate(text.splitlines(), 1) if "torch.save(" in code)
    edit = Edit("replace_call", "s.py", line, target="torch.save", code="save_later({arguments})")
    others = {f"{name}.py": textwrap.dedent(code).encode() for name, code in beside.items()}
    return patch_file("s.py", text.encode(), [Wanted(edit, "a-lever")], others)


def test_a_later_save_of_the_same_path_goes_the_same_way() -> None:
    done = put_off("""\
    import torch
    from torch import save as keep
    for step in range(9):
        if step % 3 == 0:
            torch.save(model.state_dict(), "last.pt")
    torch.save(model.state_dict(), "last.pt")
    keep(model.state_dict(), "last.pt")
    """).after.decode()
    assert done.count('save_later(model.state_dict(), "last.pt")') == 3
    assert 'torch.save(model.state_dict(), "last.pt")' not in done and "keep(model" not in done


@pytest.mark.parametrize(("line", "why"), [
    ("write = torch.save", "handed on in line 3"),
    ("with open('last.pt', 'wb') as f: torch.save(state, f)", "open file in line 3"),
])  # fmt: skip
def test_a_writer_that_cannot_wait_its_turn_is_a_reason(line: str, why: str) -> None:
    done = put_off(f"import torch\ntorch.save(state, 'last.pt')\n{line}\n")
    assert done.after == done.before and why in done.by_hand[0].text


SAVER = "import torch\ndef save(state, path):\n    name = path + '.pt'\n    torch.save(state, name)\n"


@pytest.mark.parametrize("code", ["state = torch.load('best.pt')", "torch.save(state, 'best.pt')", "if {"])
def test_the_other_files_of_the_run_are_read(code: str) -> None:
    source = "import torch\ntorch.save(model.state_dict(), 'best.pt')\n"
    assert put_off(source, train="import torch\nstate = {}\n").written == ["a-lever"]
    done = put_off(source, train=f"import torch\n{code}\n")
    assert done.after == done.before and "train.py:2" in done.by_hand[0].text


@pytest.mark.parametrize(("callers", "written"), [
    ("", False), ("import numpy as np\nnp.save(a, b)", False), ("save(model, 'a')", True),
    ("def main():\n    save(model, 'a')\nmain()", True), ("def every(folder):\n    save(model, folder)", False),
])  # fmt: skip
def test_a_function_that_others_tell_where_to_save_is_left(callers: str, written: bool) -> None:
    done = put_off(f"{SAVER}{callers}\n")
    assert (done.after != done.before) == written
    assert written or "save (line 4) is told by another file where to save" in done.by_hand[0].text


def test_an_object_that_is_made_elsewhere_is_left() -> None:
    saver = "import torch\nclass Saver:\n    def save(self, state):\n        torch.save(state, self.path)\n"
    assert put_off(saver).written == [] and put_off(f"{saver}Saver().save(1)\n").written == ["a-lever"]
