"""Who is on which image, splits, pairs and trials: the law that they keep, and the errors where files are wrong."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from hotlap_workloads import train
from hotlap_workloads.engine.order import Draw
from hotlap_workloads.engine.task import Context
from hotlap_workloads.errors import DataError
from hotlap_workloads.twin_verify.album import Album
from hotlap_workloads.twin_verify.augment import apply_looks, normalised
from hotlap_workloads.twin_verify.data import BatchOfPairs, OnePair
from hotlap_workloads.twin_verify.made_data import make_data
from hotlap_workloads.twin_verify.pairs import PairLaw, PairOrder, PairTable, compute_pairs
from hotlap_workloads.twin_verify.pixels import FromFiles, FromPack, pack_images
from hotlap_workloads.twin_verify.settings import TwinSettings
from hotlap_workloads.twin_verify.splits import drawn_split, read_people
from hotlap_workloads.twin_verify.trials import make_trials
from hotlap_workloads.twin_verify.workload import WORKLOAD

S = TwinSettings(image_size=32, patch=8)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data(tmp_path_factory.mktemp("twins") / "made")


def album(people: int, images: int, twins: list[tuple[int, int]]) -> Album:
    """Made-up people, without files."""
    twins_of = [sorted({b for pair in twins for b in pair if p in pair} - {p}) for p in range(people)]
    numbers = [list(range(p * images, (p + 1) * images)) for p in range(people)]
    return Album([f"p{p}" for p in range(people)], [Path(f"{i}") for i in range(people * images)], numbers, twins_of)


def test_a_third_of_the_different_are_twins_and_half_are_the_same() -> None:
    who = album(30, 4, [(0, 1), (1, 2), (3, 4), (20, 21)])
    law = PairLaw(who, range(10), 1, 0.3)
    person = who.person_of()
    groups = compute_pairs(law, 2, 3000)
    anchor, same, other = (np.array(person)[groups[..., i]] for i in range(3))
    assert (anchor == same).all() and (anchor != other).all() and (groups[..., 0] != groups[..., 1]).all()
    assert set(np.unique(anchor)) == set(range(10)) == set(np.unique(other))  # nobody of the other splits
    is_twin = np.array([b in who.twins_of[a] for a, b in zip(anchor.ravel(), other.ravel(), strict=True)])
    assert is_twin.mean() == pytest.approx(0.3, abs=0.03)
    assert (groups[0] != groups[1]).any()
    again = PairLaw(who, range(10), 1, 0.3)
    assert all(tuple(groups[1, g]) == again(1, g) == PairTable(groups)(1, g) for g in range(50))
    assert (compute_pairs(PairLaw(who, range(10), 2, 0.3), 1, 50) != groups[:1, :50]).any()


def test_who_cannot_be_paired_is_said() -> None:
    here = Path("here")
    with pytest.raises(DataError, match="nobody with two images"):
        PairLaw(album(4, 1, [(0, 1)]), range(4), 1, 0.3).check(here)
    with pytest.raises(DataError, match=r"no twins among .* twin_share=0"):
        PairLaw(album(4, 3, []), range(4), 1, 0.3).check(here)
    with pytest.raises(DataError, match="nobody to tell 'p0' from but twins"):
        PairLaw(album(2, 3, [(0, 1)]), range(2), 1, 0.3).check(here)
    PairLaw(album(2, 3, [(0, 1)]), range(2), 1, 1.0).check(here)


def test_an_epoch_has_every_pair_once_and_both_of_a_group_together() -> None:
    order = PairOrder(20, seed=1)
    assert sorted(order.rows(3)) == list(range(120, 160)) and order.rows(3) != order.rows(4)
    for batch in order.batches(order.rows(0), 4):
        assert batch[0] % 2 == 0 and batch[1] == batch[0] + 1 and batch[3] == batch[2] + 1


def test_one_by_one_and_at_once_give_the_same_pairs(made: Path, tmp_path: Path) -> None:
    """Drawn at run time from files, or looked up and gathered from the pack: the same pixels, looks and labels."""
    people, splits = read_people(S, made)
    law = PairLaw(people, splits["train"], 5, 0.3)
    pack_images(people, 32, tmp_path / "images.pack")
    count = 40
    one = OnePair(law, count, FromFiles(people.paths, 32), people.person_of(), 5)
    table = PairTable(compute_pairs(law, 2, count))
    at_once = BatchOfPairs(table, count, FromPack(tmp_path / "images.pack"), people.person_of(), 5)
    draws = [Draw(row, 0) for row in (80, 81, 7, 155, 20, 21)]
    batch = at_once.__getitems__(draws)
    assert len(batch["images"]) == 10 and batch["images"].dtype == torch.uint8  # two anchors are shared
    floats = apply_looks(normalised(batch["images"]), batch["looks"])
    assert len({tuple(look) for look in batch["looks"].tolist()}) == 10
    assert 0 < batch["looks"][:, 0].mean() < 1
    for i, draw in enumerate(draws):
        wanted = one[draw]
        torch.testing.assert_close(floats[batch["left"][i]], wanted["left"], atol=1e-6, rtol=0)
        torch.testing.assert_close(floats[batch["right"][i]], wanted["right"], atol=1e-6, rtol=0)
        for name in ("same", "number", "person"):
            assert batch[name][i].tolist() == wanted[name].tolist()
    assert batch["same"].tolist() == [1, 0, 0, 0, 1, 0]


def test_images_are_resized_and_normalised(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    found = FromFiles([tmp_path / "a.png"], 16)([0])
    wanted = np.asarray(Image.fromarray(pixels).resize((16, 16), Image.Resampling.BILINEAR)).transpose(2, 0, 1)
    assert found.shape == (1, 3, 16, 16) and (found[0].numpy() == wanted).all()
    assert normalised(torch.tensor([0, 255], dtype=torch.uint8)).tolist() == [-1, 1]


def test_looks_by_hand() -> None:
    image = torch.tensor([[[[0.0, 1.0]]] * 3] * 2).reshape(2, 3, 1, 2)
    out = apply_looks(image, torch.tensor([[1.0, 1.0, 1.0], [0.0, 0.5, 2.0]]))
    assert out[0, 0, 0].tolist() == [1.0, 0.0] and out[1, 0, 0].tolist() == [0.5, 1.5]


def test_the_pack_is_made_anew_only_when_a_file_changed(made: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(made / "images/made000a", data / "made000a")
    paths = sorted(data.rglob("*.jpg"))
    who = Album(["a"], paths, [list(range(len(paths)))], [[]])
    folder = tmp_path / "images.pack"
    pack_images(who, 16, folder)
    before = (folder / "pack.json").stat().st_mtime_ns
    pack_images(who, 16, folder)
    assert (folder / "pack.json").stat().st_mtime_ns == before
    Image.new("RGB", (20, 20), (9, 9, 9)).save(paths[2], quality=95)
    pack_images(who, 16, folder)
    assert (FromPack(folder)([2]).float() - 9).abs().max() < 3
    assert (FromPack(folder)([0]) == FromFiles(paths, 16)([0])).all()
    part = next(folder.glob("part-*.arrow"))
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 255
    part.write_bytes(content)
    with pytest.raises(DataError, match="damaged"):
        FromPack(folder)(list(range(len(paths))))


def test_drawn_splits_keep_twins_together_and_nobody_twice() -> None:
    who = album(353, 2, [(2 * i, 2 * i + 1) for i in range(175)] + [(0, 2), (4, 6), (6, 8)])
    splits = drawn_split(who, (0.8, 0.1, 0.1))
    assert sorted(p for people in splits.values() for p in people) == list(range(353))
    assert [len(splits[name]) for name in ("train", "val", "test")] == pytest.approx([282, 35, 35], abs=4)
    home = {p: name for name, people in splits.items() for p in people}
    assert all(home[p] == home[twin] for p in range(353) for twin in who.twins_of[p])


def test_trials_are_of_the_split_and_of_the_share(made: Path) -> None:
    people, splits = read_people(S, made)
    trials = make_trials(people, splits["val"], 3, 0.3)
    person = people.person_of()
    inside = set(splits["val"])
    assert {person[i] for i in (*trials.left, *trials.right)} <= inside
    rows = list(zip(trials.left, trials.right, trials.same, trials.twin, strict=True))
    assert len({(min(a, b), max(a, b)) for a, b, *_ in rows}) == len(rows) and all(a != b for a, b, *_ in rows)
    assert all((person[a] == person[b]) == bool(same) for a, b, same, _ in rows)
    different = [(person[a], person[b], twin) for a, b, same, twin in rows if not same]
    assert all((b in people.twins_of[a]) == bool(twin) for a, b, twin in different)
    assert np.mean([twin for *_, twin in different]) == pytest.approx(0.3, abs=0.02)
    assert np.mean(trials.same) == pytest.approx(0.5, abs=0.02) and len(rows) > 400
    assert make_trials(people, splits["val"], 3, 0.3) == trials


def wrong(data: Path, file: str, change: Callable[[Any], Any] | str) -> None:
    path = data / file
    path.write_text(change if isinstance(change, str) else json.dumps(change(json.loads(path.read_text()))))


def with_shared_image(people: dict[str, list[str]]) -> dict[str, list[str]]:
    first, second = list(people)[:2]
    return {**people, second: [*people[second], people[first][0]]}


@pytest.mark.parametrize(
    ("file", "change", "said"),
    [
        ("val_twin_pairs_infor.json", '[["made016a", "made0', "val_twin_pairs_infor.json: is not whole JSON"),
        ("train_dataset_infor.json", "[]", r"does not hold \{identity"),
        ("train_dataset_infor.json", lambda d: {**d, "made000a": []}, "identity 'made000a' has no images"),
        ("train_dataset_infor.json", lambda d: {**d, "made000a": "a.jpg"}, "'made000a' is not a list of images"),
        ("train_dataset_infor.json", with_shared_image, "lists .*00.jpg twice: for 'made000a' and for 'made000b'"),
        ("train_twin_pairs_infor.json", lambda d: [*d, ["made000a"]], "entry 16 is no pair"),
        (
            "train_twin_pairs_infor.json",
            lambda d: [*d, ["made000a", "made99a"]],
            "train_twin_pairs_infor.json: names the twin 'made99a', who has no images. The nearest is",
        ),
        (
            "train_twin_pairs_infor.json",
            lambda d: [*d, ["made000a", "made000a"]],
            "infor.json: calls 'made000a' a",
        ),
        ("train_twin_pairs_infor.json", lambda d: [*d, ["made000a", "made016a"]], "in different splits"),
        ("train_twin_pairs_infor.json", lambda d: [], "has no twins among the people to train on"),
        (
            "test_dataset_infor.json",
            lambda d: {**d, "made000a": ["x.jpg"]},
            "'made000a' is in train_dataset_infor.json as well",
        ),
        (
            "train_dataset_infor.json",
            lambda d: {k: [*v, f"{k}.jpg"] for k, v in d.items()},
            "made000a.jpg: does not exist",
        ),
    ],
)
def test_wrong_files_are_named(
    made: Path, tmp_path: Path, file: str, change: Any, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in made.glob("*.json"):
        shutil.copy(path, tmp_path / path.name)
    (tmp_path / "images").symlink_to(made / "images")
    wrong(tmp_path, file, change)
    command = ["twin_verify", "--preset", "slow", "--data", str(tmp_path), "--out", str(tmp_path / "run")]
    assert train.main([*command, "--set", "width=32", "--set", "heads=4"]) == 1
    assert re.search(said, error := capsys.readouterr().err), error


def test_missing_files_and_wrong_counts_are_named(made: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"dataset_infor.json: cannot be read: No such file"):
        read_people(S, tmp_path)
    with pytest.raises(DataError, match="has 52 identities, expect_identities=353"):
        read_people(replace(S, expect_identities=353), made)
    shutil.copy(made / "train_dataset_infor.json", tmp_path)
    with pytest.raises(DataError, match=r"val_dataset_infor.json: does not exist, though others"):
        read_people(S, tmp_path)


def test_without_files_of_splits_they_are_drawn(made: Path, tmp_path: Path) -> None:
    people: dict[str, list[str]] = {}
    twins: list[list[str]] = []
    for split in ("train", "val", "test"):
        people |= json.loads((made / f"{split}_dataset_infor.json").read_text())
        twins += json.loads((made / f"{split}_twin_pairs_infor.json").read_text())
    (tmp_path / "dataset_infor.json").write_text(json.dumps(people))
    (tmp_path / "twin_pairs_infor.json").write_text(json.dumps(twins))
    who, splits = read_people(replace(S, image_folder="pictures", split=(0.5, 0.25, 0.25)), tmp_path)
    assert [len(splits[name]) for name in ("train", "val", "test")] == pytest.approx([26, 13, 13], abs=1)
    assert who.paths[0] == tmp_path / "pictures" / people["made000a"][0] and len(who.used()) == 52 * 8


@pytest.mark.parametrize(
    ("people", "images", "said"),
    [
        (1, 4, "5 pairs of one person among 5"),
        (0, 4, "0 pairs of one person among 0"),
        (4, 1, "0 pairs of one person among 0"),
    ],
)
def test_a_split_that_cannot_be_measured_is_named(people: int, images: int, said: str) -> None:
    trials = make_trials(album(max(1, people), images, []), list(range(people)), 2, 0.3)
    said = f"data: the split 'val': has {said}: both kinds are needed. It takes two people"
    with pytest.raises(DataError, match=said):
        trials.of_both_kinds(Path("data"), "val")


@pytest.mark.parametrize(("split", "heavy_every_epochs"), [("val", 0.0), ("test", 1.0)])
def test_a_split_that_cannot_be_measured_ends_no_epoch(
    made: Path, tmp_path: Path, split: str, heavy_every_epochs: float
) -> None:
    for path in made.glob("*.json"):
        shutil.copy(path, tmp_path / path.name)
    (tmp_path / "images").symlink_to(made / "images")
    for name, change in (("twin_pairs", lambda d: []), ("dataset", lambda d: dict([next(iter(d.items()))]))):
        wrong(tmp_path, f"{split}_{name}_infor.json", change)
    settings = replace(S, width=32, heads=4, mlp=32, sa_blocks=1, pwca_blocks=1)
    context = Context(torch.device("cpu"), tmp_path / "run", tmp_path)
    if split == "test":
        WORKLOAD.build(settings, context)
    with pytest.raises(DataError, match=f"the split '{split}': has"):
        WORKLOAD.build(replace(settings, heavy_every_epochs=heavy_every_epochs), context)


def test_a_damaged_pack_says_who_makes_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"is no whole pack: .*Run optimize_data again\."):
        FromPack(tmp_path, "Run optimize_data again.")
    with pytest.raises(DataError, match=r"is no whole pack: .*Remove it: the training makes it again\."):
        FromPack(tmp_path)
