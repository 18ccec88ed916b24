"""A model that a lever has laid out channels last can still be saved by safetensors, which takes no other layout."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from hotlap.lever.registry import lever
from hotlap.testing.lever_target import LocalTarget

SETTINGS: dict[str, dict[str, Any]] = {
    "channels-last": {},
    "teacher-inference": {"dtype": "bf16", "channels_last": True},
}


@pytest.fixture
def saved(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, torch.Tensor]]:
    """Stands in for safetensors: refuses what safetensors refuses, and keeps the rest."""
    kept: list[dict[str, torch.Tensor]] = []

    def save_file(tensors: dict[str, torch.Tensor], filename: str, metadata: Any = None) -> None:
        for name, tensor in tensors.items():
            if not tensor.is_contiguous():
                raise ValueError(f"You are trying to save a non contiguous tensor: `{name}` which is not allowed.")
        kept.append(tensors)

    module = ModuleType("safetensors.torch")
    module.save_file = module.save = save_file  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "safetensors.torch", module)
    return kept


@pytest.mark.parametrize("id", SETTINGS)
def test_what_is_saved_has_the_usual_layout_and_the_same_numbers(
    id: str, saved: list[dict[str, torch.Tensor]], tmp_path: Path
) -> None:
    module = sys.modules["safetensors.torch"]
    plain = module.save_file
    weights = torch.nn.Conv2d(3, 4, 3).state_dict()
    last = {name: w.contiguous(memory_format=torch.channels_last) if w.dim() == 4 else w for name, w in weights.items()}
    with LocalTarget(str(tmp_path)) as target:
        lever(id).apply(target, SETTINGS[id])
        assert target.changes == 0, "a layout that was not changed is no effect"
        module.save_file(last, "model.safetensors", metadata={"format": "pt"})
        odd = torch.zeros(3, 4).t()
        with pytest.raises(ValueError, match="non contiguous"):  # the script's own mistake stays one
            module.save_file({"odd": odd}, "model.safetensors")
    assert not last["weight"].is_contiguous(), "the weights themselves stay as they are"
    assert all(torch.equal(saved[0][name], weights[name]) for name in weights)
    assert module.save_file is plain


def test_only_a_teacher_that_is_laid_out_needs_it(saved: list[Any], tmp_path: Path) -> None:
    plain = sys.modules["safetensors.torch"].save_file  # type: ignore[attr-defined]
    with LocalTarget(str(tmp_path)) as target:
        lever("teacher-inference").apply(target, {"dtype": "bf16", "channels_last": False})
        assert sys.modules["safetensors.torch"].save_file is plain  # type: ignore[attr-defined]
