"""Records, lists, folders and pickled sets: what is in them, and every way in which they can be wrong."""

from __future__ import annotations

import errno
import io
import os
import pickle
import re
import shutil
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from hotlap.pack.manifest import MANIFEST
from hotlap_workloads.engine.order import Draw
from hotlap_workloads.engine.task import Context
from hotlap_workloads.errors import DataError, WorkloadError
from hotlap_workloads.face_distill.bins import read_bin
from hotlap_workloads.face_distill.data import DecodedFaces, PackedFaces, as_input
from hotlap_workloads.face_distill.evaluations import GallerySet
from hotlap_workloads.face_distill.found_sets import heavy_sets, train_squares, verification_sets
from hotlap_workloads.face_distill.made_data import make_data, photos_of
from hotlap_workloads.face_distill.photos import FilePhotos, photos_in_folder, photos_in_list
from hotlap_workloads.face_distill.records import RecordPhotos
from hotlap_workloads.face_distill.settings import FaceSettings
from hotlap_workloads.face_distill.slow_storage import SlowPhotos
from hotlap_workloads.face_distill.squares import Squares, packed, unreadable
from hotlap_workloads.face_distill.teacher_bank import TeacherBank, build_bank
from hotlap_workloads.face_distill.workload import WORKLOAD
from hotlap_workloads.parts.face_image import ARCFACE_POINTS, align, similarity, square
from hotlap_workloads.parts.recordio import RecordFile, packed_record

SMALL = replace(FaceSettings(), size=32)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data(tmp_path_factory.mktemp("face") / "made")


@pytest.fixture
def copy(made: Path, tmp_path: Path) -> Path:
    """The made data, to be spoiled."""
    return Path(shutil.copytree(made, tmp_path / "data"))


def jpeg(pixels: np.ndarray, kind: str = "JPEG") -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, kind)
    return out.getvalue()


def test_records_are_read_as_they_were_written(made: Path) -> None:
    photos = RecordPhotos(made / "train.rec")
    assert (len(photos), photos.identities) == (640, 40)
    for row in (0, 17, 639):
        content, label = photos.read(row)
        assert label == row // 16 and content == photos_of(label, 16)[row % 16]
    few = RecordPhotos(made / "train.rec", most=3)
    assert len(few) == 120 and few.identities == 40
    assert [few.read(row)[1] for row in range(6)] == [0, 0, 0, 1, 1, 1]
    assert few.read(4)[0] == photos.read(17)[0]
    again = pickle.loads(pickle.dumps(photos))
    assert again.read(5) == photos.read(5)


def test_the_packers_own_reader_sees_the_same_records(made: Path) -> None:
    from hotlap.pack import SourceOptions, open_source

    source = open_source(str(made / "train.rec"), SourceOptions(store="raw", interleaved=True))
    photos = Squares(RecordPhotos(made / "train.rec"), 112)
    assert len(source) == len(photos)
    for row in (0, 333, 639):
        theirs, (pixels, label) = source.row(row), photos(row)
        assert theirs["label"] == label
        assert np.abs(theirs["image"].astype(int) - pixels).max() <= 2  # another JPEG decoder


def test_a_record_that_was_split_is_joined(tmp_path: Path) -> None:
    """MXNet splits a record where its bytes are the magic number, and leaves that out."""
    magic = struct.pack("<I", 0xCED7230A)
    whole = b"abcd" + magic + b"efgh" + magic + b"ij"
    pieces = [(1, b"abcd"), (2, b"efgh"), (3, b"ij")]
    data = b"".join(magic + struct.pack("<I", kind << 29 | len(p)) + p + b"\0" * (-len(p) % 4) for kind, p in pieces)
    (tmp_path / "a.rec").write_bytes(b"....." + data)
    assert RecordFile(tmp_path / "a.rec").read(5) == whole


