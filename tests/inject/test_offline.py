"""A trial's runs and models go nowhere, whatever the script's own arguments say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hotlap.inject import door
from hotlap.records.call import Call

STEP = """
import torch
weight = torch.nn.Parameter(torch.ones(4))
optimizer = torch.optim.SGD([weight], lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    weight.sum().backward()
    optimizer.step()
"""


def printed(tmp_path: Path, source: str, *, offline: bool = True, step: str = "") -> list[str]:
    """What a trial of ``step`` and ``source`` prints; without a step it needs no torch, whose import takes seconds."""
    script, timelines = tmp_path / "train.py", tmp_path / "timelines"
    timelines.mkdir(parents=True)
    script.write_text(step + source)
    env = door.environment(Call(timeline_dir=str(timelines), mode="trial", offline=offline))
    done = subprocess.run(
        [sys.executable, str(script)], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    assert not list(timelines.glob("*.error"))
    return done.stdout.split()


def test_wandb_told_to_be_online(tmp_path: Path) -> None:
    pytest.importorskip("wandb")
    source = """
import os
import wandb
for how in ({"mode": "online"}, {"settings": wandb.Settings(mode="online")}, {}, {"mode": "disabled"}):
    run = wandb.init(project="p", dir=os.getcwd(), **how)
    print(run.settings.mode)
    run.finish()
"""
    assert printed(tmp_path, source) == ["offline", "offline", "offline", "disabled"]


def test_mlflow_sent_to_a_server(tmp_path: Path) -> None:
    pytest.importorskip("mlflow")
    source = """
import mlflow
for uri in ("http://127.0.0.1:9/", "databricks", "file:/tmp/mine"):
    mlflow.set_tracking_uri(uri)
    print(mlflow.get_tracking_uri())
    print(mlflow.MlflowClient(uri).tracking_uri)
"""
    mine, local = "file:/tmp/mine", "file:/tmp/hotlap-mlruns"
    assert printed(tmp_path, source) == [local] * 4 + [mine] * 2


def test_mlflow_in_a_file_of_the_users_stays_what_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "import os\nprint(os.environ.get('MLFLOW_TRACKING_URI'))"
    for given, seen in [("sqlite:///a.db", "sqlite:///a.db"), ("https://host", "file:/tmp/hotlap-mlruns")]:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", given)
        assert printed(tmp_path / given[:5], source) == [seen]
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    assert printed(tmp_path / "unset", source) == ["None"]


@pytest.mark.parametrize("step", [pytest.param(STEP, id="after torch", marks=pytest.mark.cousin), ""])
def test_addresses_that_the_script_puts_into_its_environment(tmp_path: Path, step: str) -> None:
    pytest.importorskip("mlflow")
    source = """
import os
os.environ["MLFLOW_TRACKING_URI"] = os.environ["MLFLOW_REGISTRY_URI"] = "http://127.0.0.1:9/"
import mlflow
print(mlflow.get_tracking_uri(), mlflow.MlflowClient().tracking_uri, mlflow.get_registry_uri())
"""
    assert printed(tmp_path, source, step=step) == ["file:/tmp/hotlap-mlruns"] * 3


@pytest.mark.parametrize("step", [pytest.param(STEP, id="after torch", marks=pytest.mark.cousin), ""])
def test_wandb_by_variable(tmp_path: Path, step: str) -> None:
    pytest.importorskip("wandb")
    source = """
import os
import wandb
for mode in ("online", "disabled"):
    os.environ["WANDB_MODE"] = mode
    run = wandb.init(project="p", dir=os.getcwd())
    print(run.settings.mode)
    run.finish()
"""
    assert printed(tmp_path, source, step=step) == ["offline", "disabled"]


def test_a_version_with_other_names_is_imported_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "wandb.py").write_text("started = True")
    assert printed(tmp_path, "import wandb\nprint(wandb.started)") == ["True"]


def test_models_are_not_pushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("huggingface_hub")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    source = """
from huggingface_hub import HfApi, create_repo, upload_file
print(create_repo("me/model", exist_ok=True).repo_id, HfApi().create_repo(repo_id="model").repo_name)
print(upload_file(path_or_fileobj=b"", path_in_repo="x", repo_id="me/model").oid)
job = HfApi().upload_folder(repo_id="me/model", folder_path=".", run_as_future=True)
print(job.done(), job.result().oid)
print(HfApi().preupload_lfs_files("me/model", additions=[]))
"""
    assert printed(tmp_path, source) == ["me/model", "model", "0" * 40, "True", "0" * 40, "None"]


def test_outside_trials_nothing_is_replaced(tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    source = "from huggingface_hub import HfApi\nprint(HfApi.upload_folder.__module__)"
    assert printed(tmp_path, source, offline=False) == ["huggingface_hub.hf_api"]
