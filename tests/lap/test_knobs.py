"""The user's knobs in the search: which can be tried, when, and how a better value takes the place of a good one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from hotlap.lap import measure as measuring
from hotlap.lap import search as module
from hotlap.lap.incumbent import Search
from hotlap.lap.knobs import keep_move, usable
from hotlap.lap.measure import Question
from hotlap.lap.options import Options, Silent
from hotlap.lap.prove import _told_in_samples
from hotlap.lap.session import Session
from hotlap.lever.contract import Gain
from hotlap.plan.choose import choose
from hotlap.plan.file import load_plan
from hotlap.plan.knobs import parse_knobs
from hotlap.plan.match import Candidate
from hotlap.proof.equal_samples import Equal
from hotlap.proof.speedup import LEVEL, STEERING_LEVEL
from hotlap.records.errors import HotlapError
from hotlap.records.findings import Findings
from hotlap.records.knob import Knob
from hotlap.records.plan import Move
from hotlap.records.proof import Proof, Quality
from hotlap.records.run_folder import RunFolder
from hotlap.records.trials import Interval, LeverResult, Trial, Window
from hotlap.testing.lever_kit import machine_of
from hotlap.trial import sandbox
from hotlap.trial.budget import Budget
from hotlap.trial.pauses import Cycle
from hotlap.trial.periodic import PeriodicStats
from hotlap.trial.single import run_until

BATCH = Knob("batch", ("32", "36"), option="--batch-size", present="24")
VAL = Knob("val", (2,), file="config.yaml", key="test_interval", present=1)


class Stub:
    """What :func:`usable` and the ordering look at, of a session and of findings."""

    def __init__(self, **facts: Any) -> None:
        self.__dict__.update(facts)


def session(sandbox: object = True) -> Session:
    options = Options(["python", "train.py"], knobs=(BATCH, VAL))
    lap = Stub(options=options, sandbox=sandbox, machine=None, left_s=lambda share: 100.0, lendable_s=lambda to: 0.0)
    return cast(Session, lap)


def findings(samples_per_s: float | None) -> Findings:
    return cast(Findings, Stub(throughput=Stub(samples_per_s=samples_per_s)))


def test_which_knobs_can_be_tried() -> None:
    assert usable(session(), findings(100.0)) == ([BATCH, VAL], [])
    found, refused = usable(session(sandbox=None), findings(100.0))
    assert found == [BATCH] and refused[0][0] == "knob:val" and "without a sandbox config.yaml" in refused[0][1]
    found, refused = usable(session(), findings(None))
    assert found == [] and [name for name, _ in refused] == ["knob:batch", "knob:val"]
    assert all("samples of a step are not known" in why for _, why in refused)


def test_a_lever_that_promises_much_goes_before_knobs_and_a_small_one_after(monkeypatch: pytest.MonkeyPatch) -> None:
    levers = [
        Candidate(name, {}, "bits", "", ratio, Gain(0, 0, "prior")) for name, ratio in (("big", 2), ("small", 1.05))
    ]
    monkeypatch.setattr(module, "candidates", lambda *_: levers)
    state = Search(cast(Any, None), findings(100.0))
    assert [c.lever for c in module._promising(session(), state, [BATCH, VAL])] == [
        "big", "knob:batch", "knob:val", "small",
    ]  # fmt: skip


def test_a_better_value_takes_the_place_of_a_good_one() -> None:
    first, second = (Move(BATCH.id, BATCH.setting(value), "goal") for value in BATCH.values)
    other = Move("autocast", {}, "maths", 1.5, 1.4, 1.6)
    results = [LeverResult(BATCH.id, first.setting, "goal", None, None, True, "1.20x", 10.0, 1.2)]
    moves = keep_move([], [], first, Interval(1.2, 1.1, 1.3))
    moves = keep_move([*moves, other], results, second, Interval(1.1, 1.05, 1.2))
    assert [m.lever for m in moves] == ["autocast", "knob:batch"]
    kept = moves[1]
    assert kept.setting == {"option": "--batch-size", "value": "36"}
    assert (kept.gain, kept.low, kept.high) == pytest.approx((1.32, 1.155, 1.56))
    assert not results[0].kept and results[0].reason == "1.20x: it paid, and 36 paid more"


def test_an_arm_gets_the_options_and_its_own_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_bytes(b"a: 0\r\ntest_interval: 1\r\n")
    options = Options(["python", "train.py"], sandbox=False, knobs=(BATCH, VAL))
    moves = [Move(BATCH.id, BATCH.setting("32"), "goal"), Move(VAL.id, VAL.setting(2), "goal")]
    with Session(options, machine_of(), RunFolder.create("train.py", None), Silent()) as lap:
        arm = lap.arm("a", moves=moves[:1])
        assert arm.spec.command == ["python", "train.py", "--batch-size", "32"]
        assert '"moves": []' in (arm.spec.timeline_dir / "call.json").read_text().replace('"moves":[]', '"moves": []')
        with pytest.raises(HotlapError, match=r"without a sandbox\. Leave --no-sandbox or that knob away"):
            lap.arm("b", moves=moves)
        lap.sandbox = cast(Any, Stub(clean=lambda: None))
        replaced = lap.arm("c", moves=moves).spec.replaced
        assert list(replaced) == [tmp_path / "config.yaml"]
        assert replaced[tmp_path / "config.yaml"].read_bytes() == b"a: 0\r\ntest_interval: 2\r\n"
    assert (tmp_path / "config.yaml").read_bytes() == b"a: 0\r\ntest_interval: 1\r\n"


def measured(monkeypatch: pytest.MonkeyPatch, samples: int, per_sample: bool, whole: bool = False) -> Trial:
    """A comparison of steps of 8 samples in 0.2 s against steps of ``samples`` in 0.4 s."""
    turns = [("baseline", 8, 0.2), ("candidate", samples, 0.4)] * 5
    windows = [Window(arm, i, 10, 10 * n, s) for i, (arm, n, s) in enumerate(turns)]
    periodic = PeriodicStats({"baseline": {}, "candidate": {}}, {}, {}, per_sample={"baseline": {}, "candidate": {}})

    def compare(incumbent: Any, candidate: Any, budget: Any, interval: Any, on_progress: Any) -> Trial:
        found = interval(windows, periodic)
        return Trial("x", {}, "measured" if found else "failed", "too few", found, windows)

    monkeypatch.setattr(measuring, "compare", compare)
    options, folder = Options(["python", "train.py"]), Stub(write=lambda *_: None)
    facts = Stub(on_progress=None, folder=folder, options=options, cycle=Cycle(), left_s=lambda share: 100.0,
                 machine=machine_of(), one_at_a_time=False, step_s=0.0)  # fmt: skip
    lap = cast(Session, facts)
    arm = cast(Any, Stub(spec=Stub(lever=None, name="a"), poll=lambda: None))
    return measuring.measure(lap, arm, arm, Question("knob:batch", 5.0, per_sample=per_sample, whole=whole))


def test_a_trial_of_a_knob_is_in_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = measured(monkeypatch, 32, per_sample=True)
    assert wide.interval is not None and wide.interval.ratio == pytest.approx(2.0)
    steps = measured(monkeypatch, 32, per_sample=False)
    assert steps.interval is not None and steps.interval.ratio == pytest.approx(0.5)


@pytest.mark.parametrize("per_sample", [True, False])
def test_a_search_is_steered_at_a_lower_level_than_claims_have(
    monkeypatch: pytest.MonkeyPatch, per_sample: bool
) -> None:
    steering, claim = (measured(monkeypatch, 32, per_sample, whole).interval for whole in (False, True))
    assert steering is not None and claim is not None
    assert (steering.level, claim.level) == (STEERING_LEVEL, LEVEL) and claim.low < steering.low


def test_a_trial_that_cannot_count_samples_is_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    found = measured(monkeypatch, 0, per_sample=True)
    assert found.status == "refused" and "samples of its steps are not known" in found.reason
    assert choose(found).reason.startswith("refused: the samples")


def test_the_proof_says_how_losses_were_compared_or_why_they_were_not() -> None:
    proof = Proof(None, Quality("proved", "non-inferior", "Quality proved.", 0.0), True)
    assert _told_in_samples(proof, Equal({}, 32)).quality == Quality(
        "proved",
        "non-inferior",
        "Quality proved. Losses were compared at equal samples: a step stands for 32 of them.",
        0.0,
    )
    refused = _told_in_samples(proof, Equal({}, problem="its loss is odd")).quality
    assert (refused.verdict, refused.summary) == ("not proved", "Quality not proved: its loss is odd.")


SCRIPT = """
import argparse, time, torch
from pathlib import Path
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=8)
batch_size = parser.parse_args().batch_size
pause = float(Path("config.yaml").read_text().split(": ")[1])
Path("config.yaml").write_text("spoiled")  # by a trial, in its sandbox
print("pause", pause, flush=True)
torch.manual_seed(0)
x = torch.randn(4000, 16)
data = TensorDataset(x, x.sum(1) + torch.randn(4000))
model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
for epoch in range(10_000):
    for inputs, targets in DataLoader(data, batch_size=batch_size, shuffle=True):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs).squeeze(1), targets).backward()
        time.sleep(pause)
        optimizer.step()
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "config.yaml").write_text("pause: 0.02\n")
    return tmp_path