def test_records_without_a_table_of_persons(tmp_path: Path) -> None:
    photo = photos_of(0, 1)[0]
    records = [packed_record([label], key, photo) for key, label in enumerate([2, 0, 1, 1])]
    (tmp_path / "train.rec").write_bytes(b"".join(records))
    offsets = np.cumsum([0, *(len(r) for r in records)]).tolist()
    (tmp_path / "train.idx").write_text("".join(f"{key}\t{offsets[key]}\n" for key in range(4)))
    photos = RecordPhotos(tmp_path / "train.rec")
    assert len(photos) == 4 and photos.identities == 3 and photos.read(0) == (photo, 2)


def test_records_that_are_cut_off_are_quarantined(copy: Path, tmp_path: Path) -> None:
    """The usual damage of a large download. How many persons there are stands in record 0, or in ``property``."""
    whole = RecordPhotos(copy / "train.rec")
    cut = int(whole._offsets[600]) + 100
    (copy / "train.rec").write_bytes((copy / "train.rec").read_bytes()[:cut])
    for persons_told in (True, False):
        if not persons_told:
            index = (copy / "train.idx").read_text().splitlines()
            (copy / "train.idx").write_text("".join(f"{line}\n" for line in index if 1 <= int(line.split()[0]) <= 640))
            (copy / "property").write_text("40,112,112")
        with pytest.raises(DataError, match=r"cut short|no record begins"):
            train_squares(SMALL, copy)
        squares = train_squares(SMALL, copy, forgive=True)
        bad = unreadable([squares], Context(torch.device("cpu"), tmp_path, copy, quarantine=True))
        assert len(squares) == 640 and len(bad) == 40 and squares.photos.identities == 40
        listed = (tmp_path / "quarantine.txt").read_text()
        assert "record 601\tis cut short" in listed and "record 640\tno record begins" in listed
        assert len(squares.only(squares.kept_rows(bad))) == 600
    few = RecordPhotos(copy / "train.rec", most=2, forgive=True)
    assert len(few) == 2 * 38 + 40, "of each person two, and those of nobody, to be told"


Spoil = Callable[[Path], object]


def rewrite(name: str, change: Callable[[bytes], bytes]) -> Spoil:
    return lambda data: (data / name).write_bytes(change((data / name).read_bytes()))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (rewrite("train.rec", lambda b: b[:-30]), r"train\.rec: is cut short in the record"),
        (rewrite("train.rec", lambda b: b"\0" * 8 + b[8:]), r"train\.rec: no record begins at byte 0"),
        (
            rewrite("train.idx", lambda b: b[: len(b) // 2 - 3]),
            r"train\.idx: lacks record|train\.idx: holds .* numbers",
        ),
        (rewrite("train.idx", lambda b: b"a" + b), r"train\.idx: is no index"),
        (
            rewrite("train.idx", lambda b: b.replace(b"\t", b"\t-")),
            r"train\.idx: says that a record begins at byte -\d+",
        ),
        (lambda data: (data / "train.idx").unlink(), r"train\.idx: cannot be read: No such file"),
        (rewrite("property", lambda b: b"41,112,112"), r"property: says 41 identities, and train\.rec has 40"),
        (rewrite("property", lambda b: b"many"), r"property: holds 'many'"),
        (lambda data: (data / "train.rec").unlink(), r"holds no train\.rec and no train_list\.txt and no train"),
    ],
)
def test_wrong_records_are_named(copy: Path, spoil: Spoil, said: str) -> None:
    spoil(copy)
    with pytest.raises(DataError, match=said):
        train_squares(SMALL, copy)


def test_wrong_numbers_of_identities_are_named(copy: Path) -> None:
    with pytest.raises(DataError, match=r"train\.rec: has 40 identities, and identities=85742"):
        train_squares(replace(SMALL, identities=85742), copy)
    photos = RecordPhotos(copy / "train.rec")
    at = int(photos._offsets[20]) + 8 + 4
    of_nobody = (1.5, "has the label 1.5"), (float("nan"), "has the label nan"), (float("inf"), "has the label inf")
    for label, said in ((40.0, "is of identity 40, and there are 40, from 0 on"), *of_nobody):
        content = bytearray((copy / "train.rec").read_bytes())
        content[at : at + 4] = struct.pack("<f", label)
        (copy / "train.rec").write_bytes(bytes(content))
        with pytest.raises(DataError, match=f"record 21: {said}"):
            RecordPhotos(copy / "train.rec").read(20)


