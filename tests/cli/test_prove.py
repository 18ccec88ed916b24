"""``hotlap prove`` from the command line: one seed of a real training, and what cannot be meant."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hotlap.cli.main import main
from hotlap.trial import sandbox

TRAINING = """
import sys, torch
torch.manual_seed(int(sys.argv[1]))
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(40):
    x = torch.randn(4, 8)
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
open("out.txt", "w").write("written")
print("EER:", loss.item())
"""
PLAN = "schema: hotlap.plan/1\nmoves:\n  - lever: zero-grad-none\n    setting: {}\n    preserves: bits\n"


def hotlap(cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (cwd / "fast.yaml").write_text(PLAN)
    (cwd / "train.py").write_text(TRAINING)
    environment = {**os.environ, "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, "-m", "hotlap", *arguments], cwd=cwd, capture_output=True, text=True, timeout=150,
        stdin=subprocess.DEVNULL, env=environment,
    )  # fmt: skip


@pytest.mark.skipif(sandbox.available() == "none", reason="this system allows no sandbox for trials")
def test_one_seed_of_a_real_training(tmp_path: Path) -> None:
    options = ["--plan", "fast.yaml", "--seeds", "1", "--metric", r"EER: ([\d.]+)", "--json", "out.json"]
    done = hotlap(tmp_path, "prove", *options, "--", sys.executable, "train.py", "{seed}")
    assert done.returncode == 1, done.stderr
    told = " ".join(done.stderr.split())
    assert "Losses are equal bit for bit over 40 steps in 1 seed · metric" in told and done.stdout == ""
    assert "1 seed cannot show how runs differ" in told and "zero-grad-none: no effect" in told
    found = json.loads((tmp_path / "out.json").read_text())
    assert (found["schema"], found["verdict"]) == ("hotlap.prove/1", "not proved")
    assert (found["quality"]["kind"], found["quality"]["verdict"]) == ("bits", "proved")
    runs = found["seeds"][0]
    assert runs["baseline"]["metric"] == runs["candidate"]["metric"] is not None
    assert runs["baseline"]["steps"] == 40 and runs["command"][-1] == "1"
    assert not (tmp_path / "out.txt").exists(), "both arms ran in a sandbox"
    again = hotlap(tmp_path, "report")
    assert again.returncode == 0 and "not proved" in again.stdout
    assert "prove" in hotlap(tmp_path, "runs").stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--metric", "("], "is no regular expression"),
        (["--metric", "(a)(b)"], "has 2 groups"),
        (["--until", "0.3"], "is not loss=NUMBER"),
        (["--steps", "5", "--epochs", "1"], "not allowed with"),
        (["--until", "loss=1", "--metric", "x"], "Leave one of them out"),
        (["--lower"], "Add --metric"),
        (["--margin", "2"], "is not a share"),
        (["--seeds", "0"], "1 or more"),
        (["--json", "gone/x.json"], "does not exist"),
    ],
)
def test_what_cannot_be_meant(
    tmp_path: Path, options: list[str], words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told = here(tmp_path, monkeypatch, capsys, "--plan", "fast.yaml", *options, "--", sys.executable, "train.py")
    assert code == 2 and words in told, told
    assert not (tmp_path / ".hotlap").exists()


def test_a_plan_that_does_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told = here(tmp_path, monkeypatch, capsys, "--plan", "gone.yaml", "--", sys.executable, "train.py")
    assert code == 2 and "gone.yaml" in told
    (tmp_path / "empty.yaml").write_text("schema: hotlap.plan/1\nmoves: []\n")
    code, told = here(tmp_path, monkeypatch, capsys, "--plan", "empty.yaml", "--", sys.executable, "train.py")
    assert code == 2 and "nothing to prove. `hotlap speedup` writes a plan" in told


def here(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, str]:
    """The command in this process, for what ends before anything is run."""
    monkeypatch.chdir(folder)
    (folder / "fast.yaml").write_text(PLAN)
    (folder / "train.py").write_text(TRAINING)
    try:
        code = main(["prove", *arguments])
    except SystemExit as left:
        code = int(left.code or 0)
    return code, " ".join(capsys.readouterr().err.split())
