"""The whole training by its command line: presets, resume, ranks, bad data, quarantine, and the real faces."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from launch import on_two_ranks

from hotlap_workloads import evaluate, train
from hotlap_workloads.engine.machine import Machine, check_machine
from hotlap_workloads.engine.task import Context
from hotlap_workloads.face_distill.found_sets import heavy_sets, train_squares, verification_sets
from hotlap_workloads.face_distill.made_data import make_data
from hotlap_workloads.face_distill.presets import PRESETS
from hotlap_workloads.face_distill.settings import FaceSettings
from hotlap_workloads.face_distill.teacher import make_teacher
from hotlap_workloads.face_distill.workload import WORKLOAD
from hotlap_workloads.session import Request, settings_of

NETWORKS = {"size": 32, "embedding": 16, "student_width": 0.25, "teacher": "iresnet18", "teacher_width": 0.125}
VALUES = {**NETWORKS, "teacher_weights": "untrained", "batch_size": 16, "print_every_steps": 1, "fars": "0.1,0.01"}
VALUES |= {"photos_per_identity": 4}
TINY = [part for key, value in VALUES.items() for part in ("--set", f"{key}={value}")]
SMALL = replace(FaceSettings(), **NETWORKS, teacher_weights="untrained", batch_size=16)  # type: ignore[arg-type]
METRICS = {"accuracy", "made_accuracy", "made_accuracy_std", "made_eer", "made_xnorm"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The self-made data, with few of its trials; ``VALUES`` takes few of its photos."""
    folder = make_data(tmp_path_factory.mktemp("face") / "made")
    images, same = pickle.loads((folder / "made.bin").read_bytes())
    (folder / "made.bin").write_bytes(pickle.dumps((images[:96], same[:48])))
    return folder


def run(data: Path, out: Path, *more: str, steps: int = 2) -> int:
    settings = [*TINY, "--set", f"max_steps={steps}", *(part for one in more for part in ("--set", one))]
    return train.main(["face_distill", "--data", str(data), "--out", str(out), *settings])