def test_folders_and_lists(tmp_path: Path) -> None:
    for person in ("b", "a", "c"):
        (tmp_path / "train" / person).mkdir(parents=True)
        for number in range(4):
            (tmp_path / "train" / person / f"{number}.jpg").write_bytes(photos_of(0, 1)[0])
    photos = photos_in_folder(tmp_path / "train", most=3)
    assert photos.identities == 3 and list(photos.labels) == [0] * 3 + [1] * 3 + [2] * 3
    assert photos.paths[3] == tmp_path / "train/b/0.jpg"
    (tmp_path / "list.txt").write_text("10 train/a/0.jpg\n9 train/b/0.jpg\n10 train/a/1.jpg\n10 train/a/2.jpg\n")
    listed = photos_in_list(tmp_path / "list.txt", most=2)
    assert list(listed.labels) == [1, 0, 1] and listed.identities == 2
    assert len(train_squares(SMALL, tmp_path)) == 12
    assert len(train_squares(replace(SMALL, train="list.txt"), tmp_path)) == 4
    (tmp_path / "train/d").mkdir()
    with pytest.raises(DataError, match=r"train/d: holds no photo"):
        photos_in_folder(tmp_path / "train")
    (tmp_path / "one.txt").write_text("1 train/a/0.jpg\n")
    with pytest.raises(DataError, match=r"one\.txt: holds photos of 1 persons"):
        photos_in_list(tmp_path / "one.txt")
    with pytest.raises(DataError, match=r"gone\.jpg: does not exist"):
        (tmp_path / "list.txt").write_text("0 gone.jpg\n1 train/a/0.jpg\n")
        photos_in_list(tmp_path / "list.txt").read(0)


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch harmed",)


def test_verification_sets_of_every_python(tmp_path: Path) -> None:
    """Pickles as Python 2 and 3 and NumPy wrote them."""
    contents, same = photos_of(0, 4), [True, False]
    python2 = b"(lp0\n" + b"".join(b"S%b\np%d\na" % (repr(c)[1:].encode(), i) for i, c in enumerate(contents, 1))
    made = {
        "p4": pickle.dumps((contents, same), 4),
        "p2": pickle.dumps((contents, same), 2),
        "arrays": pickle.dumps(([np.frombuffer(c, np.uint8) for c in contents], np.array(same)), 4),
        "python2": b"(" + python2 + b"(lp9\nI01\naI00\natp10\n.",
    }
    for name, content in made.items():
        (tmp_path / f"{name}.bin").write_bytes(content)
        photos, answers = read_bin(tmp_path / f"{name}.bin")
        assert answers == same and [photos.read(i)[0] for i in range(4)] == contents, name


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (pickle.dumps(([Evil()] * 2, [True])), "asks for posix.system, which a set of images has no need of"),
        (pickle.dumps(([b"a"] * 3, [True, False])), "holds 3 images for 2 trials"),
        (pickle.dumps(([b"a", 1, b"a", b"a"], [True, False])), "image 1 is a int"),
        (pickle.dumps([b"a"]), "holds a list, not a pair"),
        (pickle.dumps((5, [True])), "holds a pair of int and list, not of lists"),
        (pickle.dumps(([b"a" * 99] * 2, [True]))[:60], "is cut short"),
        (b"", "is cut short"),
        (b"no pickle", "cannot be read"),
    ],
)
def test_wrong_verification_sets_are_named_and_run_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lfw.bin").write_bytes(content)
    with pytest.raises(DataError, match=rf"lfw\.bin: .*{said}"):
        read_bin(tmp_path / "lfw.bin")
    assert not (tmp_path / "harmed").exists()


