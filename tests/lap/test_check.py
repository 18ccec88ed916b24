"""The working tree against a revision of it, in its place: of a script that writes a training's timeline itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree as xml

import pytest

from hotlap.cli.commands import check as command
from hotlap.cli.main import main
from hotlap.lap import check as lap_check
from hotlap.lap.launches import Launches
from hotlap.lap.revision import at_revision, find_revision
from hotlap.records.check import Check
from hotlap.records.codec import loads
from hotlap.records.errors import HotlapError
from hotlap.records.machine import Machine
from hotlap.records.rows import PHASES, Step
from hotlap.records.trials import Interval, Trial, Window
from hotlap.report import check_page, check_words
from hotlap.report.view import Report
from hotlap.trial import sandbox
from hotlap.trial.pauses import Cycle

FAKE = Path(__file__).with_name("seed_train.py").read_text().replace('("steps", 20)', '("steps", 100000)')
READS = "open('data').close()\n"
MACHINE = Machine("Linux", "a CPU", 2, 8 << 30, 4 << 30, [], "3.11", "2.13")


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=A", "-c", "user.email=a@b.c"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "train.py").write_text(READS + FAKE.replace("0.03", "0.01"))
    (folder / ".gitignore").write_text("data\n.hotlap\n")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    (folder / "train.py").write_text("# slower\n" + READS + FAKE)
    (folder / "data").write_text("in no revision")
    monkeypatch.chdir(folder)
    return folder


def test_a_first_launch_that_met_pauses_by_chance_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [Step(i, 1, 0, 10**9 if i % 20 == 19 else 10**7, [0] * len(PHASES), 4, 1) for i in range(100)]
    arm = SimpleNamespace(poll=lambda: SimpleNamespace(steps=steps))
    session = SimpleNamespace(options=SimpleNamespace(seeds=1, budget_s=60.0), cycle=Cycle(), discard=lambda arm: None)
    with_cycle = []

    def measured(session: Any, incumbent: Any, candidate: Any, question: Any) -> Trial:
        with_cycle.append(session.cycle.steps)
        return Trial("check", {}, statuses[len(with_cycle) - 1])

    monkeypatch.setattr(lap_check, "measure", measured)
    monkeypatch.setattr(Launches, "go_on", lambda *given: None)
    statuses = ["measured", "measured"]
    lap_check._measured(session, lambda label, launch: arm)  # type: ignore[arg-type, return-value]
    assert with_cycle == [1, 20]
    with_cycle.clear()
    session.cycle, statuses = Cycle(), ["measured", "failed"]
    found = lap_check._measured(session, lambda label, launch: arm)  # type: ignore[arg-type, return-value]
    assert with_cycle == [1, 20] and found.status == "measured" and session.cycle == Cycle(), "too short for whole ones"


@pytest.mark.flaky(reruns=2)  # one launch of each, on whatever machine this is
@pytest.mark.skipif(sandbox.available() == "none", reason="this system allows no sandbox for trials")
def test_a_slower_working_tree_is_refuted(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(repository / ".hotlap-summary"))
    before = (repository / ".git" / "HEAD").read_text()
    options = ["--against", "main", "--launches", "1", "--budget", "10s", "--junit", "../j.xml", "--json", "../c.json"]
    code = main(["check", *options, "--", sys.executable, "train.py"])
    printed = capsys.readouterr()
    assert code == 1, printed.err
    assert (repository.parent / "c.json").exists(), printed.err
    found = loads(Check, (repository.parent / "c.json").read_text())
    assert (found.verdict, found.changed) == ("refuted", 1) and found.trial.interval is not None
    assert 0.25 < found.trial.interval.ratio < 0.5 and found.seen_from_frac > 0.2, "one launch says little"
    assert printed.out.startswith("::error title=hotlap check::Slower than the 5 %25 allowed: 0.")
    suite = xml.parse(repository.parent / "j.xml").getroot()
    assert suite.get("failures") == "1" and suite.find("testcase/failure") is not None
    assert "hotlap check: refuted" in (repository / ".hotlap-summary").read_text()
    assert (repository / ".git" / "HEAD").read_text() == before
    assert (repository / "train.py").read_text().startswith("# slower"), "checked out in the sandbox alone"
    assert main(["report"]) == 0 and "refuted: slower than the 5 % allowed" in capsys.readouterr().out
    (page,) = (repository / ".hotlap").glob("*/report.html")
    assert "report: .hotlap/" in printed.err and "Slower than the 5 % allowed" in page.read_text()


def test_a_revision_that_is_not_there(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--against", "gone", "--", sys.executable, "train.py"]) == 2
    assert "There is no commit 'gone'" in capsys.readouterr().err
    assert main(["check", "--against=--output=x", "--", sys.executable, "train.py"]) == 2
    found = find_revision("main")
    assert len(found.commit) == 40 and found.changed == 1
    assert at_revision(["python", "a b.py"], found)[-3:] == [found.commit, "python", "a b.py"]
    assert not (repository / ".hotlap").exists()


def test_no_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(HotlapError, match="in no git repository"):
        find_revision("main")


def test_what_cannot_be_measured_is_an_error_of_the_junit_file_and_of_the_job(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(repository / "summary.md"))

    def fail(*_: object) -> Check:
        raise HotlapError("in the working tree, it <crashed>.")

    monkeypatch.setattr(command, "check", fail)
    assert main(["check", "--against", "main", "--junit", "j.xml", "--", sys.executable, "train.py"]) == 1
    error = xml.parse(repository / "j.xml").find("testcase/error")
    assert error is not None and "it <crashed>" in str(error.get("message"))
    assert capsys.readouterr().out == "::error title=hotlap check::In the working tree, it <crashed>.\n"
    assert "hotlap check: not measured" in (repository / "summary.md").read_text()


def test_a_summary_that_cannot_be_written_changes_no_verdict(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trial = Trial("check", {}, "measured", interval=Interval(1.0, 0.99, 1.01, 0.98, 4))
    found = Check("proved", 0.05, 0.02, "main", "1" * 40, 1, ["python", "train.py"], trial, MACHINE)
    monkeypatch.setattr(command, "check", lambda *_: found)
    monkeypatch.setattr(command, "publish", lambda *_: None)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(repository))
    assert main(["check", "--against", "main", "--", sys.executable, "train.py"]) == 0
    assert "cannot write the summary" in capsys.readouterr().err


def test_what_is_open_warns_and_fails_only_when_strict() -> None:
    trial = Trial("check", {}, "measured", interval=Interval(0.97, 0.9, 1.04, 0.98, 4))
    found = Check("not proved", 0.05, 0.12, "main", "1" * 40, 2, ["python", "train.py"], trial, MACHINE)
    assert check_words.annotation(found, strict=False).startswith("::warning ")
    assert check_words.annotation(found, strict=True).startswith("::error ")
    assert 'failures="0"' in check_words.junit(found, False, 1.0) and 'failures="1"' in check_words.junit(
        found, True, 1.0
    )
    told = check_words.lines(found)
    assert told[:2] == [
        "not proved: whether it is slower than the 5 % allowed is open",
        "0.97x [0.90, 1.04] the throughput of main (4 launches of each)",
    ]
    assert "a slowdown of 12 % is seen half of the time" in told[2]


def test_the_page_of_a_check_shows_the_verdict_the_windows_and_asks_nobody() -> None:
    windows = [Window(arm, n, 10, 80, 0.1 + 0.01 * n) for n, arm in enumerate(["baseline", "candidate"] * 3)]
    trial = Trial("check", {}, "measured", windows=windows, interval=Interval(0.97, 0.9, 1.04, 0.98, 4))
    command = ["python", "train<1>.py"]
    found = Check("not proved", 0.05, 0.12, "main", "1" * 40, 2, command, trial, MACHINE, notes=["<note>"])
    page = check_page.render(Report(machine=MACHINE, command=command, kind="check", check=found))
    for text in (
        "Whether it is slower than the 5 % allowed is open",
        "0.97x [0.90, 1.04]",
        "&lt;note&gt;",
        'class="least"',
    ):
        assert text in page, text
    assert page.count("<svg") == 3 and page.count('class="window ') == 6 and "train<1>" not in page
    assert "http" not in page.replace("http://www.w3.org", "")
    cut_off = check_page.render(Report(machine=MACHINE, command=command, kind="check", status="interrupted"))
    assert "This run was interrupted." in cut_off and "Nothing was compared." in cut_off
