"""A run keeps to its data: it is judged by those it was trained on, and goes on with no others."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from toy import losses, trainer

from hotlap_workloads import evaluate, train
from hotlap_workloads.anti_spoof import produce_evaluation_file
from hotlap_workloads.anti_spoof.made_data import make_data
from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.errors import SettingsError
from hotlap_workloads.session import Request, data_of_run

SMALL = {"model": "SEResNet18", "width": "0.5", "bands": "16", "samples": "8000", "batch_size": "8", "max_steps": "1"}
TINY = [f"--set={key}={value}" for key, value in SMALL.items()]
TOY = EngineSettings(epochs=3, batch_size=8, print_every_steps=1, max_steps=2)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A set as others make it, with few of its recordings in the protocols."""
    folder = make_data(tmp_path_factory.mktemp("spoof") / "LA")
    for name in ("train.trn", "dev.trl", "eval.trl"):
        file = folder / f"protocols/MADE.cm.{name}.txt"
        file.write_text("\n".join(file.read_text().splitlines()[:24]) + "\n")
    return folder


def test_a_run_is_judged_by_the_data_it_was_trained_on(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever the command that judges it runs, and by no made ones where they are gone."""
    shutil.copytree(data, tmp_path / "LA")
    out = str(tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    assert train.main(["anti_spoof", "--data", "LA", "--out", out, *TINY]) == 0
    monkeypatch.chdir("/")
    said = []
    for named in ([], ["--data", str(tmp_path / "LA")]):
        capsys.readouterr()
        assert evaluate.main(["anti_spoof", "--out", out, *named]) == 0
        said.append(json.loads(capsys.readouterr().out))
    assert said[0] == said[1]
    assert produce_evaluation_file.main(["--out", out, "--part", "dev"]) == 0
    assert len((tmp_path / "run/eval_scores.txt").read_text().splitlines()) == 24
    (tmp_path / "LA").rename(tmp_path / "elsewhere")
    kept = (tmp_path / "run/eval_scores.txt").read_bytes()
    for command in (["anti_spoof", "--out", out], ["--out", out]):
        main = evaluate.main if len(command) == 3 else produce_evaluation_file.main
        assert main(command) == 2
        assert f"was trained on {tmp_path}/LA, which is not there: name it with --data." in capsys.readouterr().err
    assert not (tmp_path / "run/made_data").exists() and (tmp_path / "run/eval_scores.txt").read_bytes() == kept
    assert evaluate.main(["anti_spoof", "--out", out, "--set", f"database={tmp_path}/elsewhere"]) == 0


def test_made_data_are_for_runs_that_made_them(tmp_path: Path) -> None:
    """A run of before does not say what it was trained on, but a set that it made is there."""
    settings, request = tmp_path / "settings.json", Request("anti_spoof", tmp_path)
    settings.write_text('{"workload": "anti_spoof", "data": null}')
    assert data_of_run(request) is None
    settings.write_text('{"workload": "anti_spoof"}')
    with pytest.raises(SettingsError, match=r"does not say what the run was trained on\. Name it with --data"):
        data_of_run(request)
    assert data_of_run(replace(request, data=tmp_path)) == tmp_path
    (tmp_path / "made_data").mkdir()
    assert data_of_run(request) is None
    (tmp_path / "made_data").rmdir()
    settings.write_text('{"workload": "anti_spoof", "database": "LA"}')
    assert data_of_run(request) is None, "which is a setting, and names them"


def test_a_run_of_other_data_is_not_gone_on_with(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["anti_spoof", "--out", str(tmp_path), *TINY]
    assert train.main(command) == 0
    kept = (tmp_path / "settings.json").read_bytes()
    for named in (["--data", str(data)], [f"--set=database={data}"]):
        capsys.readouterr()
        assert train.main([*command, *named]) == 2
        said = f"is of a training on data made here (96 samples), and this one is on {data} (24 samples). Go on with"
        assert said in capsys.readouterr().err
    assert (tmp_path / "settings.json").read_bytes() == kept


def gone_on(out: Path, rows: int, folder: Path | None, quarantine: bool = False) -> list[str]:
    """What a training of the toy says that goes on with so many rows of that folder."""
    made = trainer(out, TOY)
    made.task.train_set.rows = rows
    made.context = replace(made.context, data=folder, quarantine=quarantine)
    made.run()
    return list(made.lines)


def test_only_what_quarantine_leaves_out_may_be_missing(tmp_path: Path) -> None:
    """The same data at another place are named and gone on with; of other rows, batches would be others."""
    here, there = Path("here").absolute(), Path("there").absolute()
    gone_on(tmp_path, 48, here)
    with pytest.raises(SettingsError, match=re.escape(f"on {here} (48 samples), and this one is on {here} (47 sam")):
        gone_on(tmp_path, 47, here)
    assert "Going on after step 2." in gone_on(tmp_path, 47, here, quarantine=True)
    with pytest.raises(SettingsError, match=re.escape(f"and this one is on {there} (46 samples)")):
        gone_on(tmp_path, 46, there, quarantine=True)
    assert f"Trained on {here} so far, and on {there} from here on." in gone_on(tmp_path, 47, there)
    with pytest.raises(SettingsError, match=re.escape(f"on {there} (47 samples), and this one is on data made here")):
        gone_on(tmp_path, 47, None)
    assert sorted(losses(tmp_path)) == [1, 2]
