"""The whole training by its command line: presets, bad data, quarantine, resume, ranks, and real images."""

from __future__ import annotations

import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from hotlap.pack.augment import clahe, motion_blur
from hotlap_workloads import evaluate, train
from hotlap_workloads.engine.batch_search import find_batch_size, load
from hotlap_workloads.engine.machine import Machine, check_machine
from hotlap_workloads.engine.order import Draw, Position, RankBatches
from hotlap_workloads.engine.ranks import Ranks
from hotlap_workloads.engine.task import Context
from hotlap_workloads.errors import DataError
from hotlap_workloads.parts.coco_json import read_coco
from hotlap_workloads.parts.flat_bank import FlatBank, flat_bank
from hotlap_workloads.tiny_detr.augment_batch import BatchAugment
from hotlap_workloads.tiny_detr.augment_sample import BLUR_PX, CLIP, TILES, SampleAugment, blurred, equalised
from hotlap_workloads.tiny_detr.data import Padder, TrainImages
from hotlap_workloads.tiny_detr.files import FromFiles, resized
from hotlap_workloads.tiny_detr.made_data import make_data
from hotlap_workloads.tiny_detr.model import TinyDetr
from hotlap_workloads.tiny_detr.presets import PRESETS
from hotlap_workloads.tiny_detr.settings import TinySettings
from hotlap_workloads.tiny_detr.shapes import ShapeBuckets, fitted, padded
from hotlap_workloads.tiny_detr.workload import WORKLOAD, TinyTask

