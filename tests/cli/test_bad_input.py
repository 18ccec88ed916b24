"""What goes wrong on the command line: one clear message, the right exit code, nothing left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

STEPLESS = "import torch\nprint('no training here')\n"
TRAINING = """
import sys, torch
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(int(sys.argv[1])):
    optimizer.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
print("finished")
"""
PLAN = """schema: hotlap.plan/1
moves:
  - lever: {lever}
    setting: {setting}
    preserves: bits
"""


def hotlap(cwd: Path, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hotlap", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "COLUMNS": "200"},
    )


def test_no_command_at_all(tmp_path: Path) -> None:
    done = hotlap(tmp_path)
    assert done.returncode == 2
    assert "usage: hotlap" in done.stderr


@pytest.mark.parametrize("command", ["speedup", "diagnose"])
def test_nothing_after_the_dashes(tmp_path: Path, command: str) -> None:
    done = hotlap(tmp_path, command, "--")
    assert done.returncode == 2
    assert "no command after `--`" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_script_that_does_not_exist(tmp_path: Path) -> None:
    done = hotlap(tmp_path, "speedup", "--", sys.executable, "gone.py")
    assert done.returncode == 2
    assert "'gone.py' is not there" in done.stderr
    assert "Traceback" not in done.stderr


def test_options_after_the_dashes_are_the_scripts(tmp_path: Path) -> None:
    (tmp_path / "show.py").write_text("import sys; print(sys.argv[1:])\n")
    done = hotlap(tmp_path, "diagnose", "--no-confirm", "--", sys.executable, "show.py", "--json", "x", "--", "-h")
    assert done.stdout == "['--json', 'x', '--', '-h']\n"


def test_a_script_that_never_trains(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(STEPLESS)
    done = hotlap(tmp_path, "diagnose", "--no-confirm", "--", sys.executable, "train.py")
    assert done.stdout == "no training here\n"
    assert done.returncode == 1
    assert "no optimiser step was seen" in done.stderr


def test_too_few_steps_says_what_was_seen_and_is_needed(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    done = hotlap(tmp_path, "diagnose", "--no-confirm", "--", sys.executable, "train.py", "3")
    assert done.stdout == "finished\n"
    assert "3 steps" in done.stderr
    assert "needs at least" in done.stderr


def test_the_scripts_own_failure_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\nraise SystemExit(3)\n")
    done = hotlap(tmp_path, "diagnose", "--no-confirm", "--", sys.executable, "train.py")
    assert done.returncode == 3
    (tmp_path / "broken.py").write_text("import no_such_module\n")
    done = hotlap(tmp_path, "diagnose", "--no-confirm", "--", sys.executable, "broken.py")
    assert done.returncode == 1
    assert "ModuleNotFoundError: No module named 'no_such_module'" in done.stderr
    assert done.stderr.rstrip().splitlines()[-1].startswith("hotlap: ")


def test_speedup_of_a_crashing_script_names_the_reason(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\nraise RuntimeError('planted')\n")
    done = hotlap(tmp_path, "speedup", "--budget", "30s", "--", sys.executable, "train.py")
    assert done.returncode == 1
    assert "planted" in done.stderr


def test_speedup_of_a_script_that_asks(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\nname = input('which? ')\n")
    done = hotlap(tmp_path, "speedup", "--budget", "30s", "--", sys.executable, "train.py")
    assert done.returncode == 1
    assert "input" in done.stderr


@pytest.mark.parametrize(
    ("lever", "setting", "message"),
    [
        ("cache-decod", "{}", "cache-decode"),
        ("loader-workers", "{workers: two}", "workers"),
        ("loader-workers", "{workrs: 2}", "workrs"),
    ],
)
def test_a_hand_edited_plan(tmp_path: Path, lever: str, setting: str, message: str) -> None:
    (tmp_path / "train.py").write_text(STEPLESS)
    (tmp_path / "fast.yaml").write_text(PLAN.format(lever=lever, setting=setting))
    done = hotlap(tmp_path, "run", "--plan", "fast.yaml", "--", sys.executable, "train.py")
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""


def test_a_plan_that_is_not_there(tmp_path: Path) -> None:
    done = hotlap(tmp_path, "run", "--plan", "gone.yaml", "--", sys.executable, "-c", "pass")
    assert done.returncode == 2
    assert "gone.yaml" in done.stderr


def test_unknown_lever(tmp_path: Path) -> None:
    done = hotlap(tmp_path, "levers", "autocas")
    assert done.returncode == 2
    assert "autocast" in done.stderr
    done = hotlap(tmp_path, "speedup", "--only", "autocas", "--", sys.executable, "-c", "pass")
    assert done.returncode == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--knob", "b=--b {1,2}"], "Add `--allow bits,maths,distribution,goal`"),
        (["--allow", "bits", "--knob", "b=--b {1,2}"], "`goal` is not allowed"),
        (["--allow", "goal", "--knob", "b=--b 1,2"], "--knob 'b=--b 1,2': it is not NAME="),
        (["--allow", "goal", "--knob", "b=x={1,2}@gone.toml"], "gone.toml cannot be read"),
        (["--allow", "goal", "--knob", "b=--b {1,2}", "--only", "knob:c"], "knob:c"),
    ],
)
def test_knobs_that_cannot_be_meant(tmp_path: Path, options: list[str], words: str) -> None:
    done = hotlap(tmp_path, "speedup", *options, "--", sys.executable, "-c", "pass")
    assert done.returncode == 2
    assert words in done.stderr and "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def put_plan_with_knobs(folder: Path) -> None:
    (folder / "c.toml").write_text("every = 1\n")
    moves = (("a", "{option: '--seed', value: 9}"), ("b", "{file: c.toml, key: every, value: 2}"))
    plan = "schema: hotlap.plan/1\nmoves:\n"
    for name, setting in moves:
        plan += f"  - lever: knob:{name}\n    setting: {setting}\n    preserves: goal\n"
    (folder / "fast.yaml").write_text(plan)


def test_a_run_with_knobs_gives_options_and_leaves_files_to_the_user(tmp_path: Path) -> None:
    put_plan_with_knobs(tmp_path)
    (tmp_path / "train.py").write_text(TRAINING.replace('"finished"', "sys.argv[1:]"))
    command = ["--", sys.executable, "train.py", "20", "--seed=1"]
    done = hotlap(tmp_path, "run", "--plan", "fast.yaml", *command)
    assert (done.returncode, done.stdout) == (0, "['20', '--seed=9']\n")
    told = "hotlap: knob:b is not set: change every in c.toml from 1 to 2"
    assert [line for line in done.stderr.splitlines() if "knob" in line] == [
        f"{told} (your files are not changed)",
        told,
    ]
    assert (tmp_path / "c.toml").read_text() == "every = 1\n"
    (tmp_path / "c.toml").write_text("every = 2\n")
    done = hotlap(tmp_path, "run", "--plan", "fast.yaml", *command)
    assert "all 2 moves of the plan were applied over 20 steps" in done.stderr
    newest = max((tmp_path / ".hotlap").glob("*/run.json"))
    kept = json.loads(newest.read_text())
    assert [move["lever"] for move in kept["origin"]["moves"]] == ["knob:a", "knob:b"]
    assert kept["plan_path"] == "fast.yaml" and (newest.parent / "machine.json").is_file()


@pytest.mark.parametrize(
    ("options", "given", "warned"),
    [
        ((), (), True),
        pytest.param(("--seed", "9"), ("--plan", "fast.yaml"), False, marks=pytest.mark.cousin),
    ],
)
def test_what_an_attached_plan_cannot_do_is_told(
    tmp_path: Path, options: tuple[str, ...], given: tuple[str, ...], warned: bool
) -> None:
    put_plan_with_knobs(tmp_path)
    (tmp_path / "c.toml").write_text("every = 2\n")
    (tmp_path / "attached.py").write_text('import hotlap; hotlap.attach("fast.yaml")\n' + TRAINING)
    alone = subprocess.run(
        [sys.executable, "attached.py", "3", *options], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert (alone.returncode, alone.stdout) == (0, "finished\n")
    assert ("knob:a is an option of the command: start the script with --seed 9" in alone.stderr) == warned
    below = hotlap(tmp_path, "run", *given, "--", sys.executable, "attached.py", "3")
    assert below.returncode == 0
    assert ("does nothing below a hotlap command: `hotlap run --plan fast.yaml`" in below.stderr) == warned


def test_budget_that_is_no_time(tmp_path: Path) -> None:
    done = hotlap(tmp_path, "speedup", "--budget", "soon", "--", sys.executable, "-c", "pass")
    assert done.returncode == 2
    assert "not a duration" in done.stderr


def test_no_runs_and_unknown_run(tmp_path: Path) -> None:
    assert "No runs" in hotlap(tmp_path, "runs").stdout
    done = hotlap(tmp_path, "report")
    assert done.returncode == 1
    assert hotlap(tmp_path, "report", "nowhere").returncode == 2


def test_a_run_from_a_newer_hotlap(tmp_path: Path) -> None:
    run = tmp_path / ".hotlap" / "20260101-000000-train"
    run.mkdir(parents=True)
    record = {"kind": "diagnose", "command": ["python"], "started": "now", "schema": "hotlap.run/1"}
    (run / "run.json").write_text(json.dumps(record))
    (run / "findings.json").write_text(json.dumps({"schema": "hotlap.findings/9"}))
    done = hotlap(tmp_path, "report")
    assert done.returncode == 2
    assert "findings.json" in done.stderr
    assert "Traceback" not in done.stderr
    assert "unreadable" in hotlap(tmp_path, "runs").stdout


def test_runs_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = hotlap(tmp_path, "diagnose", "--runs", "file", "--", sys.executable, "-c", "pass")
    assert done.returncode == 1
    assert "Cannot make the run folder" in done.stderr
