"""Strictness: what is written comes back equal, and what is wrong is refused with the path of the value."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotlap.records.codec import check_schema, decode, dumps, encode, loads
from hotlap.records.errors import EXIT_USAGE, RecordError
from hotlap.records.findings import Finding, Where
from hotlap.records.plan import Move, Plan
from hotlap.records.trials import Interval, Trial, Window


@dataclass(frozen=True)
class Leaf:
    n: int
    x: float | None = None
    kind: Literal["a", "b"] = "a"


@dataclass(frozen=True)
class Tree:
    name: str
    leaves: list[Leaf] = field(default_factory=list)
    table: dict[str, list[float]] = field(default_factory=dict)
    anything: dict[str, Any] = field(default_factory=dict)
    pair: Leaf | None = None


finite = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | finite | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
settings_values = st.dictionaries(st.text(min_size=1, max_size=8), json_values, max_size=4)
moves = st.builds(
    Move,
    lever=st.text(min_size=1, max_size=12),
    setting=settings_values,
    preserves=st.sampled_from(["bits", "maths", "distribution", "goal"]),
    gain=st.none() | finite,
    low=st.none() | finite,
    high=st.none() | finite,
)
plans = st.builds(Plan, moves=st.lists(moves, max_size=3), script=st.text(max_size=9), speedup=st.none() | finite)
windows = st.builds(
    Window,
    arm=st.sampled_from(["baseline", "candidate"]),
    t=st.integers(0, 2**63),
    steps=st.integers(0, 10**9),
    samples=st.integers(0, 10**12),
    steady_s=finite,
    dropped=st.none() | st.text(max_size=9),
)
trials = st.builds(
    Trial,
    id=st.text(max_size=9),
    setting=settings_values,
    status=st.sampled_from(["measured", "failed", "no-effect", "refused"]),
    interval=st.none() | st.builds(Interval, ratio=finite, low=finite, high=finite),
    windows=st.lists(windows, max_size=3),
    losses=st.dictionaries(st.text(max_size=5), st.lists(finite, max_size=4), max_size=2),
)
where = st.builds(Where, file=st.text(max_size=9), line=st.integers(0, 10**6), function=st.text(max_size=9))
findings = st.builds(
    Finding,
    cause=st.text(max_size=9),
    share=finite,
    seconds_per_step=finite,
    confirmed=st.booleans(),
    where=st.lists(where, max_size=2),
    advice=st.text(max_size=9),
    evidence=settings_values,
)


@given(plans | trials | findings)
def test_documents_come_back_equal(document: Any) -> None:
    assert loads(type(document), dumps(document)) == document


@given(plans, json_values)
def test_arbitrary_json_is_refused_or_read_but_never_breaks(plan: Plan, junk: Any) -> None:
    data = {**encode(plan), "moves": junk}
    try:
        decode(Plan, data, "plan.yaml")
    except RecordError as err:
        assert err.what.startswith("plan.yaml.moves") and err.exit_code == EXIT_USAGE


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, r"\$ lacks the key 'name'"),
        ([], r"\$ is a list, expected a mapping with the keys of Tree"),
        ({"name": 1}, r"\$\.name is a number \(1\), expected str"),
        ({"name": "x", "leaves": {}}, r"\$\.leaves is a mapping, expected a list"),
        ({"name": "x", "leaves": [{"n": 1}, {"n": "2"}]}, r"\$\.leaves\[1\]\.n is text"),
        ({"name": "x", "leaves": [{"n": True}]}, r"\$\.leaves\[0\]\.n is true/false"),
        ({"name": "x", "leaves": [{"n": 1.5}]}, r"\$\.leaves\[0\]\.n is a number \(1\.5\), expected int"),
        ({"name": "x", "leaves": [{"n": 1, "x": "fast"}]}, r"\$\.leaves\[0\]\.x is text"),
        ({"name": "x", "leaves": [{"n": 1, "kind": "c"}]}, r"\$\.leaves\[0\]\.kind is 'c', expected one of 'a', 'b'"),
        ({"name": "x", "table": {"k": [1, None]}}, r"\$\.table\.k\[1\] is empty"),
        ({"name": "x", "leafs": []}, r"unknown key 'leafs'. Did you mean 'leaves'"),
        ({"name": "x", "zzz": 1}, r"unknown key 'zzz'. Known keys: name, leaves"),
        ({"name": "x", "pair": 3}, r"\$\.pair is a number"),
    ],
)
def test_what_is_wrong_is_named_with_its_path(data: Any, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        decode(Tree, data)


def test_integers_stand_for_floats_and_empty_for_none() -> None:
    tree = decode(Tree, {"name": "x", "leaves": [{"n": 1, "x": 2}], "pair": None})
    assert tree.leaves[0].x == 2.0 and isinstance(tree.leaves[0].x, float) and tree.pair is None


def test_a_document_states_numbers() -> None:
    with pytest.raises(ValueError, match="JSON"):
        dumps(Leaf(1, float("nan")))


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": ' + "9" * 5000 + "}"])
def test_json_that_python_will_not_read_is_an_error_like_any_other(text: str) -> None:
    with pytest.raises(RecordError, match=r"run\.json is not valid JSON"):
        loads(Leaf, text, "run.json")


def test_text_that_is_no_json_names_the_document() -> None:
    with pytest.raises(RecordError, match=r"findings\.json is not valid JSON.*line 1"):
        loads(Tree, '{"name": ', "findings.json")


def test_schemas() -> None:
    check_schema({"schema": "hotlap.plan/1"}, "hotlap.plan/1", "fast.yaml")
    with pytest.raises(RecordError, match=r"fast\.yaml has schema 'hotlap\.plan/7'.*Upgrade Hotlap"):
        check_schema({"schema": "hotlap.plan/7"}, "hotlap.plan/1", "fast.yaml")
    for other in ({"schema": "hotlap.proof/1"}, {}, [], {"schema": 3}, {"schema": "hotlap.plan/0"}):
        with pytest.raises(RecordError, match="right file"):
            check_schema(other, "hotlap.plan/1", "fast.yaml")


def test_schema_is_written_with_each_document() -> None:
    assert json.loads(dumps(Plan([])))["schema"] == "hotlap.plan/1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "nests too deeply"),
        ('{"name": "x", "leaves": [{"n": ' + "9" * 5000 + "}]}", "not valid JSON"),
        ('{"name": "x", "leaves": [{"n": 1, "x": 1' + "0" * 400 + "}]}", "beyond all that a float holds"),
        ('{"name": "x", "table": {"\\ud800": [true]}}', "is true/false"),
    ],
)
def test_what_the_json_parser_cannot_bear_is_a_plain_error(text: str, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        loads(Tree, text)


@pytest.mark.parametrize("version", ["\u00b2", "9" * 5000])
def test_a_version_that_is_no_number_is_another_document(version: str) -> None:
    with pytest.raises(RecordError, match="Is it the right file"):
        check_schema({"schema": f"hotlap.plan/{version}"}, "hotlap.plan/1", "fast.yaml")
