"""State without an attribute is changed and given back like one."""

from __future__ import annotations

import gc
import weakref

from hotlap.lever.knob import Knob
from hotlap.probe.undo import Undo


class Network:
    """Something whose state is set by a call."""

    layout = "before"

    def to(self, layout: str) -> None:
        self.layout = layout


def test_undo_writes_what_was_read_first() -> None:
    state, undo = [3], Undo()
    undo.replace(Knob(lambda: state[0], lambda new: state.__setitem__(0, new)), "value", 7)
    assert state == [7]
    assert undo.undo_all() == [] and state == [3]


def test_a_knob_of_an_object_turns_it_and_does_not_keep_it() -> None:
    network = Network()
    undo = Undo()
    undo.replace(Knob.of(network, "before", Network.to), "value", "after")
    assert network.layout == "after"
    undo.undo_all()
    assert network.layout == "before"
    undo.replace(Knob.of(network, "before", Network.to), "value", "after")
    gone = weakref.ref(network)
    gc.disable()
    try:
        del network
        assert gone() is None
        assert undo.undo_all() == [], "nobody is there: nothing happens"
    finally:
        gc.enable()
