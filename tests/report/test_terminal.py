"""Terminal output: what it says, and that it fits."""

from __future__ import annotations

import dataclasses
import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console
from tests.report import sample

from hotlap.records.causes import CAUSES
from hotlap.report import terminal, words
from hotlap.report.view import Report


def shown(report: Report, width: int = 80, terminal_: bool = False) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=terminal_, color_system="standard" if terminal_ else None)
    console.print(terminal.speedup(report) if report.is_speedup else terminal.diagnosis(report))
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 100, 120, 200])
@pytest.mark.parametrize("state", sample.STATES)
def test_every_state_fits(state: str, width: int) -> None:
    text = shown(sample.STATES[state](), width)
    assert text.strip()
    assert all(cell_len(line) <= min(width, 120) for line in text.splitlines())
    assert "\x1b" not in text
    assert "None" not in text and "nan" not in text.split()


def test_the_session_says_everything() -> None:
    text = shown(sample.speedup(), 120)
    for part in (
        "train.py · Intel Xeon",
        "212 samples/s · roof 1,904 · you are at 11 % of your roof",
        "62 %  decode",
        "SpeechSet",
        "train.py:48",
        "confirmed: 3.40x without loading",
        "+ cache-decode",
        "644     3.04x      34 %",
        "1.02x [0.98, 1.05]  put back",
        "ran out of memory after 14 steps",
        "6.9x faster [6.7, 7.2]",
        "same loss reached in 1/6.8 of the time",
        "hotlap run --plan fast.yaml -- python train.py --data clips",
        "drift: step time changed at step 400",
        "background-fetch, not tried: ",
    ):
        assert part in text or part in " ".join(text.split()), part


@pytest.mark.parametrize("width", [80, 120])
def test_the_longest_cause_is_told_whole_and_apart_from_its_detail(width: int) -> None:
    report = sample.speedup()
    assert report.findings is not None
    longest = max(CAUSES, key=len)
    finding = replace(report.findings.findings[0], cause=longest, detail="one process " * 20)
    report = replace(report, findings=replace(report.findings, findings=[finding]))
    text = shown(report, width)
    assert f" {longest} one process" in text
    assert all(cell_len(line) <= width for line in text.splitlines())


def test_whatever_the_reason_is_it_is_told_the_same_way() -> None:
    refused = [("pack-data", "By hand: train.py:48 reads them"), ("tf32", "This CPU has none.")]
    text = " ".join(shown(sample.speedup(refused=refused)).split())
    assert all(f"{lever}, not tried: {reason}" in text for lever, reason in refused)


def test_what_was_not_tried_names_files_from_the_scripts_folder() -> None:
    found = sample.findings()
    script = replace(found.script, name="/home/me/proj/train.py")
    refused = [("pack-data", "By hand: /home/me/proj/train.py:48 reads them")]
    text = shown(sample.speedup(findings=replace(found, script=script), refused=refused))
    assert "By hand: train.py:48 reads them" in text


def test_a_reason_that_levers_share_stands_once_below_the_last() -> None:
    shared = "2 levers together 2.69x [2.37, 3.06]: none was measured by itself"
    lot = [replace(lever, measured=None, kept=True, reason=shared) for lever in sample.levers()[:2]]
    text = shown(sample.speedup(levers=lot), 120)
    assert text.count(shared) == 1 and text.index(lot[1].id) < text.index(shared)


def test_columns_of_the_ladder_line_up() -> None:
    lines = shown(sample.speedup(), 80).splitlines()
    ends = {len(line) for line in lines if line.startswith((" + ", "   baseline")) or "put back" in line}
    assert ends == {80}


def test_a_path_is_cut_from_the_left_and_commands_are_never_cut() -> None:
    report = sample.long_paths()
    text = shown(report, 80)
    assert "…/train.py:123456" in text
    assert report.plan_path is not None
    assert report.plan_path in "".join(line.strip() for line in text.splitlines())


def test_a_cut_off_run_says_what_is_missing() -> None:
    text = " ".join(shown(sample.cut_off()).split())
    assert (
        "missing, since the run was interrupted: the machine's facts, the roof, lever trials, the proof, a plan" in text
    )


def test_no_claim_without_a_proof() -> None:
    for report in (sample.nothing_to_gain(), sample.failed_levers(), sample.absurd()):
        text = shown(report)
        assert "faster" not in text and "keep it" not in text


def test_a_plan_can_be_kept_in_three_ways() -> None:
    lines = [" ".join(line.split()) for line in shown(sample.speedup(), 120).splitlines()]
    at = lines.index("keep it: hotlap run --plan fast.yaml -- python train.py --data clips")
    assert lines[at + 1 : at + 3] == ["or: hotlap patch fast.yaml", 'or: import hotlap; hotlap.attach("fast.yaml")']
    elsewhere = shown(sample.speedup(run_path="/data/my runs/20261121-020000-train"), 120)
    assert "or: hotlap patch fast.yaml --runs '/data/my runs'" in elsewhere, "a patch needs the run"
    here = shown(sample.speedup(run_path=str(Path.cwd() / ".hotlap" / "20261121-020000-train")))
    assert "--runs" not in here


def test_colour_only_on_a_terminal_and_the_same_words() -> None:
    coloured = shown(sample.speedup(), 100, terminal_=True)
    assert "\x1b[" in coloured
    stripped = Console(file=io.StringIO(), width=100).render_str("")
    assert stripped.plain == ""
    import re

    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == shown(sample.speedup(), 100)


def test_files_are_named_from_the_scripts_folder() -> None:
    home = "/home/someone/project"
    there = [
        dataclasses.replace(f, where=[dataclasses.replace(w, file=f"{home}/{w.file}") for w in f.where])
        for f in sample.findings_list()
    ]
    script = dataclasses.replace(sample.findings().script, name=f"{home}/train.py")
    report = sample.speedup(findings=sample.findings(findings=there, script=script))
    text = shown(report, 100)
    assert home not in text and " train.py · " in text and "SpeechSet.__getitem__  train.py:48" in text


def test_settings_are_words() -> None:
    text = words.setting_text(
        {"max_bytes": 12355371008, "persistent": True, "pin": False, "mode": "default", "n": None}
    )
    assert text == "max 11.5 GiB, persistent, no pin, mode default, n null"
