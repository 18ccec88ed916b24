"""The whole training by its command line: presets, bad data, quarantine, ranks, and the real recordings."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from hotlap_workloads import evaluate, train
from hotlap_workloads.engine.machine import Machine
from hotlap_workloads.engine.ranks import Ranks
from hotlap_workloads.engine.task import Context
from hotlap_workloads.errors import DataError, SettingsError
from hotlap_workloads.parts.audio_file import read_wave
from hotlap_workloads.parts.crop import even_crops
from hotlap_workloads.parts.trials import read_trials
from hotlap_workloads.session import Request, settings_of
from hotlap_workloads.speaker_verify.augment_batch import BatchAugment, _bank
from hotlap_workloads.speaker_verify.augment_sample import SampleAugment
from hotlap_workloads.speaker_verify.lists import read_train_list
from hotlap_workloads.speaker_verify.made_data import make_data
from hotlap_workloads.speaker_verify.model import SpeakerNet, samples_of
from hotlap_workloads.speaker_verify.noises import find_noises
from hotlap_workloads.speaker_verify.presets import PRESETS
from hotlap_workloads.speaker_verify.settings import SpeakerSettings
from hotlap_workloads.speaker_verify.workload import WORKLOAD

CPU = torch.device("cpu")
TINY = [
    *("--set", "width=0.25", "--set", "embedding=32", "--set", "batch_size=12", "--set", "crop_s=0.5"),
    *("--set", "eval_crops=2", "--set", "eval_crop_s=0.5", "--set", "print_every_steps=1", "--set", "max_steps=2"),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The self-made data, with few of its recordings in the lists."""
    folder = make_data(tmp_path_factory.mktemp("speaker") / "made")
    few = (folder / "val_trials.txt").read_text().splitlines()[:40]
    (folder / "val_trials.txt").write_text("\n".join(few) + "\n")
    return folder


