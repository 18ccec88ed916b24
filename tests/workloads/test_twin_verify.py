"""The whole training by its command line: presets, resume, ranks, bad images, optimize_data, real faces."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from hotlap_workloads import evaluate, train
from hotlap_workloads.engine.machine import Machine, check_machine
from hotlap_workloads.engine.optimise import for_global_batch
from hotlap_workloads.engine.ranks import Ranks
from hotlap_workloads.engine.task import Context
from hotlap_workloads.errors import SettingsError
from hotlap_workloads.session import Request, settings_of
from hotlap_workloads.twin_verify import optimize_data
from hotlap_workloads.twin_verify.made_data import make_data
from hotlap_workloads.twin_verify.optimized import read_optimized
from hotlap_workloads.twin_verify.presets import PRESETS
from hotlap_workloads.twin_verify.settings import TwinSettings
from hotlap_workloads.twin_verify.splits import read_people
from hotlap_workloads.twin_verify.workload import WORKLOAD

CPU, P100 = Machine(2), Machine(16, (6, 0), "Tesla P100")
TURING, HOPPER = Machine(16, (7, 5), "2080 Ti"), Machine(64, (9, 0), "H200")
SMALL = {"image_size": 32, "patch": 8, "width": 32, "heads": 4, "mlp": 48, "sa_blocks": 2, "pwca_blocks": 2}
TINY = [
    *(part for name, value in SMALL.items() for part in ("--set", f"{name}={value}")),
    *("--set", "batch_size=4", "--set", "print_every_steps=1", "--set", "max_steps=3", "--set", "trials_per_image=1"),
]
SLOW = ["--set", "workers=0", "--set", "eval_batch_size=40"]
"""Workers and small batches cost seconds here, and are tested by themselves."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data(tmp_path_factory.mktemp("twins") / "made")


