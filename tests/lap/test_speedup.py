"""A whole lap on a small script that waits for its data: found, sped up, proved, kept, and nothing touched."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hotlap.diagnose.diagnose import TooFewSteps
from hotlap.lap import baseline
from hotlap.lap import speedup as module
from hotlap.lap.incumbent import Search
from hotlap.records.plan import Move
from hotlap.records.run_folder import RunFolder
from hotlap.records.trials import LeverResult, Trial
from hotlap.trial import sandbox

SLOW = """
import time, torch
from torch.utils.data import DataLoader, Dataset

class Clips(Dataset):
    def __len__(self):
        return 4000

    def __getitem__(self, index):
        time.sleep(0.003)
        return torch.full((16,), float(index % 7)), torch.tensor(float(index % 2))

def main():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    step = 0
    for epoch in range(100):
        for x, y in DataLoader(Clips(), batch_size=8):
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(x).squeeze(1), y)
            loss.backward()
            optimizer.step()
            step += 1
            if step % 100 == 0:
                torch.save(model.state_dict(), "model.pt")

if __name__ == "__main__":
    main()
"""


def tree(folder: Path) -> dict[str, str]:
    files = [p for p in folder.rglob("*") if p.is_file() and ".hotlap" not in p.parts]
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


@pytest.mark.parametrize("in_search", [True, False], ids=["in its search", "in its proof"])
def test_a_lap_that_is_cut_off_tells_what_it_tried(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, in_search: bool
) -> None:
    tried, trial = LeverResult("autocast", {}, "maths", 1.2, None, True, "faster"), Trial("autocast", {}, "measured")

    def found(session: Any, baseline: Any, state: Search, roof: Any) -> None:
        state.results.append(tried)
        state.trials.append(trial)
        state.moves += [Move("knob:option", {}, "bits"), Move("autocast", {}, "maths")]
        if in_search:
            raise KeyboardInterrupt

    def cut_off(*_: Any) -> None:
        raise KeyboardInterrupt

    outcome, folder = module.Outcome(), RunFolder(tmp_path)
    baseline = SimpleNamespace(arm="baseline", findings=SimpleNamespace(roof=None))
    monkeypatch.setattr(module, "Session", lambda *_: nullcontext(SimpleNamespace(folder=folder)))
    monkeypatch.setattr(module, "_examine", lambda *_: baseline)
    monkeypatch.setattr(module, "search", found)
    monkeypatch.setattr(module, "_conclude", cut_off)
    with pytest.raises(KeyboardInterrupt):
        module.speedup(cast(Any, None), cast(Any, None), folder, cast(Any, None), outcome)
    assert outcome.levers == [tried] and outcome.trials == [trial]
    (note,) = outcome.notes
    assert "with --only autocast tries just that" in note
    assert json.loads((tmp_path / "levers.json").read_text())


@pytest.mark.parametrize("enough", [True, False], ids=["enough steps", "too few"])
def test_a_first_run_that_is_cut_off_is_diagnosed_as_far_as_it_went(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, enough: bool
) -> None:
    def cut_off(*_: Any) -> None:
        raise KeyboardInterrupt

    def diagnosed(*_: Any) -> Any:
        if not enough:
            raise TooFewSteps("too few")
        return {"of": "what was seen"}

    outcome, folder = module.Outcome(), RunFolder(tmp_path)
    session = SimpleNamespace(folder=folder, arm=lambda name: name)
    monkeypatch.setattr(module, "Session", lambda *_: nullcontext(session))
    monkeypatch.setattr(module, "run_baseline", cut_off)
    monkeypatch.setattr(baseline, "rediagnose", diagnosed)
    with pytest.raises(KeyboardInterrupt):
        module.speedup(cast(Any, None), cast(Any, None), folder, cast(Any, None), outcome)
    written = tmp_path / "findings.json"
    if enough:
        assert outcome.findings == {"of": "what was seen"} == json.loads(written.read_text())
    else:
        assert outcome.findings is None and not written.exists()


@pytest.mark.flaky(reruns=1)  # measures a speedup, on whatever machine this is
@pytest.mark.timeout(300)
@pytest.mark.skipif(sandbox.available() == "none", reason="this system allows no sandbox for trials")
def test_a_whole_lap(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SLOW)
    (tmp_path / "model.pt").write_text("precious")
    before = tree(tmp_path)
    hotlap = [sys.executable, "-m", "hotlap"]
    options = [
        "--budget",
        "75s",
        "--only",
        "loader-workers",
        "--seeds",
        "1",
        "--json",
        "../out.json",
        "--plan",
        "../fast.yaml",
    ]
    (tmp_path.parent / "out.json").unlink(missing_ok=True)
    command = ["--", sys.executable, "train.py"]
    done = subprocess.run(
        [*hotlap, "speedup", *options, *command], cwd=tmp_path, capture_output=True, text=True, timeout=250
    )
    assert done.returncode == 0, done.stderr
    assert tree(tmp_path) == before
    result = json.loads((tmp_path.parent / "out.json").read_text())
    assert result["schema"] == "hotlap.speedup/1"
    kept = [lever for lever in result["levers"] if lever["kept"]]
    assert [lever["id"] for lever in kept] == ["loader-workers"], done.stderr
    assert result["speedup"]["ratio"] > 1.2, "its interval is as wide as this machine is restless"
    first = result["findings"][0]
    assert first["cause"] in ("too-few-workers", "augment")
    assert first["where"][0]["file"] == str(tmp_path / "train.py")
    assert 0 < result["roof"]["share"] < 0.8

    again = subprocess.run([*hotlap, "report"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert again.returncode == 0
    assert "loader-workers" in again.stdout
    assert list(tmp_path.glob(".hotlap/*/report.html"))

    short = SLOW.replace("range(100)", "range(1)").replace("return 4000", "return 400")
    (tmp_path / "train.py").write_text(short)
    run = subprocess.run(
        [*hotlap, "run", "--plan", "../fast.yaml", *command], cwd=tmp_path, capture_output=True, text=True, timeout=100
    )
    assert run.returncode == 0
    assert "the plan's move was applied" in run.stderr

    attached = tmp_path / "attached.py"
    attached.write_text('import hotlap; hotlap.attach("../fast.yaml")\n' + short)
    alone = subprocess.run([sys.executable, "attached.py"], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert alone.returncode == 0, alone.stderr
    assert alone.stdout == alone.stderr == ""
