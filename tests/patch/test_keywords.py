"""Keywords of calls: which call is meant, values that are given by position, and how the call is laid out."""

from __future__ import annotations

import ast

import pytest

from hotlap.patch.patch import Patched, Wanted, patch_file
from hotlap.records.edits import Edit

pytest.importorskip("libcst")
WORKERS: dict[str, object] = {"num_workers": 4, "persistent_workers": True, "prefetch_factor": 4}
NO_WORKERS: dict[str, object] = {"num_workers": 0, "persistent_workers": False}


def apply(source: str, target: str, keywords: dict[str, object], needle: str = "") -> Patched:
    line = next(n for n, text in enumerate(source.splitlines(), 1) if (needle or target.partition("|")[0]) in text)
    edit = Edit("set_keyword", "s.py", line, target=target, keywords=keywords)
    return patch_file("s.py", source.encode(), [Wanted(edit, "a-lever")])


def edited(source: str, target: str, keywords: dict[str, object]) -> str:
    done = apply(source, target, keywords)
    assert not done.by_hand
    return done.after.decode()


def test_of_two_loaders_in_a_statement_the_one_on_the_line_is_changed() -> None:
    source = 'def f():\n    loaders = {\n        "a": DataLoader(a, 64),\n        "b": DataLoader(b, 64),\n    }\n'
    done = apply(source, "DataLoader", {"num_workers": 4}, "DataLoader(a").after.decode()
    assert done == source.replace("a, 64)", "a, 64, num_workers=4)")


@pytest.mark.parametrize(
    "source",
    [
        "train, val = DataLoader(a), DataLoader(b)\n",
        "loaders = {part: DataLoader(data[part]) for part in parts}\n",
        "def make(part):\n    return DataLoader(part)\ntrain, val = make(a), make(b)\n",
        "class A:\n    def make(self, part):\n        loader = DataLoader(part)\n        return loader\n"
        "    def go(self):\n        self.a = self.make(1)\n        self.b = self.make(2)\n",
        "def make(part):\n    return DataLoader(part)\nboth = [make(part) for part in parts]\n",
        "def make(part):\n    return DataLoader(part)\nfor part in parts:\n    held[part] = make(part)\n",
    ],
)
def test_a_call_that_makes_several_loaders_is_left_to_a_person(source: str) -> None:
    done = apply(source, "DataLoader", WORKERS)
    assert done.after == done.before and "one of them is meant" in done.by_hand[0].text


@pytest.mark.parametrize(
    "source",
    [
        "def make(part):\n    return DataLoader(part)\ntrain = make(a)\n",
        "def train(part):\n    loader = DataLoader(part)\n    return step(model)\ntrain(a)\ntrain(b)\n",
        "for fold in folds:\n    loader = DataLoader(fold)\n",
    ],
)
def test_a_loader_of_its_own_is_changed(source: str) -> None:
    assert "num_workers=4" in edited(source, "DataLoader", WORKERS)


def test_a_call_within_brackets_is_broken_where_it_stands() -> None:
    source = 'def f():\n    held = {\n        "a": DataLoader(train_dataset, batch_size=64, shuffle=True),\n    }\n'
    assert edited(source, "DataLoader", WORKERS) == (
        "def f():\n"
        "    held = {\n"
        '        "a": DataLoader(\n'
        "            train_dataset, batch_size=64, shuffle=True, num_workers=4, "
        "persistent_workers=True, prefetch_factor=4\n"
        "        ),\n"
        "    }\n"
    )


