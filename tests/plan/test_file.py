"""Plan files: exact round trips, and errors that name the place."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotlap.plan.file import dump_plan, load_plan, load_valid_plan, parse_plan, validate
from hotlap.records.errors import EXIT_USAGE, HotlapError, RecordError
from hotlap.records.plan import Move, Plan
from hotlap.testing.lever_kit import machine_of

PLAN = Plan(
    moves=[
        Move("cache-decode", {"max_bytes": 1 << 30}, "bits", 3.04, 2.9, 3.2),
        Move("loader-workers", {"workers": 2, "prefetch": 4, "torch_threads": None}, "distribution", 1.4),
        Move("autocast", {"dtype": "bf16"}, "maths", 1e-7),
    ],
    script="train.py --lr: 'x' # no",
    machine="A CPU, 2 cores",
    torch="2.13.0",
    speedup=6.98,
    low=6.7,
    high=7.0,
    created="2026-01-02 03:04",
)
TEXT = dump_plan(PLAN)


@pytest.mark.parametrize("plan", [PLAN, Plan([]), Plan(PLAN.moves, torch="2.1"), Plan([Move("gone", {}, "goal")])])
def test_round_trip(plan: Plan) -> None:
    assert parse_plan(dump_plan(plan)) == plan


def test_a_person_can_read_it() -> None:
    assert "# Keep decoded images" in TEXT and "setting: {workers: 2, prefetch: 4, torch_threads: null}" in TEXT
    assert len([line for line in TEXT.split("\n") if line.strip().startswith("#")]) == 1 + len(PLAN.moves)


def test_the_plan_in_the_documentation_is_valid(tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "plan.md").read_text()
    (tmp_path / "fast.yaml").write_text(page.split("```yaml\n")[1].split("```")[0])
    assert len(load_valid_plan(tmp_path / "fast.yaml", machine_of()).moves) == 2


def test_an_unknown_lever_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "fast.yaml").write_text(TEXT.replace("lever: autocast", "lever: autocats"))
    with pytest.raises(HotlapError, match=r"fast\.yaml:\d+: \$\.moves\[2\]\.lever is 'autocats'"):
        load_valid_plan(tmp_path / "fast.yaml", machine_of())


def edited(old: str, new: str) -> str:
    assert old in TEXT
    return TEXT.replace(old, new, 1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (edited("preserves: bits", "preserves: most"), ["$.moves[0].preserves", "'most'"]),
        (edited("lever: autocast", "leaver: autocast"), ["$.moves[2]", "'leaver'", "'lever'"]),
        (edited("speedup: 6.98", "speedup: fast"), ["$.speedup", "'fast'", "float"]),
        (edited("gain: 1.4", "gain: [1]"), ["$.moves[1].gain", "a list"]),
        (edited("hotlap.plan/1", "hotlap.plan/9"), ["newer Hotlap"]),
        (edited("{dtype: bf16}", "{dtype: bf16"), ["not valid YAML"]),
        ("", ["no keys"]),
        ("- 1", ["no keys"]),
        (edited("script: ", "script: 2026-13-01 #"), ["not what it looks like", "month"]),
        (edited("script: ", 'script: !!int "" #'), ["not what it looks like"]),
        (edited("script: ", "script: !!bool maybe #"), ["not what it looks like"]),
        (edited("script: ", "script: " + "[" * 5000), ["nests too deeply"]),
        (edited("{dtype: bf16}", "&a {dtype: bf16}").replace("{max_bytes", "{b: *a, max_bytes"), ["alias"]),
    ],
)
def test_errors_name_the_place(text: str, words: list[str]) -> None:
    with pytest.raises(RecordError) as caught:
        parse_plan(text, "fast.yaml")
    assert all(word in str(caught.value) for word in ["fast.yaml", *words]), caught.value


def test_errors_name_the_line() -> None:
    text = edited("preserves: maths", "preserves: most")
    line = text.split("\n").index("    preserves: most") + 1
    with pytest.raises(RecordError, match=rf"fast\.yaml:{line}: "):
        parse_plan(text, "fast.yaml")


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(HotlapError, match=r"nowhere\.yaml") as caught:
        load_plan(tmp_path / "nowhere.yaml")
    assert caught.value.exit_code == EXIT_USAGE
    (tmp_path / "p.yaml").write_text(TEXT)
    assert load_plan(tmp_path / "p.yaml") == PLAN


def test_a_good_plan_is_valid() -> None:
    validate(PLAN, machine_of())


@pytest.mark.parametrize(
    ("moves", "words"),
    [
        ([Move("autocats", {}, "bits")], ["$.moves[0].lever", "'autocast'"]),
        ([PLAN.moves[0], Move("autocast", {"dtype": 3}, "maths")], ["$.moves[1].setting.dtype", "3", "text"]),
        ([Move("autocast", {"dtype": "fp16"}, "maths")], ["$.moves[0].setting.dtype", "accelerator"]),
        ([Move("autocast", {"dytpe": "bf16"}, "maths")], ["$.moves[0].setting.dytpe", "dtype"]),
        ([Move("autocast", {"dtype": "bf16"}, "bits")], ["$.moves[0].preserves", "'maths'"]),
        ([PLAN.moves[0], PLAN.moves[0]], ["$.moves[1].lever", "twice"]),
        ([PLAN.moves[1], Move("background-fetch", {"depth": 2}, "distribution")], ["$.moves[1]", "loader-workers"]),
        ([Move("loader-workers", {**PLAN.moves[1].setting, "workers": 400}, "distribution")],
         ["$.moves[0].setting.workers", "400"]),
    ],
)  # fmt: skip
def test_validation_names_the_move(moves: list[Move], words: list[str]) -> None:
    with pytest.raises(HotlapError) as caught:
        validate(Plan(moves), machine_of())
    assert caught.value.exit_code == EXIT_USAGE
    assert all(word in str(caught.value) for word in words), caught.value


def test_a_machine_without_a_compiler_is_told_so() -> None:
    with pytest.raises(HotlapError, match=r"\$\.moves\[0\]\.setting: This machine has no C\+\+ compiler"):
        validate(Plan([Move("compile-model", {}, "maths")]), machine_of(compiler=None))
