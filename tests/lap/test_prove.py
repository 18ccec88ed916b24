"""The proof measures the roof a second time only where that leaves time for the launches that a claim needs."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hotlap.lap import prove as module
from hotlap.lap.prove import _over_all, _roof_again, _share_of_roof
from hotlap.records.findings import Roof
from hotlap.records.trials import Trial
from hotlap.testing.lever_kit import findings_of

FIRST, AGAIN = Roof(100.0, 0.01, 0.4, "resident batch"), Roof(120.0, 0.008, 0.9, "resident batch")


def again(
    monkeypatch: pytest.MonkeyPatch, left_s: float, known: Roof | None = FIRST
) -> tuple[Roof | None, list[Trial]]:
    monkeypatch.setattr(module, "measure_roof", lambda *_: (AGAIN, Trial("roof", {}, "measured")))
    session = SimpleNamespace(left_s=lambda share: left_s)
    state = SimpleNamespace(incumbent=None, findings=None, moves=[], trials=[])
    launches = SimpleNamespace(first=SimpleNamespace(wall_s=20.0), missing_s=lambda _: 30.0)
    baseline = SimpleNamespace(findings=SimpleNamespace(roof=known))
    roof = _roof_again(cast(Any, session), cast(Any, baseline), cast(Any, state), cast(Any, launches))
    return roof, state.trials


def test_launches_go_before_the_roof(monkeypatch: pytest.MonkeyPatch) -> None:
    assert again(monkeypatch, 49.0) == (None, [])
    assert again(monkeypatch, 51.0)[0] is AGAIN and len(again(monkeypatch, 51.0)[1]) == 1


def test_a_roof_that_was_never_measured_is_measured_now(monkeypatch: pytest.MonkeyPatch) -> None:
    assert again(monkeypatch, 1.0, known=None)[0] is AGAIN


def test_without_a_second_roof_the_share_is_of_the_first() -> None:
    assert _share_of_roof(FIRST, AGAIN, 2.0) == 0.9
    assert _share_of_roof(FIRST, None, 2.0) == pytest.approx(0.8) and _share_of_roof(FIRST, None, 3.0) == 1.0
    assert _share_of_roof(None, None, 2.0) is None


def test_a_plan_that_is_faster_than_the_roof_raises_it() -> None:
    known = replace(findings_of("unfused"), roof=replace(FIRST, share=0.75))
    raised = _over_all(known, None, None, 1.8).roof
    assert raised is not None and raised.share == pytest.approx(1 / 1.8) and "the plan's own speed" in raised.how
    assert known.throughput.samples_per_s is not None
    assert raised.samples_per_s == pytest.approx(known.throughput.samples_per_s * 1.8)
    assert _over_all(known, None, None, 1.2).roof == known.roof, "it is below it"
