"""The resident batch is the same in each step, whatever the script does with what it was given."""

from __future__ import annotations

from collections import UserDict
from typing import Any

import pytest
import torch

from hotlap.inject.resident import ResidentBatch


def test_the_same_tensors_in_lists_of_its_own() -> None:
    x, label = torch.ones(2, 3), torch.zeros(2)
    resident = ResidentBatch({"x": x, "more": [label], "name": "a"})
    first = resident.give()
    assert first["x"] is x and first["more"] == [label] and first["name"] == "a"
    first.pop("x")
    first["more"].clear()
    assert resident.give()["x"] is x and resident.give()["more"][0] is label


@pytest.mark.parametrize("kind", [dict, UserDict])
def test_what_is_changed_in_place_is_given_as_it_was(kind: Any) -> None:
    resident = ResidentBatch(kind(x=torch.full((4,), 255.0)))
    for _ in range(3):
        given = resident.give()
        assert type(given) is kind and given["x"].tolist() == [255.0] * 4
        given["x"].div_(255)


def test_inference_tensors() -> None:
    with torch.inference_mode():
        x = torch.ones(2)
    assert ResidentBatch((x,)).give()[0] is x