def test_squares() -> None:
    wide = np.zeros((112, 200, 3), np.uint8)
    wide[:, 44:156] = 200
    assert square(jpeg(wide, "PNG"), "a", 112).min() == 200
    big = np.zeros((128, 128, 3), np.uint8)
    big[8:120, 8:120] = 100
    assert square(jpeg(big, "PNG"), "a", 112, middle=112).min() == 100
    assert square(jpeg(big, "PNG"), "a", 112).min() == 0
    assert square(jpeg(big[:, :92], "PNG"), "a", 112, middle=112).shape == (112, 112, 3)
    grey = Image.fromarray(big[:, :, 0])
    out = io.BytesIO()
    grey.save(out, "PNG")
    assert square(out.getvalue(), "a", 64).shape == (64, 64, 3)
    with pytest.raises(DataError, match=r"a\.jpg: is cut short"):
        square(jpeg(np.random.default_rng(0).integers(0, 255, (99, 99, 3), np.uint8))[:2000], "a.jpg", 32)
    with pytest.raises(DataError, match=r"a\.jpg: is no readable image"):
        square(b"no image", "a.jpg", 32)


def test_alignment_brings_landmarks_to_their_places() -> None:
    angle, scale, shift = 0.3, 1.7, np.array([40.0, 20.0])
    turn = scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    points = ARCFACE_POINTS @ turn.T + shift
    np.testing.assert_allclose(similarity(ARCFACE_POINTS, points), np.column_stack([turn, shift]), atol=1e-9)
    image = np.zeros((300, 300, 3), np.uint8)
    ys, xs = np.mgrid[0:300, 0:300]
    for channel, (x, y) in enumerate(points[:3]):
        image[:, :, channel] = 255 * np.exp(-((xs - x) ** 2 + (ys - y) ** 2) / 50)
    aligned = align(jpeg(image, "PNG"), "a", 112, points).astype(float)
    for channel, place in enumerate(ARCFACE_POINTS[:3]):
        weight = aligned[:, :, channel] / aligned[:, :, channel].sum()
        found = [(weight * axis).sum() for axis in (np.arange(112)[None], np.arange(112)[:, None])]
        np.testing.assert_allclose(found, place, atol=0.15)


def test_both_ways_of_loading_give_the_same_batch(made: Path, tmp_path: Path) -> None:
    squares = train_squares(SMALL, made)
    context = Context(torch.device("cpu"), tmp_path)
    faces = PackedFaces(packed(squares, tmp_path / "train.pack", context))
    draws = [Draw(row, seed) for row, seed in ((5, 8), (600, 9), (5, 7), (17, 6))]
    one_by_one = torch.utils.data.default_collate([DecodedFaces(squares, True)[draw] for draw in draws])
    on_device = torch.utils.data.default_collate([DecodedFaces(squares, False)[draw] for draw in draws])
    batch = faces.__getitems__(draws)
    wanted = one_by_one["image"]
    for other in (batch, on_device):
        assert torch.equal(as_input(other["image"], other["flip"]), wanted)
        assert torch.equal(other["label"], one_by_one["label"])
    assert torch.equal(wanted[0], wanted[2].flip(2)) and not torch.equal(wanted[0], wanted[2])
    assert batch["image"].is_contiguous(memory_format=torch.channels_last)
    assert wanted.min() >= -1 and wanted.max() <= 1 and wanted.std() > 0.2


def test_a_pack_is_made_anew_when_the_photos_change(copy: Path, tmp_path: Path) -> None:
    said: list[str] = []
    context = Context(torch.device("cpu"), tmp_path, say=said.append)
    for _ in range(2):
        packed(train_squares(SMALL, copy), tmp_path / "a.pack", context)
    assert len(said) == 1
    packed(train_squares(replace(SMALL, size=48), copy), tmp_path / "a.pack", context)
    assert len(said) == 2 and PackedFaces(tmp_path / "a.pack").images([0]).shape == (1, 3, 48, 48)


