"""Each loader of a trial goes over the first batches of its own again."""

from __future__ import annotations

from typing import Any

from hotlap.inject.replay import replay_indices
from hotlap.probe.hook_points import HookPoints


class Reading:
    """As much of a loader's iterator as the replay looks at."""

    def __init__(self, sampler: Any, dataset: Any) -> None:
        self._index_sampler, self._dataset = sampler, dataset


def test_no_loader_gets_the_indices_of_another() -> None:
    points = HookPoints()
    replay_indices(2, points)
    (replay,) = points.next_index
    one, two = Reading([[0]], "labelled"), Reading([[0]], "unlabelled")
    given = [(replay(one, [number]), replay(two, [100 + number])) for number in range(6)]
    assert given == [([n], [100 + n]) for n in (0, 1, 0, 1, 0, 1)]
    shared = Reading(one._index_sampler, "another data set")
    assert replay(shared, [7]) == [7], "a sampler may serve two loaders"


def test_a_loader_goes_on_in_its_next_epoch_and_many_loaders_are_not_kept() -> None:
    points = HookPoints()
    replay_indices(2, points)
    (replay,) = points.next_index
    sampler, data = [[0]], "data"
    assert [replay(Reading(sampler, data), [n]) for n in range(5)] == [[0], [1], [0], [1], [0]]
    for number in range(20):
        assert replay(Reading([number], data), [number]) == [number]
    points.validating = True
    assert replay(Reading(sampler, data), [9]) == [9]
