"""Damaged plans and knobs are refused in words, and at once; nothing else ever escapes."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.plan.test_file import PLAN, TEXT
from tests.records.damage import damaged

from hotlap.plan.file import dump_plan, parse_plan, validate
from hotlap.plan.knobs import parse_knobs
from hotlap.records.errors import HotlapError
from hotlap.testing.lever_kit import machine_of

MACHINE = machine_of()
QUICK = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
FILES = {
    "c.yaml": "trainer:\n  interval: 1  # each\n  stages: [1, 2]\n",
    "c.json": '{"trainer": {"interval": 1, "stages": [1, 2]}}\n',
    "c.toml": "[trainer]\ninterval = 1\nstages = [1, 2]\n",
    "c.ini": "[trainer]\ninterval = 1\nstages = 1\n",
}
WORDS = st.text("ab=-{}, @.\u00b2_1\n\ud800", max_size=24) | st.sampled_from(
    ["trainer.interval", "trainer.stages.0", "--batch-size", "{2,3}", "=", "v=", "lr=", " "]
)


def test_a_plan_whose_aliases_would_fill_the_memory_is_refused_at_once() -> None:
    rungs = "".join(f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 9)}]\n" for n in range(1, 12))
    with pytest.raises(HotlapError, match="alias"):
        parse_plan(f"schema: hotlap.plan/1\nx0: &x0 [1]\n{rungs}script: *x11\n")


@given(damaged(TEXT.encode()))
@QUICK
def test_a_damaged_plan_is_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(HotlapError):
        validate(parse_plan(data.decode("utf-8", "replace"), "fast.yaml"), MACHINE)


@given(
    st.lists(st.sampled_from(["!!int", "!!float", "!!timestamp", "!!bool", "0x_", "1:99", "2026-13-01", "? ", "<<: "]))
)
@QUICK
def test_yaml_of_odd_values_is_read_or_refused(words: list[str]) -> None:
    with contextlib.suppress(HotlapError):
        parse_plan("schema: hotlap.plan/1\nscript: " + " ".join(words) + "\nmoves: []\n")


@pytest.mark.parametrize("name", FILES)
@given(words=st.lists(WORDS, max_size=6), where=st.sampled_from(["trainer.interval", "trainer.stages.0", "trainer"]))
@QUICK
def test_a_knob_of_anything_is_read_or_refused(tmp_path: Path, name: str, words: list[str], where: str) -> None:
    (tmp_path / name).write_text(FILES[name])
    command = ["python", "train.py", "--batch-size", "32", "lr=0.1"]
    for text in ("".join(words), f"v={where}={{{','.join(words)}}}@{tmp_path / name}"):
        with contextlib.suppress(HotlapError):
            parse_knobs([text], command)


@pytest.mark.parametrize("name", FILES)
@given(data=st.data())
@QUICK
def test_a_knob_of_a_damaged_file_is_read_or_refused(tmp_path: Path, name: str, data: st.DataObject) -> None:
    (tmp_path / name).write_bytes(data.draw(damaged(FILES[name].encode())))
    with contextlib.suppress(HotlapError):
        parse_knobs([f"v=trainer.interval={{2,3}}@{tmp_path / name}"], [])


def test_what_was_not_damaged_is_still_read() -> None:
    assert parse_plan(dump_plan(PLAN)) == PLAN