def few_trials(content: bytes) -> bytes:
    images, same = pickle.loads(content)
    begin = same.index(False) - 3
    return pickle.dumps((images[2 * begin : 2 * begin + 12], same[begin : begin + 6]))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda d: (d / "made.bin").unlink(), "holds no verification set"),
        (rewrite("ijbc/meta/ijbc_face_tid_mid.txt", lambda b: b"1.jpg 1\n" + b), "line 1 has 2 fields, not `photo"),
        (rewrite("ijbc/meta/ijbc_face_tid_mid.txt", lambda b: b"1.jpg a 1\n" + b), "holds what is no whole number"),
        (rewrite("ijbc/meta/ijbc_template_pair_label.txt", lambda b: b + b"1 99 0\n"), "names template 99"),
        (rewrite("ijbc/meta/ijbc_template_pair_label.txt", lambda b: b"1 2\n"), "has 2 columns, not 3"),
        (lambda d: (d / "ijbc/meta/ijbc_template_pair_label.txt").unlink(), "matches 0 files"),
        (
            lambda d: (d / "ijbc/meta/x_name_5pts_score.txt").write_text("1.jpg" + " 1" * 11 + "\n"),
            "lacks 2.jpg and 118",
        ),
        (
            lambda d: (d / "ijbc/loose_crop/7.jpg").unlink(),
            "tid_mid.txt: names .*loose_crop/7.jpg, which does not exist",
        ),
        (
            rewrite("ijbc/meta/ijbc_template_pair_label.txt", lambda b: b"1 2 0\n"),
            "label.txt: has 0 pairs of templates of one person among 1",
        ),
        (
            lambda d: [path.unlink() for path in (d / "tinyface/Gallery_Match").glob("1_*")],
            "tinyface: has .* probes, and 1 persons of them are not in the gallery, the first is 1",
        ),
        (rewrite("made.bin", few_trials), "made.bin: has 6 trials, too few for 10 folds"),
        (rewrite("made.bin", lambda b: pickle.dumps(([b"a"] * 4, [True, True]))), "has 2 trials of one person among 2"),
        (lambda d: shutil.rmtree(d / "tinyface/Probe"), "Probe: holds no photo"),
        (lambda d: (d / "tinyface/Probe/me.jpg").write_bytes(b"a"), "does not begin with the number of a person"),
        (
            lambda d: [shutil.rmtree(d / name) for name in ("ijbc", "tinyface")],
            "holds nothing for the heavy evaluation",
        ),
    ],
)
def test_wrong_evaluation_sets_are_named(copy: Path, spoil: Spoil, said: str) -> None:
    spoil(copy)
    with pytest.raises(DataError, match=said):
        verification_sets(SMALL, copy)
        heavy_sets(SMALL, copy)


def test_templates_with_landmarks_are_aligned(copy: Path) -> None:
    names = [f"{number}.jpg" for number in range(1, 121)]
    points = " ".join(f"{x} {y}" for x, y in ARCFACE_POINTS)
    (copy / "ijbc/meta/ijbc_name_5pts_score.txt").write_text("".join(f"{name} {points} 0.9\n" for name in names))
    sets = heavy_sets(replace(SMALL, size=112), copy)
    assert [one.name for one in sets] == ["ijbc", "tinyface"]
    plain = Squares(sets[0].squares.photos, 112)
    aligned, as_it_is = sets[0].squares(3)[0].astype(int), plain(3)[0]
    assert np.abs(aligned - as_it_is)[2:-2, 2:-2].mean() < 1  # these photos lie as they should already
    assert sets[0].weights.mean() == pytest.approx(0.9)


