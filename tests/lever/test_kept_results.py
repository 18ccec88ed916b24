"""When kept results are computed all the same."""

from __future__ import annotations

import itertools

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