def rows(out: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_trains_and_evaluates(
    made: Path, tmp_path: Path, preset: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert train.main(["speaker_verify", "--preset", preset, "--data", str(made), "--out", str(out), *TINY]) == 0
    last = rows(out)[-1]
    assert 0 <= last["eer"] <= 1 and 0 <= last["min_dcf"] <= 1
    capsys.readouterr()
    assert evaluate.main(["speaker_verify", "--out", str(out), "--data", str(made)]) == 0
    assert json.loads(capsys.readouterr().out)["eer"] == pytest.approx(last["eer"], abs=1e-9)


@pytest.mark.parametrize("machine", [Machine(2), Machine(16, (6, 0), "P100"), Machine(64, (9, 0), "H200")])
def test_presets_fit_their_machines(machine: Machine) -> None:
    from hotlap_workloads.engine.machine import check_machine

    for preset in PRESETS.values():
        settings = preset.make(machine)
        settings.check()
        check_machine(settings, machine)
    slow, fast = PRESETS["slow"].make(machine), PRESETS["fast"].make(machine)
    assert isinstance(slow, SpeakerSettings) and isinstance(fast, SpeakerSettings)
    assert (slow.eval_files, fast.eval_files) == (1, 8)
    assert fast.workers == machine.packed_workers and fast.batch_size == (200 if machine.gpu else 100)
    assert fast.lr == slow.lr and "a batch of 200 on a GPU, at the learning rate of 100" in PRESETS["fast"].why


def test_one_file_at_a_time_and_batched_evaluation_give_the_same_scores(made: Path, tmp_path: Path) -> None:
    scores = []
    for files, change in (
        (1, {"decode": "each_time", "eval_batch_size": 1}),
        (5, {"decode": "once", "eval_batch_size": 17}),
    ):
        settings = replace(SpeakerSettings(), width=0.25, eval_crops=3, eval_crop_s=0.5, batch_size=8, **change)  # type: ignore[arg-type]
        torch.manual_seed(0)
        task = WORKLOAD.build(settings, Context(torch.device("cpu"), tmp_path, made))
        task.objective.eval()
        with torch.inference_mode():
            scorer = task.scorer(False)
            assert scorer.files_at_once == files
            scores.append(scorer.scores())
            vectors = scorer.embeddings().double()
            wave = torch.from_numpy(even_crops(read_wave(scorer.trials.paths[7]), 8000, 3)).float() / 32768
            own = torch.nn.functional.normalize(task.objective.net(wave), dim=1)
        torch.testing.assert_close(vectors[7].float(), own, atol=1e-4, rtol=0)
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-5)
    pairs = [
        (vectors[a] @ vectors[b].T).mean().item() for a, b in zip(scorer.trials.left, scorer.trials.right, strict=True)
    ]
    np.testing.assert_allclose(scores[1], pairs, atol=1e-6)


@pytest.mark.parametrize("model", ["ResNetSE34L", "ResNetSE34V2"])
def test_the_shortest_crops_pass_the_network(model: str) -> None:
    settings = replace(SpeakerSettings(), width=0.25, model=model, crop_s=0.025, eval_crop_s=0.025, pooling="ASP")  # type: ignore[arg-type]
    settings.check()
    assert SpeakerNet(settings)(torch.randn(2, samples_of(0.025))).isfinite().all()
    assert [samples_of(seconds) for seconds in (2.0, 2.015, 0.00001)] == [32_000, 32_240, 1]


def test_augmentation_keeps_to_its_law(made: Path) -> None:
    """Both ways: a fifth stays as it was, and what is added lies as many dB below as it should."""
    files = find_noises(made / "musan", made / "rirs")
    torch.manual_seed(0)
    wave = read_wave(next((made / "wav").rglob("*.wav")))[:8000].astype(np.float32) / np.float32(32768)
    power = (wave**2).mean()
    one_by_one = np.stack([SampleAugment(files)(wave, seed) for seed in range(300)])
    at_once = BatchAugment(files, 1.0, CPU)(torch.from_numpy(wave).repeat(300, 1)).numpy()
    for out in (one_by_one, at_once):
        unchanged = (out == wave).all(axis=1)
        assert 0.12 < unchanged.mean() < 0.28
        assert np.isfinite(out).all()
    for kind, low_db, high_db in (("noise", 0, 15), ("music", 5, 15)):
        added = BatchAugment(files, 1.0, CPU)._with(torch.from_numpy(wave).repeat(64, 1), kind).numpy() - wave
        below_db = 10 * np.log10(power / (added**2).mean(axis=1))
        assert below_db.min() > low_db - 0.1 and below_db.max() < high_db + 0.1 and np.ptp(below_db) > 5


def test_kinds_are_chosen_without_a_look_at_the_device(made: Path) -> None:
    """On the device "meta" there are shapes alone: nothing could be read from it."""
    meta = torch.device("meta")
    augment = BatchAugment(find_noises(made / "musan", made / "rirs"), 0.0, meta)
    assert augment(torch.zeros(64, 8000, device=meta)).shape == (64, 8000)


def test_rooms_by_fft_equal_convolution(made: Path) -> None:
    files = find_noises(made / "musan", made / "rirs")
    augment = BatchAugment(replace(files, rooms=files.rooms[:1]), 1.0, CPU)
    wave = np.random.default_rng(0).standard_normal(4000).astype(np.float32)
    room = read_wave(files.rooms[0]).astype(np.float64)
    wanted = np.convolve(wave, room / np.sqrt((room**2).sum()))[:4000]
    np.testing.assert_allclose(augment._in_rooms(torch.from_numpy(wave)[None])[0].numpy(), wanted, atol=1e-4)


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("train_list.txt", "a b c\n", "line 1 has 3 fields, not `speaker path`"),
        ("train_list.txt", "", "is empty"),
        ("train_list.txt", "made000 made000/00000.wav\n", "names one speaker alone"),
        (
            "train_list.txt",
            "a made000/00000.wav\nb made001/99999.wav\n",
            "train_list.txt: line 2 names .*99999.wav, which does not exist",
        ),
        (
            "test_trials.txt",
            "1 made000/00000.wav made000/99999.wav\n",
            "line 1 names .*99999.wav, which does not exist",
        ),
        ("val_trials.txt", "1 made000/00000.wav made000/99999.wav\n", "line 1 names .*99999.wav, which does not exist"),
        ("val_trials.txt", "2 made000/00000.wav made000/00001.wav\n", "line 1: the label is '2'"),
        ("val_trials.txt", "1 made000/00000.wav made000/00001.wav\n", "has 1 trials of one person among 1"),
    ],
)
def test_wrong_lists_are_named(
    made: Path, tmp_path: Path, file: str, text: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("train_list.txt", "val_trials.txt"):
        shutil.copy(made / name, tmp_path / name)
    (tmp_path / "wav").symlink_to(made / "wav")
    (tmp_path / file).write_text(text)
    command = ["speaker_verify", "--data", str(tmp_path), "--out", str(tmp_path / "run"), "--set", "augment=none"]
    assert train.main([*command, "--set", "heavy_every_epochs=1"]) == 1
    error = capsys.readouterr().err
    assert file in error
    assert re.search(said, error), error


def test_a_cut_file_stops_the_training_or_is_quarantined(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    shutil.copytree(made, data)
    cut = data / "wav/made003/00004.wav"
    cut.write_bytes(cut.read_bytes()[:5000])
    command = ["speaker_verify", "--data", str(data), "--out", str(tmp_path / "run"), *TINY]
    assert train.main(command) == 1
    assert "made003/00004.wav: is cut short" in capsys.readouterr().err
    assert train.main([*command, "--quarantine"]) == 0
    assert (tmp_path / "run/quarantine.txt").read_text() == f"{cut}\tis cut short.\n"


def test_a_training_list_of_which_one_speaker_is_left_is_named(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a wrong wav_folder nothing can be read."""
    command = ["speaker_verify", "--data", str(made), "--out", str(tmp_path / "run"), "--quarantine", *TINY]
    values = ["--set", "wav_folder=nowhere", "--set", "trial_folder=wav", "--set", "augment=none"]
    assert train.main([*command, *values]) == 1
    error = capsys.readouterr().err
    said = r"nowhere/made000/\d+\.wav and \d+ other files cannot be read\. What is left: has 0 speakers"
    assert re.search(said, error)
    assert "quarantine.txt" in error
    utterances = read_train_list(made / "train_list.txt", made / "wav")
    bad = {path for path, label in zip(utterances.paths, utterances.labels, strict=True) if label}
    with pytest.raises(DataError, match="has 1 speaker"):
        utterances.without(bad)


@pytest.mark.parametrize("augment", ["batch", "sample"])
def test_noises_and_rooms_are_quarantined(made: Path, tmp_path: Path, augment: str) -> None:
    """They stay in the list when the heavy evaluation adds its own; of each kind one must be left."""
    data = tmp_path / "data"
    shutil.copytree(made, data)
    music, rooms = data / "musan/music/made/music-2.wav", sorted((data / "rirs").rglob("*.wav"))
    for path in (music, rooms[3]):
        path.write_bytes(path.read_bytes()[:-500])
    settings = replace(SpeakerSettings(), width=0.25, augment=augment)  # type: ignore[arg-type]
    task = WORKLOAD.build(settings, Context(CPU, tmp_path, data, quarantine=True))
    task.scorer(True)
    listed = [line.split("\t")[0] for line in (tmp_path / "quarantine.txt").read_text().splitlines()]
    assert listed == sorted([str(music), str(rooms[3])])
    if augment == "batch":
        assert len(task.objective.augment.rooms) == 7
    else:
        files = task.train_set.augment.files
        assert len(files.rooms) == 7 and [len(files.by_kind[kind]) for kind in ("noise", "speech", "music")] == [
            6,
            8,
            5,
        ]
    for path in rooms:
        path.write_bytes(b"no")
    with pytest.raises(DataError, match=r"room-0\.wav: and all 8 files of room cannot be read"):
        WORKLOAD.build(settings, Context(CPU, tmp_path, data, quarantine=True))


def test_the_batch_search_keeps_to_the_speakers_of_a_pair_loss(made: Path, tmp_path: Path) -> None:
    settings = replace(SpeakerSettings(), width=0.25, batch_size=4)
    for loss, world, most in (("angleproto", 1, 64), ("ge2e", 2, 32), ("amsoftmax", 1, 0)):
        context = Context(CPU, tmp_path, made, Ranks(0, world))
        assert WORKLOAD.build(replace(settings, loss=loss), context).batch_most == most  # type: ignore[arg-type]


def test_rooms_in_memory_are_as_many_as_asked(made: Path) -> None:
    files = find_noises(made / "musan", made / "rirs")
    assert [len(BatchAugment(files, 0.0, CPU, rooms).rooms) for rooms in (3, 0, 256)] == [3, 8, 8]


def test_command_line_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["--out", str(tmp_path)]
    assert train.main(["speaker_verfy", *out]) == 2 and "nearest is 'speaker_verify'" in capsys.readouterr().err
    assert train.main(["speaker_verify", "--preset", "fats", *out]) == 2
    assert "nearest is 'fast'" in capsys.readouterr().err
    assert train.main(["speaker_verify", "--set", "n_mels=40", *out]) == 2
    assert "nearest is 'mels'" in capsys.readouterr().err
    assert train.main(["speaker_verify", "--set", "loss=ge2e", "--set", "batch_size=101", *out]) == 2
    assert "not a multiple of utterances=2" in capsys.readouterr().err
    assert evaluate.main(["speaker_verify", "--out", str(tmp_path / "none")]) == 2
    assert train.main([]) == 2


def test_the_list_says_what_each_preset_changes(capsys: pytest.CaptureFixture[str]) -> None:
    assert train.main(["--list"]) == 0
    listed = capsys.readouterr().out
    assert all(f"  {name}:" in listed for name in PRESETS)
    assert "decode=once" in listed and "accumulate=4" in listed


def test_the_published_configuration_is_read(tmp_path: Path) -> None:
    config = tmp_path / "experiment_01.yaml"
    config.write_text("model: ResNetSE34V2\nencoder_type: ASP\nn_mels: 64\ntrainfunc: angleproto\nnPerSpeaker: 2\n")
    settings = settings_of(Request("speaker_verify", tmp_path, "slow", config=config))
    assert isinstance(settings, SpeakerSettings)
    assert (settings.model, settings.pooling, settings.mels, settings.group) == ("ResNetSE34V2", "ASP", 64, 2)


PUBLISHED = """
augment: true
batch_size: 100
test_interval: 5
trainfunc: aamsoftmax
patience: 15
optimizer: adam
lr: 0.001
margin: 0.2
scale: 30
nPerSpeaker: 1
nClasses: 5991
train_list: /data/train_list.txt
test_list: /data/cleaned.txt
train_path : /data/voxceleb2
test_path : /data/voxceleb1
musan_path: /data/musan
rir_path: /data/RIRS_NOISES/simulated_rirs
n_mels: 64
dcf_p_target: 0.01
dcf_c_miss: 10
dcf_c_fa: 1
model: ResNetSE34L
save_path: exps/my_model
log_input: True
"""


def test_a_whole_published_file_is_read_and_what_is_left_out_is_said(tmp_path: Path) -> None:
    config, said = tmp_path / "experiment_01.yaml", list[str]()
    config.write_text(PUBLISHED)
    s = settings_of(Request("speaker_verify", tmp_path, "slow", config=config), say=said.append)
    assert isinstance(s, SpeakerSettings)
    assert (s.batch_size, s.augment, s.evaluate_every_epochs, s.decay_every_epochs) == (100, "sample", 5, 5)
    assert (s.p_target, s.c_miss, s.c_fa) == (0.01, 10, 1)
    assert (s.wav_folder, s.trial_folder, s.trials) == ("/data/voxceleb2", "/data/voxceleb1", "/data/cleaned.txt")
    left_out = ["patience=15", "nClasses=5991", "save_path=exps/my_model", "log_input=True"]
    assert [line.split(" is left out: ")[0] for line in said] == left_out
    fast = settings_of(Request("speaker_verify", tmp_path, "fast", config=config))
    assert isinstance(fast, SpeakerSettings) and fast.augment == "batch"


def test_published_batches_count_speakers(tmp_path: Path) -> None:
    config, said = tmp_path / "ResNetSE34L_AP.yaml", list[str]()
    config.write_text("trainfunc: angleproto\nnPerSpeaker: 2\nbatch_size: 200\naugment: false\n")
    s = settings_of(Request("speaker_verify", tmp_path, "slow", config=config), say=said.append)
    assert isinstance(s, SpeakerSettings)
    assert (s.batch_size, s.group, s.augment) == (400, 2, "none") and "are batch_size=400 here" in said[0]


def test_arguments_of_the_published_trainer_are_translated(tmp_path: Path) -> None:
    """Of 200 frames, it reads 200 hops of 10 ms and 15 ms more."""
    config, said = tmp_path / "experiment.yaml", list[str]()
    config.write_text("max_frames: 200\neval_frames: 400\nmixedprec: True\nscheduler: steplr\nmax_seg_per_spk: 500\n")
    s = settings_of(Request("speaker_verify", tmp_path, "slow", config=config), Machine(2), say=said.append)
    assert isinstance(s, SpeakerSettings)
    assert (samples_of(s.crop_s), samples_of(s.eval_crop_s)) == (200 * 160 + 240, 400 * 160 + 240)
    assert (s.precision, s.schedule) == ("bf16", "step")
    assert said == ["max_seg_per_spk=500 is left out: an epoch has every utterance of every speaker once."]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("eval_frames: 0", "eval_frames=0 is not a number of frames of 10 ms"),
        ("max_frames: long", "max_frames='long' is not a number of frames"),
        ("scheduler: cycliclr", "scheduler='cycliclr' is not known here. steplr is"),
    ],
)
def test_arguments_that_mean_nothing_here_are_named(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "experiment.yaml").write_text(line)
    with pytest.raises(SettingsError, match=re.escape(said)):
        settings_of(Request("speaker_verify", tmp_path, "slow", config=tmp_path / "experiment.yaml"))


def test_trials_may_lie_elsewhere(made: Path, tmp_path: Path) -> None:
    shutil.copy(made / "val_trials.txt", tmp_path)
    (tmp_path / "others").symlink_to(made / "wav")
    change = {"trials": str(tmp_path / "val_trials.txt"), "trial_folder": str(tmp_path / "others")}
    task = WORKLOAD.build(replace(SpeakerSettings(), width=0.25, **change), Context(CPU, tmp_path, made))  # type: ignore[arg-type]
    assert task.scorer(False).trials.paths[0].parents[1] == tmp_path / "others"


def test_files_of_trials_that_are_gone_are_quarantined(made: Path, tmp_path: Path) -> None:
    """Of the evaluation and of the heavy one, in one list."""
    data, gone = tmp_path / "data", []
    shutil.copytree(made, data)
    for name in ("val", "test"):
        file = data / f"{name}_trials.txt"
        lines = file.read_text().splitlines()
        kinds = [[line for line in lines if line.startswith(kind)][:9] for kind in "01"]
        file.write_text("\n".join([*kinds[0], *kinds[1], f"{lines[0].rpartition(' ')[0]} gone/{name}.wav"]) + "\n")
        gone.append(data / f"wav/gone/{name}.wav")
    settings = replace(SpeakerSettings(), width=0.25)
    with pytest.raises(DataError, match="which does not exist"):
        WORKLOAD.build(settings, Context(CPU, tmp_path, data))
    task = WORKLOAD.build(settings, Context(CPU, tmp_path, data, quarantine=True))
    for heavy, path in enumerate(gone):
        assert path not in task.scorer(bool(heavy)).trials.paths
    listed = [Path(line.split("\t")[0]) for line in (tmp_path / "quarantine.txt").read_text().splitlines()]
    assert set(listed) == set(gone)
    (data / "test_trials.txt").write_text(f"{lines[0]}\n{1 - int(lines[0][0])} gone/a.wav gone/b.wav\n")
    with pytest.raises(DataError, match=r"gone/a\.wav and 1 other files cannot be read\. What is left: has"):
        WORKLOAD.build(replace(settings, heavy_every_epochs=1.0), Context(CPU, tmp_path, data, quarantine=True))


def test_a_bank_has_the_same_share_of_every_noise(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.wav" for number in range(1, 9)]
    for number, path in enumerate(paths, 1):
        soundfile.write(str(path), np.full(40 * 16_000, number, np.int16), 16_000)
    bank = _bank(paths, 2.0)  # a minute would be full after two of them
    assert [int((bank == number).sum()) for number in range(1, 9)] == [15 * 16_000] * 8
    few = _bank(paths, 0.5)
    assert len(few) == 30 * 16_000 and len(few.unique()) == 3, "no less than 10 s of a file"


def test_crops_may_be_longer_than_all_noise(made: Path) -> None:
    augment = BatchAugment(find_noises(made / "musan", made / "rirs"), 0.0, CPU)
    waves = torch.rand(4, 25 * 16_000) - 0.5
    for kind in ("noise", "speech", "music"):
        added = augment._with(waves, kind) - waves
        assert added.shape == waves.shape and bool((added.abs() > 0).any(dim=1).all())


@pytest.mark.cousin
def test_torchrun_on_two_ranks(made: Path, tmp_path: Path) -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*torchrun, "-m", "hotlap_workloads.train", "speaker_verify", "--data", str(made), "--out", str(tmp_path)]
    source = str(Path(train.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
    loss = ["--set", "loss=angleproto"]
    done = subprocess.run(
        [*command, *TINY, *loss], env=environment, capture_output=True, text=True, timeout=150, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("eer") == 1 and "Step 2/2" in done.stdout


def test_voices_of_the_made_data_can_be_told_apart(made: Path) -> None:
    """By their mean spectra, without any training: better than chance, and not perfectly."""
    from hotlap_workloads.parts.spectrogram import mel_filters
    from hotlap_workloads.parts.verification import eer

    trials = read_trials(made / "test_trials.txt", made / "wav")
    window, filters = torch.hann_window(512), mel_filters(40, 257, 16_000)
    spectra = []
    for path in trials.paths:
        wave = torch.from_numpy(read_wave(path)).float() / 32768
        spectrum = torch.stft(wave, 512, 160, window=window, return_complex=True).abs().square()
        mels = (filters @ spectrum + 1e-6).log().mean(1)
        spectra.append(mels - mels.mean())
    vectors = torch.stack(spectra)
    vectors = torch.nn.functional.normalize(vectors - vectors.mean(0), dim=1)
    scores = (vectors[trials.left] * vectors[trials.right]).sum(1)
    assert 0.02 < eer(scores, trials.same) < 0.4


def test_the_real_lists_and_recordings(real_data: Callable[[str], Path], tmp_path: Path) -> None:
    data = real_data("speech_sv")
    utterances = read_train_list(data / "train_list.txt", data / "wav")
    assert len(utterances.speakers) == 180 and len(utterances.paths) == 3060
    assert len(read_trials(data / "val_trials.txt", data / "wav").same) == 4500
    assert len(read_trials(data / "test_trials.txt", data / "wav").same) == 12_000
    assert all(16_000 <= len(read_wave(path)) <= 2.05 * 16_000 for path in utterances.paths[::150])
    command = ["speaker_verify", "--data", str(data), "--out", str(tmp_path), "--set", "augment=none"]
    assert train.main([*command, *TINY, "--set", "decode=each_time"]) == 0
    assert np.isfinite([row["loss"] for row in rows(tmp_path) if "loss" in row]).all()


def test_recordings_that_are_no_wav_too(made: Path, tmp_path: Path) -> None:
    wave = read_wave(next((made / "wav").rglob("*.wav")))
    for kind in ("flac", "ogg"):
        soundfile.write(str(tmp_path / f"a.{kind}"), wave, 16_000)
        assert len(read_wave(tmp_path / f"a.{kind}")) == len(wave)


def test_data_are_staged_on_a_local_disk_first(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    local = tmp_path / "local"
    command = ["speaker_verify", "--data", str(made), "--out", str(tmp_path / "run"), *TINY]
    assert train.main([*command, "--set", f"stage_to={local}"]) == 0
    assert "is staged in" in capsys.readouterr().out
    listed = json.loads((tmp_path / "run/train.bank/files.json").read_text())
    assert all(path.startswith(str(local)) for path, *_ in listed["files"])
    assert (local / "train_list.txt").read_bytes() == (made / "train_list.txt").read_bytes()


def test_data_that_cannot_be_staged_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    command = ["speaker_verify", "--data", str(tmp_path / "empty"), "--out", str(tmp_path / "run"), *TINY]
    assert train.main([*command, "--set", f"stage_to={tmp_path}/local"]) == 1
    assert "empty holds no files to stage" in capsys.readouterr().err


def test_a_wrong_place_for_the_noises_is_named(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["speaker_verify", "--data", str(made), "--out", str(tmp_path), *TINY, "--set", f"musan={tmp_path}/no"]
    assert train.main(command) == 1
    assert f"{tmp_path}/no/noise: holds no .wav file." in capsys.readouterr().err


def test_sigterm_ends_the_program_with_its_code_and_the_same_command_goes_on(made: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hotlap_workloads.train", "speaker_verify", "--data", str(made)]
    command += ["--out", str(tmp_path), *TINY, "--set", "epochs=500", "--set", "evaluate_every_epochs=0"]
    command += ["--set", "compile=false"]  # of so many epochs the model would be compiled
    environment = {**os.environ, "PYTHONPATH": str(Path(train.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    running = subprocess.Popen(
        [*command, "--set", "max_steps=0"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stdout is not None
    while "Step 2/" not in running.stdout.readline():
        assert running.poll() is None
    running.terminate()
    _, error = running.communicate(timeout=60)
    assert running.returncode == 143 and "Stopped by SIGTERM after step" in error
    done = int(error.split("after step ")[1].split(",")[0])
    again = [*command, "--set", f"max_steps={done + 1}"]
    output = subprocess.run(again, env=environment, capture_output=True, text=True, timeout=60, check=True).stdout
    assert f"Going on after step {done}." in output and f"Step {done + 1}/{done + 1}" in output