def test_photos_of_trials_that_are_gone_are_quarantined(made: Path, tmp_path: Path) -> None:
    """Of the evaluation, and of the heavy one that nobody asked for until now."""
    data = tmp_path / "data"
    shutil.copytree(made / "tinyface/Gallery_Match", data / "photos")
    names = sorted(path.name for path in (data / "photos").iterdir())
    people = sorted({name.split("_")[0] for name in names})
    first = {person: next(name for name in names if name.startswith(f"{person}_")) for person in people}
    (data / "train_list.txt").write_text("".join(f"{name.split('_')[0]} photos/{name}\n" for name in names))
    for kind in ("val", "test"):
        lines = [f"1 photos/{first[person]} photos/{first[person]}" for person in people]
        lines += [
            f"0 photos/{first[a]} photos/{first[b]}" for a, b in zip(people, people[1:] + people[:1], strict=True)
        ]
        lines.append(f"0 photos/{first[people[0]]} photos/{kind}_gone.jpg")
        (data / f"{kind}_trials.txt").write_text("\n".join(lines) + "\n")
    settings = replace(SMALL, head="arcface", student_width=0.25)
    with pytest.raises(DataError, match=r"val_gone\.jpg, which does not exist"):
        WORKLOAD.build(settings, Context(torch.device("cpu"), tmp_path, data))
    task = WORKLOAD.build(settings, Context(torch.device("cpu"), tmp_path, data, quarantine=True))
    assert "val_gone.jpg\tdoes not exist" in (tmp_path / "quarantine.txt").read_text()
    for heavy in (False, True):
        assert len(task.sets(heavy)[0].same) == 2 * len(people)  # type: ignore[attr-defined]
    listed = (tmp_path / "quarantine.txt").read_text()
    assert "val_gone.jpg\tdoes not exist" in listed and "test_gone.jpg\tdoes not exist" in listed


def test_who_is_left_on_no_photo_of_a_gallery_is_not_asked_for(made: Path) -> None:
    one = heavy_sets(SMALL, made)[1]
    assert isinstance(one, GallerySet)
    photos = [one.squares.photos.name(row) for row in range(len(one.squares))]
    probes, gallery = photos[: one.probes], photos[one.probes :]
    gone = {path for path in gallery if path.name.startswith("1_")}
    left = one.without({*gone, probes[-1]})
    assert 0 < left.probes < one.probes - 1 and 1 not in left.persons[: left.probes]
    names = [left.squares.photos.name(row) for row in range(len(left.squares))]
    asked = [path for path in probes[:-1] if not path.name.startswith("1_")]
    assert names == [*asked, *(path for path in gallery if path not in gone)]
    assert left.persons[: left.probes].tolist() == [int(path.name.split("_")[0]) for path in asked]
    known = {path for path, person in zip(gallery, one.persons[one.probes :], strict=True) if person >= 0}
    said = f"{min(known)} and {len(known) - 1} other files cannot be read. What is left: has 0 probes"
    with pytest.raises(DataError, match=re.escape(said)):
        one.without(known)


def test_a_damaged_pack_is_made_again_or_named(made: Path, tmp_path: Path) -> None:
    context = Context(torch.device("cpu"), tmp_path, made, say=lambda line: None)
    squares = Squares(RecordPhotos(made / "train.rec", most=1), 32)
    folder = packed(squares, tmp_path / "pack", context)
    (folder / MANIFEST).write_text("{")
    with pytest.raises(DataError, match=r"is no whole pack: .*damaged"):
        PackedFaces(folder).images([0])
    assert PackedFaces(packed(squares, folder, context)).images([0]).shape == (1, 3, 32, 32)


