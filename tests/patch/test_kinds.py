"""What each kind of edit does to ordinary sources, and what it refuses."""

from __future__ import annotations

import textwrap
from importlib.resources import files

import pytest

from hotlap.patch import helpers
from hotlap.patch.patch import Patched, Wanted, patch_file
from hotlap.records.edits import Edit
from hotlap.records.errors import HotlapError
from hotlap.records.findings import MOST_TEXT

pytest.importorskip("libcst")
CAST = "{call}.float()"
WITH = "with torch.autocast('cpu'):"


def apply(source: str, *edits: Edit, expected: str = "") -> Patched:
    return patch_file("s.py", textwrap.dedent(source).encode(), [Wanted(e, "a-lever", expected) for e in edits])


def text(done: Patched) -> str:
    return done.after.decode()


def test_a_keyword_replaces_one_by_name_and_one_by_position() -> None:
    source = "a = DataLoader(data, 8, num_workers=0)\nb = DataLoader(data, 8, True, None, None, n)  # why\n"
    edits = [Edit("set_keyword", "s.py", line, target="DataLoader", keywords={"num_workers": 2}) for line in (1, 2)]
    assert text(apply(source, *edits)) == (
        "a = DataLoader(data, 8, num_workers=2)\nb = DataLoader(data, 8, True, None, None, 2)  # why\n"
    )


def test_a_keyword_takes_the_form_of_the_call() -> None:
    source = """\
    loader = DataLoader(
        data,
        batch_size=8,  # small
    )
    """
    edit = Edit("set_keyword", "s.py", 1, target="DataLoader", keywords={"num_workers": 2})
    expected = source.replace("# small\n", "# small\n        num_workers=2,\n")
    assert text(apply(source, edit)) == textwrap.dedent(expected)


def test_arguments_that_cannot_be_seen_are_left_to_a_person() -> None:
    edit = Edit("set_keyword", "s.py", 1, target="DataLoader", keywords={"num_workers": 2})
    done = apply("loader = DataLoader(data, **options)\n", edit)
    assert done.before == done.after and "**" in done.by_hand[0].text


@pytest.mark.parametrize("call", ["DataLoader(data)", "DataLoader(data, 8, True, None, None, 0)"])
def test_two_values_for_one_argument_are_a_conflict(call: str) -> None:
    edits = [Edit("set_keyword", "s.py", 1, target="DataLoader", keywords={"num_workers": n}) for n in (1, 2)]
    with pytest.raises(HotlapError, match=r"s\.py:1: .*num_workers=1.*num_workers=2"):
        apply(f"loader = {call}\n", *edits)


def test_a_line_that_moved_is_refused_with_what_was_expected() -> None:
    edit = Edit("set_keyword", "s.py", 1, target="DataLoader", keywords={"num_workers": 2})
    with pytest.raises(HotlapError, match=r"s\.py:1: the line is 'x = 1'.*'loader = DataLoader\(data\)'"):
        apply("x = 1\n", edit, expected="loader = DataLoader(data)")


def test_the_model_is_followed_to_where_it_is_made() -> None:
    source = """\
    def train(net, x):
        net(x).sum().backward()

    def main():
        model = Net().to(device)
        if parallel:
            model = DDP(model)
        opt = SGD(model.parameters())
        for epoch in range(3):
            train(model, x)
    """
    done = text(apply(source, Edit("insert_after", "s.py", 2, target="model", code="{module}.compile()")))
    assert "        model = DDP(model)\n    model.compile()\n    opt" in done


@pytest.mark.parametrize("evaluate", [
    "def evaluate():\n    with torch.no_grad(): p = model(x)\n",
    "def evaluate():\n    if model(x) > 0:\n        pass\n",
    "def evaluate():\n    out = model(x)\n    return out['loss']\n",
])  # fmt: skip
def test_a_move_is_written_as_a_whole_or_not_at_all(evaluate: str) -> None:
    source = f"import torch\n{evaluate}for x in loader:\n    loss = model(x)\n    loss.backward()\n"
    line = source.splitlines().index("    loss = model(x)") + 1
    wrap = Edit("wrap_with", "s.py", line, target="forwards", code=WITH)
    cast = Edit("replace_call", "s.py", line, target="forwards", code=CAST)
    done = apply(source, wrap, cast)
    assert done.after == done.before and done.written == []
    assert len(done.by_hand) == 2 and all("not written, " in told.text for told in done.by_hand)


def test_another_move_is_written_all_the_same() -> None:
    edits = [Edit("set_keyword", "s.py", line, target="DataLoader", keywords={"num_workers": 2}) for line in (1, 2)]
    source = b"a = DataLoader(d)\nb = DataLoader(d, **more)\n"
    done = patch_file("s.py", source, [Wanted(e, "a-cause", move=n) for n, e in enumerate(edits)])
    assert done.after == b"a = DataLoader(d, num_workers=2)\nb = DataLoader(d, **more)\n"
    assert [told.line for told in done.by_hand] == [2] and done.written == ["a-cause"]
    assert patch_file("s.py", source, [Wanted(e, "a-cause") for e in edits]).after == source