pytest.importorskip("transformers", reason="the model is of transformers (extra workloads)")
CPU = torch.device("cpu")
SMALL: dict[str, Any] = {
    **{"backbone": "resnet18", "width": 0.125, "d_model": 16, "heads": 2, "ffn": 16, "encoder_layers": 1},
    **{"decoder_layers": 2, "queries": 20, "size": 64, "size_low": 64, "size_high": 96, "longest": 128},
    **{"batch_size": 4, "eval_batch_size": 4, "print_every_steps": 1},
}
TINY = [part for key, value in {**SMALL, "max_steps": 3, "workers": 0}.items() for part in ("--set", f"{key}={value}")]
TINY += ["--set", "persistent_workers=false"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The self-made data, with few of its images in the lists."""
    folder = make_data(tmp_path_factory.mktemp("tiny") / "made")
    for name, count in (("train", 20), ("val", 5), ("test", 4)):
        file = folder / f"instances_{name}.json"
        loaded = json.loads(file.read_text())
        loaded["images"] = loaded["images"][:count]
        kept = {row["id"] for row in loaded["images"]}
        loaded["annotations"] = [row for row in loaded["annotations"] if row["image_id"] in kept]
        file.write_text(json.dumps(loaded))
    return folder


def rows(out: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def losses(out: Path) -> dict[float, float]:
    return {row["step"]: row["loss"] for row in rows(out) if "loss" in row}


def command(data: Path, out: Path, *more: str, preset: str = "fast") -> list[str]:
    return ["tiny_detr", "--preset", preset, "--data", str(data), "--out", str(out), *TINY, *more]


def built(data: Path, out: Path, **change: Any) -> TinyTask:
    torch.manual_seed(0)
    settings = replace(TinySettings(), **{**SMALL, **change})
    return WORKLOAD.build(settings, Context(CPU, out, data, say=lambda line: None))


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_trains_and_evaluates(
    made: Path, tmp_path: Path, preset: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert train.main(command(made, out, preset=preset)) == 0
    last = rows(out)[-1]
    assert 0 <= last["ap"] <= last["ap50"] <= 1 and 0 <= last["ap_small"] <= 1
    assert np.isfinite(list(losses(out).values())).all() and len(losses(out)) == 3
    assert re.search(r"Speed \d+\.\d samples/s  Loss \d+\.\d\d  Epoch 1  Step 2/3  ETA", capsys.readouterr().out)
    assert evaluate.main(["tiny_detr", "--out", str(out), "--data", str(made), "--heavy"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == {"heavy_ap", "heavy_ap50", "heavy_ap_small"}


@pytest.mark.parametrize("machine", [Machine(2), Machine(16, (6, 0), "P100"), Machine(64, (9, 0), "H200")])
def test_presets_fit_their_machines(machine: Machine) -> None:
    settings = {name: preset.make(machine) for name, preset in PRESETS.items()}
    for made_for in settings.values():
        assert isinstance(made_for, TinySettings)
        made_for.check()
        check_machine(made_for, machine)
    slow, fast = settings["slow"], settings["fast"]
    same = ("batch_size", "backbone", "width", "stride", "d_model", "queries", "decoder_layers", "size", "epochs", "lr")
    same += ("clahe", "motion_blur", "flip", "multi_scale", "auxiliary", "accumulate")
    assert all(getattr(slow, name) == getattr(fast, name) for name in same)
    quick = settings["training_fast_a5000"]
    assert (quick.workers, quick.prefetch_factor, quick.clahe, quick.search_most) == (12, 6, False, 40)


@pytest.mark.parametrize("preset", ["slow", "fast"])
def test_losses_after_a_resume_equal_those_of_the_uninterrupted_run(made: Path, tmp_path: Path, preset: str) -> None:
    more = ["--set", "dropout=0.3", "--set", "evaluate_every_epochs=0.4"]
    for name, stops in (("whole", [6]), ("parts", [2, 6])):
        for stop in stops:
            steps = ["--set", f"max_steps={stop}"]
            assert train.main(command(made, tmp_path / name, *more, *steps, preset=preset)) == 0
    assert len(losses(tmp_path / "whole")) == 6
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")


def test_bucketed_batches_have_one_shape_and_all_rows() -> None:
    sizes = [(64, 64)] * 30 + [(96, 64)] * 11 + [(64, 128)] * 3
    order = ShapeBuckets(sizes, 3)
    left_out = Counter[tuple[int, int]]()
    together = set()
    for epoch in range(40):
        mine = order.rows(epoch)
        batches = order.batches(mine, 8)
        assert sorted(row for batch in batches for row in batch) == list(range(44))
        assert [len(batch) for batch in batches] == [8, 8, 8, 8, 8, 4]
        assert sum(len({sizes[row] for row in batch}) == 1 for batch in batches[:-1]) >= 3
        left_out.update(sizes[row] for row in batches[-1])
        together.update(frozenset(batch) for batch in batches)
    assert order.rows(0) != order.rows(1) and len(together) > 220  # hardly ever the same company
    assert left_out[64, 64] > left_out[96, 64] > left_out[64, 128] > 0  # as their shares are, none always


@pytest.mark.parametrize("seed", range(6))
def test_a_resume_within_a_bucketed_epoch_has_the_batches_of_the_uninterrupted_one(seed: int) -> None:
    """Also where a mixed batch comes before the last whole one of a shape that it holds."""
    order = ShapeBuckets([(32 * (1 + row % 7), 64) for row in range(90)], seed)
    for drop_last, world in ((True, 1), (False, 1), (True, 2)):
        whole = list(RankBatches(order, seed, 4, Position(), 0, world, drop_last))
        for taken in range(len(whole)):
            rest = list(RankBatches(order, seed, 4, Position(taken=[[4, taken]]), 0, world, drop_last))
            assert rest == whole[taken:]
    lowered = list(RankBatches(order, seed, 5, Position(taken=[[8, 2]])))
    assert list(RankBatches(order, seed, 5, Position(taken=[[8, 2], [5, 3]]))) == lowered[3:]


def test_a_lowered_batch_loses_no_row_of_a_bucketed_epoch() -> None:
    order = ShapeBuckets([(64, 64)] * 30 + [(96, 64)] * 11 + [(64, 128)] * 3, 3)
    before = list(RankBatches(order, 3, 8, Position(), drop_last=False))[:3]
    after = RankBatches(order, 3, 5, Position(taken=[[8, 3]]), drop_last=False)
    assert sorted(draw.row for batch in [*before, *after] for draw in batch) == list(range(44))


def test_a_batch_of_a_bucket_shares_its_scale_and_keeps_its_padding_small(made: Path, tmp_path: Path) -> None:
    task = built(made, tmp_path, padding="bucket", augment="batch", longest=416)
    for batch in task.order.batches(task.order.rows(0), 4):
        draws = [Draw(row, row * 7919) for row in batch]
        samples = task.train_set.__getitems__(draws)
        assert len({min(s.image.shape[1:]) for s in samples}) == 1
    one = built(made, tmp_path, padding="batch", augment="batch").train_set
    shorts = {one.short(Draw(0, seed)) for seed in range(60)}
    assert shorts == {64, 96} and {min(one[Draw(0, seed)].image.shape[1:]) for seed in range(9)} == {64, 96}
    assert fitted((200, 100), 50, 80) == (80, 40) and padded([(33, 64), (20, 65)]) == (64, 96)


def test_images_and_boxes_are_mirrored_together(made: Path) -> None:
    """What lies in a box is the object, mirrored or not: the colours around its middle are those of the file."""
    coco = read_coco(made / "instances_train.json", made / "images")
    s = replace(TinySettings(), **SMALL, multi_scale=False, augment="batch")
    images = TrainImages(coco, FromFiles(coco.paths, coco.sizes), s)
    plain = TrainImages(coco, FromFiles(coco.paths, coco.sizes), replace(s, flip=False))
    mirrored = 0
    for seed in range(12):
        a, b = images[Draw(2, seed)], plain[Draw(2, seed)]
        if np.array_equal(a.image, b.image):
            assert np.array_equal(a.boxes, b.boxes)
            continue
        mirrored += 1
        assert np.array_equal(a.image[:, :, ::-1], b.image)
        np.testing.assert_allclose(a.boxes, b.boxes * [-1, 1, 1, 1] + [1, 0, 0, 0], atol=1e-6)
    assert 2 <= mirrored <= 10
    width, height = coco.sizes[2]
    np.testing.assert_allclose(
        (b.boxes[:, :2] - b.boxes[:, 2:] / 2) * [width, height], coco.objects[2].boxes[:, :2], atol=1e-4
    )


def test_batched_augmentation_is_that_of_the_samples() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (64, 96, 3)).astype(np.uint8)
    pixels[:32] //= 3
    batch = torch.from_numpy(pixels).permute(2, 0, 1)[None].float()
    generator = torch.Generator().manual_seed(5)
    at_once = clahe(batch, 1.0, generator, CLIP, TILES)[0].permute(1, 2, 0).numpy()
    assert np.abs(at_once - equalised(pixels)).max() <= 0.51 and np.abs(at_once - pixels).mean() > 3
    generator.manual_seed(5)
    at_once = motion_blur(batch, 1.0, generator, BLUR_PX)[0].permute(1, 2, 0).numpy()
    generator.manual_seed(5)
    torch.rand(1, generator=generator)  # who is chosen
    angle = math.pi * float(torch.rand(1, generator=generator))
    assert np.abs(at_once - blurred(pixels, angle)).max() <= 0.51


@pytest.mark.parametrize(("use_clahe", "use_blur"), [(True, False), (False, True), (False, False)])
def test_each_switch_changes_its_share_of_the_images(use_clahe: bool, use_blur: bool) -> None:
    share = 0.3 * use_clahe + 0.2 * use_blur
    pixels = np.random.default_rng(0).integers(0, 256, (16, 16, 3)).astype(np.uint8)
    one = SampleAugment(use_clahe, use_blur)
    changed = np.mean([not np.array_equal(one(pixels, random.Random(seed)), pixels) for seed in range(300)])
    torch.manual_seed(0)
    batch = torch.from_numpy(pixels).permute(2, 0, 1).float().repeat(300, 1, 1, 1)
    out = BatchAugment(use_clahe, use_blur)(batch.clone())
    hit = (out != batch).flatten(1).any(1)
    again = (BatchAugment(use_clahe, use_blur)(batch.clone()) != batch).flatten(1).any(1)
    assert share == 0 or not torch.equal(hit, again)  # others at the next batch
    for got in (changed, float(hit.float().mean())):
        assert abs(got - share) < 0.08 and (got > 0) == (share > 0)


def test_both_ways_feed_the_network_alike(made: Path, tmp_path: Path) -> None:
    """Normalised by sample or by batch; 0 outside of the images."""
    prepared = []
    for augment in ("sample", "batch"):
        task = built(made, tmp_path, augment=augment)
        samples = [task.train_set[Draw(row, row)] for row in (0, 1, 2, 3)]
        prepared.append(task.objective.prepare(task.collate(samples)))
    (images, inside), (other, other_inside) = prepared
    torch.testing.assert_close(images, other)
    assert torch.equal(inside, other_inside) and not inside.all() and (images[0][:, ~inside[0]] == 0).all()
    outside = ~inside[:, None].expand_as(other)
    assert (other[outside] == 0).all() and (images[~outside] != 0).float().mean() > 0.99


def test_padding_changes_no_prediction(made: Path, tmp_path: Path) -> None:
    """The same images alone, in a batch of several sizes, and on the worst-case canvas; in a fresh model, whose
    convolutions see the padding at the border of an image alone."""
    found = []
    for padding, count, decode in (("batch", 1, "each_time"), ("bucket", 4, "once"), ("worst", 3, "each_time")):
        task = built(made, tmp_path, padding=padding, eval_batch_size=count, decode=decode, size=96)
        task.objective.eval()
        with torch.inference_mode():
            found.append(task.scorer(False).found())
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            assert np.abs(a.scores - b.scores).max() < 0.02


def test_the_bank_holds_what_the_files_show_and_notices_change(made: Path, tmp_path: Path) -> None:
    coco = read_coco(made / "instances_val.json", made / "images")
    read = FromFiles(coco.paths, coco.sizes)

    def bank(most: tuple[int, int]) -> FlatBank[np.uint8]:
        smaller = FromFiles(coco.paths, coco.sizes, most)
        return flat_bank(tmp_path, coco.paths, smaller, np.uint8, Ranks(), most)

    small = bank((128, 160))
    for row in range(5):
        width, height = fitted(coco.sizes[row], 128, 160)
        assert max(coco.sizes[row]) > 160 and np.array_equal(small(row), resized(read(row), (width, height)))
    whole = bank((1000, 1000))
    assert all(np.array_equal(whole(row), read(row)) for row in range(5))


def replaced(made: Path, folder: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """A copy of the data whose training annotations are changed."""
    shutil.copytree(made, folder)
    loaded = json.loads((folder / "instances_train.json").read_text())
    change(loaded)
    (folder / "instances_train.json").write_text(json.dumps(loaded))
    return folder


@pytest.mark.parametrize("preset", ["fast", "slow"])
def test_a_cut_image_stops_the_training_or_is_quarantined(
    made: Path, tmp_path: Path, preset: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Read by the training process (fast) and by a loading process (slow)."""
    data = replaced(made, tmp_path / "data", lambda loaded: None)
    for path in sorted((data / "images").iterdir())[:20]:
        path.write_bytes(path.read_bytes()[:2000])
    good = sorted((data / "images").iterdir())[1:20]
    for path in good:
        shutil.copy(made / "images" / path.name, path)
    cut = data / "images/made0001.jpg"
    more = ["--set", f"workers={int(preset == 'slow')}", "--set", "max_steps=5"]
    assert train.main(command(data, tmp_path / "run", *more, preset=preset)) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"{cut}: is cut short") and len(error.splitlines()) == 1
    if preset == "fast":
        assert train.main(command(data, tmp_path / "run", "--quarantine")) == 0
        listed = (tmp_path / "run/quarantine.txt").read_text()
        assert listed.startswith(f"{cut}\tis cut short") and listed.count("\n") == 1


