"""Deterministic algorithms switched off at the first training forward, and put back as they were."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from hotlap.lever.catalog import deterministic_off
from hotlap.lever.contract import Refusal
from hotlap.testing.lever_kit import findings_of, machine_of
from hotlap.testing.lever_target import LocalTarget


@pytest.fixture
def strict() -> Iterator[None]:
    was = torch.backends.cudnn.deterministic
    torch.backends.cudnn.deterministic = True
    torch.use_deterministic_algorithms(True, warn_only=True)
    yield
    torch.use_deterministic_algorithms(False)
    torch.backends.cudnn.deterministic = was


def modes() -> tuple[bool, bool, bool]:
    return (torch.backends.cudnn.deterministic, torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled())  # fmt: skip


def test_both_switches(strict: None, tmp_path: Path) -> None:
    with LocalTarget(str(tmp_path)) as target:
        deterministic_off.apply(target, {})
        assert modes() == (True, True, True), "the script may still set it"
        nn.Linear(2, 2)(torch.zeros(1, 2))
        assert modes() == (False, False, False) and target.changes == 2
    assert modes() == (True, True, True) and not target.problems


def test_refusals() -> None:
    finding = findings_of("cudnn-deterministic").findings[0]
    found = deterministic_off.settings(finding, findings_of(), machine_of())
    assert (
        isinstance(found, Refusal)
        and "GPU" in found.reason
        and "GPU" in (deterministic_off.check({}, machine_of()) or "")
    )
    assert deterministic_off.evidence(findings_of("cudnn-deterministic")) is None, "on a CPU it costs nothing"
