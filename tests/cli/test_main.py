"""The command line before anything runs: a command without `--`, files that could not be written in the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hotlap.cli.commands.levers import setting_lines
from hotlap.cli.main import build_parser, main
from hotlap.lever.registry import levers
from hotlap.testing.timelines import cpu_machine

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
        (["prove", "--plan", "x.yaml", "--json", "/proc/x.json", *SCRIPT], "--json /proc/x.json could not be written:"),
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


@pytest.mark.parametrize("closed", [["2>&-"], ["2>&-", ">&-"]])
def test_with_closed_streams_the_script_runs_and_finds_them_closed(closed: list[str], here: Path) -> None:
    (here / "script.py").write_text("import sys; sys.exit(9 if sys.stderr is None else 1)\n")
    line = f'"{sys.executable}" -m hotlap run --status always -- "{sys.executable}" script.py {" ".join(closed)}'
    done = subprocess.run(["sh", "-c", line], cwd=here, timeout=120, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (9, ""), done.stderr


INTERRUPTED = """
import os, signal, sys
print("go", flush=True)
os.killpg(0, signal.SIGINT)  # as a terminal does
"""


@pytest.mark.parametrize(("before", "times"), [("", 1), ("signal.signal(signal.SIGINT, signal.SIG_IGN)", 3)])
def test_ctrl_c_ends_a_shells_loop_where_it_ends_the_script(before: str, times: int, here: Path) -> None:
    (here / "script.py").write_text(INTERRUPTED.replace("print", f"{before}\nprint"))
    one = f'"{sys.executable}" -m hotlap run --no-guard -- "{sys.executable}" script.py'
    done = subprocess.run(
        ["bash", "-c", f"for n in 1 2 3; do {one}; done"],
        cwd=here, timeout=120, capture_output=True, text=True, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # tests that run behind a shell's & ignore it
    )  # fmt: skip
    assert done.stdout.split() == ["go"] * times, done.stderr


def test_an_interruption_while_a_command_is_imported_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("hotlap.cli.main.importlib.import_module", interrupted)
    assert main(["runs"]) == 130
    assert capsys.readouterr().err.startswith("hotlap: interrupted")


def test_sigterm_ends_a_command_as_ctrl_c_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def terminated(name: str) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)
        raise AssertionError("SIGTERM was not heeded")

    monkeypatch.setattr("hotlap.cli.main.importlib.import_module", terminated)
    assert main(["runs"]) == 143
    assert capsys.readouterr().err.startswith("hotlap: interrupted")
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_the_page_of_a_lever_says_what_its_setting_may_hold(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["levers", "autocast"]) == 0
    assert "Setting, in a plan:\n  dtype: bf16 or fp16\n" in capsys.readouterr().out
    for lever in levers().values():
        known = ", ".join(getattr(lever, "RULES", {})) or "none"
        assert f"known: {known}." in str(lever.check({"?": 1}, cpu_machine(compiler="c++"))), lever.ID
        assert all(line.count(":") == 1 for line in setting_lines(lever)), lever.ID
    assert setting_lines(levers()["loader-workers"])[1] == "prefetch: a whole number from 1 to 64, or null"