@pytest.mark.parametrize(
    ("source", "target", "name", "after"),
    [
        ("opt.zero_grad(False)\n", "zero_grad", "set_to_none", "opt.zero_grad(True)\n"),
        ("x = x.cuda(args.gpu, flag)\n", "cuda", "non_blocking", "x = x.cuda(args.gpu, True)\n"),
        ("x = x.cuda(args.gpu)\n", "cuda", "non_blocking", "x = x.cuda(args.gpu, non_blocking=True)\n"),
        ("x = x.to(d, torch.float16, False)\n", "to|cuda", "non_blocking", "x = x.to(d, torch.float16, True)\n"),
        ("x = x.to(d, False)\n", "to|cuda", "non_blocking", "x = x.to(d, True)\n"),
        ("x = x.to(d, y.dtype)\n", "to|cuda", "non_blocking", "x = x.to(d, y.dtype, non_blocking=True)\n"),
        ("m = DDP(m, [0], 0, 0, a, b, g, 5)\n", "DDP", "bucket_cap_mb", "m = DDP(m, [0], 0, 0, a, b, g, True)\n"),
    ],
)  # fmt: skip
def test_a_value_given_by_position_is_replaced(source: str, target: str, name: str, after: str) -> None:
    assert edited(f"{source}import torch\n", target, {name: True}) == f"{after}import torch\n"


def test_a_position_that_may_be_either_is_left_to_a_person() -> None:
    done = apply("x = x.to(d, flag)\n", "to|cuda", {"non_blocking": True})
    assert done.after == done.before and "dtype or non_blocking" in done.by_hand[0].text


def test_a_generator_gets_brackets_beside_a_keyword() -> None:
    done = edited("opt = Adam(p for p in ps if p.requires_grad)\n", "Adam", {"fused": True})
    assert done == "opt = Adam((p for p in ps if p.requires_grad), fused=True)\n"


@pytest.mark.parametrize(
    ("source", "after"),
    [
        ("f(\n    a,\n    b=1  # one\n)\n", "f(\n    a,\n    b=1,  # one\n    x=2,\n    y=3\n)\n"),
        ("f(\n    a,  # one\n    b,  # two\n)\n", "f(\n    a,  # one\n    b,  # two\n    x=2,\n    y=3,\n)\n"),
        ("f([\n    a,  # one\n], lr=1)\n", "f([\n    a,  # one\n], lr=1, x=2, y=3)\n"),
        ("f(a,\n  b)  # one\n", "f(a,\n  b,\n  x=2,\n  y=3)  # one\n"),
    ],
)
def test_comments_stay_with_their_arguments(source: str, after: str) -> None:
    assert edited(source, "f", {"x": 2, "y": 3}) == after
    ast.parse(after)


def test_workers_do_not_stay_where_the_script_changes_their_data() -> None:
    source = "loader = DataLoader(data, num_workers=2)\nfor epoch in range(9):\n    data.set_epoch(epoch)\n"
    done = apply(source, "DataLoader", WORKERS)
    assert done.after == done.before and "`data.set_epoch(epoch)` (line 3)" in done.by_hand[0].text
    assert "num_workers=0" in edited(source, "DataLoader", NO_WORKERS)
    told = source.replace("=2)", "=2, persistent_workers=True)")
    assert "num_workers=4" in edited(told, "DataLoader", WORKERS), "the script decided so itself"


@pytest.mark.parametrize(
    ("made", "off"),
    [
        ("torch.autocast('cuda')", "torch.autocast('cuda', enabled=False)"),
        ("torch.autocast('cuda', torch.bfloat16, True)", "torch.autocast('cuda', torch.bfloat16, False)"),
        ("torch.amp.autocast('cuda', enabled=amp)", "torch.amp.autocast('cuda', enabled=False)"),
        ("torch.cuda.amp.autocast(amp)", "torch.cuda.amp.autocast(False)"),
        ("old(amp)", "old(False)"),
        ("no() if cpu else torch.autocast('cuda')", "no() if cpu else torch.autocast('cuda', enabled=False)"),
    ],
)
def test_autocast_is_switched_off_where_the_region_is_made(made: str, off: str) -> None:
    head = "import torch\nfrom torch.cuda.amp import autocast as old\n"
    source = f"{head}ctx = {made}\nfor x in xs:\n    with ctx:\n        y = net(x)\n"
    done = apply(source, "autocast", {"enabled": False}, "with ctx")
    assert done.after.decode() == source.replace(made, off), done.by_hand
