"""What is shown of a proof over seeds: the terminal, the page, the progress line, and it read back from its folder."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from hotlap.records.machine import Machine
from hotlap.records.plan import Move, Plan
from hotlap.records.proof import Quality
from hotlap.records.run import RunRecord
from hotlap.records.run_folder import RunFolder
from hotlap.records.seed_proof import ArmRun, MetricQuality, SeedProof, SeedRuns, Stop, TimeToQuality
from hotlap.records.trials import Interval, Window
from hotlap.report import seed_page, seed_terminal, seed_words, units
from hotlap.report.saved import load_report
from hotlap.report.view import Report

MACHINE = Machine("Linux", "a <CPU>", 2, 8 << 30, 4 << 30, [], "3.11", "2.13")
LOSSES: list[float | None] = [3.0, 2.0, 1.0]


def arm(run_s: float, **more: object) -> ArmRun:
    whole = ArmRun("finished", "", 0, 3, run_s, 1.0, [1, 2, 3], [1.0, 2.0, run_s], [4] * 3, LOSSES, metric=5.0)
    return replace(whole, **more)  # type: ignore[arg-type]


def proof(**more: object) -> SeedProof:
    turns = [Window(label, n, 3, 12, 0.2 + n / 100) for n, label in enumerate(("baseline", "candidate") * 2)]
    seeds = [SeedRuns(seed, ["python", "train.py", str(seed)], "baseline", True, arm(40.0), arm(20.0), turns)
             for seed in (1, 2, 3)]  # fmt: skip
    speed = Interval(2.0, 1.9, 2.1, 0.98, 3)
    bits = Quality("proved", "bits", "Losses are equal bit for bit over 3 steps.", 0.0, 0.0, 0.0, seeds=3, steps=3)
    whole = SeedProof(
        "proved", speed, "whole run", None, "proved", bits, None, None, [], ["python", "train.py", "{seed}"], "command",
        Plan([Move("gc-freeze", {}, "bits")]), "bits", MACHINE, 3, Stop(), seeds,
    )  # fmt: skip
    return replace(whole, **more)  # type: ignore[arg-type]


def report(found: SeedProof | None, status: str = "finished") -> Report:
    return Report(
        machine=MACHINE, kind="prove", command=["python", "train.py", "{seed}"], plan_path="my fast.yaml",
        status=status, seed_proof=found,
    )  # fmt: skip


def printed(found: Report, width: int = 110) -> str:
    out = io.StringIO()
    Console(file=out, width=width, highlight=False).print(seed_terminal.seeds(found))
    return out.getvalue()


def test_the_terminal_says_the_verdict_the_numbers_and_what_to_type() -> None:
    text = printed(report(proof()))
    assert "3 seeds · both arms side by side · whole runs" in text
    assert "proved · 2.0x faster [1.9, 2.1] (whole runs, 3 seeds)" in text and "equal bits" in text
    assert "Losses are equal bit for bit over 3 steps in 3 seeds" in text
    assert "hotlap run --plan 'my fast.yaml' -- python train.py 1" in text
    assert max(map(len, printed(report(proof()), 60).splitlines())) <= 60


def test_seconds_and_ratios_of_stopped_runs_are_those_of_the_verdict() -> None:
    """Both from the first step on: a start-up of 38 s beside 2 s of steps would make the table say something else."""
    one, other = (arm(s, status="stopped", first_step_s=38.0) for s in (42.0, 40.0))
    cut = SeedRuns(1, ["python"], "baseline", True, one, other)
    text = printed(report(proof(seeds=[cut], speedup_of="after the first step")))
    assert "seconds after the first step" in text and "42" not in text
    assert re.search(r"4\.00? s +2\.00? s +2\.00x", text), text


def test_what_is_not_proved_says_what_would_decide_it() -> None:
    some = Interval(1.02, 0.98, 1.06, 0.98, 3)
    open_ = proof(
        verdict="not proved", speed_verdict="not proved", speedup=some, more=["Do."], notes=["A note.", "| out"]
    )
    text = printed(report(open_))
    assert "not proved (speed) · no speedup claimed, 1.02x [0.98, 1.06]" in text
    assert "to decide it: Do." in text and "note: A note." in text and "\n   | out" in text
    assert "keep it" not in text


def test_metric_and_time_to_quality() -> None:
    metric = MetricQuality("EER", True, "not proved", "Too few.", [5.0], [5.5], 0.1, 0.2, 0.02)
    sooner = TimeToQuality("the loss that was asked for", [0.3], [40.0], [20.0], Interval(2.0, 1.8, 2.2), "proved")
    judged = Quality("not proved", "non-inferior", "Too few seeds.", 0.01, 0.03, 0.02, seeds=3, steps=30)
    lines = seed_words.proof_lines(proof(metric=metric, time_to_quality=sooner, quality=judged))
    assert lines[0] == "proved · the loss that was asked for 2.0x sooner [1.8, 2.2]"
    assert lines[1] == "whole run: 2.0x faster [1.9, 2.1]"
    assert lines[-1] == "metric not proved: 5.00 → 5.50, +10 % worse, at most +20 % (margin 2 %)"
    assert seed_words.proof_lines(proof(metric=metric))[-1] == "metric 5.00 → 5.50", "equal bits say it all"
    never = replace(sooner, candidate_s=[None], interval=None)
    assert "was reached in 0 of 1 runs with the plan" in seed_words.headline(proof(time_to_quality=never))


def test_one_line_per_seed_while_it_goes() -> None:
    assert seed_words.seed_line(proof()) == "  seed 3: 40.0 s → 20.0 s, 2.00x · 3 steps · equal bits"
    broken = SeedRuns(4, [], "baseline", True, arm(40.0), arm(9.0, status="failed", steps=1))
    assert seed_words.seed_line(proof(seeds=[broken])).startswith(
        f"  seed 4: 40.0 s → failed, {units.NONE} · 3 / 1 steps"
    )


def test_a_run_that_was_cut_off() -> None:
    assert "was interrupted before its first seed ended" in printed(report(None, "interrupted"))
    assert "was interrupted after 3 of 5 seeds" in printed(report(proof(asked_seeds=5), "interrupted"))
    assert "This run was interrupted." in seed_page.render(report(None, "interrupted"))


def test_the_page_shows_seeds_curves_and_the_machine_and_asks_nobody() -> None:
    page = seed_page.render(report(proof()))
    assert page.count("<svg") >= 3 and "a &lt;CPU&gt;" in page and "lever: gc-freeze" in page
    assert "http" not in page.replace("http://www.w3.org", "")


def test_it_is_read_back_from_its_folder(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write("run.json", RunRecord("prove", ["python", "train.py"], "now", "finished", plan_path="fast.yaml"))
    assert load_report(folder).seed_proof is None
    folder.write("proof.json", proof())
    found = load_report(folder)
    assert found.seed_proof == proof() and found.speedup == proof().speedup and found.proof is None
    (tmp_path / "proof.json").write_text('{"schema": "hotlap.prove/9"}')
    with pytest.raises(Exception, match="newer Hotlap"):
        load_report(folder)


def test_a_row_that_is_too_long_for_the_terminal_is_told_whole() -> None:
    runs = SeedRuns(1, ["python"], "baseline", True, arm(400.0, reached_s=395.2), arm(200.0, reached_s=195.1))
    found = report(proof(seeds=[runs], stop=Stop(loss=0.3)))
    words = "reached in 6 min 35 s → 3 min 15 s"
    for width in (80, 120):
        assert words in printed(found, width), width


def test_how_it_was_done_is_told_whole_on_a_narrow_terminal() -> None:
    found = report(proof(stop=Stop(loss=0.3), speedup_of="after the first step"))
    told = " ".join(printed(found, 60).split())
    assert "both arms side by side · until loss 0.300 · seconds after the first step" in told and "…" not in told


def test_a_script_with_an_exit_code_of_its_own_has_seconds_and_a_ratio() -> None:
    ended = {"status": "failed", "reason": "crashed with exit code 7", "exit_code": 7}
    runs = SeedRuns(1, ["python"], "baseline", True, arm(40.0, **ended), arm(20.0, **ended))
    assert seed_words.seed_cells(proof(), runs)[1:4] == ["40.0 s", "20.0 s", "2.00x"]
