"""Parts of a sample that never change are computed once; whatever varies, or may, is computed as ever."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, Subset

from hotlap.lever.catalog import cache_sample
from hotlap.lever.constant_parts import constant_parts
from hotlap.lever.kept_parts import AGAIN, PATIENCE, PROOFS
from hotlap.lever.sample_codec import copied, pack, unpack
from hotlap.testing.lever_target import LocalTarget

ROWS = 24
CALLS: list[Any] = []


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    CALLS.clear()
    monkeypatch.setattr("hotlap.lever.kept_parts.QUICK_S", 0.0)
    random.seed(1)


def square(value: float) -> Any:
    return np.full((2, 3), value, np.float32)


class Mirrored(Dataset[Any]):
    """What most data sets are: read and resized by one method, mirrored at random after that."""

    def __init__(self) -> None:
        self.size = 3
        self.values = [float(n) for n in range(ROWS)]
        self.seen = 0

    def __len__(self) -> int:
        return ROWS

    def load(self, index: int) -> Any:
        CALLS.append(index)
        return square(self.values[index]) * self.size

    def __getitem__(self, index: int) -> Any:
        self.seen += 1
        pixels = self.load(index)
        pixels[0, 0] += 1  # the caller's own
        return pixels[:, ::-1].copy() if random.random() < 0.5 else pixels


class Reader:
    def __init__(self) -> None:
        self.scale = 2.0

    def __call__(self, index: int) -> Any:
        CALLS.append(index)
        return torch.full((3,), index * self.scale)


class OfReader(Mirrored):
    """The part is an object's."""

    def __init__(self) -> None:
        super().__init__()
        self.read = Reader()

    def __getitem__(self, index: int) -> Any:
        return self.read(index) + random.random()


class OfBase(Mirrored):
    """The part is another data set's sample."""

    def __init__(self) -> None:
        super().__init__()
        self.base = Plain()

    def __getitem__(self, index: int) -> Any:
        pixels, label = self.base[index]
        return pixels * random.choice([1, -1]), label


class Plain(Mirrored):
    def __getitem__(self, index: int) -> Any:
        CALLS.append(index)
        return square(self.values[index]), index


def drawn(data: Any, epochs: int = 3, **options: Any) -> list[Any]:
    random.seed(7)
    loader: DataLoader[Any] = DataLoader(data, 4, collate_fn=list, **options)
    return [
        [np.asarray(s[0] if isinstance(s, tuple) else s).tolist() for s in b] for _ in range(epochs) for b in loader
    ]


def with_lever(data: Any, tmp_path: Path, epochs: int = 3, **options: Any) -> tuple[list[Any], LocalTarget]:
    CALLS.clear()
    with LocalTarget(str(tmp_path)) as target:
        cache_sample.apply(target, {"max_bytes": 1 << 24})
        found = drawn(data, epochs, **options)
        weight = torch.nn.Parameter(torch.zeros(1))
        weight.grad = torch.zeros(1)
        torch.optim.SGD([weight], 0.1).step()  # the end of a step is when changes in workers are counted
    assert not target.problems
    return found, target


@pytest.mark.parametrize("kind", [Mirrored, OfReader, OfBase])
def test_a_part_is_computed_once_and_the_samples_are_the_same(kind: Any, tmp_path: Path) -> None:
    want = drawn(kind())
    found, target = with_lever(kind(), tmp_path)
    assert found == want and target.changes == 1 and not target.reasons
    extra = PROOFS + 1  # each proof, and the witness's own sample
    assert ROWS <= len(CALLS) <= ROWS + extra + 2 * ROWS // AGAIN + 1


def test_workers_share_what_is_kept(tmp_path: Path) -> None:
    want = drawn(Mirrored(), num_workers=2, multiprocessing_context="fork", persistent_workers=True)
    found, target = with_lever(
        Mirrored(), tmp_path, num_workers=2, multiprocessing_context="fork", persistent_workers=True
    )
    assert [np.abs(b).sum() for b in found] == [np.abs(b).sum() for b in want] and target.changes == 1


