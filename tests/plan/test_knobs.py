"""Knobs from the command line into commands, files and plans, and the order in which their values are tried."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hotlap.plan.command_option import read_option, write_option
from hotlap.plan.file import dump_plan, load_valid_plan
from hotlap.plan.knob_walk import knob_candidates, left_out
from hotlap.plan.knobs import by_hand, changed_files, parse_knobs, rewritten
from hotlap.plan.match import canonical
from hotlap.records.errors import HotlapError
from hotlap.records.knob import Knob
from hotlap.records.plan import Move, Plan
from hotlap.records.trials import LeverResult
from hotlap.testing.lever_kit import machine_of

COMMAND = ["torchrun", "-b", "1", "train.py", "--batch-size", "24", "--lr=0.1", "-w4", "-n", "2", "trainer.epochs=3"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "config.yaml").write_text("trainer:\n  test_interval: 1  # each\n  name: a\n")
    (tmp_path / "stages.json").write_text('{"stages": [1, 2]}')
    (tmp_path / "odd.yaml").write_text('a: !!int ""\n')
    (tmp_path / "deep.json").write_text("[" * 100_000)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("option", "before", "after"),
    [
        ("--batch-size", "24", {4: "--batch-size", 5: "9"}),
        ("--batch-size=", "24", {4: "--batch-size", 5: "9"}),
        ("--lr", "0.1", {6: "--lr=9"}),
        ("-w", "4", {7: "-w9"}),
        ("-n", "2", {9: "9"}),
        ("trainer.epochs=", "3", {10: "trainer.epochs=9"}),
        ("--seed", None, {11: "--seed", 12: "9"}),
        ("--seed=", None, {11: "--seed=9"}),
        ("-b", None, {2: "1", 11: "-b", 12: "9"}),  # the launcher's own -b is another option
    ],
)
def test_an_option_is_changed_in_its_own_form(option: str, before: str | None, after: dict[int, str]) -> None:
    assert read_option(COMMAND, option) == before
    changed = write_option(COMMAND, option, "9")
    assert {i: changed[i] for i in after} == after
    assert [w for i, w in enumerate(changed) if i not in after] == [w for i, w in enumerate(COMMAND) if i not in after]
    assert read_option(changed, option) == "9"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("batch=--batch-size 24,32", "it is not NAME="),
        ("batch=--batch-size {24,32", "it is not NAME="),
        ("--batch-size {24,32}", "it is not NAME="),
        ("batch= {24,32}", "one option or one key"),
        ("batch=--batch-size {24,,32}", "a value is empty"),
        ("batch=--batch-size {}", "a value is empty"),
        ("batch=--batch-size {32,32}", "twice"),
        ("batch=batch_size {24,32}", "is no option"),
        ("batch=--batch-size {24}", "nothing to try, 24 is what it has already"),
        ("lr=--lr {0.10,1e-1}", "nothing to try"),
        ("val=trainer.test_interval={1,2}@gone.yaml", "gone.yaml cannot be read: No such file"),
        ("val=trainer.interval={1,2}@config.yaml", "no key 'trainer.interval'"),
        ("val=trainer={1,2}@config.yaml", "no single value"),
        ("last=trainer.epochs= {1,2}@train.py", "cannot be read"),
        ("a=" + " " * 20_000 + "x", "it is not NAME="),  # in linear time
        ("val=trainer.\u00b2={1,2}@config.yaml", "no key"),
        ("val=stages.\u00b2={1,2}@stages.json", "no key"),
        ("val=a={1,2}@odd.yaml", "cannot be read"),
        ("val=a={1,2}@deep.json", "cannot be read"),
    ],
)
def test_errors_are_for_people(text: str, words: str) -> None:
    with pytest.raises(HotlapError) as caught:
        parse_knobs([text], COMMAND)
    assert words in str(caught.value) and caught.value.exit_code == 2


def test_two_knobs_of_one_name_or_place() -> None:
    with pytest.raises(HotlapError, match="a knob named 'a' already"):
        parse_knobs(["a=--x {1,2}", "a=--y {1,2}"], COMMAND)
    with pytest.raises(HotlapError, match="knob:a sets the same"):
        parse_knobs(["a=--x {1,2}", "b=--x={1,2}"], COMMAND)


def test_an_option_without_its_value_or_given_twice() -> None:
    for command in (["python", "t.py", "--x"], ["python", "t.py", "--x", "--y"]):
        with pytest.raises(HotlapError, match="has no value in the command"):
            parse_knobs(["a=--x {1,2}"], command)
    with pytest.raises(HotlapError, match="stands in the command 2 times"):
        parse_knobs(["a=--x {1,2}"], ["python", "t.py", "--x", "1", "--x=2"])
    assert parse_knobs(["a=--x {1,2}"], ["python", "t.py", "--x", "-1"])[0].present == "-1"


def test_moves_change_the_command_and_the_text_but_no_file(folder: Path) -> None:
    batch, val = parse_knobs(["batch=--batch-size {24, 32}", "val=trainer.test_interval={1,2}@config.yaml"], COMMAND)
    assert (batch.present, batch.values, val.present, val.values) == ("24", ("24", "32"), 1, (1, 2))
    moves = [Move(batch.id, batch.setting("32"), "goal"), Move(val.id, val.setting(2), "goal"), Move("x", {}, "bits")]
    assert rewritten(COMMAND, moves)[5] == "32"
    text = (folder / "config.yaml").read_text()
    assert changed_files(moves) == {folder / "config.yaml": text.replace("1  #", "2  #")}
    both = [*moves, Move("knob:name", {"file": "config.yaml", "key": "trainer.name", "value": "b"}, "goal")]
    assert changed_files(both)[folder / "config.yaml"].endswith("2  # each\n  name: b\n")
    assert (folder / "config.yaml").read_text() == text
    assert by_hand(moves, COMMAND) == ["knob:val is not set: change trainer.test_interval in config.yaml from 1 to 2"]
    told = by_hand(moves, COMMAND, running=True)
    assert told[0] == "knob:batch is an option of the command: start the script with --batch-size 32"
    assert by_hand(moves[:1], rewritten(COMMAND, moves), running=True) == []


def plan_file(folder: Path, *moves: Move) -> Path:
    (folder / "fast.yaml").write_text(dump_plan(Plan(list(moves))))
    return folder / "fast.yaml"


def test_a_plan_may_hold_knobs(folder: Path) -> None:
    moves = [
        Move("knob:batch", {"option": "--batch-size", "value": "32"}, "goal", 1.2, 1.1, 1.3),
        Move("knob:val", {"file": "config.yaml", "key": "a.b", "value": 2}, "goal"),
        Move("autocast", {"dtype": "bf16"}, "maths"),
    ]
    assert load_valid_plan(plan_file(folder, *moves), machine_of()).moves == moves
    assert "The script's own setting" in (folder / "fast.yaml").read_text()


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"option": "--b"}, "it holds option"),
        ({}, "it holds nothing"),
        ({"option": "--b", "value": 1, "file": "c"}, "it holds file, option, value"),
        ({"option": 3, "value": 1}, "option is 3"),
        ({"option": "--b", "value": True}, "value is True, expected text or a number"),
        ({"option": "--b", "value": None}, "value is None"),
        ({"file": "c.yaml", "key": "a", "value": [1]}, "value is [1]"),
    ],
)
def test_a_wrong_knob_in_a_plan_names_its_line(folder: Path, setting: dict[str, Any], words: str) -> None:
    path = plan_file(folder, Move("autocast", {"dtype": "bf16"}, "maths"), Move("knob:b", setting, "goal"))
    with pytest.raises(HotlapError, match=r"fast\.yaml:\d+: \$\.moves\[1\]") as caught:
        load_valid_plan(path, machine_of())
    assert words in str(caught.value)


def test_a_knob_preserves_only_the_goal_and_stands_once(folder: Path) -> None:
    setting = {"option": "--b", "value": 1}
    with pytest.raises(HotlapError, match="a knob preserves 'goal'"):
        load_valid_plan(plan_file(folder, Move("knob:b", setting, "bits")), machine_of())
    with pytest.raises(HotlapError, match="stands in the plan twice"):
        load_valid_plan(plan_file(folder, *[Move("knob:b", setting, "goal")] * 2), machine_of())
    with pytest.raises(HotlapError, match="expected knob:NAME"):
        load_valid_plan(plan_file(folder, Move("knob:", setting, "goal")), machine_of())


BATCH = Knob("batch", ("24", "32", "36", "40", "16"), option="--batch-size", present="24")


def walk(outcomes: dict[str, str]) -> tuple[list[str], list[str]]:
    """Values tried until there is none left, with what becomes of each, and what is said of the rest."""
    results: list[LeverResult] = []
    tried: set[tuple[str, str]] = set()
    while found := knob_candidates([BATCH], results, tried):
        value = found[0].setting["value"]
        tried.add((BATCH.id, canonical(found[0].setting)))
        reason = outcomes.get(value, "no gain")
        results.append(LeverResult(BATCH.id, found[0].setting, "goal", None, None, reason == "paid", reason))
    return [r.setting["value"] for r in results], left_out([BATCH], results, tried)


def test_values_are_tried_in_the_users_order_without_the_present_one() -> None:
    assert walk({"32": "paid", "36": "no gain", "40": "paid"}) == (["32", "36", "40", "16"], [])


def test_two_in_a_row_that_do_not_pay_end_it() -> None:
    assert walk({}) == (["32", "36"], ["knob:batch: 40, 16 not tried: the 2 values before did not pay."])


def test_nothing_above_a_value_that_ran_out_of_memory_is_tried() -> None:
    tried, told = walk({"32": "paid", "36": "failed: out of memory: OutOfMemoryError", "16": "paid"})
    assert tried == ["32", "36", "16"] and told == ["knob:batch: 40 not tried: memory does not allow 36."]


def test_values_that_the_time_was_too_short_for_are_named() -> None:
    assert left_out([BATCH], [], set()) == [
        "knob:batch: 32, 36, 40, 16 not tried: there was no time left to try it, or to try it again (--budget)."
    ]
