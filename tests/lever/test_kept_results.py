"""When kept results are computed all the same."""

from __future__ import annotations

import copy
import itertools
import os

import pytest
import torch.utils.data

from hotlap.lever.kept_results import AGAIN, RAREST, Comparisons


def test_one_in_each_stretch_is_compared() -> None:
    comparisons = Comparisons()
    for _ in range(3):
        comparisons.begin()
        due = [n for n in range(31 * AGAIN) if comparisons.are_due()]
        assert len(due) == 5 and due[0] < AGAIN
    comparisons.begin()
    due = [n for n in range(100 * RAREST) if comparisons.are_due()]
    assert 100 <= len(due) <= 105 and max(b - a for a, b in itertools.pairwise(due)) < 2 * RAREST


def test_batches_count_as_many() -> None:
    comparisons = Comparisons()
    assert [comparisons.are_due(32) for _ in range(3)][:2] == [False, True]
    assert comparisons.are_due(1000 * RAREST) and comparisons.given == 96 + 1000 * RAREST


def test_the_same_order_in_each_epoch_hides_no_sample() -> None:
    comparisons, compared = Comparisons(), set()
    for _ in range(400):
        comparisons.begin()
        compared |= {n for n in range(AGAIN) if comparisons.are_due()}
    assert len(compared) > 0.9 * AGAIN


def first_due(comparisons: Comparisons) -> int:
    comparisons.begin()
    return next(n for n in itertools.count() if comparisons.are_due())


def test_workers_that_begin_anew_in_each_epoch_compare_at_places_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    comparisons = Comparisons()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    inherited = [first_due(copy.deepcopy(comparisons)) for _ in range(64)]
    monkeypatch.setattr(torch.utils.data, "get_worker_info", lambda: "a worker")
    for found in (inherited, [first_due(Comparisons()) for _ in range(64)]):
        assert max(found) < AGAIN and min(found) < AGAIN // 2 and len(set(found)) > AGAIN // 8