def test_by_hand_the_scripts_own_code_runs(tmp_path: Path) -> None:
    data = Mirrored()
    with LocalTarget(str(tmp_path)) as target:
        cache_sample.apply(target, {"max_bytes": 1 << 24})
        drawn(data)
        CALLS.clear()
        data[3], data.load(3)
        assert CALLS == [3, 3]
    assert "load" in vars(Mirrored) and not hasattr(Mirrored.load, "__wrapped__"), "taken back"


def resized(data: Any) -> None:
    data.size = 5


def revalued(data: Any) -> None:
    data.values = [-1.0] * ROWS


@pytest.mark.parametrize("change", [resized, revalued])
def test_what_a_part_reads_is_watched(change: Any, tmp_path: Path) -> None:
    def changed_between(data: Any) -> list[Any]:
        return [*drawn(data, 2), change(data), *drawn(data, 2)]

    want = changed_between(Mirrored())
    with LocalTarget(str(tmp_path)) as target:
        cache_sample.apply(target, {"max_bytes": 1 << 24})
        assert changed_between(Mirrored()) == want


class DrawsInside(Mirrored):
    def load(self, index: int) -> Any:
        return super().load(index) + random.random()


class Counting(Mirrored):
    def load(self, index: int) -> Any:
        self.count = index
        return square(index)


class Saying(Mirrored):
    def load(self, index: int) -> Any:
        print(index)
        return square(index)


class Hidden(Mirrored):
    """No name tells, but the bits do."""

    def load(self, index: int) -> Any:
        CALLS.append(index)
        return square(len(CALLS))


class DrawsUnseen(Mirrored):
    def load(self, index: int) -> Any:
        CALLS.append(index)
        return square(index + 0 * vars(random)["ran" + "dom"]())


class DrawsBehindAName(Mirrored):
    def load(self, index: int) -> Any:
        CALLS.append(index)
        DICE[0]()
        return square(index)


DICE = [random.random]


class Shared(Mirrored):
    """Keeps its results itself, and what is done to one is seen in the next epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.arrays = [square(n) for n in range(ROWS)]

    def load(self, index: int) -> Any:
        CALLS.append(index)
        return self.arrays[index][:]


class Odd(Mirrored):
    """Of a kind that is not kept."""

    def load(self, index: int) -> Any:
        CALLS.append(index)
        return square(index)[:, ::-1]


@pytest.mark.parametrize("kind", [DrawsInside, Counting, Saying, DrawsUnseen])
def test_what_may_vary_by_its_code_is_no_part(kind: Any, tmp_path: Path) -> None:
    assert kind.load not in [part.function for part in constant_parts(kind())]
    want = drawn(kind())
    assert with_lever(kind(), tmp_path)[0] == want


@pytest.mark.parametrize("kind", [Hidden, DrawsBehindAName, Shared, Odd])
def test_what_varies_or_cannot_be_kept_is_left_alone(kind: Any, tmp_path: Path) -> None:
    want = drawn(kind())
    found, target = with_lever(kind(), tmp_path)
    proofs = 1 if kind is Hidden else 0
    assert target.changes == 0 and len(CALLS) >= 3 * ROWS
    if not proofs:
        assert found == want
    if kind in (Hidden, DrawsBehindAName):
        assert any("another result" in reason for reason in target.reasons)


class TurnsLater(Mirrored):
    """Other results from the second epoch on, told by what is no attribute of its own; the witness's is the same."""

    def load(self, index: int) -> Any:
        CALLS.append(index)
        return square(index + (1.0 if index and len(LATE) else 0.0))


LATE: list[int] = []


