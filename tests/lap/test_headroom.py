"""A candidate that fills the card is put back; one that does so no more than the plan before is not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from hotlap.lap.headroom import no_room_beside, too_full
from hotlap.records.machine import Accelerator
from hotlap.testing.lever_kit import machine_of

GIB = 1 << 30
CARDS = [Accelerator("A100", 40 * GIB, "8.0", True, True, True, True), Accelerator("T4", 15 * GIB, "7.5", False, True,
                                                                                   False, True)]  # fmt: skip


def session(held: dict[str, int | None], index: int | None = 0, cards: list[Accelerator] = CARDS) -> Any:
    """``held``: per arm the GiB on the device, or None for an arm that has not made a step."""

    def timeline(arm: str) -> Any:
        most = held[arm]
        if most is None:
            return None
        ticks = [SimpleNamespace(device_bytes=part * GIB // 10) for part in (most, 10 * most, 9 * most)]
        said = None if index is None else {"index": index}
        return SimpleNamespace(device_setting=said, tick=[*ticks, SimpleNamespace(device_bytes=None)])

    return SimpleNamespace(machine=machine_of(accelerators=cards), timeline=timeline)


def test_the_fullest_moment_counts() -> None:
    said = too_full(session({"plan": 20, "new": 39}), cast(Any, "plan"), cast(Any, "new"))
    assert said is not None and "98 % of the A100's memory" in said and "out of memory" in said
    assert too_full(session({"plan": 20, "new": 37}), cast(Any, "plan"), cast(Any, "new")) is None


def test_it_is_the_card_that_trains() -> None:
    assert too_full(session({"plan": 2, "new": 15}, 1), cast(Any, "plan"), cast(Any, "new")) is not None
    assert too_full(session({"plan": 2, "new": 15}, None), cast(Any, "plan"), cast(Any, "new")) is None


@pytest.mark.parametrize("held", [{"plan": 39, "new": 40}, {"plan": None, "new": None}])
def test_what_was_full_before_or_never_ran_is_not_held_against_it(held: dict[str, int | None]) -> None:
    assert too_full(session(held), cast(Any, "plan"), cast(Any, "new")) is None


def test_without_a_card_nothing_is_read() -> None:
    bare = SimpleNamespace(machine=machine_of())
    assert too_full(cast(Any, bare), cast(Any, "plan"), cast(Any, "new")) is None
    assert not no_room_beside(cast(Any, bare), cast(Any, "plan"), cast(Any, "new"))


@pytest.mark.parametrize(("old", "new", "full"), [(10, 13, False), (10, 15, True), (20, 9, False), (20, 10, True)])
def test_a_third_arm_like_the_second_must_fit_beside_both(old: int, new: int, full: bool) -> None:
    held = session({"plan": old, "new": new})
    assert no_room_beside(held, cast(Any, "plan"), cast(Any, "new")) is full
