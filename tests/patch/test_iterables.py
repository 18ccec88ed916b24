"""The loop that a patch lets fetch ahead: the one that trains with the loader, and no other."""

from __future__ import annotations

import pytest

from hotlap.patch.patch import Patched, Wanted, patch_file
from hotlap.records.edits import Edit

pytest.importorskip("libcst")
BODY = "loss = f(model(x), y)\n{0}loss.backward()\n"


def apply(source: str, needle: str = "loader = ") -> Patched:
    line = next(n for n, text in enumerate(source.splitlines(), 1) if needle in text)
    edit = Edit("replace_iterable", "s.py", line, target="loop", code="fetch_ahead({iterable}, depth=2)")
    return patch_file("s.py", source.encode(), [Wanted(edit, "a-lever")])


def test_a_loader_made_in_each_epoch_is_followed_to_its_own_loop() -> None:
    loop = "for epoch in range(3):\n    loader = DataLoader(d)\n    for x, y in enumerate(loader):\n        "
    done = apply(f"import torch\n{loop}{BODY.format('        ')}").after.decode()
    assert "\nfor epoch in range(3):\n" in done and "    for x, y in fetch_ahead(enumerate(loader), depth=2):\n" in done


@pytest.mark.parametrize(
    "loop",
    [
        "for epoch in range(steps // len(loader)):\n    train(loader)\n    ",
        "it = iter(loader)\nfor i in range(len(loader)):\n    x, y = next(it)\n    ",
        "for x, y in loader.dataset:\n    ",
        "for x, y in loader:\n    validate(x, y)\nfor k in range(3):\n    ",
    ],
)
def test_a_loop_that_only_counts_or_goes_over_something_else_is_left(loop: str) -> None:
    done = apply(f"import torch\nloader = DataLoader(d)\n{loop}{BODY.format('    ')}")
    assert done.after == done.before and "is not seen" in done.by_hand[0].text


def test_from_a_line_of_the_training_loop_the_loop_is_found() -> None:
    source = f"import torch\nfor x, y in loader:\n    x = x.cuda()\n    {BODY.format('    ')}"
    assert b"for x, y in fetch_ahead(loader, depth=2):" in apply(source, "x.cuda()").after
    counted = source.replace("in loader:", "in range(9):")
    assert apply(counted, "x.cuda()").after == counted.encode() == apply(counted, "for x").after


@pytest.mark.parametrize(
    "how",
    [
        "model, loader = accelerator.prepare(model, loader)\nfor x, y in loader:\n    ",
        "held = fabric.setup_dataloaders(loader)\nloader = held\nfor x, y in tqdm(loader):\n    ",
        "loader = accelerator.prepare(loader)\nloader = skip_first_batches(loader, 3)\nfor x, y in loader:\n    ",
        "for x, y in loader:\n    with accelerator.accumulate(model):\n        pass\n    ",
    ],
)
def test_a_loader_that_a_library_prepared_is_left(how: str) -> None:
    done = apply(f"import torch\nloader = DataLoader(d)\n{how}{BODY.format('    ')}")
    assert done.after == done.before and "prepared by a library" in done.by_hand[0].text


def test_a_prepared_loader_is_known_in_a_function_that_is_given_it() -> None:
    source = (
        f"import torch\ndef train(batches):\n    for x, y in batches:\n        {BODY.format('        ')}"
        "loader = accelerator.{}(DataLoader(d))\ntrain(loader)\n"
    )
    assert "prepared by a library" in apply(source.format("prepare"), "for x").by_hand[0].text
    assert b"fetch_ahead(batches" in apply(source.format("other"), "for x").after
