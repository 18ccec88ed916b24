"""Mirroring of samples that becomes one of batches: where it is written, and where it is left to a person."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
import torch

from hotlap.patch.helpers.flip_some import flip_some
from hotlap.patch.patch import Patched, Wanted, patch_file
from hotlap.records.edits import Edit

pytest.importorskip("libcst")

SCRIPT = """\
import random
import torch
from torch.utils.data import DataLoader, Dataset


class Faces(Dataset):
    def __init__(self, images, labels):
        self.images, self.labels = images, labels

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image = self.images[index].float()
        # half of them
        if random.random() < 0.5:
            image = torch.flip(image, [-1])
        return image, self.labels[index]


def train(model, optimizer, images, labels):
    faces = Faces(images, labels)
    loader = DataLoader(faces, 4, shuffle=True)
    print(len(loader))
    for batch, wanted in loader:  # an epoch
        loss = torch.nn.functional.cross_entropy(model(batch), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def patched(script: str) -> Patched:
    at = next(n for n, line in enumerate(script.splitlines(), 1) if "flip(" in line or "[..., ::-1]" in line)
    return patch_file("s.py", script.encode(), [Wanted(Edit("flip_batches", "s.py", at, advice="Do it."), "a-lever")])


def test_it_goes_from_the_sample_into_the_loop() -> None:
    done = patched(SCRIPT)
    text = done.after.decode()
    assert done.by_hand == [] and done.written == ["a-lever"]
    assert "random.random()" not in text and "image = self.images[index].float()\n        return image" in text
    loop = textwrap.dedent("""\
        for batch, wanted in loader:  # an epoch
            batch = flip_some(batch, 0.5, -1)
            loss =""")
    assert textwrap.indent(loop, "    ") in text and text.count("def flip_some(") == 1


def test_the_patched_script_mirrors_and_trains() -> None:
    held: dict[str, Any] = {"__name__": "script"}
    exec(compile(patched(SCRIPT).after, "s.py", "exec"), held)
    images = torch.arange(8 * 12.0).reshape(8, 3, 2, 2)
    seen: list[torch.Tensor] = []
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 2))
    model.register_forward_pre_hook(lambda m, args: seen.extend(args[0]))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for _ in range(8):
        held["train"](model, optimizer, images, torch.zeros(8, dtype=torch.long))
    plain = [any(torch.equal(s, i) for i in images) for s in seen]
    mirrored = [any(torch.equal(s, i.flip(-1)) for i in images) for s in seen]
    assert len(seen) == 64 and all(a != b for a, b in zip(plain, mirrored, strict=True))
    assert 12 < sum(mirrored) < 52, "about half: fewer or more by chance once in a million"


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("torch.flip(image, [-1])", "image.flip(-1)", "flip_some(batch, 0.5, -1)"),
        ("torch.flip(image, [-1])", "image.flip(dims=(-2,))", "flip_some(batch, 0.5, -2)"),
        ("random.random() < 0.5", "0.25 > torch.rand(1).item()", "flip_some(batch, 0.25, -1)"),
        ("random.random() < 0.5", "np.random.rand() <= 0.1", "flip_some(batch, 0.1, -1)"),
        ("return image, self.labels[index]", "return image", "flip_some(batch, 0.5, -1)"),
        ("batch, wanted in loader", "n, (batch, wanted) in enumerate(loader)", "flip_some(batch, 0.5, -1)"),
        ("DataLoader(faces, 4", "DataLoader(Faces(images, labels), 4", "flip_some(batch, 0.5, -1)"),
        ("DataLoader(faces, 4", "DataLoader(dataset=faces, batch_size=4", "flip_some(batch, 0.5, -1)"),
    ],
)
def test_other_ways_to_write_it(old: str, new: str, wanted: str) -> None:
    script = SCRIPT.replace(old, new)
    if new == "return image":
        script = script.replace("batch, wanted in", "batch in")
    if "Faces(images" in new:
        script = script.replace("    faces = Faces(images, labels)\n", "")
    done = patched(script)
    assert done.by_hand == [] and wanted in done.after.decode()


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("if random.random() < 0.5", "if self.train and random.random() < 0.5", "no plain draw"),
        (
            "if random.random() <",
            "if index < 0:\n            pass\n        elif random.random() <",
            "branch of another",
        ),
        ("< 0.5", "< self.share", "no plain draw"),
        ("random.random() < 0.5", "self.rng.random() < 0.5", "no plain draw"),
        ("torch.flip(image, [-1])", "image[..., ::-1]", "does more than"),
        ("torch.flip(image, [-1])", "torch.flip(image, [2])", "another dimension"),
        ("torch.flip(image, [-1])", "torch.flip(image, [-1]) + 1", "does more than"),
        ("        return image,", "        image = image + torch.randn(1)\n        return image,", "more is done"),
        ("return image, self", "return image / 255, self", "not returned as it is"),
        ("return image, self", "return image.sum(), image, self", "not returned as it is"),
        ("    print(len(loader))", "    check(Faces(images, labels))", "more than once"),
        ("    print(len(loader))", "    show(faces)", "used in 2 places"),
        ("    print(len(loader))", "    first = next(iter(loader))", "used in 2 places"),
        ("DataLoader(faces, 4", "DataLoader(Subset(faces, [0]), 4", "straight into a DataLoader"),
        ("shuffle=True", "collate_fn=mine", "a way of its own"),
        ("shuffle=True", "batch_size=None", "a way of its own"),
        ("        loss.backward()\n        optimizer.step()\n", "        print(loss)\n", "that trains on it"),
        ("batch, wanted in", "batch in", "another form"),
        ("__getitem__", "load", "__getitem__"),
    ],
)
def test_what_is_left_to_a_person(old: str, new: str, why: str) -> None:
    script = SCRIPT.replace(old, new)
    assert script != SCRIPT
    done = patched(script)
    assert done.after == done.before and done.written == []
    assert why in done.by_hand[0].text and done.by_hand[0].text.startswith("Do it: not written"), done.by_hand


def test_every_sample_is_drawn_for_itself() -> None:
    torch.manual_seed(0)
    batch = torch.randn(64, 3, 4)
    assert torch.equal(flip_some(batch, 0.0, -1), batch)
    assert torch.equal(flip_some(batch, 1.0, -1), batch.flip(-1))
    some = (flip_some(batch, 0.5, -2) == batch.flip(-2)).flatten(1).all(1)
    assert 10 < int(some.sum()) < 54
