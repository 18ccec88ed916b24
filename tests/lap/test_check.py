"""The working tree against a revision of it, in its place: of a script that writes a training's timeline itself."""

from __future__ import annotations

import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree as xml

import pytest

from hotlap.cli.commands import check as command
from hotlap.cli.main import main
from hotlap.lap import check as lap_check
from hotlap.lap.launches import Launches
from hotlap.lap.options import Options, Silent
from hotlap.lap.revision import at_revision, find_revision
from hotlap.records.call import Call
from hotlap.records.check import Check
from hotlap.records.codec import dumps, loads
from hotlap.records.errors import HotlapError
from hotlap.records.machine import Machine
from hotlap.records.plan import Move, Plan
from hotlap.records.proof import Quality
from hotlap.records.rows import PHASES, Step
from hotlap.records.run_folder import RunFolder
from hotlap.records.seed_proof import SeedProof, Stop
from hotlap.records.trials import NO_FIRST_STEP, NO_STEP, OF_BASELINE, TOO_FEW, Interval, Trial, Window
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
    session = SimpleNamespace(options=SimpleNamespace(seeds=1, budget_s=60.0), cycle=Cycle(), discard=lambda arm: None,
                              one_at_a_time=False, step_s=0.0)  # fmt: skip
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


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (
            f"{OF_BASELINE}hang: {NO_FIRST_STEP} 120 s",
            "could not attach to the script: `python train.py` was shut out.",
        ),
        (f"script {NO_STEP}", "could not attach to the script: `python train.py` was shut out."),
        ("crashed with exit code 1", "could not be compared: in the working tree, crashed with exit code 1."),
    ],
)
def test_a_script_that_hotlap_did_not_come_into(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, reason: str, told: str
) -> None:
    session = SimpleNamespace(not_watched=SimpleNamespace(reasons=["`python train.py` was shut out"]))
    monkeypatch.setattr(lap_check, "Session", lambda *_: nullcontext(session))
    monkeypatch.setattr(lap_check, "_measured", lambda *_: Trial("check", {}, "failed", reason))
    against: Any = SimpleNamespace(revision=SimpleNamespace(name="main"), plan=None)
    with pytest.raises(HotlapError) as caught:
        lap_check.check(Options(["python", "train.py"]), against, 0.05, MACHINE, RunFolder(tmp_path), Silent())
    assert caught.value.what.endswith(told)


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


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (f"script ended; 3 of 6 windows were dropped: neighbour load, so only 1 {TOO_FEW}", "a quieter machine"),
        (f"{OF_BASELINE}crashed with exit code 2: no such file", "at main, crashed with exit code 2: no such file."),
    ],
)
def test_why_the_two_could_not_be_compared(
    reason: str, words: str, repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measured(session: Any, incumbent: Any, candidate: Any, question: Any) -> Trial:
        launched.append(question)
        return Trial("check", {}, "failed", reason)

    launched: list[Any] = []
    monkeypatch.setattr(lap_check, "measure", measured)
    monkeypatch.setattr("hotlap.lap.launches.measure", measured)
    monkeypatch.setattr(sandbox, "available", lambda: "root")
    assert main(["check", "--against", "main", "--launches", "2", "--", sys.executable, "train.py"]) == 1
    assert words in " ".join(capsys.readouterr().err.split())
    assert len(launched) == (2 if TOO_FEW in reason else 1), "a later launch may be quieter"


def test_a_lever_that_is_not_there_is_named_with_its_place_in_the_proof(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = repository.parent / "proof.json"
    plan = Plan([Move("gc-freez", {}, "bits")])
    kept.write_text(dumps(proof(commit=find_revision("main").commit, plan=plan)))
    assert main(["check", "--baseline", str(kept), "--", sys.executable, "train.py"]) == 2
    assert f"{kept}: $.plan.moves[0].lever is 'gc-freez'" in " ".join(capsys.readouterr().err.split())


def proof(**more: object) -> SeedProof:
    plan = Plan([Move("gc-freeze", {"threshold": 50_000, "after_steps": 3}, "bits")])
    whole = SeedProof(
        "proved", Interval(2.0, 1.9, 2.1, 0.98, 3), "whole run", None, "proved", Quality("proved", "bits", ""),
        None, None, [], ["python", "train.py"], "offset", plan, "bits", MACHINE, 3, Stop(),
    )  # fmt: skip
    return replace(whole, **more)  # type: ignore[arg-type]


@pytest.mark.flaky(reruns=2)  # one launch of each, on whatever machine this is
@pytest.mark.skipif(sandbox.available() == "none", reason="this system allows no sandbox for trials")
def test_what_was_proved_is_the_baseline(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its commit beside the working tree, both with its plan, and the seed where the command takes one."""
    kept, script = repository.parent / "proof.json", repository / "train.py"
    kept.write_text(dumps(proof(commit=find_revision("main").commit, changed=["data.py"])))
    script.write_text(script.read_text().replace('"candidate_s", 0.01', '"candidate_s", 0.03'))
    options = ["--baseline", str(kept), "--launches", "1", "--budget", "10s", "--json", "../c.json"]
    assert main(["check", *options, "--", sys.executable, "train.py", "seed={seed}"]) == 1, capsys.readouterr().err
    found = loads(Check, (repository.parent / "c.json").read_text())
    assert (found.verdict, found.changed, found.plan) == ("refuted", 1, proof().plan)
    assert found.against.startswith("what proof.json proved (") and "data.py" in " ".join(found.notes)
    calls = [loads(Call, path.read_text()) for path in (repository / ".hotlap").glob("*/timelines/*/call.json")]
    assert len(calls) == 2 and all([m.lever for m in call.moves] == ["gc-freeze"] for call in calls)
    assert {call.seed_offset for call in calls} == {0}, "the command takes the seed"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (dumps(proof(commit=None)), "does not say on which commit"),
        (dumps(proof(commit="0" * 40)), "There is no commit '0000"),
        (dumps(proof(commit="0" * 40, verdict="not proved")), "it is not proved"),
        ('{"schema": "hotlap.proof/1"}', "its schema is 'hotlap.proof/1'"),
        ("[1]", "its schema is None"),
        ("{", "is not JSON"),
        ('{"schema": "hotlap.prove/1", "verdict": "maybe"}', "verdict"),
        (None, "Cannot read the proof"),
    ],
)
def test_what_is_no_baseline(text: str | None, says: str, repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = repository.parent / "proof.json"
    if text is not None:
        kept.write_text(text)
    assert main(["check", "--baseline", str(kept), "--", sys.executable, "train.py"]) == 2
    assert says in " ".join(capsys.readouterr().err.split())
    assert not (repository / ".hotlap").exists()


@pytest.mark.parametrize("words", [[], ["--against", "main", "--baseline", "p.json"]])
def test_one_of_both_is_named(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["check", *words, "--", sys.executable, "train.py"])
    assert end.value.code == 2
    assert "--against" in capsys.readouterr().err


def test_without_a_sandbox_nothing_is_checked_out_and_ci_is_told_how_to_allow_one(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sandbox, "available", lambda: "none")
    junit = repository.parent / "j.xml"
    assert main(["check", "--against", "main", "--junit", str(junit), "--", sys.executable, "train.py"]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "none can be made here" in said and "apparmor" in said and "--no-sandbox" not in said
    assert xml.parse(junit).getroot().get("errors") == "1"


def test_a_budget_that_was_named_is_not_lent_on(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Options] = []

    def stop(options: Options, *more: object) -> Check:
        seen.append(options)
        raise HotlapError("enough")

    monkeypatch.setattr(command, "check", stop)
    monkeypatch.setattr(sandbox, "available", lambda: "root")
    for words in ([], ["--budget", "60s"]):
        assert main(["check", "--against", "main", *words, "--", sys.executable, "train.py"]) == 1
    assert [(o.budget_s, o.budget_asked) for o in seen] == [(180.0, False), (60.0, True)]


def test_git_that_refuses_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git = tmp_path / "git"
    git.write_text("#!/bin/sh\necho \"fatal: detected dubious ownership in repository at '/w'\" >&2\nexit 128\n")
    git.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(HotlapError, match="detected dubious ownership"):
        find_revision("main")


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