@pytest.mark.skipif(sandbox.available() == "none", reason="this system allows no sandbox for trials")
def test_an_arm_reads_its_own_configuration_and_trains_on_its_own_batches(script: Path) -> None:
    command = [sys.executable, "train.py"]
    batch, pause = parse_knobs(["batch=--batch-size {32}", "pause=pause={0.03}@config.yaml"], command)
    moves = [Move(knob.id, knob.setting(knob.values[0]), "goal") for knob in (batch, pause)]
    with Session(Options(command), machine_of(), RunFolder.create("train.py", None), Silent()) as lap:
        for arm, shown, samples in ((lap.arm("plain"), "0.02", 8), (lap.arm("turned", moves=moves), "0.03", 32)):
            assert run_until(arm, Budget(first_step_s=60.0), steps=5).status == "enough"
            assert arm.spec.output.read_text() == f"pause {shown}\n"
            assert {row.s for run in arm.trainers() for row in run.steps} == {samples}
            arm.stop()
    assert (script / "config.yaml").read_text() == "pause: 0.02\n"


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(sandbox.available() == "none", reason="this system allows no sandbox for trials")
@pytest.mark.skipif(os.environ.get("HOTLAP_LAPS") != "all", reason="two minutes: runs with HOTLAP_LAPS=all")
def test_a_lap_finds_the_larger_batch(script: Path) -> None:
    hotlap = [sys.executable, "-m", "hotlap"]
    options = ["--budget", "150s", "--no-confirm", "--seeds", "1", "--json", "out.json", "--allow", "goal"]
    knob = ["--knob", "batch=--batch-size {8,32}", "--only", "knob:batch"]
    command = ["--", sys.executable, "train.py", "--batch-size", "8"]
    done = subprocess.run([*hotlap, "speedup", *options, *knob, *command], capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr
    told = json.loads((script / "out.json").read_text())
    (lever,) = told["levers"]
    assert lever["kept"] and lever["setting"] == {"option": "--batch-size", "value": "32"}, done.stderr
    assert (lever["preserves"], lever["predicted"]) == ("goal", None)
    assert told["claimed"] and told["speedup"]["ratio"] > 1.5  # four times the samples for a little more time
    assert "compared at equal samples: a step stands for 32" in told["quality"]["summary"]
    assert told["quality"]["verdict"] != "refuted"  # nothing is learned at such a rate: the losses are the same
    assert load_plan(script / "fast.yaml").moves[0].setting == lever["setting"]
    assert (script / "config.yaml").read_text() == "pause: 0.02\n"
