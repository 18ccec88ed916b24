"""The whole training by its command line: presets, evaluation file, bad data, quarantine, ranks, real recordings."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hotlap_workloads import evaluate, train
from hotlap_workloads.anti_spoof import produce_evaluation_file
from hotlap_workloads.anti_spoof.made_data import make_data
from hotlap_workloads.anti_spoof.model import SpoofNet
from hotlap_workloads.anti_spoof.presets import PRESETS
from hotlap_workloads.anti_spoof.settings import SpoofSettings
from hotlap_workloads.anti_spoof.workload import WORKLOAD, SpoofObjective, SpoofTask
from hotlap_workloads.engine.machine import Machine, check_machine
from hotlap_workloads.engine.order import Draw
from hotlap_workloads.engine.ranks import Ranks
from hotlap_workloads.engine.task import Context
from hotlap_workloads.errors import DataError, SettingsError
from hotlap_workloads.parts.audio_file import read_wave
from hotlap_workloads.parts.verification import eer
from hotlap_workloads.session import Request, settings_of

SMALL = {"model": "SEResNet18", "width": "0.5", "bands": "16", "samples": "8000", "batch_size": "8"}
TINY = [f"--set={key}={value}" for key, value in {**SMALL, "print_every_steps": "1", "max_steps": "2"}.items()]


@pytest.fixture(scope="module")
def run_without_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a training that was given no data."""
    out = tmp_path_factory.mktemp("own")
    assert train.main(["anti_spoof", "--out", str(out), *TINY, "--set", "layout=scenefake"]) == 0
    return out


