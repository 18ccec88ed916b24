"""A data set around the one that a loader is given, and where that would be wrong."""

from __future__ import annotations

import re

import pytest

from hotlap.patch.patch import Patched, Wanted, patch_file
from hotlap.records.edits import Edit

pytest.importorskip("libcst")
SAID = "compute the samples once"


def wrapped(source: str, workers: int = 0, *others: Edit) -> Patched:
    line = next(n for n, text in enumerate(source.splitlines(), 1) if "DataLoader(" in text)
    code = "keep_samples({dataset}, 1000)"
    edit = Edit(
        "wrap_dataset", "s.py", line, target="DataLoader", code=code, keywords={"num_workers": workers}, advice=SAID
    )
    return patch_file(
        "s.py", source.encode(), [*(Wanted(e, "other", move=1) for e in others), Wanted(edit, "cache-sample")]
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("DataLoader(data, 8, **kwargs)", "DataLoader(keep_samples(data, 1000), 8, **kwargs)"),
        ("DataLoader(batch_size=8, dataset=MNIST('x', train=True))",
         "DataLoader(batch_size=8, dataset=keep_samples(MNIST('x', train=True), 1000))"),
        ("torch.utils.data.DataLoader(\n    Photos(\n        'x'), num_workers=0)",
         "torch.utils.data.DataLoader(\n    keep_samples(Photos(\n        'x'), 1000), num_workers=0)"),
    ],
)  # fmt: skip
def test_the_data_set_is_wrapped_where_it_is_given(before: str, after: str) -> None:
    done = wrapped(f"loader = {before}\nloss.backward()\n")
    assert f"loader = {after}\n" in done.after.decode() and "class KeptSamples" in done.after.decode()
    assert wrapped(done.after.decode()).after == done.after, "once"


@pytest.mark.parametrize(
    ("source", "workers", "why"),
    [
        ("DataLoader(data, 8)", 4, "worker processes"),
        ("DataLoader(data, num_workers=2)", 0, "worker processes"),
        ("DataLoader(data, 8, True, None, None, 2)", 0, "worker processes"),
        ("DataLoader(*args)", 0, r"\* or \*\*"),
        ("DataLoader(**options)", 0, r"\* or \*\*"),
        ("DataLoader(data)\ndata.set_epoch(3)", 0, r"data\.set_epoch\(3\)` \(line 2\)"),
        ("DataLoader(MNIST('x', transform=T.RandomCrop(3)))", 0, r"T\.RandomCrop \(line 1\) draws at random"),
        ("DataLoader(data)\nimport random\nclass D:\n    def __getitem__(self, i):\n        return random.random()", 0,
         r"random\.random \(line 5\) draws at random"),
    ],
)  # fmt: skip
def test_where_it_would_be_wrong_it_is_left_to_a_person(source: str, workers: int, why: str) -> None:
    done = wrapped(f"loader = {source}\n", workers)
    assert done.after == done.before
    (told,) = done.by_hand
    assert told.text.startswith(SAID) and re.search(why, told.text), told.text


@pytest.mark.parametrize("source", ["DataLoader(data, num_workers=n)", "DataLoader(data, num_workers=4)"])
def test_workers_that_the_same_patch_takes_away_do_not_count(source: str) -> None:
    none = Edit("set_keyword", "s.py", 1, target="DataLoader", keywords={"num_workers": 0})
    done = wrapped(f"loader = {source}\n", 4, none)
    assert "loader = DataLoader(keep_samples(data, 1000), num_workers=0)\n" in done.after.decode()


def test_noise_in_a_model_is_no_sample() -> None:
    model = "class VAE:\n    def forward(self, x):\n        return x + torch.randn_like(x)\n"
    source = f"import torch\n{model}loader = DataLoader(data)\n"
    assert "keep_samples(data, 1000)" in wrapped(source).after.decode()
