"""Two plans side by side."""

from __future__ import annotations

from hotlap.compare.plans import compare_plans
from hotlap.records.plan import Move, Plan

A = Plan(
    [
        Move("cache-decode", {"max_bytes": 1}, "bits", 3.0),
        Move("threads", {"threads": 1}, "maths"),
        Move("knob:b", {"option": "--b", "value": 1}, "goal"),
    ],
    script="python train.py", machine="X", torch="2.13.0", speedup=3.1, low=3.0, high=3.2, created="then",
)  # fmt: skip


def test_moves_by_what_differs() -> None:
    b = Plan(
        [
            Move("threads", {"threads": 2}, "maths"),
            Move("cache-decode", {"max_bytes": 1}, "bits", 2.0),
            Move("knob:b", {"option": "--b", "value": 1}, "maths"),
            Move("tf32", {}, "maths"),
        ],
        "python train.py", "Y", "2.13.0",
    )  # fmt: skip
    found = compare_plans(("a.yaml", A), ("x/b.yaml", b))
    assert [(m.lever, m.state) for m in found.moves] == [
        ("cache-decode", "same"), ("threads", "setting"), ("knob:b", "preserves"), ("tf32", "only b"),
    ]  # fmt: skip
    assert found.b.name == "b.yaml" and found.a.speedup == 3.1 and found.step is None
    assert [w.kind for w in found.warnings] == ["machine"], "one speedup alone is not set against another"
    assert found.notes == ["The moves that both have stand in another order."]


def test_a_plan_against_itself_still_says_that_ratios_do_not_compare() -> None:
    found = compare_plans(("a.yaml", A), ("a.yaml", A))
    assert {m.state for m in found.moves} == {"same"} and [w.kind for w in found.warnings] == ["ratios"]
    assert "do not compare" in found.warnings[0].text
    assert found.notes == []