def test_code_that_has_to_run_once_goes_before_the_loops() -> None:
    source = "import torch\nfor epoch in e:\n    for x in loader:\n        step(x)\n"
    done = text(apply(source, Edit("insert_before", "s.py", 4, code="torch.set_num_threads(1)")))
    assert done == "import torch\ntorch.set_num_threads(1)\n" + source.split("\n", 1)[1]


def test_the_head_of_an_elif_has_no_place_before_it() -> None:
    source = "import torch\nif a:\n    pass\nelif model(x).sum() > 0:\n    pass\n"
    done = apply(source, Edit("insert_before", "s.py", 4, code="torch.set_num_threads(1)"))
    assert done.after == done.before and "no place of its own" in done.by_hand[0].text


def test_braces_of_the_script_are_no_places_to_fill() -> None:
    source = 'import torch\nout = model(batch[f"{value}{call}{arguments}"])\nmodel.eval()\n'
    done = text(apply(source, Edit("replace_call", "s.py", 2, target="forward", code=CAST)))
    assert 'out = model(batch[f"{value}{call}{arguments}"]).float()\n' in done
    saved = Edit("replace_call", "s.py", 2, target="torch.save", code="save_later({arguments})")
    assert 'save_later(a, f"{function}.pt")\n' in text(apply('import torch\ntorch.save(a, f"{function}.pt")\n', saved))


def test_a_form_feed_ends_no_line() -> None:
    edit = Edit("set_keyword", "s.py", 3, target="Adam", keywords={"fused": True})
    done = apply("import torch\n\x0c\nopt = Adam(ps)\n", edit, expected="opt = Adam(ps)")
    assert text(done) == "import torch\n\x0c\nopt = Adam(ps, fused=True)\n"
    assert "fused" in text(apply("import torch\x0c\n\nopt = Adam(ps)\n", edit, expected="opt = Adam(ps)"))


BRANCHES = """\
import torch
from other import optim
if args.opt == "adam":
    optimizer = torch.optim.Adam(ps)
elif args.opt == "own":
    optimizer = optim.SGD(ps)
else:
    optimizer = torch.optim.RMSprop(ps)
for x in data:
    optimizer.step()
"""


def test_each_branch_gets_the_keyword_that_its_optimizer_takes() -> None:
    def edit(word: str) -> Edit:
        return Edit("set_keyword", "s.py", 10, target="optimizer", keywords={word: True})

    fused = BRANCHES.replace("Adam(ps)", "Adam(ps, fused=True)")
    assert text(apply(BRANCHES, edit("fused"))) == fused
    assert text(apply(BRANCHES, edit("foreach"))) == fused.replace("fused", "foreach").replace(
        "RMSprop(ps)", "RMSprop(ps, foreach=True)"
    )
    done = apply(BRANCHES.replace("torch.optim.Adam", "torch.optim.Rprop"), edit("fused"))
    assert done.after == done.before and "Rprop is not known to take fused" in done.by_hand[0].text


def test_an_optimizer_gets_its_keyword_on_the_line_that_makes_it() -> None:
    def edit(line: int) -> Edit:
        return Edit("set_keyword", "s.py", line, target="optimizer", keywords={"fused": True})

    assert text(apply(BRANCHES, edit(4))) == BRANCHES.replace("Adam(ps)", "Adam(ps, fused=True)"), "the branch that ran"
    handed_out = "import torch\ndef made(ps):\n    return torch.optim.AdamW(\n        ps,\n        lr=0.1,\n    )\n"
    assert text(apply(handed_out, edit(3))) == handed_out.replace("lr=0.1,", "lr=0.1,\n        fused=True,")
    starred = "import torch\ndef made(ps, **more):\n    return torch.optim.AdamW(ps, **more)\n"
    done = apply(starred, edit(3))
    assert done.after == done.before and "arguments from * or **" in done.by_hand[0].text
    done = apply(BRANCHES, edit(8))
    assert done.after == done.before and "RMSprop is not known to take fused" in done.by_hand[0].text


@pytest.mark.parametrize("head", ["if a:\n    pass\nelse:", "try:\n    pass\nexcept E:", "try:\n    pass\nfinally:"])
def test_a_compound_statement_is_its_head_alone(head: str) -> None:
    edit = Edit("set_keyword", "s.py", 1, target="DataLoader", keywords={"num_workers": 2})
    done = apply(f"{head}\n    loader = DataLoader(data)\n", edit)
    assert done.after == done.before and "no call of DataLoader is seen there" in done.by_hand[0].text


