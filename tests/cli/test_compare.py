"""``hotlap compare`` from the command line: runs and plans found, read and told; and what cannot be compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hotlap.cli.main import main
from hotlap.cli.prepare import new_run
from hotlap.diagnose.diagnose import diagnose
from hotlap.plan.file import dump_plan
from hotlap.records.codec import encode
from hotlap.records.plan import Move, Plan
from hotlap.records.run import RunRecord
from hotlap.records.run_folder import RunFolder
from hotlap.records.timeline import Timeline
from hotlap.testing.timelines import TimelineBuilder, cpu_machine

COMPUTE: dict[str, Any] = {"forward": 0.010, "backward": 0.010, "optimizer": 0.0004}


def timeline(wait_s: float = 0.0002, threads: int = 2) -> Timeline:
    made = TimelineBuilder().loader().setting("threads", torch=threads)
    return made.steps(200, data_wait=wait_s, **COMPUTE).build()


def write_rows(folder: Path, rows: Timeline) -> None:
    """The timeline as its process writes it."""
    lines = [{"k": "header", **vars(rows.header)}]
    lines += [{"k": type(row).__name__.lower(), **encode(row)} for row in (*rows.setting, *rows.step)]
    (folder / "100.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def keep(root: Path, wait_s: float, kind: str = "diagnose", arm: str = "run", findings: bool = True) -> str:
    """A run of train.py; its name."""
    folder, run = new_run(kind, ["python", "train.py"], root)
    run.status = "finished"
    folder.write("run.json", run)
    folder.write("machine.json", cpu_machine())
    rows = timeline(wait_s)
    write_rows(folder.timeline_dir(arm), rows)
    if findings:
        folder.write("findings.json", diagnose(rows, cpu_machine(), "train.py"))
    return folder.path.name


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    (tmp_path / "train.py").write_text("")
    return tmp_path / ".hotlap"


def told(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().out.split())


def test_two_runs_by_name_and_by_path(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = keep(runs, 0.0002), keep(runs, 0.02)
    assert main(["compare", a, f".hotlap/{b}", "--json", "out.json"]) == 0
    text = told(capsys)
    assert f"A {a} diagnose · " in text and "B is slower: 40.4 ms per step, 20.6 ms in A, 1.96x the time" in text
    assert "!" not in text and "-> " not in text.replace("A -> B", "")
    out = json.loads(Path("out.json").read_text())
    assert out["phases"][0]["name"] == "data_wait" and out["phases"][0]["clear"] is True
    assert out["a"]["in_trial"] is False and out["changes"] == []


def test_a_run_with_a_plan_is_diagnosed_from_its_timeline(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = keep(runs, 0.0002)
    folder, run = new_run("run", ["python", "train.py"], runs, [Move("threads", {"threads": 1}, "maths")])
    run.status = "finished"
    folder.write("run.json", run)
    folder.write("machine.json", cpu_machine())
    write_rows(folder.timeline_dir("run"), timeline(0.0002, threads=1))
    assert main(["compare", a, folder.path.name]) == 0
    text = told(capsys)
    assert "levers threads not applied -> threads 1" in text and "settings threads torch 2 -> 1" in text
    assert "No difference that two single runs could show" in text


def test_a_run_in_a_trial_and_its_first_arm(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = keep(runs, 0.0002), keep(runs, 0.0002, arm="01-baseline")
    write_rows(RunFolder(runs / b).timeline_dir("02-roof"), timeline(threads=7))
    assert main(["compare", a, b]) == 0
    text = told(capsys)
    assert "! B was watched in a trial" in text and "threads" not in text


def test_two_plans(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    moves = [Move("tf32", {}, "maths", 1.2, 1.1, 1.3)]
    Path("a.yaml").write_text(dump_plan(Plan(moves, "train.py", "X", "2.13.0", 1.2, 1.1, 1.3)))
    Path("b.yaml").write_text(dump_plan(Plan([], "train.py", "Y", "2.13.0")))
    assert main(["compare", "a.yaml", "b.yaml"]) == 0
    text = told(capsys)
    assert "! Another machine: X, and Y." in text and "- tf32 1.20x" in text and "1 only in A, 0 the same" in text


def newer(runs: Path, name: str) -> str:
    run = keep(runs, 0.0002)
    path = runs / run / name
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema": f"hotlap.{Path(name).stem}/9"}))
    return run


def without_steps(runs: Path, status: str = "failed") -> str:
    folder, run = new_run("speedup", ["python", "train.py"], runs)
    run.status = status
    folder.write("run.json", run)
    return folder.path.name


def plan_file(runs: Path) -> str:
    Path("fast.yaml").write_text(dump_plan(Plan([])))
    return "fast.yaml"


def folder_of_nothing(runs: Path) -> str:
    Path("src").mkdir()
    return "src"


def torn(runs: Path) -> str:
    name = keep(runs, 0.0002)
    (runs / name / "findings.json").write_text("{")
    return name


def too_short(runs: Path) -> str:
    name = keep(runs, 0.0002, "run", findings=False)
    rows = timeline()
    rows.step = rows.step[:3]
    write_rows(runs / name / "timelines" / "run", rows)
    return name


@pytest.mark.parametrize(
    ("make", "code", "words"),
    [
        (lambda runs: "gone", 2, "There is no run and no plan called 'gone'"),
        (lambda runs: keep(runs, 0.02)[:-1], 2, "Did you mean 2"),
        (folder_of_nothing, 2, "'src' is not a run (no run.json in it)"),
        (lambda runs: newer(runs, "run.json"), 2, "written by a newer Hotlap. Upgrade"),
        (lambda runs: newer(runs, "findings.json"), 2, "'hotlap.findings/9', this Hotlap reads 'hotlap.findings/1'"),
        (plan_file, 2, "is a run and fast.yaml is a plan: two runs can be compared, or two plans"),
        (lambda runs: "train.py", 2, "is a run and train.py is a plan"),
        (torn, 2, "findings.json is not valid JSON"),
        (without_steps, 1, "(speedup, failed) has nothing to compare: no training step was recorded"),
        (too_short, 1, "trained 3 steps"),
    ],
)
def test_what_cannot_be_compared(
    runs: Path, capsys: pytest.CaptureFixture[str], make: Any, code: int, words: str
) -> None:
    a = keep(runs, 0.0002)
    assert main(["compare", a, make(runs)]) == code
    captured = capsys.readouterr()
    assert words in " ".join(captured.err.split()) and captured.err.startswith("hotlap: ") and captured.out == ""


def test_a_file_that_is_no_plan_is_named(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("notes.yaml").write_text("a: 1\n")
    assert main(["compare", "notes.yaml", "notes.yaml"]) == 2
    assert "notes.yaml has schema None, expected 'hotlap.plan/1'" in capsys.readouterr().err


def test_the_start_of_a_run_records_its_origin(runs: Path) -> None:
    folder, run = new_run("diagnose", ["python", "train.py"], runs)
    kept = folder.read("run.json", RunRecord)
    assert kept == run and kept.origin is not None and "train.py" in kept.origin.texts
    assert kept.origin.script == str(Path("train.py").resolve())
    older = json.loads((folder.path / "run.json").read_text())
    del older["origin"]
    (folder.path / "run.json").write_text(json.dumps(older))
    read = folder.read("run.json", RunRecord)
    assert read is not None and read.origin is None


def test_a_lever_that_does_not_exist_is_told(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    moves = [Move("gc-freze", {}, "bits"), Move("knob:batch", {"option": "--batch", "value": 8}, "goal")]
    for name, found in (("a.yaml", moves), ("b.yaml", [Move("gc-freeze", {}, "bits")])):
        (runs.parent / name).write_text(dump_plan(Plan(found)))
    assert main(["compare", "a.yaml", "b.yaml"]) == 0
    text = told(capsys)
    assert "There is no lever 'gc-freze'. Did you mean 'gc-freeze'?" in text and "knob:batch'" not in text
