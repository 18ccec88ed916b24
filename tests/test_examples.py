"""The speaker example trains, and its list of sins points at real lines."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hotlap.records.causes import CAUSES

EXAMPLE = Path(__file__).parents[1] / "examples" / "speaker"


def train(script: str, out: Path, *options: str) -> str:
    pytest.importorskip("soundfile")
    command = [sys.executable, str(EXAMPLE / script), "--out", str(out), "--batch-size", "8", *options]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def losses(out: str) -> list[str]:
    return re.findall(r"loss (\d+\.\d+)", out)


@pytest.mark.timeout(120)
def test_train_leaves_its_files(tmp_path: Path) -> None:
    """That the same seed gives the same losses is seen where the script is patched and its bits are equal."""
    out = train("train.py", tmp_path, "--val-every", "3", "--save-every", "2", "--steps", "4")
    assert len(losses(out)) == 4
    assert re.search(r"Step 3/4  EER \d+\.\d %", out)
    assert re.fullmatch(r"EER \d+\.\d %", out.splitlines()[-1])
    assert {path.name for path in tmp_path.iterdir()} == {"best.pt", "last.pt", "train.log"}


@pytest.mark.timeout(120)
def test_train_fixed_does_the_same_work(tmp_path: Path) -> None:
    out = train("train_fixed.py", tmp_path, "--steps", "10", "--val-every", "5", "--save-every", "5")
    assert len(losses(out)) == 1  # every tenth step is logged
    assert len(re.findall(r"Step \d+/10  EER", out)) == 2
    assert re.fullmatch(r"EER \d+\.\d %", out.splitlines()[-1])
    assert {path.name for path in tmp_path.iterdir()} == {"best.pt", "last.pt", "train.log"}


def test_each_sin_stands_on_one_line_of_its_function() -> None:
    lines = (EXAMPLE / "train.py").read_text().splitlines()
    for sin in json.loads((EXAMPLE / "sins.json").read_text()):
        at = [k for k, line in enumerate(lines) if sin["snippet"] in line]
        assert len(at) == 1, sin
        heads = [line for line in lines[: at[0]] if re.match(r"\s*def ", line)]
        assert f"def {sin['function'].split('.')[-1]}(" in heads[-1], sin
        assert sin["cause"] in CAUSES


def test_the_example_knows_nothing_of_hotlap() -> None:
    for script in ("train.py", "train_fixed.py"):
        assert "hotlap" not in (EXAMPLE / script).read_text().lower()


def test_the_data_is_small_complete_and_credited() -> None:
    data = EXAMPLE / "data"
    files = [path for path in data.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= 6_000_000
    train_rows = [line.split() for line in (data / "train_list.txt").read_text().splitlines()]
    trials = [line.split() for line in (data / "trials.txt").read_text().splitlines()]
    wanted = {path for _, path in train_rows} | {path for trial in trials for path in trial[1:]}
    assert {path.relative_to(data / "wav").as_posix() for path in files if path.suffix == ".ogg"} == wanted
    held_out = {path.split("/")[0] for trial in trials for path in trial[1:]}
    assert not held_out & {speaker for speaker, _ in train_rows}
    assert "2104.01378" in (data / "LICENSE").read_text()