def test_a_result_in_64_is_compared(tmp_path: Path) -> None:
    LATE.clear()
    data = TurnsLater()
    with LocalTarget(str(tmp_path)) as target:
        cache_sample.apply(target, {"max_bytes": 1 << 24})
        drawn(data, 2)
        LATE.append(1)
        drawn(data, 2 + AGAIN // ROWS)
        CALLS.clear()
        drawn(data, 1)
        assert len(CALLS) == ROWS
    assert target.reasons == ["load gave another result for the same arguments"]


class Listed(Mirrored):
    def load_all(self, rows: Any, *, where: Path) -> Any:
        CALLS.append(rows)
        return square(float(sum(rows)) + len(str(where)))

    def __getitem__(self, index: int) -> Any:
        return self.load_all([index, 1], where=Path("a")) + self.load_all((index,), where=Path("bc")) * random.random()


class Popping(Mirrored):
    def load_all(self, rows: Any) -> Any:
        CALLS.append(rows)
        return square(float(rows.pop()))

    def __getitem__(self, index: int) -> Any:
        rows = [index, index]
        return self.load_all(rows) * random.random() + len(rows)


def test_short_lists_and_paths_are_plain_arguments(tmp_path: Path) -> None:
    want = drawn(Listed())
    found, target = with_lever(Listed(), tmp_path)
    assert found == want and target.changes == 1 and len(CALLS) < 3 * ROWS


def test_a_function_that_changes_what_it_is_given_is_left_alone(tmp_path: Path) -> None:
    want = drawn(Popping())
    found, target = with_lever(Popping(), tmp_path)
    assert found == want and target.reasons == ["load_all changes what it is given"]


class OfPairs(Mirrored):
    """Arguments that cannot be looked up."""

    def load_all(self, rows: Any) -> Any:
        CALLS.append(rows)
        return square(float(np.sum(rows)))

    def __getitem__(self, index: int) -> Any:
        return self.load_all(np.array([index, 1])) + self.load_all(np.array([[index]])) * random.random()


class Slotted:
    __slots__ = ("scale",)

    def __init__(self) -> None:
        self.scale = 1.0

    def __call__(self, index: int) -> Any:
        CALLS.append(index)
        return np.full((2, 3), index * self.scale)


class OfSlotted(OfReader):
    """An object whose attributes cannot be watched."""

    def __init__(self) -> None:
        super().__init__()
        self.read: Any = Slotted()


@pytest.mark.parametrize("kind", [OfPairs, OfSlotted])
def test_what_cannot_be_looked_up_or_watched_is_computed(kind: Any, tmp_path: Path) -> None:
    want = drawn(kind())
    calls = len(CALLS)
    found, target = with_lever(kind(), tmp_path)
    assert found == want and target.changes == 0 and len(CALLS) == calls and not target.problems


def test_numbers_of_numpy_are_plain_arguments(tmp_path: Path) -> None:
    order = list(np.random.default_rng(1).permutation(ROWS))
    want = drawn(Mirrored(), sampler=order)
    found, target = with_lever(Mirrored(), tmp_path, sampler=order)
    assert found == want and target.changes == 1 and len(CALLS) < 2 * ROWS


class AtRandomPlaces(Mirrored):
    def load_at(self, index: int, where: float) -> Any:
        CALLS.append(index)
        return square(index + where)

    def __getitem__(self, index: int) -> Any:
        return self.load_at(index, random.random())


def test_arguments_that_do_not_come_again_are_given_up(tmp_path: Path) -> None:
    want = drawn(AtRandomPlaces(), PATIENCE + 2)
    found, target = with_lever(AtRandomPlaces(), tmp_path, PATIENCE + 2)
    assert found == want and target.changes == 0
    assert (tmp_path / "cache-sample" / "usage").stat().st_size == PROOFS + PATIENCE * ROWS + 1, "entries, of a page"


class OneOfTwo(Mirrored):
    def load(self, index: int) -> Any:
        CALLS.append(index)
        return square(index)

    def __getitem__(self, index: int) -> Any:
        return self.load(index % 2) * random.random()


def test_few_different_arguments_are_proved_as_soon(tmp_path: Path) -> None:
    want = drawn(OneOfTwo())
    found, target = with_lever(OneOfTwo(), tmp_path)
    assert found == want and target.changes == 1 and len(CALLS) <= 2 * PROOFS + 4


def test_a_quick_function_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hotlap.lever.kept_parts.QUICK_S", 10.0)
    assert with_lever(Mirrored(), tmp_path)[1].changes == 0 and len(CALLS) == 3 * ROWS + PROOFS + 1


class Failing(Mirrored):
    def load(self, index: int) -> Any:
        CALLS.append(index)
        if index == 2 or (len(CALLS) == 2 and FAIL):
            raise OSError("no such photo")
        return square(index)

    def __getitem__(self, index: int) -> Any:
        try:
            return self.load(index) * random.random()
        except OSError:
            return square(-1)


FAIL: list[int] = []


@pytest.mark.parametrize("fails_when_repeated", [False, True])
def test_errors_are_the_scripts(fails_when_repeated: bool, tmp_path: Path) -> None:
    FAIL.clear()
    want = drawn(Failing())
    FAIL.extend([1] if fails_when_repeated else [])
    found, target = with_lever(Failing(), tmp_path)
    assert found == want and ["failed when it was called again (OSError)" in r for r in target.reasons] == (
        [True] if fails_when_repeated else []
    )


def test_two_data_sets_of_a_class_are_kept_apart(tmp_path: Path) -> None:
    one, two = Mirrored(), Mirrored()
    two.values = [100.0 + v for v in two.values]
    want = [drawn(one), drawn(two), drawn(Subset(two, [3, 5]))]
    with LocalTarget(str(tmp_path)) as target:
        cache_sample.apply(target, {"max_bytes": 1 << 24})
        assert [drawn(one), drawn(two), drawn(Subset(two, [3, 5]))] == want


class Holding(Mirrored):
    """Its part uses an object of its own: what that does is told by no code of the class."""

    def __init__(self, change: Any) -> None:
        super().__init__()
        self.change = change

    def load(self, index: int) -> Any:
        CALLS.append(index)
        return square(self.change(index))


class Jitter:
    def __call__(self, value: float) -> float:
        return value + random.random()


def test_an_object_whose_results_vary_beside_one_whose_do_not(tmp_path: Path) -> None:
    want = [drawn(Holding(float)), drawn(Holding(Jitter()))]
    with LocalTarget(str(tmp_path)) as target:
        cache_sample.apply(target, {"max_bytes": 1 << 24})
        CALLS.clear()
        assert [drawn(Holding(float)), drawn(Holding(Jitter()))] == want
        assert len(CALLS) <= ROWS + PROOFS + 1 + 2 + 3 * ROWS
    assert not target.problems


class Overridden(Counting):
    """What it overrides is not called, and is no part."""


def test_a_method_that_is_overridden_is_no_part() -> None:
    assert not [part for part in constant_parts(Overridden()) if part.bound]
    assert [part.function for part in constant_parts(Mirrored())] == [Mirrored.load]


def read_photo(name: str, size: int = 4) -> Any:
    from PIL import Image

    CALLS.append(name)
    return Image.new("RGB", (size, size), (int(name), 2, 3))


class Photos(Mirrored):
    """The part is a function of the module, and gives an image."""

    def __getitem__(self, index: int) -> Any:
        photo = read_photo(str(index), size=3)
        photo.info["seen"] = random.random()
        return np.asarray(photo) * random.choice([1, 2])


def test_a_function_of_the_module_and_images(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    want = drawn(Photos())
    found, target = with_lever(Photos(), tmp_path)
    assert found == want and target.changes == 1 and len(CALLS) < 2 * ROWS
    assert not hasattr(read_photo, "__wrapped__")


@pytest.mark.parametrize(
    "copy", [copied, lambda value: unpack(bytearray(pack(value) or b""))], ids=["copied", "packed"]
)
def test_a_copy_is_as_the_script_left_it(copy: Any) -> None:
    image = pytest.importorskip("PIL.Image").new("L", (3, 2), 7)
    image.info["dpi"] = (72, 72)
    array = np.arange(4)
    array.flags.writeable = False
    first, second, third = copy((array, np.arange(4), image))
    assert not first.flags.writeable and second.flags.writeable and not np.shares_memory(first, array)
    assert third.info == {"dpi": (72, 72)} and third.tobytes() == image.tobytes() and third.info is not image.info


@pytest.mark.parametrize("mode", ["P", "1", "I;16"])
def test_an_image_that_is_more_than_its_pixels_is_not_kept(mode: str) -> None:
    assert pack(pytest.importorskip("PIL.Image").new(mode, (3, 2))) is None
