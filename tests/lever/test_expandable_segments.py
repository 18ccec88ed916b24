"""The allocator's options on a GPU: what is put into the environment, and what is refused; the effect needs a GPU."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hotlap.lever.catalog import expandable_segments as lever
from hotlap.lever.contract import Refusal
from hotlap.testing.lever_kit import findings_of, machine_for, machine_of
from hotlap.testing.lever_target import LocalTarget

NEW, OLD = "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {NEW: "expandable_segments:True"}),
        ({OLD: "max_split_size_mb:128"}, {OLD: "max_split_size_mb:128,expandable_segments:True"}),
        ({OLD: "expandable_segments:False,max_split_size_mb:9"}, {OLD: "max_split_size_mb:9,expandable_segments:True"}),
        ({NEW: "garbage_collection_threshold:0.6"},
         {NEW: "garbage_collection_threshold:0.6,expandable_segments:True"}),
    ],
)  # fmt: skip
def test_the_users_own_options_stay(before: dict[str, str], after: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (NEW, OLD):
        monkeypatch.delenv(name, raising=False)
    for name, value in before.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(lever, "version", lambda package: "2.13.0+cpu")
    assert lever.environment({}) == after


@pytest.mark.parametrize(("installed", "name"), [("2.8.1", OLD), ("2.9.0+cu128", NEW), ("3.0", NEW), (None, OLD)])
def test_torch_is_told_under_the_name_it_knows(
    installed: str | None, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(package: str) -> str:
        if installed is None:
            raise PackageNotFoundError(package)
        return installed

    for variable in (NEW, OLD):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(lever, "version", version)
    assert lever.environment({}) == {name: "expandable_segments:True"}


def test_refusals() -> None:
    finding = findings_of("device-allocations").findings[0]
    here = lever.settings(finding, findings_of(), machine_of())
    assert isinstance(here, Refusal) and "GPU" in here.reason and "GPU" in (lever.check({}, machine_of()) or "")
    assert lever.settings(finding, findings_of(), machine_for(lever)) == [{}]
    finding.evidence["expandable"] = True
    assert isinstance(lever.settings(finding, findings_of(), machine_for(lever)), Refusal)
    assert lever.evidence(findings_of("device-allocations")) is None, "on a CPU it is not even mentioned"


@pytest.mark.skipif(torch.cuda.is_initialized(), reason="needs a process that does not use a GPU")
def test_without_a_device_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OLD, "expandable_segments:True")
    with LocalTarget(str(tmp_path)) as target:
        lever.apply(target, {})
        nn.Linear(2, 2)(torch.zeros(1, 2))
    assert target.changes == 0 and "does not run on a CUDA device" in target.reasons[0]


@pytest.mark.gpu
def test_on_a_device_it_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.zeros(1, device="cuda")
    for options, changes in (("expandable_segments:True", 1), ("max_split_size_mb:128", 0)):
        monkeypatch.setenv(OLD, options)
        with LocalTarget(str(tmp_path)) as target:
            lever.apply(target, {})
            nn.Linear(2, 2, device="cuda")(torch.zeros(1, 2, device="cuda"))
        assert target.changes == changes
