"""What judges in power.py, kill.py, soak.py and fuzz.py: each has to be able to say that something is wrong."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import fuzz_targets
import kill
import kill_records
import numpy as np
import power
import pytest
import real_proofs
import soak
from kill_victims import VICTIMS
from power_noise import Noise, drawn_whole, launch_deviation
from power_quality import Case, false_rates
from power_trials import Setup, Simulated, one_lap
from scipy.special import stdtrit
from soak_timeline import Made

import ui
from hotlap.proof.speedup import pair_log_ratios
from hotlap.records.run_folder import ROOT
from hotlap.records.timeline import read_timeline
from hotlap.records.trials import Interval, Trial


def test_the_deviation_of_launches_comes_back_from_their_interval() -> None:
    half = float(stdtrit(3, 0.99)) * 0.02 / 2
    assert launch_deviation([[math.exp(-half), 1.0, math.exp(half)]], 0.98) == pytest.approx(0.02 / math.sqrt(2))


def test_a_lap_sees_what_is_large_and_claims_nothing_where_there_is_nothing() -> None:
    quiet = Noise("quiet", lambda g, n: 0.003 * g.standard_normal(n), 0.001)
    g = np.random.default_rng(1)
    large = [one_lap(Setup(quiet, 1.2), g) for _ in range(5)]
    equal = [one_lap(Setup(quiet, 1.0), g) for _ in range(5)]
    assert all(lap.kept and lap.claimed and lap.launches == 4 for lap in large)
    assert not any(lap.kept or lap.claimed for lap in equal)


def test_a_launch_that_is_drawn_whole_keeps_what_it_was_off_by() -> None:
    session = Simulated(Setup(Noise("real", drawn_whole([np.full(5, 0.02)]), 0.0, whole_launches=True, lost_frac=0.0),
                              truth=1.0), np.random.default_rng(3))  # fmt: skip
    seen: set[float] = set()
    for _ in range(20):
        session.launch()
        seen |= {round(ratio, 6) for ratio in pair_log_ratios(session.compare(9.0, False).windows, 0, 0)}
    assert seen == {-0.02, 0.02}, "in either direction, and never undone by the windows' own order"


def test_quality_far_beyond_its_margin_is_not_proved_and_equal_quality_is() -> None:
    rates = false_rates(Case("x", 4, 0.005, 0.001, True, 0.1), 10, np.random.default_rng(2))
    assert rates.false <= 2 and rates.true == 10


def test_a_torn_document_a_stray_file_and_a_changed_one_are_found(tmp_path: Path) -> None:
    run = tmp_path / ROOT / "20260101-run"
    run.mkdir(parents=True)
    (tmp_path / "train.py").write_text("1")
    before = kill_records.contents(tmp_path, ["train.py"])
    assert kill_records.unreadable(tmp_path) == [] and kill_records.strays(tmp_path, {ROOT, "train.py"}) == []
    (run / "run.json").write_text('{"kind": "ru')
    (tmp_path / ".fast.yaml.7.tmp").write_text("")
    (tmp_path / "train.py").write_text("2")
    assert "not valid JSON" in kill_records.unreadable(tmp_path)[0]
    assert kill_records.strays(tmp_path, {ROOT, "train.py"}) == [".fast.yaml.7.tmp"]
    assert kill_records.contents(tmp_path, ["train.py"]) != before


def test_a_frozen_process_is_found_by_its_mark() -> None:
    mark = f"test-{os.getpid()}"
    child = subprocess.Popen(["sleep", "60"], env={kill_records.MARK: mark, "PATH": os.environ["PATH"]})
    try:
        os.kill(child.pid, signal.SIGSTOP)
        until = time.monotonic() + 10
        while not (found := kill_records.alive(mark)) and time.monotonic() < until:
            time.sleep(0.01)
        assert found[0].startswith(f"{child.pid} (")
    finally:
        child.kill()
        child.wait()
    assert kill_records.alive(mark) == []


def test_growth_of_memory_is_told_from_none() -> None:
    g = np.random.default_rng(3)
    day = np.linspace(0, 1, 400)
    for growth, flat in ((0.0, True), (200.0, False)):
        found = soak.slope([(float(d), float((100 + growth * d + g.normal()) * 2**20)) for d in day])
        assert found.low <= growth <= found.high and found.flat is flat


def test_a_made_timeline_is_a_timeline_with_a_drift_in_it(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.advance(30.0)
    found = read_timeline(made.path)
    assert found is not None and found.n_steps == made.steps and 29.0 < made.made_s < 32.0
    assert all(sum(p or 0 for p in row.p) == row.w for row in found.step)


@pytest.mark.parametrize("name", fuzz_targets.TARGETS)
def test_what_is_fuzzed_takes_its_valid_inputs_and_lets_bugs_escape(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in fuzz_targets.SEEDS[name]:
        fuzz_targets.TARGETS[name](seed)

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    for reader in ("read_timeline", "parse_plan", "read_manifest", "parse_knobs", "loads"):
        monkeypatch.setattr(fuzz_targets, reader, broken)
    with pytest.raises(ZeroDivisionError):
        fuzz_targets.TARGETS[name](fuzz_targets.SEEDS[name][0])


def test_without_atheris_nothing_is_said_to_be_fuzzed(tmp_path: Path) -> None:
    hide = "import importlib.util as u; real = u.find_spec; "
    hide += "u.find_spec = lambda n, *a: None if n == 'atheris' else real(n, *a)"
    path = Path(fuzz_targets.__file__).with_name("fuzz.py")
    code = f"{hide}; import runpy, sys; sys.path.insert(0, {str(path.parent)!r}); sys.argv = ['fuzz.py']; "
    done = subprocess.run([sys.executable, "-c", code + f"runpy.run_path({str(path)!r}, run_name='__main__')"],
                          capture_output=True, text=True, check=False, cwd=tmp_path)  # fmt: skip
    assert done.returncode == 2 and "nothing was fuzzed" in done.stdout


def shares(false: float, seen: float, quality: float) -> dict[str, Any]:
    def found(share: float) -> dict[str, Any]:
        return {"share": share, "low": 0.0, "high": 1.0, "n": 100}

    equal = {"claimed by a lap": found(false), "claimed by a proof": found(false)}
    by_ratio = {"1": equal, "1.03": {"claimed by a proof": found(seen)}}
    arms = {"claimed by true ratio": {"1": found(false), "1.03": found(seen)}}
    return {
        "machines": {"quiet": {"by true ratio": by_ratio}},
        "equal_arms": {"healthy": arms},
        "quality": {"paired": {"false": found(quality)}},
    }


@pytest.mark.parametrize(("given", "short"), [((0.01, 0.9, 0.05), 0), ((0.02, 0.9, 0.05), 3), ((0.0, 0.8, 0.06), 3)])
def test_rates_that_fall_short_are_told(given: tuple[float, float, float], short: int) -> None:
    assert len(power.shortfalls(shares(*given))) == short


def test_real_proofs_are_kept_as_they_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claimed = Trial("power", {}, "measured", interval=Interval(1.04, 1.01, 1.07, launches=8))
    open_ = Trial("power", {}, "measured", interval=Interval(1.01, 0.98, 1.04, launches=18))
    failed = Trial("power", {}, "failed", reason="too few")
    coming = iter([open_, claimed, failed])
    monkeypatch.setattr(real_proofs, "compare_once", lambda products, folder: next(coming))
    file = tmp_path / "rows.jsonl"
    assert len(real_proofs.measured(1, file)) == 2
    with pytest.raises(StopIteration):  # cut off in the middle of the second round
        real_proofs.measured(1, file)
    rows = real_proofs.measured(0, file)
    equal, less = ([row for row in rows if row["case"] == case] for case in real_proofs.CASES)
    found = real_proofs.counted(equal)
    assert (found["n"], found["claimed"], found["failed"], found["launches"]) == (2, 0, 1, [18])
    assert real_proofs.counted(less)["claimed"] == 1 and equal[1]["why"] == "too few"


@pytest.mark.parametrize(("seconds", "code"), [(0.5, 0), (1.5, 1)])
def test_a_page_that_takes_too_long_fails(seconds: float, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    playwright = ModuleType("playwright.sync_api")
    playwright.sync_playwright = MagicMock()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "playwright", ModuleType("playwright"))
    monkeypatch.setitem(sys.modules, "playwright.sync_api", playwright)
    monkeypatch.setattr(ui.shutil, "which", lambda name: name)
    monkeypatch.setattr(ui, "made", lambda root: 1)
    monkeypatch.setattr(ui, "round_s", lambda browser, root: (0.1, seconds))
    monkeypatch.setattr(sys, "argv", ["ui.py", "--rounds", "2"])
    assert ui.main() == code


@pytest.mark.parametrize(("code", "document", "fine"), [(1, True, True), (1, False, False), (2, True, False)])
def test_a_prove_that_is_broken_by_itself_is_no_victim(
    code: int, document: bool, fine: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(victim: object, folder: Path, mark: str) -> subprocess.Popen[bytes]:
        (folder.parent / "out.txt").write_text("no plan")
        (folder / ROOT / "a").mkdir(parents=True)
        if document:
            (folder / ROOT / "a" / "proof.json").touch()
        return subprocess.Popen([sys.executable, "-c", f"raise SystemExit({code})"])

    monkeypatch.setattr(kill, "_start", start)
    (prove,) = (victim for victim in VICTIMS if victim.name == "prove")
    if fine:
        assert kill.undisturbed(prove, tmp_path / "rows.npy") > 0
    else:
        with pytest.raises(RuntimeError, match="prove fails by itself: no plan"):
            kill.undisturbed(prove, tmp_path / "rows.npy")
