"""What ``hotlap compare`` prints and writes: it fits, says which is slower, and every key is documented."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console
from tests.report.test_data import shape

from hotlap.records.comparison import Amount, Change, Compared, Comparison, MoveChange, Warned
from hotlap.records.findings import Where
from hotlap.records.plan import Move
from hotlap.report import comparison_words
from hotlap.report.comparison import comparison, to_json
from hotlap.report.units import NONE

DOC = Path(__file__).parents[2] / "docs" / "reference" / "json.md"
SIDE = Compared(
    "20260101-000000-train", "/r/20260101-000000-train", "diagnose", "train.py", ["python", "train.py"], "then",
    "finished", "CPU, 2 cores", "2.13.0", 2000.0, 62.5, 32.0, 200, False,
)  # fmt: skip
MOVES = [
    MoveChange("tf32", "same", Move("tf32", {}, "maths", 1.2), Move("tf32", {}, "maths", 1.3)),
    MoveChange(
        "threads", "setting", Move("threads", {"threads": 1}, "maths"), Move("threads", {"threads": 2}, "maths")
    ),
    MoveChange("cache-decode", "only a", Move("cache-decode", {"max_bytes": 2**31}, "bits", 3.0), None),
    MoveChange("autocast", "only b", None, Move("autocast", {"dtype": "bfloat16"}, "maths", 1.5)),
]


def amount(name: str, a: float | None, b: float | None, clear: bool = True, **more: Any) -> Amount:
    change = (b or 0.0) - (a or 0.0)
    return Amount(name, a, b, change, b / a if a and b else None, 0.0003, clear, **more)


def runs(**changes: Any) -> Comparison:
    where = Where("/home/me/a/rather/long/path/of/a/project/train.py", 48, "SpeechSet.__getitem__")
    base = Comparison(
        "runs", SIDE, replace(SIDE, name="20260102-000000-train", samples_per_s=1000.0), [],
        amount("step", 0.016, 0.032),
        [
            amount("data_wait", 0.0002, 0.0157),
            amount("forward", 0.008, 0.0081, False),
            amount("gc", 0.00001, 0.0, False),
        ],
        [
            amount("decode", None, 0.0150, detail="decoding, one process", where=where),
            amount("logging-blocking", 0.001, None, detail="print in each step"),
            amount("sync", 0.001, 0.001, False),
        ],
        [
            Change("code", "commit", "a" * 40, "b" * 40),
            Change("code", "branch", "main", None),
            Change("command", "--batch", None, "--batch 64"),
            Change("levers", "threads", None, {"threads": 2}),
            Change("settings", "samples_per_step", 32.0, 64.0),
            Change("settings", "loader_persistent_workers", False, True),
            Change("settings", "optimizers", ["SGD"], ["AdamW fused"]),
            Change("machine", "memory_bytes", 2**33, 2**34),
            *[Change("packages", f"package-{n}", "1.0", None) for n in range(40)],
        ],
        MOVES,
        ["What was committed in between:  git -C /home/me diff aaaaaaaaaa bbbbbbbbbb", "A: something is not known."],
    )  # fmt: skip
    return replace(base, **changes)


def plans() -> Comparison:
    side = replace(SIDE, kind="plan", name="fast.yaml", speedup=3.1, low=3.0, high=3.2)
    return Comparison(
        "plans", side, replace(side, speedup=None), [Warned("ratios", "They do not compare.")], moves=MOVES
    )


def shown(found: Comparison, width: int = 100) -> str:
    out = io.StringIO()
    Console(file=out, width=width, highlight=False).print(comparison(found))
    return out.getvalue()


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("made", [runs, plans])
def test_every_line_fits_and_says_something(made: Any, width: int) -> None:
    text = shown(made(), width)
    assert all(cell_len(line) <= min(width, 120) for line in text.splitlines())
    assert all(line.startswith(" ") for line in text.splitlines()), "what does not fit is broken off"
    assert not re.search(r"\bNone\b|\bnan\b|Amount|dataclass", text)


def test_a_run_says_everything() -> None:
    lines = [" ".join(line.split()) for line in shown(runs()).splitlines()]
    for part in (
        "A 20260101-000000-train diagnose · 2,000 samples/s · batch 32 · 200 steps",
        "B is slower: 32.0 ms per step, 16.0 ms in A, 2.00x the time, mostly in data wait (+15.5 ms).",
        "data wait 0.20 15.7 +15.5 78.5x",
        "~ forward 8.00 8.10 +0.10 1.01x",
        "step 16.0 32.0 +16.0 2.00x",
        f"decode not in A {NONE} 15.0 +15.0 {NONE}",
        f"logging-blocking not in B 1.00 {NONE} -1.00 {NONE}",
        "causes may overlap; no clear change, or not known: sync",
        "code commit aaaaaaaaaa -> bbbbbbbbbb",
        "branch main -> none",
        "command --batch not given -> --batch 64",
        "levers threads not applied -> threads 2",
        "settings samples per step 32 -> 64",
        "loader persistent workers no -> yes",
        "optimizers SGD -> AdamW fused",
        "machine memory 8.0 GiB -> 16.0 GiB",
        "packages package-0 1.0 -> not installed",
        "and 28 more, which --json FILE lists",
        "What was committed in between: git -C /home/me diff aaaaaaaaaa bbbbbbbbbb",
        "note: A: something is not known.",
        "- cache-decode max 2.0 GiB 3.00x",
        f"~ threads threads 1 -> threads 2 {NONE} {NONE}",
        "= tf32 1.20x 1.30x",
        "+ autocast dtype bfloat16 1.50x",
    ):
        assert part in lines, part
    assert "1 phase below 2 % of the step not shown" in " ".join(lines), "gc is too small to be shown"
    assert any(line.endswith("/project/train.py:48 SpeechSet.__getitem__ decoding, one process") for line in lines)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (runs(step=amount("step", 0.032, 0.016)), "B is faster: 16.0 ms per step, 32.0 ms in A, 2.00x the throughput."),
        (runs(step=amount("step", 0.016, 0.017, False)), "No difference that two single runs could show: 17.0 ms per"),
        (runs(warnings=[Warned("batch", "")]), "B has 0.50x the throughput of A: 1,000 samples/s, 2,000 in A."),
        (
            runs(warnings=[Warned("batch", "")], a=replace(SIDE, samples_per_s=None)),
            "The steps of A and B are not the same amount of work",
        ),
        (plans(), "The plans differ: 4 moves in all, 1 only in A, 1 only in B, 1 with another setting, 1 the same."),
        (replace(plans(), moves=MOVES[:1]), "Both plans make the same 1 move."),
        (replace(plans(), moves=[]), "Both plans are empty."),
    ],
)
def test_the_verdict_in_one_sentence(found: Comparison, words: str) -> None:
    assert comparison_words.verdict(found).startswith(words)


def test_warnings_come_before_numbers() -> None:
    text = shown(runs(warnings=[Warned("machine", "Another machine: X, and Y.")]))
    assert text.index("! Another machine: X, and Y.") < text.index("B is slower") < text.index("data wait   ")


def test_without_a_change_it_says_so() -> None:
    text = shown(runs(changes=[], causes=[amount("sync", 0.001, 0.001, False)], moves=[], notes=[]))
    assert "Nothing that both runs recorded" in text and "Causes, none clearly changed: sync" in text


def test_the_json_has_every_key_always_and_documents_each() -> None:
    out = to_json(runs())
    assert list(out) == list(to_json(plans())) and out["schema"] == "hotlap.compare/1"
    assert json.loads(json.dumps(out, allow_nan=False)) == out
    assert to_json(runs(step=amount("step", 0.0, float("nan"))))["step"]["b_s"] is None
    text = DOC.read_text(encoding="utf-8").split("## `hotlap.compare/1`")[1].split("## Example")[0]
    for key in shape(out):
        path = re.sub(r"^b\.", "a.", re.sub(r"^(causes\[\]|step)\.", "phases[].", key[1:]))
        inside = re.match(r"(moves\[\]\.[ab]|changes\[\]\.[ab]|phases\[\]\.where)\.", path)  # other documents' keys
        assert inside or f"`{path}`" in text or (path.startswith("moves[]") and f"`{path[8:]}`" in text), path