def test_a_box_outside_its_image_stops_the_training_or_is_quarantined(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def move(loaded: dict[str, Any]) -> None:
        loaded["annotations"][0]["bbox"][0] = 1000
        loaded["images"][3]["width"] += 1
        loaded["images"][4]["file_name"] = "gone.jpg"

    data = replaced(made, tmp_path / "data", move)
    assert train.main(command(data, tmp_path / "run")) == 1
    assert re.search(r"instances_train.json: made\d+.jpg: the box .* lies outside", capsys.readouterr().err)
    assert train.main(command(data, tmp_path / "run", "--quarantine")) == 0
    listed = (tmp_path / "run/quarantine.txt").read_text()
    assert listed.count("\n") == 3 and "lies outside of the image" in listed
    assert "gone.jpg\tdoes not exist" in listed and "and its annotations are for" in listed


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("val", lambda d: d.update(annotations=[]), "has no objects to evaluate"),
        ("val", lambda d: [a.update(iscrowd=1) for a in d["annotations"]], "has no objects to evaluate"),
        ("test", lambda d: d.update(annotations=[]), "has no objects to evaluate"),
        ("test", lambda d: d["images"][0].update(file_name="gone.jpg"), "names .*gone.jpg, which does not exist"),
        ("test", lambda d: d["categories"][0].update(name="other"), "has the categories"),
    ],
)
def test_a_json_of_an_evaluation_that_cannot_be_ends_no_epoch(
    made: Path, tmp_path: Path, name: str, change: Callable[[dict[str, Any]], object], said: str
) -> None:
    for path in made.glob("*.json"):
        shutil.copy(path, tmp_path / path.name)
    (tmp_path / "images").symlink_to(made / "images")
    file = tmp_path / f"instances_{name}.json"
    change(loaded := json.loads(file.read_text()))
    file.write_text(json.dumps(loaded))
    with pytest.raises(DataError, match=rf"instances_{name}\.json: {said}"):
        built(tmp_path, tmp_path / "run", heavy_every_epochs=1.0)
    if name == "test":
        built(tmp_path, tmp_path / "run")