def test_a_validation_function_is_decorated_and_a_training_one_is_not() -> None:
    source = """\
    import torch
    def validate(model):
        model.eval()
        y = model(x)
    def fit(model):
        for x in data:
            model(x).sum().backward()
        for x in other:
            y = model(x)
    """
    edits = [Edit("decorate", "s.py", line, target="validation", code="@torch.inference_mode()") for line in (4, 9)]
    done = text(apply(source, *edits))
    assert done.count("@torch.inference_mode()\ndef validate") == 1
    assert "    for x in other:\n        with torch.no_grad():\n            y = model(x)" in done
    assert done.count("inference_mode") == 1


def test_a_with_of_the_call_alone_gives_its_block_back() -> None:
    source = """\
    import torch
    # look for NaN
    with torch.autograd.detect_anomaly():
        a = 1  # one
        b = 2
    c = 3
    """
    done = text(apply(source, Edit("remove", "s.py", 3, target="set_detect_anomaly|detect_anomaly")))
    assert done == "import torch\n# look for NaN\na = 1  # one\nb = 2\nc = 3\n"


@pytest.mark.parametrize(
    "data",
    [
        b"import torch\r\nx = DataLoader(d)\r\n",
        b"\xef\xbb\xbfimport torch\nx = DataLoader(d)",
        "# -*- coding: latin-1 -*-\nx = DataLoader(d)  # \xe9t\xe9\n".encode("latin-1"),
        b"if a:\n\tx = DataLoader(d)\n",
    ],
)
def test_bytes_that_are_not_edited_stay(data: bytes) -> None:
    line = 1 + data[: data.index(b"DataLoader")].count(b"\n")
    edit = Edit("set_keyword", "s.py", line, target="DataLoader", keywords={"num_workers": 2})
    done = patch_file("s.py", data, [Wanted(edit, "a-lever")])
    assert done.after == data.replace(b"DataLoader(d)", b"DataLoader(d, num_workers=2)")


def test_line_ends_are_kept_when_a_helper_is_added() -> None:
    data = b"import torch\r\n\r\ntorch.save(a, 'x')\r\n"
    edit = Edit("replace_call", "s.py", 3, target="torch.save", code="save_later({arguments})")
    after = patch_file("s.py", data, [Wanted(edit, "a-lever")]).after
    assert b"def save_later" in after and after.count(b"\n") == after.count(b"\r\n")


def test_line_ends_of_a_mixed_file_stay_where_nothing_is_written() -> None:
    data = b"import torch\r\na = 1\nx = DataLoader(d)\r\nb = 2\nc = 3\r\n"
    edit = Edit("set_keyword", "s.py", 3, target="DataLoader", keywords={"num_workers": 2})
    done = patch_file("s.py", data, [Wanted(edit, "a-lever")])
    assert done.after == data.replace(b"DataLoader(d)", b"DataLoader(d, num_workers=2)")
    data = b"import torch\r\na = 1\ntorch.save(a, 'x')\r\nb = 2\nc = 3\r\n"
    edit = Edit("replace_call", "s.py", 3, target="torch.save", code="save_later({arguments})")
    after = patch_file("s.py", data, [Wanted(edit, "a-lever")]).after
    assert b"def save_later" in after and after.endswith(b"save_later(a, 'x')\r\nb = 2\nc = 3\r\n")
    assert b"import torch\r\n" in after and b"a = 1\n" in after


def test_helpers_go_into_files_of_any_encoding() -> None:
    for helper in files(helpers).iterdir():
        assert not helper.name.endswith(".py") or helper.read_bytes().isascii(), helper.name


def test_what_the_files_encoding_cannot_hold_is_told() -> None:
    data = b"# -*- coding: latin-1 -*-\nx = DataLoader(d)\n"
    edit = Edit("insert_after", "s.py", 2, code="y = '\u2026'")
    with pytest.raises(HotlapError, match=r"s\.py: .*(latin-1|iso-?8859-1)"):
        patch_file("s.py", data, [Wanted(edit, "a-lever")])


@pytest.mark.parametrize(("kept", "fits"), [(MOST_TEXT, True), (100, False)], ids=["as it was", "another line"])
def test_a_line_of_which_a_run_kept_the_beginning_alone(kept: int, fits: bool) -> None:
    line = f"loader = DataLoader(data, batch_size=4)  # {'x' * 300}"
    data = f"from torch.utils.data import DataLoader\ndata = [1]\n{line}\n".encode()
    edit = Edit("set_keyword", "train.py", 3, target="DataLoader", keywords={"num_workers": 1})
    want = Wanted(edit, "loader-workers", line[:kept], 0)
    if fits:
        assert b"num_workers" in patch_file("train.py", data, [want]).after
    else:
        with pytest.raises(HotlapError, match="found when it was"):
            patch_file("train.py", data, [want])