@pytest.fixture(scope="module")
def made(run_without_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data that it made, with few of its recordings in the protocols."""
    folder = tmp_path_factory.mktemp("spoof") / "made"
    shutil.copytree(run_without_data / "made_data", folder)
    for name in ("train.trn", "dev.trl", "eval.trl"):
        file = folder / f"protocols/MADE.cm.{name}.txt"
        file.write_text("\n".join(file.read_text().splitlines()[:24]) + "\n")
    return folder


def rows(out: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def losses(out: Path) -> dict[int, float]:
    return {int(row["step"]): row["loss"] for row in rows(out) if "loss" in row}


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_trains_and_evaluates(
    made: Path, tmp_path: Path, preset: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert train.main(["anti_spoof", "--preset", preset, "--data", str(made), "--out", str(out), *TINY]) == 0
    last = rows(out)[-1]
    assert all(0 <= last[name] <= 1 for name in ("eer", "min_tdcf", "accuracy"))
    capsys.readouterr()
    assert evaluate.main(["anti_spoof", "--out", str(out), "--data", str(made)]) == 0
    assert json.loads(capsys.readouterr().out)["eer"] == pytest.approx(last["eer"], abs=1e-9)


def test_it_makes_its_own_data_once(run_without_data: Path) -> None:
    made = run_without_data / "made_data"
    assert 0 <= rows(run_without_data)[-1]["min_tdcf"] <= 1
    for end, count in (("train.trn", 96), ("dev.trl", 36), ("eval.trl", 48)):
        lines = [line.split() for line in (made / f"protocols/MADE.cm.{end}.txt").read_text().splitlines()]
        assert len(lines) == count and sum(line[4] == "bonafide" for line in lines) == count // 3
    before = {path: path.stat().st_mtime_ns for path in made.rglob("*")}
    assert make_data(made) == made and before == {path: path.stat().st_mtime_ns for path in made.rglob("*")}


@pytest.mark.parametrize("machine", [Machine(2), Machine(16, (6, 0), "P100"), Machine(64, (9, 0), "H200")])
def test_presets_fit_their_machines(machine: Machine) -> None:
    for preset in PRESETS.values():
        settings = preset.make(machine)
        settings.check()
        check_machine(settings, machine)
    slow, fast = PRESETS["slow"].make(machine), PRESETS["fast"].make(machine)
    assert slow.workers == 0 and slow.deterministic and slow.precision == "off" and slow.read_loss_every_step
    assert fast.precision == machine.autocast and fast.channels_last and fast.workers == machine.packed_workers
    assert isinstance(slow, SpoofSettings) and isinstance(fast, SpoofSettings)
    assert (slow.decode, slow.front_end_at) == ("each_time", "sample")
    assert (fast.decode, fast.front_end_at) == ("once", "batch")
    assert (fast.model, fast.batch_size, fast.front_end) == (slow.model, slow.batch_size, slow.front_end)


@pytest.mark.parametrize("front_end", ["log_mel", "lfcc", "conv"])
def test_features_by_sample_and_by_batch_give_the_same_scores(made: Path, tmp_path: Path, front_end: str) -> None:
    scores, inputs = [], []
    for change in ({"decode": "each_time"}, {"decode": "once", "front_end_at": "batch", "eval_batch_size": 7}):
        s = replace(SpoofSettings(), front_end=front_end, model="SEResNet18", width=0.5, samples=30_000, **change)  # type: ignore[arg-type]
        torch.manual_seed(0)
        task = WORKLOAD.build(s, Context(torch.device("cpu"), tmp_path, made))
        task.objective.eval()
        with torch.inference_mode():
            scorer = task.scorer("dev")
            scores.append(scorer.scores())
            batch = next(scorer.feed.batches(scorer.data, [3]))
            net = task.objective.net
            waves = batch.float() / 32768 if batch.dtype == torch.int16 else batch
            inputs.append(waves if waves.dim() == 3 else net.front_end(waves))
    torch.testing.assert_close(inputs[0], inputs[1], atol=1e-4, rtol=1e-4)
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-4)
    assert np.ptp(scores[0]) > 0


@pytest.mark.parametrize("decode", ["each_time", "once"])
def test_evaluation_begins_at_the_beginning_and_training_anywhere(made: Path, tmp_path: Path, decode: str) -> None:
    s = replace(SpoofSettings(), front_end="conv", samples=50_000, decode=decode, eval_batch_size=7)  # type: ignore[arg-type]
    task = WORKLOAD.build(s, Context(torch.device("cpu"), tmp_path, made))
    scorer = task.scorer("dev")
    waves = [read_wave(path) for path in scorer.clips.paths]
    assert min(map(len, waves)) < 50_000 < max(map(len, waves))
    wanted = np.stack([np.resize(wave, 50_000) for wave in waves])  # repeated, or its beginning

    def quieter(x: torch.Tensor) -> torch.Tensor:
        level = x.double().abs().mean(1) * (1 if x.dtype == torch.int16 else 32768)
        return torch.stack([level, 3 * level], dim=1)

    scores = replace(scorer, net=quieter).scores()  # type: ignore[arg-type]
    np.testing.assert_allclose(scores, 2 * np.abs(wanted.astype(np.float64)).mean(1), rtol=1e-6)
    shares: list[Any] = []

    class Half(Ranks):
        def gather(self, mine: Any) -> list[Any]:
            shares.append(mine)
            return shares

    for rank in (0, 1):  # the last to come sees the shares of both
        halves = replace(scorer, net=quieter, ranks=Half(rank, 2)).scores()  # type: ignore[arg-type]
    np.testing.assert_array_equal(halves, scores)
    longest = int(np.argmax([len(read_wave(path)) for path in task.train_set.clips.paths]))  # type: ignore[attr-defined]
    cuts = [task.train_set[Draw(longest, seed)][0] for seed in (1 << 60, 1 << 60, 3 << 60)]
    assert torch.equal(cuts[0], cuts[1]) and not torch.equal(cuts[0], cuts[2])


def test_the_loss_by_its_formula(made: Path) -> None:
    s = replace(SpoofSettings(), model="SEResNet18", width=0.5)
    objective = SpoofObjective(SpoofNet(s), s).eval()
    waves, keys = torch.randn(6, 8000), torch.tensor([0, 1, 0, 0, 1, 0])
    logits = objective.net(waves).detach().double().numpy()
    weight = np.array([0.1, 0.9])[keys]
    nll = np.log(np.exp(logits).sum(1)) - logits[np.arange(6), keys]
    said = objective((waves, keys))
    assert said["loss"].item() == pytest.approx((weight * nll).sum() / weight.sum(), rel=1e-5)
    assert said["accuracy"].item() == pytest.approx(np.mean(logits.argmax(1) == keys.numpy()))


def counted(depths: tuple[int, ...], wide: int) -> int:
    """Weights of the network by hand: norm of 80 bands, stem, blocks with squeezes and shortcuts, classifier."""
    total, inputs = 2 * 80 + 7 * 7 * 16 + 2 * 16, 16
    for stage, (depth, c) in enumerate(zip(depths, (16, 32, 64, 128), strict=True)):
        out = wide * c
        for number in range(depth):
            convs = 9 * inputs * c + 9 * c * c if wide == 1 else inputs * c + 9 * c * c + c * out
            norms = 2 * (2 * c) if wide == 1 else 2 * (2 * c + out)
            squeeze = 2 * out * (out // 8) + out // 8 + out
            shortcut = inputs * out + 2 * out if number == 0 and (stage or wide > 1) else 0
            total, inputs = total + convs + norms + squeeze + shortcut, out
    return total + 2 * inputs + 2


@pytest.mark.parametrize(
    ("model", "depths", "wide"),
    [("SEResNet18", (2, 2, 2, 2), 1), ("SEResNet34", (3, 4, 6, 3), 1), ("SEResNet50", (3, 4, 6, 3), 4)],
)
def test_parameters_are_as_many_as_the_layers_have(model: str, depths: tuple[int, ...], wide: int) -> None:
    s = replace(SpoofSettings(), model=model)  # type: ignore[arg-type]
    assert sum(p.numel() for p in SpoofNet(s).parameters()) == counted(depths, wide)
    if model == "SEResNet34":
        assert counted(depths, wide) / 1e6 == pytest.approx(1.34, abs=0.02)  # ASSERT's SENet34


@pytest.mark.parametrize("front_end", ["log_mel", "lfcc", "sinc", "conv"])
@pytest.mark.parametrize("pooling", ["mean", "SAP", "ASP"])
def test_every_model_scores_and_learns(front_end: str, pooling: str) -> None:
    model = "SEResNet50" if pooling == "ASP" else "SEResNet18"
    s = replace(SpoofSettings(), model=model, front_end=front_end, pooling=pooling, width=0.5, freq_mask=True)  # type: ignore[arg-type]
    net = SpoofNet(s)
    out = net(torch.randn(4, 8000))
    assert out.shape == (4, 2) and out.dtype == torch.float32 and torch.isfinite(out).all()
    out.square().sum().backward()
    assert all(p.grad is not None for p in net.parameters())
    ints = (torch.randn(2, 8000) * 3000).short()
    net.eval()
    torch.testing.assert_close(net(ints), net(ints.float() / 32768))


def test_a_resume_gives_the_losses_and_mean_weights_of_the_uninterrupted_run(made: Path, tmp_path: Path) -> None:
    command = ["anti_spoof", "--preset", "fast", "--data", str(made), *TINY, "--set=swa=true", "--set=freq_mask=true"]
    command += ["--set=freq_mask_most=8", "--set=lr=0.003"]
    for name, steps in (("whole", 9), ("parts", 3), ("parts", 4), ("parts", 9), ("parts", 9)):
        assert train.main([*command, "--out", str(tmp_path / name), f"--set=max_steps={steps}"]) == 0
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole") and len(losses(tmp_path / "whole")) == 9
    whole, parts = (
        torch.load(tmp_path / name / "checkpoint.pt", weights_only=True)["objective"] for name in ("whole", "parts")
    )
    assert whole["mean._extra_state"][0] >= 1
    assert all(torch.equal(whole[key], parts[key]) for key in whole)
    assert train.main([*command, "--out", str(tmp_path / "other"), "--set=max_steps=3", "--set=seed=2"]) == 0
    assert losses(tmp_path / "other") != {step: losses(tmp_path / "whole")[step] for step in (1, 2, 3)}


def test_the_mean_of_the_weights(made: Path, tmp_path: Path) -> None:
    s = replace(SpoofSettings(), model="SEResNet18", width=0.5, bands=16, samples=8000, swa=True, eval_batch_size=24)
    task = WORKLOAD.build(s, Context(torch.device("cpu"), tmp_path, made))
    net, mean = task.objective.net.eval(), task.objective.mean
    assert mean is not None
    with torch.inference_mode():
        with task.final_weights():  # nothing yet: the network as it is
            first = [p.clone() for p in net.parameters()]
        assert mean.look(net, 0.4) and not mean.look(net, 0.45)
        for p in net.parameters():
            p.mul_(3)
        assert mean.look(net, 0.4), "an equal one counts, as in AASIST"
        for p in net.parameters():
            p.zero_()
        assert not mean.look(net, 0.41)
        before = {name: value.clone() for name, value in net.state_dict().items()}
        with task.final_weights():
            for p, was in zip(net.parameters(), first, strict=True):
                torch.testing.assert_close(p, 2 * was)
            x = net.norm(torch.cat(list(task.train_batches())))
            out = net.stem[0](x.unsqueeze(1))
            norm = net.stem[1]
            torch.testing.assert_close(norm.running_mean, out.mean((0, 2, 3)), atol=1e-3, rtol=2e-3)
            torch.testing.assert_close(norm.running_var, out.var((0, 2, 3)), atol=1e-3, rtol=2e-3)
        after = net.state_dict()
        assert all(torch.equal(before[name], after[name]) for name in before)
        assert net.stem[1].momentum == 0.1 and not net.stem[1].training
    restored = SpoofObjective(SpoofNet(s), s)
    restored.load_state_dict(task.objective.state_dict())
    assert restored.mean is not None and torch.equal(restored.mean.mean, mean.mean) and restored.mean.best == 0.4


@pytest.mark.parametrize("swa", ["false", "true"])
def test_the_evaluation_file(
    made: Path, tmp_path: Path, swa: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["--data", str(made), "--out", str(tmp_path)]
    kept = [f"--set=swa={swa}", "--set=evaluate_every_epochs=0.34"]  # at each step
    assert train.main(["anti_spoof", *command, *TINY, *kept, "--set=lr=0.01"]) == 0
    capsys.readouterr()
    assert evaluate.main(["anti_spoof", *command, "--heavy"]) == 0
    heavy = json.loads(capsys.readouterr().out)
    assert produce_evaluation_file.main(command) == 0
    said = json.loads(capsys.readouterr().out)
    lines = [line.split() for line in Path(said["file"]).read_text().splitlines()]
    protocol = [line.split() for line in (made / "protocols/MADE.cm.eval.trl.txt").read_text().splitlines()]
    assert [line[:3] for line in lines] == [[utt, attack, key] for _, utt, _, attack, key in protocol]
    scores, keys = [float(line[3]) for line in lines], [line[2] == "bonafide" for line in lines]
    name = "heavy_swa" if swa == "true" else "heavy"
    assert eer(scores, keys) == pytest.approx(said["eer"]) == pytest.approx(heavy[f"{name}_eer"])
    assert said["min_tdcf"] == pytest.approx(heavy[f"{name}_min_tdcf"])
    assert ("heavy_swa_eer" in heavy) == (swa == "true")
    assert produce_evaluation_file.main([*command, "--part", "dev", "--file", str(tmp_path / "to/dev.txt")]) == 0
    assert len((tmp_path / "to/dev.txt").read_text().splitlines()) == 24
    assert produce_evaluation_file.main(["--out", str(tmp_path / "none")]) == 2
    monkeypatch.setattr(SpoofTask, "final_weights", lambda self: nullcontext())
    assert produce_evaluation_file.main([*command, "--file", str(tmp_path / "last.txt")]) == 0
    same = (tmp_path / "last.txt").read_text() == Path(said["file"]).read_text()
    assert same == (swa == "false")


def copied(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "data")
    return tmp_path / "data"


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path: path.unlink(), "line 5 names .*MADE_T_0004.flac, which does not exist"),
        (lambda path: path.write_bytes(path.read_bytes()[:9000]), "MADE_T_0004.flac: is cut short|is no readable"),
        (lambda path: path.write_bytes(b"fLaC" + bytes(5000)), "MADE_T_0004.flac: is no readable recording"),
    ],
    ids=["missing", "cut", "corrupt"],
)
@pytest.mark.parametrize("preset", ["slow", "fast"])
def test_a_bad_file_stops_the_training_or_is_quarantined(
    made: Path,
    tmp_path: Path,
    preset: str,
    spoil: Callable[[Path], Any],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = copied(made, tmp_path)
    spoil(data / "flac/MADE_T_0004.flac")
    command = ["anti_spoof", "--preset", preset, "--data", str(data), "--out", str(tmp_path / "run"), *TINY]
    assert train.main([*command, "--set=max_steps=3"]) == 1
    error = capsys.readouterr().err
    assert re.search(said, error), error
    assert train.main([*command, "--quarantine"]) == 0
    listed = (tmp_path / "run/quarantine.txt").read_text().splitlines()
    assert len(listed) == 1 and listed[0].startswith(f"{data}/flac/MADE_T_0004.flac\t")


def test_a_made_file_that_is_gone_is_quarantined(run_without_data: Path, tmp_path: Path) -> None:
    shutil.copytree(run_without_data / "made_data", tmp_path / "made_data")
    gone = tmp_path / "made_data/flac/MADE_D_0003.flac"
    gone.unlink()
    settings = replace(SpoofSettings(), width=0.25)
    with pytest.raises(DataError, match=r"MADE_D_0003\.flac, which does not exist"):
        WORKLOAD.build(settings, Context(torch.device("cpu"), tmp_path))
    task = WORKLOAD.build(settings, Context(torch.device("cpu"), tmp_path, quarantine=True))
    assert gone not in task.scorer("dev").clips.paths
    assert (tmp_path / "quarantine.txt").read_text().startswith(f"{gone}\t")


def test_a_trial_that_names_an_unknown_file(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = copied(made, tmp_path)
    with open(data / "protocols/MADE.cm.dev.trl.txt", "a") as file:
        file.write("MADE_01 MADE_D_9999 - A01 spoof\n")
    command = ["anti_spoof", "--data", str(data), "--out", str(tmp_path / "run"), *TINY]
    assert train.main(command) == 1
    assert "dev.trl.txt: line 25 names" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("file", "change", "heavy", "said"),
    [
        (
            "MADE.cm.eval.trl.txt",
            lambda t: t.replace("MADE_E_0003", "NOFILE"),
            1.0,
            "names .*NOFILE.flac, which",
        ),
        ("MADE.asv.eval.gi.trl.scores.txt", lambda t: "A01 spoof 1\n", 1.0, "has no target trial"),
        ("MADE.asv.dev.gi.trl.scores.txt", lambda t: "A01 spoof 1\n", 0.0, "has no target trial"),
    ],
)
def test_lists_of_later_evaluations_are_read_first(
    made: Path, tmp_path: Path, file: str, change: Callable[[str], str], heavy: float, said: str
) -> None:
    (tmp_path / "flac").symlink_to(made / "flac")
    shutil.copytree(made / "protocols", tmp_path / "protocols")
    spoiled = tmp_path / "protocols" / file
    spoiled.write_text(change(spoiled.read_text()))
    settings = replace(SpoofSettings(), width=0.25, heavy_every_epochs=heavy)
    with pytest.raises(DataError, match=f"{file}: .*{said}"):
        WORKLOAD.build(settings, Context(torch.device("cpu"), tmp_path, tmp_path))
    if heavy:
        WORKLOAD.build(replace(settings, heavy_every_epochs=0.0), Context(torch.device("cpu"), tmp_path, tmp_path))


def test_a_part_of_which_too_little_is_left_is_told_before_it_is_due(made: Path, tmp_path: Path) -> None:
    data = copied(made, tmp_path)
    rows = [line.split() for line in (data / "protocols/MADE.cm.eval.trl.txt").read_text().splitlines()]
    gone = sorted(data / f"flac/{row[1]}.flac" for row in rows if row[-1] == "bonafide")
    for path in gone:
        path.unlink()
    settings = replace(SpoofSettings(), width=0.25, heavy_every_epochs=1.0)
    said = f"{gone[0]} and {len(gone) - 1} other files cannot be read. What is left: has 0 bona fide recordings among"
    with pytest.raises(DataError, match=re.escape(said)):
        WORKLOAD.build(settings, Context(torch.device("cpu"), tmp_path, data, quarantine=True))


@pytest.mark.parametrize("front_end", ["log_mel", "lfcc", "sinc", "conv"])
def test_the_shortest_recordings_pass_the_network(front_end: str) -> None:
    settings = replace(SpoofSettings(), front_end=front_end, samples=1600, width=0.25, pooling="ASP")  # type: ignore[arg-type]
    settings.check()
    assert SpoofNet(settings)(torch.randn(2, 1600)).isfinite().all()


def test_nan_stops_with_its_code(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["anti_spoof", "--data", str(made), "--out", str(tmp_path), *TINY, "--set=lr=1e30", "--set=max_steps=9"]
    assert train.main([*command, "--set=evaluate_every_epochs=0"]) == 3
    assert (tmp_path / "nan_batch.rank0.pt").is_file()


CONF = {
    "database_path": "./LA/",
    "asv_score_path": "ASVspoof2019_LA_asv_scores/ASVspoof2019.LA.asv.eval.gi.trl.scores.txt",
    "batch_size": 32,
    "num_epochs": 100,
    "loss": "CCE",
    "track": "LA",
    "freq_aug": "True",
    "eval_output": "eval_scores_using_best_dev_model.txt",
    "model_path": "./models/weights/AASIST.pth",
    "eval_all_best": "True",
    "cudnn_deterministic_toggle": "False",
    "cudnn_benchmark_toggle": "True",
    "use_amp": "True",
    "use_compile": "False",
    "model_config": {"architecture": "SEResNet34", "nb_samp": 64600},
    "optim_config": {
        **{"optimizer": "adam", "amsgrad": "False", "base_lr": 0.0001, "lr_min": 0.000005},
        **{"betas": [0.9, 0.99], "weight_decay": 0.0001, "scheduler": "cosine"},
    },
}


def test_the_published_configuration_is_read(tmp_path: Path) -> None:
    file = tmp_path / "SEResNet.conf"
    file.write_text(json.dumps(CONF))
    said: list[str] = []
    s = settings_of(Request("anti_spoof", tmp_path, "slow", config=file), Machine(2), said.append)
    assert isinstance(s, SpoofSettings)
    assert [line.split("=")[0] for line in said] == ["model_path", "eval_all_best"]
    assert (s.database, s.batch_size, s.epochs, s.samples) == ("./LA/", 32, 100, 64_600)
    assert (s.deterministic, s.cudnn_benchmark, s.compile, s.freq_mask, s.amsgrad) == (False, True, False, True, False)
    assert (s.lr, s.lr_min, s.betas, s.schedule) == (1e-4, 5e-6, (0.9, 0.99), "cosine")
    assert s.precision == "bf16"
    file.write_text(json.dumps({**CONF, "use_amp": "False", "gat_dims": 3}))
    with pytest.raises(SettingsError, match=r"SEResNet\.conf: there is no setting 'gat_dims'. The nearest is"):
        settings_of(Request("anti_spoof", tmp_path, "slow", config=file))
    file.write_text(json.dumps({**CONF, "use_amp": "maybe"}))
    with pytest.raises(SettingsError, match="precision='maybe' is not one of off, fp16, bf16, auto"):
        settings_of(Request("anti_spoof", tmp_path, "slow", config=file))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"taps": 128}, "taps=128"),
        ({"class_weights": (1.0,)}, "class_weights"),
        ({"class_weights": (0.0, 1.0)}, "class_weights"),
        ({"freq_mask": True, "bands": 10}, "freq_mask_most=20 is not from 1 to all 10 bands"),
        ({"database": "a", "stage_to": "b"}, "stage_to copies what --data names"),
        ({"samples": 10}, "samples=10"),
        ({"swa": True, "evaluate_every_epochs": 0.0}, "evaluate_every_epochs=0 has none"),
        ({"lr_min": 1.0}, "lr_min=1.0"),
    ],
)
def test_contradictions(change: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        replace(SpoofSettings(), **change).check()


def test_database_names_the_data_and_data_wins(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["anti_spoof", "--out", str(tmp_path / "run"), *TINY]
    assert train.main([*command, f"--set=database={made}"]) == 0 and not (tmp_path / "run/made_data").exists()
    assert train.main([*command, f"--set=database={made}", "--data", str(tmp_path)]) == 1
    assert f"{tmp_path}/ASVspoof2019_LA_cm_protocols" in capsys.readouterr().err


@pytest.mark.cousin
def test_torchrun_on_two_ranks(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*torchrun, "-m", "hotlap_workloads.train", "anti_spoof", "--data", str(made), "--out", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(Path(train.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [
            *command,
            *TINY,
            "--set=swa=true",
            "--set=batch_size=4",
            *[f"--set={kind}_every_epochs=0.67" for kind in ("heavy", "evaluate")],
        ],
        env=environment,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Step 2/2" in done.stdout and done.stdout.count("heavy_swa_eer") == 1
    capsys.readouterr()
    assert evaluate.main(["anti_spoof", "--data", str(made), "--out", str(tmp_path)]) == 0
    last = [row for row in rows(tmp_path) if "eer" in row][-1]
    assert json.loads(capsys.readouterr().out)["eer"] == pytest.approx(last["eer"], abs=1e-9)


@pytest.mark.parametrize("front_end", ["lfcc", "conv"])
def test_it_learns_a_batch_by_heart(made: Path, tmp_path: Path, front_end: str) -> None:
    s = replace(SpoofSettings(), model="SEResNet18", front_end=front_end, samples=8000, decode="once")  # type: ignore[arg-type]
    torch.manual_seed(0)
    task = WORKLOAD.build(replace(s, front_end_at="batch"), Context(torch.device("cpu"), tmp_path, made))
    batch = task.train_set.__getitems__([Draw(row, row) for row in range(12)])  # type: ignore[attr-defined]
    optimizer = torch.optim.Adam(task.objective.parameters(), 1e-3)
    found = []
    for _ in range(25):
        said = task.objective(batch)
        optimizer.zero_grad()
        said["loss"].backward()
        optimizer.step()
        found.append(said["loss"].item())
    assert found[-1] < 0.2 * found[0] and said["accuracy"] == 1


def test_the_real_protocols_and_recordings(real_data: Callable[[str], Path], tmp_path: Path) -> None:
    data = real_data("antispoof")
    assert (data / "protocols/SO.cm.train.trn.txt").is_file(), "another set under this name"
    out = tmp_path / "run"
    command = ["anti_spoof", "--data", str(data), "--out", str(out), *TINY, "--set=bands=40", "--set=decode=each_time"]
    assert train.main([*command, "--set=heavy_every_epochs=0.03"]) == 0
    found = {key: value for row in rows(out) for key, value in row.items()}
    assert 0 <= found["eer"] <= 1 and 0 <= found["heavy_eer"] <= 1 and "min_tdcf" not in found
    assert np.isfinite(list(losses(out).values())).all()
