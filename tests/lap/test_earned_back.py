"""What the user is told of a lever that compiles."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from hotlap.lap.earned_back import earned_back
from hotlap.records.rows import Step
from hotlap.records.trials import Interval, Trial, Window


def told(longest_s: float, ratio: float, step_s: float = 0.1) -> str:
    steps = [SimpleNamespace(w=round(s * 1e9)) for s in (0.3, longest_s, 0.08, 0.08)]
    arm = SimpleNamespace(poll=lambda: SimpleNamespace(steps=cast(list[Step], steps)))
    windows = [Window("baseline", 0, 10, 320, step_s), Window("candidate", 0, 10, 320, step_s / ratio)]
    trial = Trial("compile-model", {}, "measured", interval=Interval(ratio, ratio, ratio), windows=windows)
    return " ".join(earned_back("compile-model", cast(Any, arm), trial))


@pytest.mark.parametrize(
    ("longest_s", "ratio", "steps"), [(40.1, 1.25, "2,000"), (40.1, 2.0, "800"), (8.1, 1.25, "400")]
)
def test_the_start_over_what_a_step_saves(longest_s: float, ratio: float, steps: str) -> None:
    said = told(longest_s, ratio)
    assert f"which {steps} steps earn back" in said and f"took {longest_s - 0.1:.1f} s" in said.replace("8.00", "8.0")


def test_nothing_is_told_where_no_step_compiled_or_nothing_is_saved() -> None:
    assert told(0.15, 1.25) == "" and told(40.0, 1.0) == ""