def rows(out: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def losses(out: Path) -> dict[float, float]:
    return {row["step"]: row["loss"] for row in rows(out) if "loss" in row}


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_trains_and_evaluates(
    made: Path, tmp_path: Path, preset: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out, few = tmp_path / "run", ["--set", "workers=0", "--set", "max_steps=2"]
    few += ["--set", "student=iresnet18"] if preset == "teacher" else []
    assert train.main(["face_distill", "--preset", preset, "--data", str(made), "--out", str(out), *TINY, *few]) == 0
    last = rows(out)[-1]
    assert set(last) == METRICS | {"step"} and 0 <= last["accuracy"] <= 1 and last["made_xnorm"] > 0
    assert ("centre_weight" in rows(out)[0]) is (preset != "teacher")
    capsys.readouterr()
    assert evaluate.main(["face_distill", "--out", str(out), "--data", str(made), "--heavy"]) == 0
    heavy = json.loads(capsys.readouterr().out)
    assert set(heavy) == {f"ijbc_tar_at_far_{x}" for x in ("1e-01", "1e-02")} | {"tinyface_rank1", "tinyface_rank5"}
    assert all(0 <= value <= 1 for value in heavy.values())


@pytest.mark.parametrize("machine", [Machine(2), Machine(16, (6, 0), "P100"), Machine(64, (9, 0), "H200")])
def test_presets_fit_their_machines_and_keep_what_is_published(machine: Machine) -> None:
    for preset in PRESETS.values():
        settings = preset.make(machine)
        settings.check()
        check_machine(settings, machine)
        assert isinstance(settings, FaceSettings)
        assert (settings.size, settings.embedding, settings.batch_size, settings.scale) == (112, 512, 128, 64)
        assert (settings.lr, settings.lr_for_samples, settings.momentum, settings.weight_decay) == (0.1, 512, 0.9, 5e-4)
        assert settings.clip_norm == 5
    slow, fast = PRESETS["slow"].make(machine), PRESETS["fast"].make(machine)
    assert slow.workers == 16 and fast.workers == machine.packed_workers
    assert (fast.evaluate_every_epochs, fast.heavy_every_epochs) == (1, 4)
    storage = PRESETS["slow_storage"].make(machine)
    assert replace(storage, page_cache_mb=0.0, storage_ms=5.0) == PRESETS["slow"].make(machine)
    assert storage.page_cache_mb * 1e6 / 5000 / storage.batch_size == 1050 and round(1000 / storage.storage_ms) == 192
    reduced = PRESETS["reduced_eval"].make(machine)
    assert (reduced.evaluate_every_epochs, reduced.heavy_every_epochs) == (2, 5)
    margins = [replace(SMALL, head=head).margin_used for head in ("adaptive_arcface", "cosface", "adaptive_adaface")]  # type: ignore[arg-type]
    assert margins == [0.45, 0.35, 0.4]


def test_without_data_a_small_set_is_made_and_learned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The default of the command line on a CPU. A GPU bears the published sizes."""
    values = {
        "device": "cpu",
        "epochs": 1,
        "heavy_every_epochs": 0,
        "print_every_steps": 5,
        "student_width": 0.25,
        "embedding": 32,
    }
    few = [part for key, value in values.items() for part in ("--set", f"{key}={value}")]
    assert train.main(["face_distill", "--out", str(tmp_path), *few]) == 0
    said = capsys.readouterr().out
    assert "No --data: training on" in said and "The teacher is untrained" in said
    assert 0 < rows(tmp_path)[-1]["made_accuracy"] <= 1
    assert losses(tmp_path)[20] < 0.95 * losses(tmp_path)[5]
    cpu, gpu = Machine(2), Machine(16, (8, 0), "A100")
    assert settings_of(Request("face_distill", tmp_path), cpu).size == 32
    assert settings_of(Request("face_distill", tmp_path, data=tmp_path), cpu).size == 112
    assert settings_of(Request("face_distill", tmp_path, values={"size": "112"}), cpu).size == 112
    on_gpu = settings_of(Request("face_distill", tmp_path), gpu)
    assert (on_gpu.size, on_gpu.batch_size, on_gpu.teacher_weights) == (112, 128, "untrained")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "how", [("decode=each_time", "teacher_outputs=each_time", "flip_on=loader"), ("head=adaptive_adaface",)]
)
def test_a_resume_is_exact(made: Path, tmp_path: Path, how: tuple[str, ...]) -> None:
    """Also across the end of an epoch: losses, and the moved centres in them, are those of the uninterrupted run."""
    many = ("batch_size=32", "evaluate_every_epochs=0", "heavy_every_epochs=0", *how)
    assert run(made, tmp_path / "whole", *many, steps=7) == 0
    assert run(made, tmp_path / "parts", *many, steps=3) == 0
    assert run(made, tmp_path / "parts", *many, steps=7) == 0
    assert len(losses(tmp_path / "whole")) == 7
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")


def test_the_fast_way_is_the_same_training(made: Path, tmp_path: Path) -> None:
    """Decoded and asked once, mirrored on the device, folded: losses as with each photo decoded and asked each time.

    With a small learning rate: a large one makes much of the last digits.
    """
    same = ("precision=off", "channels_last=false", "evaluate_every_epochs=0", "heavy_every_epochs=0", "lr=0.01")
    slow = ("decode=each_time", "teacher_outputs=each_time", "flip_on=loader", "teacher_mode=plain")
    assert run(made, tmp_path / "fast", *same, steps=4) == 0
    assert run(made, tmp_path / "slow", *same, *slow, steps=4) == 0
    a, b = (list(losses(tmp_path / name).values()) for name in ("slow", "fast"))
    assert len(a) == 4 and a[0] != a[-1]
    np.testing.assert_allclose(a, b, rtol=2e-3)


def test_what_the_teacher_said_is_kept_and_asked_again_of_another(made: Path, tmp_path: Path) -> None:
    context = Context(torch.device("cpu"), tmp_path, made, say=lambda line: None)
    once = replace(SMALL, decode="once", flip_on="device", teacher_outputs="once")
    task = WORKLOAD.build(once, context)
    faces, teacher = task.train_set, make_teacher(SMALL, train_squares(SMALL, made), context)
    batch = faces.__getitems__(_draws())  # type: ignore[attr-defined]
    from hotlap_workloads.face_distill.data import as_input

    asked = teacher(as_input(batch["image"], batch["flip"]))
    torch.testing.assert_close(batch["teacher"].float(), asked, atol=1e-3, rtol=0)
    assert batch["flip"].any() and not batch["flip"].all()
    bank = tmp_path / "teacher.bank/said.npy"
    before = bank.stat().st_mtime_ns
    WORKLOAD.build(once, context)
    assert bank.stat().st_mtime_ns == before
    WORKLOAD.build(replace(once, teacher_mode="folded"), context)
    assert bank.stat().st_mtime_ns != before


def _draws() -> list[object]:
    from hotlap_workloads.engine.order import Draw

    return [Draw(row, row // 7) for row in range(0, 640, 40)]


def test_all_ways_of_evaluating_give_the_same_metrics(made: Path, tmp_path: Path) -> None:
    found = []
    for change in (
        {"decode": "each_time", "eval_batch_size": 7},
        {"decode": "once", "flip_on": "device", "eval_batch_size": 64},
    ):
        torch.manual_seed(0)
        settings = replace(SMALL, head="arcface", fars=(0.1,), **change)  # type: ignore[arg-type]
        task = WORKLOAD.build(settings, Context(torch.device("cpu"), tmp_path, made, say=lambda line: None))
        task.objective.eval()
        with torch.inference_mode():
            found.append({**task.evaluate(False), **task.evaluate(True)})
            squares = task.sets(False)[0].squares
            plain, mirrored = task.embedder(squares, "made")
            photo = torch.from_numpy(squares(5)[0].copy()).permute(2, 0, 1)[None].float() / 127.5 - 1
            for said, x in ((plain, photo), (mirrored, photo.flip(3))):
                np.testing.assert_allclose(said[5], task.objective.net(x)[0].numpy(), rtol=1e-3, atol=1e-6)  # type: ignore[operator]
        assert not np.allclose(plain, mirrored, rtol=1e-2, atol=1e-5)
    assert found[0].keys() == found[1].keys() and len(found[0]) == 8
    for name, value in found[0].items():
        assert found[1][name] == pytest.approx(value, abs=0.01), name


def test_verification_sees_what_the_network_says(made: Path) -> None:
    """The photos, their mirror images, the sum, the folds: with embeddings that are the pixels themselves."""
    from hotlap_workloads.parts.face_metrics import fold_accuracies

    one = verification_sets(SMALL, made)[0]
    photos = np.stack([one.squares(row)[0].reshape(-1) / 255.0 - 0.5 for row in range(len(one.squares))])
    measured = one.measure(lambda squares, name: (photos, np.zeros_like(photos)))  # type: ignore[attr-defined, arg-type, return-value]
    same = [number % 24 < 12 for number in range(48)]
    assert measured["made_accuracy"] == fold_accuracies(photos[::2], photos[1::2], same).mean()
    assert 0.5 < measured["made_accuracy"] < 1  # pixels tell persons apart, and far from perfectly


def test_a_cut_photo_stops_the_training_or_is_quarantined(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    shutil.copytree(made, data)
    from hotlap_workloads.face_distill.records import RecordPhotos

    photos = RecordPhotos(data / "train.rec")
    offset = int(photos._offsets[98])
    content = bytearray((data / "train.rec").read_bytes())
    content[offset + 900 : offset + 1200] = bytes(300)
    content[offset + 32 : offset + 40] = b"no image"
    (data / "train.rec").write_bytes(bytes(content))
    shutil.copy(data / "made.bin", tmp_path)
    probe = next((data / "tinyface/Probe").glob("*.jpg"))
    probe.write_bytes(probe.read_bytes()[:500])
    for decode in ("decode=once", "decode=each_time"):
        assert run(data, tmp_path / decode, decode, "flip_on=device", "teacher_outputs=each_time", steps=40) == 1
        error = capsys.readouterr().err
        assert "train.rec/record 99: is no readable image" in error and "Traceback" not in error
    out = tmp_path / "quarantined"
    assert train.main(["face_distill", "--data", str(data), "--out", str(out), *TINY, "--set", "max_steps=1",
                       "--quarantine"]) == 0  # fmt: skip
    assert "2 of 496 files are left out" in capsys.readouterr().out
    listed = (out / "quarantine.txt").read_text()
    assert f"{probe}\tis cut short." in listed and "record 99\tis no readable image" in listed
    again = ["--out", str(out), "--data", str(data), "--heavy", "--quarantine"]
    assert evaluate.main(["face_distill", *again]) == 0


def test_a_photo_that_is_gone_is_quarantined(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data"
    shutil.copytree(made / "tinyface/Gallery_Match", data / "photos")
    shutil.copy(made / "made.bin", data)
    names = sorted(path.name for path in (data / "photos").iterdir())
    lines = [f"{name.split('_')[0]} photos/{name}" for name in [*names, "1_99.jpg"]]
    (data / "train_list.txt").write_text("\n".join(lines) + "\n")
    few = ("batch_size=8", "heavy_every_epochs=0", "photos_per_identity=0")
    assert run(data, tmp_path / "run", *few) == 1
    assert "photos/1_99.jpg: does not exist" in capsys.readouterr().err
    assert train.main(["face_distill", "--data", str(data), "--out", str(tmp_path / "run"), "--quarantine", *TINY,
                       *(part for one in (*few, "max_steps=1") for part in ("--set", one))]) == 0  # fmt: skip
    assert "1_99.jpg\tdoes not exist" in (tmp_path / "run/quarantine.txt").read_text()


def test_the_concentration_reaches_the_head(made: Path, tmp_path: Path) -> None:
    for head in ("adaface", "adaptive_adaface"):
        settings = replace(SMALL, head=head, concentration=0.5, photos_per_identity=2)  # type: ignore[arg-type]
        objective = WORKLOAD.build(settings, Context(torch.device("cpu"), tmp_path, made)).objective
        assert objective.head.concentration == 0.5


def test_a_last_batch_of_one_photo_is_left_out(made: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(made / "tinyface/Gallery_Match", data / "photos")
    shutil.copy(made / "made.bin", data)
    names = sorted(path.name for path in (data / "photos").iterdir())
    rows = [names[row % len(names)] for row in range(33)]
    (data / "train_list.txt").write_text("".join(f"{name.split('_')[0]} photos/{name}\n" for name in rows))
    values = ("drop_last=false", "epochs=2", "heavy_every_epochs=0", "photos_per_identity=0")
    assert run(data, tmp_path / "run", *values, steps=0) == 0
    assert list(losses(tmp_path / "run")) == [1, 2, 3, 4]


def test_a_set_as_it_is_shipped_has_no_heavy_evaluation(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Training says so once and does without; who asks for it is told that there is none."""
    data, out = tmp_path / "data", tmp_path / "run"
    data.mkdir()
    for name in ("train.rec", "train.idx", "made.bin"):
        shutil.copy(made / name, data)
    assert run(data, out, "heavy_every_epochs=0.01") == 0
    assert capsys.readouterr().out.count("holds nothing for the heavy evaluation") == 1
    assert set(rows(out)[-1]) == METRICS | {"step"}
    assert evaluate.main(["face_distill", "--out", str(out), "--data", str(data)]) == 0
    assert evaluate.main(["face_distill", "--out", str(out), "--data", str(data), "--heavy"]) == 1
    assert "holds nothing for the heavy evaluation (ijbb/, ijbc/" in capsys.readouterr().err.splitlines()[-1]
    assert run(data, out, "heavy=ijbc") == 1


def test_settings_that_do_not_go_together_are_named(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for change, said in (
        ("size=8", "size=8 is less than 16"),
        ("decode=each_time", "teacher_outputs=once asks the teacher about packed photos"),
        ("flip_on=loader", "decode=once reads whole batches of bytes"),
        ("fars=0", "are not all between 0 and 1"),
        ("margins=0.5", "nearest is 'margin'"),
        ("teacher_weights=", "needs a trained teacher"),
        ("verification=lfw", "lfw.bin: cannot be read: No such file"),
        ("heavy=tinyface,ijbb", "ijbb/meta/*_face_tid_mid.txt: matches 0 files"),
        ("identities=85742", "has 40 identities, and identities=85742"),
        ("train=faces.rec", "holds no faces.rec"),
    ):
        assert run(made, tmp_path / "run", change) in (1, 2), change
        assert said in capsys.readouterr().err


def test_the_published_configuration_is_read(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("network: iresnet18\nteacher: iresnet100\nembedding_size: 512\nm: 0.5\ns: 64.0\nsample: 50\n")
    settings = settings_of(Request("face_distill", tmp_path, "slow", config=config, data=tmp_path))
    assert isinstance(settings, FaceSettings)
    assert (settings.student, settings.teacher, settings.margin_used) == ("iresnet18", "iresnet100", 0.5)
    assert settings.photos_per_identity == 50


def test_two_ranks(made: Path, tmp_path: Path) -> None:
    """Centres that stay the same on both, one writer, a learning rate for the global batch."""
    more = ["--set", "max_steps=2", "--set", "warmup_epochs=0", "--set", "lr_for_samples=128"]
    told = on_two_ranks("face_ranks.py", "face_distill", "--data", str(made), "--out", str(tmp_path), *TINY, *more)
    assert told.count("made_accuracy ") == 1 and "Step 2/2" in told
    assert rows(tmp_path)[0]["lr"] == pytest.approx(0.1 * 2 * 16 / 128)


def test_the_real_faces(real_data: Callable[[str], Path], tmp_path: Path) -> None:
    data = real_data("faces")
    s = replace(SMALL, middle=112)
    squares = train_squares(s, data)
    assert len(squares) == 1500 and squares.photos.identities == 108
    assert len(verification_sets(s, data)[0].same) == 1760  # type: ignore[attr-defined]
    assert [len(one.same) for one in heavy_sets(s, data)] == [7200, 3600]  # type: ignore[attr-defined]
    few = ["photos_per_identity=2", "middle=112", "heavy_every_epochs=0", "evaluate_every_epochs=1"]
    assert run(data, tmp_path, *few) == 0
    assert np.isfinite(list(losses(tmp_path).values())).all()
    assert 0.4 < rows(tmp_path)[-1]["val_trials_accuracy"] <= 1
