"""What the script holds no more is found by counting: neither too early nor never."""

from __future__ import annotations

from typing import Any

from hotlap.lever.own_references import OwnReferences


class Thing:
    pass


class Slotted:
    __slots__ = ("held",)


def test_what_only_we_hold_is_abandoned() -> None:
    ours, thing, other = OwnReferences(), Thing(), Thing()
    held: list[Any] = []
    for one in (thing, other):
        with ours.counted(one):
            held.extend((one, (one, [one])))
    with ours.counted(thing):  # and later once more
        held.append(thing)
    del one
    assert ours.abandoned() == []
    elsewhere = [thing]
    del thing
    assert ours.abandoned() == []
    del elsewhere
    assert [found is held[0] for found in ours.abandoned()] == [True]
    assert ours.abandoned() == [], "it is told once"
    del other
    assert len(ours.abandoned()) == 1


def test_what_is_gone_or_cannot_be_referred_to_weakly_is_never_told() -> None:
    ours, slotted = OwnReferences(), Slotted()
    for thing in (Thing(), slotted, None):
        with ours.counted(thing):
            pass
    del slotted, thing
    assert ours.abandoned() == []