def test_without_data_it_makes_its_own(tmp_path: Path) -> None:
    line = ["tiny_detr", "--out", str(tmp_path), *TINY, "--set", "max_steps=1", "--set", "evaluate_every_epochs=0"]
    assert train.main(line) == 0
    coco = read_coco(tmp_path / "made_data/instances_train.json", tmp_path / "made_data/images")
    coco.check()
    areas = np.concatenate([objects.areas for objects in coco.objects])
    assert len(coco.paths) == 96 and len(areas) > 400 and (areas < 32**2).mean() > 0.7


def test_more_objects_than_queries_are_said(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train.main(command(made, tmp_path, "--set", "queries=4", "--set", "max_steps=1")) == 0
    assert re.search(r"\d+ of 20 images show more objects than queries=4", capsys.readouterr().out)


def test_settings_that_make_no_sense(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for wrong, said in (("heads=3", "multiple of 4 and of heads=3"), ("size_low=9", "not 32 or more, in this order")):
        assert train.main(["tiny_detr", "--out", str(tmp_path), "--set", wrong]) == 2
        assert said in capsys.readouterr().err


def test_a_missing_library_is_named(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert train.main(command(made, tmp_path)) == 2
    assert "pip install 'hotlap[workloads]'" in capsys.readouterr().err


def test_a_library_that_is_too_old_is_named(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import transformers

    monkeypatch.setattr(transformers, "__version__", "4.57.6")
    assert train.main(command(made, tmp_path)) == 2
    said = capsys.readouterr().err
    assert "transformers 5 or later" in said and "4.57.6, which is installed" in said
    assert "pip install 'hotlap[workloads]'" in said


def test_the_model_learns_from_its_first_layer_on_and_has_the_stride(made: Path, tmp_path: Path) -> None:
    """The library freezes a backbone that it takes for trained."""
    for stride in (8, 16, 32):
        task = built(made, tmp_path, stride=stride)
        batch = load(task, 4)
        seen: list[torch.Size] = []
        projection = task.objective.net.detr.model.input_projection
        projection.register_forward_hook(lambda module, inputs, out, seen=seen: seen.append(out.shape[2:]))
        first = task.objective.net.stages[0]
        norms = [module for module in first.modules() if isinstance(module, torch.nn.BatchNorm2d)]
        task.objective(batch)["loss"].backward()
        assert len(norms) == 4 and all(bool((norm.running_mean != 0).any()) for norm in norms)
        height, width = batch["images"].shape[2:]  # type: ignore[index]
        assert seen[0] == (height // stride, width // stride)
        assert all(p.grad is not None and bool((p.grad != 0).any()) for p in first.parameters())
        assert all(p.grad is not None for p in task.objective.parameters())
        assert 0.8 < float(task.objective.net.detr.model.query_position_embeddings.weight.detach().std()) < 1.2


def test_the_batch_search_tries_the_largest_images_and_no_more_than_asked(made: Path, tmp_path: Path) -> None:
    task = built(made, tmp_path)
    sizes = load(task, 6)["sizes"].tolist()  # type: ignore[index]
    assert all(sorted(size) == [96, 128] for size in sizes)  # not those of 320 x 192, shortened by longest=128
    settings = replace(TinySettings(), **{**SMALL, "batch_size": 2, "search_most": 5})
    tried: list[int] = []
    plain = task.heaviest
    task.heaviest = lambda count: tried.append(count) or plain(count)  # type: ignore[method-assign,func-returns-value]
    found = find_batch_size(task, settings, Context(CPU, tmp_path), memory=lambda device: 0.1)
    assert max(tried) == 5 and found in tried


def test_the_model_has_the_parameters_of_the_published_one() -> None:
    """DETR with ResNet-50 has 41 M (Carion et al. 2020, table 1), here with 0.05 M of the backbone's norms."""
    with torch.device("meta"):
        net = TinyDetr(replace(TinySettings(), stride=32, queries=100), 91)
    assert sum(p.numel() for p in net.parameters()) / 1e6 == pytest.approx(41.5, abs=0.1)


def test_detections_of_a_perfect_model_score_one(made: Path, tmp_path: Path) -> None:
    """From boxes in shares of the padded batch's images to pixels of the files, and back to the annotations."""
    task = built(made, tmp_path, padding="bucket")
    scorer = task.scorer(False)
    coco, order = scorer.images.coco, [row for batch in scorer._batches() for row in batch]

    class Perfect(torch.nn.Module):
        def forward(self, images: torch.Tensor, inside: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            logits, boxes = torch.zeros(1, len(images), 20, 4), torch.full((1, len(images), 20, 4), 0.5)
            logits[..., 3] = 9.0
            for number in range(len(images)):
                row = order.pop(0)
                objects, (width, height) = coco.objects[row], coco.sizes[row]
                share = torch.tensor(objects.boxes / [width, height, width, height])
                boxes[0, number, : len(share)] = torch.cat([share[:, :2] + share[:, 2:] / 2, share[:, 2:]], 1).float()
                logits[0, number, range(len(share)), objects.labels] = 20.0
            return logits, boxes

    assert replace(scorer, net=Perfect()).measure() == pytest.approx({"ap": 1.0, "ap50": 1.0, "ap_small": 1.0})


@pytest.mark.cousin
def test_torchrun_on_two_ranks(made: Path, tmp_path: Path) -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = {**os.environ, "PYTHONPATH": str(Path(train.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    line = [*torchrun, "-m", "hotlap_workloads.train", *command(made, tmp_path)]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("ap50") == 1 and "Step 2/" in done.stdout
    assert 0 <= rows(tmp_path)[-1]["ap"] <= 1


def test_the_real_annotations_and_images(real_data: Callable[[str], Path], tmp_path: Path) -> None:
    data = real_data("detection")
    for name, images, objects, classes in (("nuclei", 475, 20895, 1), ("bccd", 205, 2804, 3)):
        coco = read_coco(data / name / "instances_train.json", data / name / "images")
        coco.check()
        assert (len(coco.paths), len(coco.categories)) == (images, classes)
        assert sum(len(o.labels) for o in coco.objects) == objects
        read = FromFiles(coco.paths, coco.sizes)
        batch = Padder(None)(
            [TrainImages(coco, read, replace(TinySettings(), **SMALL))[Draw(row, row)] for row in (0, 9)]
        )
        assert batch["images"].dtype == torch.float32 and sum(batch["counts"]) == len(batch["labels"])
    few = tmp_path / "few"
    few.mkdir()
    (few / "images").symlink_to(data / "nuclei/images")
    for name in ("train", "val"):
        loaded = json.loads((data / f"nuclei/instances_{name}.json").read_text())
        loaded["images"] = loaded["images"][:8]
        kept = {row["id"] for row in loaded["images"]}
        loaded["annotations"] = [row for row in loaded["annotations"] if row["image_id"] in kept]
        (few / f"instances_{name}.json").write_text(json.dumps(loaded))
    assert train.main(command(few, tmp_path / "run", "--set", "max_steps=1")) == 0
    assert np.isfinite(list(losses(tmp_path / "run").values())).all()
    assert Image.open(next((data / "nuclei/images").iterdir())).size[0] > 0