def test_a_packing_that_was_interrupted_goes_on(tmp_path: Path) -> None:
    """With the same photos alone; what was packed of others is made anew."""
    photos, seen = tmp_path / "photos", []
    for row in range(40):
        photo = photos / str(row % 4) / f"{row:02}.png"
        photo.parent.mkdir(parents=True, exist_ok=True)
        photo.write_bytes(jpeg(np.full((32, 32, 3), row, np.uint8), "PNG"))
    found = photos_in_folder(photos)

    @dataclass(frozen=True)
    class Noted(FilePhotos):
        def read(self, row: int) -> tuple[bytes, int]:
            seen.append(row)
            if row == stops_at:
                raise DataError(self.name(row), "is gone.")
            return super().read(row)

    noted = Noted(found.paths, found.labels, found.identities)
    context, folder = Context(torch.device("cpu"), tmp_path, say=lambda line: None), tmp_path / "a.pack"
    stops_at = 30
    for size in (16, 32):
        with pytest.raises(DataError, match="is gone"):
            packed(Squares(noted, size), folder, context)
        assert max(seen) == 30 and len(seen) >= 31, "of the first size nothing is used for the second"
        seen.clear()
    stops_at = -1
    faces = PackedFaces(packed(Squares(noted, 32), folder, context))
    assert sorted(seen) == list(range(30, 40))
    shades = [int(faces.images([row])[0, 0, 0, 0]) for row in range(40)]
    assert sorted(shades) == list(range(40)) and shades == [int(path.stem) for path in found.paths]


def test_a_slow_storage_takes_over_once_the_page_cache_is_used_up(copy: Path) -> None:
    quick = RecordPhotos(copy / "train.rec")
    photos = SlowPhotos(quick, sum(len(quick.read(row)[0]) for row in range(5)), 0.08)
    took = []
    for row in range(7):
        begun = time.monotonic()
        assert photos.read(row) == quick.read(row) and photos.name(row) == quick.name(row)
        took.append(time.monotonic() - begun)
    assert max(sorted(took[:5])[:3]) < 0.08 <= min(took[5:])
    assert (len(photos), photos.identities, photos.fingerprint()) == (640, 40, quick.fingerprint())
    slow = replace(SMALL, page_cache_mb=0.001, storage_ms=1.0)
    assert train_squares(slow, copy)(3)[1] == train_squares(SMALL, copy)(3)[1]
    (copy / "train.rec").unlink()
    with pytest.raises(DataError, match=r"train\.rec: cannot be read"):
        photos.read(8)


def test_a_slow_storage_is_one_for_all_loading_processes(copy: Path) -> None:
    photos = SlowPhotos(RecordPhotos(copy / "train.rec"), 1, 0.05)
    photos.read(0)
    begun = time.monotonic()
    readers = [get_context("fork").Process(target=photos.read, args=(row,)) for row in range(4)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert time.monotonic() - begun >= 4 * 0.05 and [reader.exitcode for reader in readers] == [0] * 4


@pytest.mark.parametrize("spoil", [lambda b: b[:-2], lambda b: b"\xff" + b[1:], lambda b: b"", None])
def test_what_the_teacher_said_is_asked_again_where_it_is_damaged(
    tmp_path: Path, spoil: Callable[[bytes], bytes] | None
) -> None:
    def asked() -> TeacherBank:
        context = Context(torch.device("cpu"), tmp_path, say=lambda line: None)
        said = (torch.ones(5, 4), torch.zeros(5, 4))
        return build_bank(tmp_path / "bank", "photos", (5, 4), lambda rows: said, context)

    asked()
    file = tmp_path / "bank/said.npy"
    whole = file.read_bytes()
    file.unlink() if spoil is None else file.write_bytes(spoil(whole))
    assert asked().read([0, 4], np.array([False, True])).sum(1).tolist() == [4, 0] and file.read_bytes() == whole
    (tmp_path / "bank/manifest.txt").write_bytes(b"\xff")
    assert asked().read([3], np.array([False])).tolist() == [[1, 1, 1, 1]]


def test_a_disk_without_room_for_what_the_teacher_says_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*asked: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    context = Context(torch.device("cpu"), tmp_path, say=lambda line: None)
    with pytest.raises(WorkloadError, match=r"bank cannot be written: No space left .*teacher_outputs=each_time"):
        build_bank(tmp_path / "bank", "photos", (5, 4), lambda rows: (torch.ones(5, 4),) * 2, context)
