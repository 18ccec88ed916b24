"""`hotlap lint`: exit codes, formats, fixes, and that nothing of the user's is run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hotlap.cli.main import main

BAD = """\
import torch
raise SystemExit("this file was run")
def train(model, optimizer, loader):
    total = 0
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        torch.save(model.state_dict(), "x.pt")
        total += loss  # summed
"""


@pytest.fixture
def bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "bad.py"
    path.write_text(BAD)
    return path


def test_exit_codes(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "bad.py"]) == 1
    assert "bad.py:9:9: checkpoint-blocking: " in capsys.readouterr().out
    Path("good.py").write_text("import torch\n")
    assert main(["lint", "good.py"]) == 0
    assert main(["lint", "nowhere"]) == 2
    Path("broken.py").write_text("import torch\ndef (:\n")
    assert main(["lint", "."]) == 2
    assert "broken.py:2" in capsys.readouterr().out
    assert main(["lint", "bad.py", "--ignore", "memory-leak", "--ignore", "checkpoint-blocking"]) == 0
    assert main(["lint", "bad.py", "--ignore", "no-such-cause"]) == 2


def test_formats(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "bad.py", "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [(p["cause"], p["line"], p["fixable"]) for p in found["problems"]] == [
        ("checkpoint-blocking", 9, False),
        ("memory-leak", 10, True),
    ]
    assert main(["lint", str(bad), "--format", "github"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("::warning file=bad.py,line=10,col=9,title=hotlap memory-leak::")
    assert main(["lint", "bad.py", "--format", "sarif"]) == 1
    run = json.loads(capsys.readouterr().out)["runs"][0]
    assert [r["id"] for r in run["tool"]["driver"]["rules"]] == ["checkpoint-blocking", "memory-leak"]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "bad.py"


def test_fix(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("libcst")
    assert main(["lint", "bad.py", "--fix"]) == 1
    assert bad.read_text() == BAD.replace("total += loss  #", "total += loss.detach()  #")
    assert "memory-leak" not in capsys.readouterr().out


def test_nothing_is_imported(bad: Path) -> None:
    code = (
        "import sys; from hotlap.cli.main import main; main(['lint', 'bad.py']); "
        "print(sorted({'torch', 'bad', 'libcst'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_an_unknown_cause_offers_the_nearest(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", ".", "--ignore", "decod"]) == 2
    assert "Did you mean 'decode'?" in capsys.readouterr().err
    assert main(["lint", ".", "--ignore", "xyzzy"]) == 2
    assert "causes.md" in capsys.readouterr().err
