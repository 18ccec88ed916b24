"""The command line before anything runs: a command without `--`, files that could not be written in the end."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hotlap.cli.main import build_parser, main

SCRIPT = ["--", sys.executable, "-c", "pass"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    return tmp_path


def test_a_command_without_dashes_is_told_where_they_go(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["speedup", "--budget", "30s", "python", "train.py", "--lr", "0.1"]) == 2
    told = capsys.readouterr().err
    assert "hotlap: python train.py --lr 0.1 stands where Hotlap's own options stand." in told
    assert "Put your command after `--`: hotlap speedup --budget 30s -- python train.py --lr 0.1" in told


@pytest.mark.parametrize("words", [["runs", "python"], ["speedup", "--bogus"], ["speedup", "python", *SCRIPT]])
def test_other_unknown_words_are_called_so(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as err:
        main(words)
    assert err.value.code == 2 and f"unrecognized arguments: {words[1]}" in capsys.readouterr().err


def test_a_command_where_none_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", *SCRIPT]) == 2
    assert "Leave `--` and what follows it away." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["speedup", "--plan", "folder", *SCRIPT], "--plan folder is a folder."),
        (["speedup", "--plan", "missing/x.yaml", *SCRIPT], "The folder of --plan missing/x.yaml does not exist."),
        (["speedup", "--json", "folder", *SCRIPT], "--json folder is a folder."),
        (["diagnose", "--json", "folder", *SCRIPT], "--json folder is a folder."),
        (["report", "--json", "folder"], "--json folder is a folder."),
        (["compare", "a", "b", "--json", "folder"], "--json folder is a folder."),
        (["compare", "a", "b", "--json", "missing/x.json"], "The folder of --json missing/x.json does not exist."),
    ],
)
def test_a_file_that_could_not_be_written_is_refused_beforehand(
    here: Path, words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert told in capsys.readouterr().err
    assert [path.name for path in here.iterdir()] == ["folder"]


def test_a_margin_is_a_share_everywhere() -> None:
    assert build_parser("speedup").parse_args(["speedup", "--margin", "2%"]).margin == 0.02


def test_options_of_a_diagnosis_say_that_they_keep_to_the_sandbox(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["diagnose", "--help"])
    assert "".join(capsys.readouterr().out.split()).count("inthesandboxalone") == 2
