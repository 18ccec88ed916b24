"""The levers that quieten the collector and the device's cache: when they act, and what they leave to the script."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from hotlap.lever.registry import lever
from hotlap.records.findings import Finding, Findings
from hotlap.testing.lever_kit import findings_of
from hotlap.testing.lever_target import LocalTarget


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.enable()
    gc.set_threshold(*thresholds)


def steps(n: int) -> Any:
    weight = torch.nn.Parameter(torch.zeros(2))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for _ in range(n):
        weight.sum().backward()
        optimizer.step()
        yield


def frozen(folder: Path, n: int) -> tuple[int, tuple[int, int, int], int]:
    with LocalTarget(str(folder)) as target:
        lever("gc-freeze").apply(target, {"threshold": 50_000, "after_steps": 3})
        for _ in steps(n):
            pass
        return gc.get_freeze_count(), gc.get_threshold(), target.changes


def test_it_freezes_after_the_first_steps_and_thaws(tmp_path: Path) -> None:
    before = gc.get_threshold()
    assert frozen(tmp_path, 2) == (0, before, 0)
    count, thresholds, changes = frozen(tmp_path, 3)
    assert count > 10_000 and thresholds == (50_000, 20, 20) and changes == 2
    assert (gc.get_freeze_count(), gc.get_threshold()) == (0, before)


def test_a_script_that_cares_for_its_collector_keeps_what_it_set(tmp_path: Path) -> None:
    gc.disable()
    assert frozen(tmp_path, 5)[2] == 0
    gc.enable()
    gc.freeze()
    count = gc.get_freeze_count()
    assert frozen(tmp_path, 5)[2] == 0
    assert gc.get_freeze_count() == count, "what the script froze stays frozen"


def test_new_cycles_are_collected_all_the_same(tmp_path: Path) -> None:
    class Node:
        def __init__(self) -> None:
            self.me = self

    with LocalTarget(str(tmp_path)) as target:
        lever("gc-freeze").apply(target, {"threshold": 50_000, "after_steps": 1})
        for _ in steps(2):
            Node()
        assert gc.collect() >= 1


def test_the_cache_is_emptied_once_in_so_many_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    done = 0

    def empty_cache() -> None:
        calls.append(done)

    monkeypatch.setattr(torch.cuda, "empty_cache", empty_cache)
    monkeypatch.setattr(torch.cuda.memory, "empty_cache", empty_cache)
    with LocalTarget(str(tmp_path)) as target:
        lever("empty-cache-rarely").apply(target, {"steps_between": 5})
        torch.cuda.empty_cache()
        for _ in steps(12):
            done += 1
            torch.cuda.empty_cache()
        torch.cuda.memory.empty_cache()
        assert calls == [0, 5, 10], "before training, and then one in five steps"
        assert target.changes == 11
    assert torch.cuda.empty_cache is empty_cache


def saved(*pauses: tuple[str, float, dict[str, float]]) -> tuple[float, float]:
    """What gc-freeze is predicted to save of these pauses, as shares of all of them."""
    found = [Finding(cause, s / 0.1, s, False, [], "", evidence=dict(evidence)) for cause, s, evidence in pauses]
    findings: Findings = replace(findings_of(), findings=found)
    gain = lever("gc-freeze").gain(found[0], findings, {"threshold": 50_000, "after_steps": 3})
    total = sum(s for _, s, _ in pauses)
    return gain.low_s / total, gain.high_s / total


def test_of_full_collections_nearly_all_is_predicted_to_go() -> None:
    """Whoever called them, the script or Python; of young generations' collections only half may go."""
    young = ("gc", 0.02, {"full_each_s": 0.0, "full_per_step": 0.0})
    by_hand = ("gc-collect", 0.06, {"each_s": 0.06, "calls_per_step": 1.0})
    by_itself = ("gc", 0.06, {"full_each_s": 0.3, "full_per_step": 0.2})
    assert saved(young) == pytest.approx((0.5, 0.98))
    assert saved(by_hand) == pytest.approx((0.9, 0.99))
    assert saved(by_itself) == pytest.approx((0.9, 0.99))
    assert saved(by_hand, young) == pytest.approx((0.8, 0.9875))
