"""Random numbers of samples: the same ones for ever, or a resumed epoch would crop in other places."""

from __future__ import annotations

import numpy as np

from hotlap.pack.draws import Draws


def test_the_numbers_of_a_sample_never_change() -> None:
    found = [float(value).hex() for value in Draws(7, 3, np.arange(3)).uniform("flip")]
    assert found == ["0x1.1746a57b49987p-1", "0x1.b377416bdef3dp-1", "0x1.99a230c5e2376p-1"]
    assert Draws(-1, 0, np.array([2**40])).below("crop-top", 1000).tolist() == [216]


def test_they_depend_on_seed_epoch_purpose_and_place_alone() -> None:
    places, order = np.arange(50), np.random.default_rng(0).permutation(50)
    draws = Draws(0, 1, places)
    numbers = draws.uniform("flip")
    assert (draws.uniform("flip") == numbers).all() and (draws.take(order).uniform("flip") == numbers[order]).all()
    for other in (Draws(1, 1, places), Draws(0, 2, places), Draws(0, 1, places + 50)):
        assert (other.uniform("flip") != numbers).all()
    assert (draws.uniform("crop-top") != numbers).all()


def test_they_are_uniform() -> None:
    numbers = Draws(0, 0, np.arange(100_000)).uniform("")
    assert numbers.min() >= 0 and numbers.max() < 1
    counts = np.histogram(numbers, 20, (0, 1))[0]
    assert ((counts - 5000) ** 2 / 5000).sum() < 43.8  # chi-square with 19 degrees of freedom, 1 in 1000