def rows(out: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def losses(out: Path) -> list[tuple[float, float]]:
    return [(row["step"], row["loss"]) for row in rows(out) if "loss" in row]


METRICS = {"accuracy", "roc_auc", "eer", "tar_at_far_1e-2", "tar_at_far_1e-3", "twin_accuracy"}


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_trains_and_evaluates(
    made: Path, tmp_path: Path, preset: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert train.main(["twin_verify", "--preset", preset, "--data", str(made), "--out", str(out), *TINY, *SLOW]) == 0
    printed = capsys.readouterr().out
    assert "Speed " in printed and " samples/s  Loss " in printed and "Step 3/3" in printed
    last = rows(out)[-1]
    assert set(last) == {"step", *METRICS} and all(0 <= last[name] <= 1 for name in METRICS)
    assert ("triplet" in rows(out)[0]) == (preset != "kaggle_p100_minimal")
    assert evaluate.main(["twin_verify", "--out", str(out), "--data", str(made)]) == 0
    assert json.loads(capsys.readouterr().out)["eer"] == pytest.approx(last["eer"], abs=1e-9)
    assert evaluate.main(["twin_verify", "--out", str(out), "--data", str(made), "--heavy"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == {f"heavy_{name}" for name in METRICS}


def test_without_data_a_cpu_trains_what_it_can_bear(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = ["device=cpu", "max_steps=2", "print_every_steps=1", "evaluate_every_epochs=0", "trials_per_image=1"]
    command = ["twin_verify", "--preset", "fast", "--out", str(tmp_path)]
    assert train.main([*command, *(word for value in few for word in ("--set", value))]) == 0
    said = capsys.readouterr().out
    assert "made here, with images of 112x112 and tokens of 192" in said and "Step 2/2" in said
    whole = settings_of(Request("twin_verify", tmp_path, "fast", data=tmp_path), CPU)
    small = settings_of(Request("twin_verify", tmp_path, "fast"), CPU)
    assert (whole.image_size, whole.width, whole.sa_blocks) == (448, 768, 12) and small.sa_blocks == 12  # type: ignore[attr-defined]


@pytest.mark.parametrize("machine", [CPU, P100, TURING, HOPPER])
def test_presets_fit_their_machines(machine: Machine) -> None:
    found = {}
    for name, preset in PRESETS.items():
        s = preset.make(machine)
        assert isinstance(s, TwinSettings) and preset.why
        s.check()
        check_machine(s, machine)
        found[name] = (s.sa_blocks, s.glca_blocks, s.pwca_blocks, s.batch_size, s.triplet, s.images, s.pairs)
    assert found == {
        "slow": (12, 1, 12, 3, 0.4, "files", "run_time"),
        "fast": (12, 1, 12, 3, 0.4, "packed", "precomputed"),
        "kaggle_p100_fast": (6, 1, 6, 12, 0.4, "files", "run_time"),
        "kaggle_p100_minimal": (4, 1, 4, 16, 0.0, "files", "run_time"),
        "kaggle_p100_data_optimized": (6, 1, 6, 12, 0.4, "packed", "precomputed"),
        "local_2080ti_fast": (6, 1, 6, 8, 0.4, "files", "run_time"),
    }
    precision = {CPU: "bf16", P100: "fp16", TURING: "fp16", HOPPER: "bf16"}[machine]
    assert all(preset.make(machine).precision == precision for name, preset in PRESETS.items() if name != "slow")
    if machine.gpu:
        workers = {name: preset.make(machine).workers for name, preset in PRESETS.items()}
        assert workers["slow"] == 2 and workers["kaggle_p100_fast"] == workers["kaggle_p100_minimal"] == 6
        assert workers["local_2080ti_fast"] == 4
    assert PRESETS["kaggle_p100_fast"].make(Machine(4, (6, 0), "P100")).workers == 3
    assert "up to 6 loading processes" in PRESETS["kaggle_p100_fast"].why


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"image_size": 450}, "not a multiple of patch=16"),
        ({"width": 100}, "not a multiple of heads=12"),
        ({"pwca_blocks": 13}, "PWCA has the weights of SA"),
        ({"local_share": 0.0}, "local_share=0.0"),
        ({"twin_share": 1.5}, "twin_share=1.5 is not from 0 to 1"),
        ({"bce": 0.0, "triplet": 0.0, "focal": 0.0}, "one must be above 0"),
        ({"pairs_per_epoch": 7}, "is not even"),
        ({"eval_pwca": True}, "eval_embed=once is of images. Use per_pair"),
        ({"split": (0.8, 0.1)}, "three shares"),
    ],
)
def test_settings_that_make_no_sense(change: dict[str, object], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        replace(PRESETS["fast"].make(CPU), **change).check()  # type: ignore[arg-type]


def test_the_learning_rate_goes_with_the_effective_batch() -> None:
    s = replace(PRESETS["local_2080ti_fast"].make(TURING), accumulate=2)
    assert [for_global_batch(s, world).lr for world in (1, 2)] == pytest.approx([3e-4 * 16 / 64, 3e-4 * 32 / 64])
    assert for_global_batch(replace(s, lr_for_samples=0), 2).lr == 3e-4


@pytest.mark.parametrize("preset", ["slow", "fast"])
def test_losses_after_a_resume_equal_those_of_the_uninterrupted_run(made: Path, tmp_path: Path, preset: str) -> None:
    """With evaluations between, which must not move the random numbers of stochastic depth."""
    command = ["twin_verify", "--preset", preset, "--data", str(made), *TINY, *SLOW, "--set", "stochastic_depth=0.3"]
    command += ["--set", "pairs_per_epoch=16", "--set", "checkpoint_every_epochs=0.5", "--set", "warmup_epochs=0"]
    whole, parts = str(tmp_path / "whole"), str(tmp_path / "parts")
    assert train.main([*command, "--out", whole, "--set", "max_steps=6", "--set", "evaluate_every_epochs=0"]) == 0
    for steps in (2, 5, 6):
        assert train.main([*command, "--out", parts, "--set", f"max_steps={steps}"]) == 0
    assert losses(Path(parts)) == losses(Path(whole)) and len(losses(Path(whole))) == 6
    assert len({loss for _, loss in losses(Path(whole))}) == 6


def test_slow_and_fast_are_the_same_training(made: Path, tmp_path: Path) -> None:
    """Without bf16 and without skipped blocks: the same pairs, the same looks, the same losses and metrics."""
    command = [
        "twin_verify",
        "--data",
        str(made),
        *TINY,
        *SLOW,
        "--set",
        "stochastic_depth=0",
        "--set",
        "precision=off",
    ]
    command += ["--set", "max_steps=5", "--set", "lr=1e-3", "--set", "lr_for_samples=0", "--set", "batch_size=3"]
    for preset in ("slow", "fast"):
        assert train.main([*command, "--preset", preset, "--out", str(tmp_path / preset)]) == 0
    slow, fast = rows(tmp_path / "slow"), rows(tmp_path / "fast")
    assert len(slow) == len(fast) == 6
    for one, other in zip(slow, fast, strict=True):
        for name in one.keys() - {"samples_per_s"}:
            assert other[name] == pytest.approx(one[name], abs=2e-3), name


def test_per_pair_and_once_give_the_same_scores(made: Path, tmp_path: Path) -> None:
    scores = []
    for preset, change in (("slow", {"eval_batch_size": 30}), ("fast", {"precision": "off", "eval_batch_size": 7})):
        s = replace(PRESETS[preset].make(CPU), **SMALL, trials_per_image=1, eval_workers=0, **change)  # type: ignore[arg-type]
        torch.manual_seed(0)
        task = WORKLOAD.build(s, Context(torch.device("cpu"), tmp_path, made))
        task.objective.eval()
        with torch.inference_mode():
            scores.append(task.scorer(False).scores())
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-5)
    assert np.std(scores[0]) > 100 * np.abs(scores[0] - scores[1]).max()


def test_pwca_is_left_out_of_the_fast_evaluation(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hotlap_workloads.twin_verify.model import DCAL

    calls: list[str] = []
    monkeypatch.setattr(DCAL, "pwca_each", lambda *_: calls.append("each"))
    monkeypatch.setattr(DCAL, "pwca_joint", lambda *_: calls.append("joint"))
    for preset in ("slow", "fast"):
        s = replace(PRESETS[preset].make(CPU), **SMALL, eval_batch_size=200, trials_per_image=1)  # type: ignore[arg-type]
        task = WORKLOAD.build(s, Context(torch.device("cpu"), tmp_path, made))
        task.objective.eval()
        with torch.inference_mode():
            task.evaluate(False)
    assert set(calls) == {"each"}


def test_a_cut_image_stops_the_training_or_is_quarantined(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By a worker too, whose errors torch makes again from their text."""
    data = tmp_path / "data"
    shutil.copytree(made, data)
    train_people = json.loads((data / "train_dataset_infor.json").read_text())
    for images in train_people.values():
        for image in images[:6]:
            (data / image).write_bytes((data / image).read_bytes()[:700])
    command = ["twin_verify", "--data", str(data), "--out", str(tmp_path / "run"), *TINY]
    for preset, workers in (("slow", "0"), ("slow", "1"), ("fast", "0")):
        assert train.main([*command, "--preset", preset, "--set", f"workers={workers}"]) == 1
        error = capsys.readouterr().err
        assert error.startswith(str(data)) and ".jpg: is cut short" in error and error.count("\n") == 1, error
    for preset in ("slow", "fast"):
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        assert train.main([*command, "--preset", preset, "--quarantine", *SLOW]) == 0
        listed = (tmp_path / "run/quarantine.txt").read_text().splitlines()
        assert len(listed) == 6 * len(train_people) and all("\tis cut short" in line for line in listed)
        assert rows(tmp_path / "run")[-1]["eer"] <= 1


def test_optimized_data_need_no_originals(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, out = tmp_path / "data", tmp_path / "optimized"
    shutil.copytree(made, data)
    (data / "dataset_infor.json").write_text("{}")
    small = [part for name in ("image_size", "patch") for part in ("--set", f"{name}={SMALL[name]}")]
    command = ["--dataset-info", str(data / "dataset_infor.json"), "--twin-pairs", str(data / "twin_pairs_infor.json")]
    command += ["--output-dir", str(out), "--batch-size", "12", "--set", "epochs=2", *small]
    assert optimize_data.main(command) == 0
    assert "416 images of 32 pixels and 2 epochs of 504 pairs (42 batches of 12)" in capsys.readouterr().out
    assert optimize_data.main(command) == 0  # again: nothing is packed anew
    pairs = np.load(out / "pairs.npy")
    assert pairs.shape == (2, 252, 3)
    album, splits = read_people(TwinSettings(), made)
    assert {album.person_of()[i] for i in pairs.ravel()} == set(splits["train"])
    usual = ["twin_verify", "--preset", "kaggle_p100_data_optimized", *TINY, "--set", "pairs_per_epoch=504"]
    assert train.main([*usual, "--data", str(data), "--out", str(tmp_path / "a"), "--set", "epochs=2"]) == 0
    shutil.rmtree(data)
    assert train.main([*usual, "--data", str(out), "--out", str(tmp_path / "b"), "--set", "epochs=2"]) == 0
    assert losses(tmp_path / "a") == losses(tmp_path / "b") and not (tmp_path / "b/images.pack").exists()
    capsys.readouterr()
    wrong = [*usual, "--data", str(out), "--out", str(tmp_path / "c")]
    assert train.main([*wrong, "--set", "image_size=64"]) == 1
    assert "holds images of 32 pixels, image_size=64. Run optimize_data again." in capsys.readouterr().err
    assert train.main([*wrong, "--set", "images=files"]) == 1
    assert "does not exist" in capsys.readouterr().err
    assert train.main([*wrong, "--set", "seed=2"]) == 0  # other pairs than those computed: computed at the start
    known, s = read_optimized(out), replace(PRESETS["fast"].make(CPU), epochs=2)
    assert (np.asarray(known.pairs_for(s, 252)) == pairs).all()
    assert all(known.pairs_for(replace(s, **other), 252) is None for other in ({"seed": 2}, {"epochs": 3}))  # type: ignore[arg-type]
    assert known.pairs_for(replace(s, twin_share=0.5), 252) is None and known.pairs_for(s, 250) is None
    (out / "pairs.npy").write_bytes((out / "pairs.npy").read_bytes()[:500])
    assert train.main([*wrong, "--set", "epochs=2"]) == 1
    assert "pairs.npy: cannot be read" in capsys.readouterr().err


def test_optimize_data_says_what_is_wrong(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--dataset-info", str(made / "dataset_infor.json"), "--output-dir", str(tmp_path / "out")]
    twins = ["--twin-pairs", str(made / "twin_pairs_infor.json")]
    assert optimize_data.main([*where, "--twin-pairs", "elsewhere/t.json"]) == 2
    assert "not in the same folder" in capsys.readouterr().err
    assert optimize_data.main([*where, *twins, "--preset", "kaggle_p100"]) == 2
    assert "The nearest is 'kaggle_p100_fast'" in capsys.readouterr().err
    assert optimize_data.main([*where, *twins, "--batch-size", "1000"]) == 2
    assert "512 pairs give no batch of 1000" in capsys.readouterr().err
    assert optimize_data.main([*where, *twins, "--num-workers", "0"]) == 2
    assert optimize_data.main(["--dataset-info", "no/d.json", "--twin-pairs", "no/t.json", *where[2:]]) == 1
    error = capsys.readouterr().err
    assert "no/d.json: cannot be read" in error and "--dataset-info and --twin-pairs of optimize_data name" in error
    (tmp_path / "a_file").touch()
    assert optimize_data.main([*where[:2], *twins, "--output-dir", str(tmp_path / "a_file/out")]) == 1
    assert "out cannot be written: Not a directory. --output-dir names a folder" in capsys.readouterr().err


def test_torchrun_on_two_ranks_trains_what_one_does(made: Path, tmp_path: Path) -> None:
    """Without what depends on the rank (mining in its batch, skipped blocks): two times 4 pairs are 8 pairs."""
    plain = ["--set", "triplet=0", "--set", "stochastic_depth=0", "--set", "precision=off", "--set", "max_steps=2"]
    plain += ["--set", "optimizer=sgd", "--set", "optimizer_loop=auto", "--set", "lr=1", "--set", "warmup_epochs=0"]
    command = ["twin_verify", "--preset", "local_2080ti_fast", "--data", str(made), *TINY, *plain]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = {**os.environ, "PYTHONPATH": str(Path(train.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    two = [*torchrun, "-m", "hotlap_workloads.train", *command, "--out", str(tmp_path / "two")]
    done = subprocess.run(two, env=environment, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("twin_accuracy") == 1 and "Step 2/2" in done.stdout
    assert train.main([*command, "--out", str(tmp_path / "one"), "--set", "batch_size=8"]) == 0
    weights = [torch.load(tmp_path / name / "checkpoint.pt", weights_only=True)["objective"] for name in ("one", "two")]
    for name, one in weights[0].items():
        torch.testing.assert_close(weights[1][name], one, atol=1e-5, rtol=1e-3, msg=name)
    assert rows(tmp_path / "two")[-1]["eer"] == pytest.approx(rows(tmp_path / "one")[-1]["eer"], abs=0.02)


def test_odd_batches_do_not_go_to_several_ranks(made: Path, tmp_path: Path) -> None:
    s = replace(PRESETS["fast"].make(CPU), **SMALL, batch_size=3)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match=r"batch_size=3 is odd, .* Set batch_size=4"):
        WORKLOAD.build(s, Context(torch.device("cpu"), tmp_path, made, Ranks(0, 2)))


def test_without_data_it_makes_its_own(tmp_path: Path) -> None:
    assert train.main(["twin_verify", "--out", str(tmp_path), *TINY]) == 0
    assert (tmp_path / "made_data/test_twin_pairs_infor.json").exists() and rows(tmp_path)[-1]["roc_auc"] <= 1


def test_the_real_faces(real_data: Callable[[str], Path], tmp_path: Path) -> None:
    data = real_data("twins")
    album, splits = read_people(TwinSettings(expect_identities=204), data)
    assert [len(splits[name]) for name in ("train", "val", "test")] == [104, 20, 80] and len(album.paths) == 3060
    assert sum(map(len, album.twins_of)) == 204
    command = ["twin_verify", "--preset", "slow", "--data", str(data), "--out", str(tmp_path), *TINY, *SLOW]
    assert train.main([*command, "--set", "evaluate_every_epochs=0"]) == 0
    assert np.isfinite([loss for _, loss in losses(tmp_path)]).all()
    lookalikes = ["--set", "dataset_info=real_dataset_infor.json", "--set", "expect_identities=142"]
    twins = ["--set", "twin_pairs=real_lookalike_pairs_infor.json", "--out", str(tmp_path / "real")]
    assert train.main([*command, *lookalikes, *twins]) == 0
