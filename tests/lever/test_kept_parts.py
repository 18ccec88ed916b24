"""Parts of a sample that never change are computed once; whatever varies, or may, is computed as ever."""

from __future__ import annotations

import gc
import io
import itertools
import logging
import os
import random
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, Subset

from hotlap.lever.catalog import background_fetch, cache_sample
from hotlap.lever.constant_parts import constant_parts
from hotlap.lever.file_cache import FileCache
from hotlap.lever.kept_results import AGAIN
from hotlap.lever.part_memory import PATIENCE, PROOFS
from hotlap.lever.sample_codec import copied, is_aliased, pack, shares, unpack
from hotlap.testing.lever_target import LocalTarget

ROWS = 24
CALLS: list[Any] = []


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    CALLS.clear()
    monkeypatch.setattr("hotlap.lever.part_memory.QUICK_S", 0.0)
    monkeypatch.setattr("hotlap.lever.part_memory.WORTH", 0.0)
    monkeypatch.setattr("hotlap.lever.part_memory.LONGEST_LOOK_S", 10.0)
    real = np.full

    def full(*args: Any, **kwargs: Any) -> Any:
        CALLS.append(args)
        return real(*args, **kwargs)

    monkeypatch.setattr(np, "full", full)
    random.seed(1)


def square(value: float) -> Any:
    return np.full((2, 3), value, np.float32)


HELD = square
"""Somebody else holds it, so that it is no part of its own."""


class Mirrored(Dataset[Any]):
    """What most data sets are: read and resized by one method, mirrored at random after that."""

    def __init__(self) -> None:
        self.size = 3
        self.values = [float(n) for n in range(ROWS)]
        self.seen = 0

    def __len__(self) -> int:
        return ROWS

    def load(self, index: int) -> Any:
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
        return torch.from_numpy(np.full((3,), index * self.scale))


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
    extra = PROOFS + 1 + 3  # each proof, the witness's own sample, and its look in each epoch
    assert ROWS <= len(CALLS) <= ROWS + extra + 2 * ROWS // AGAIN + 1


def test_workers_share_what_is_kept(tmp_path: Path) -> None:
    want = drawn(Mirrored(), num_workers=2, multiprocessing_context="fork", persistent_workers=True)
    found, target = with_lever(
        Mirrored(), tmp_path, num_workers=2, multiprocessing_context="fork", persistent_workers=True
    )
    assert [np.abs(b).sum() for b in found] == [np.abs(b).sum() for b in want] and target.changes == 1


def test_parts_prove_themselves_where_a_thread_fetches_ahead(tmp_path: Path) -> None:
    want = drawn(Mirrored())
    with LocalTarget(str(tmp_path)) as target:
        cache_sample.apply(target, {"max_bytes": 1 << 24})
        background_fetch.apply(target, {"depth": 2})
        CALLS.clear()
        assert drawn(Mirrored()) == want
    assert len(CALLS) < 2 * ROWS


def test_by_hand_the_scripts_own_code_runs(tmp_path: Path) -> None:
    data = Mirrored()
    with LocalTarget(str(tmp_path)) as target:
        cache_sample.apply(target, {"max_bytes": 1 << 24})
        drawn(data)
        CALLS.clear()
        data[3], data.load(3)
        assert len(CALLS) == 2
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
    """No name of its code tells, but what it reads does."""

    def load(self, index: int) -> Any:
        return square(len(CALLS))


class DrawsUnseen(Mirrored):
    def load(self, index: int) -> Any:
        return square(index + 0 * vars(random)["ran" + "dom"]())


class DrawsBehindAName(Mirrored):
    def load(self, index: int) -> Any:
        DICE[0]()
        return square(index)


DICE = [random.random]


class Shared(Mirrored):
    """Keeps its results itself, and what is done to one is seen in the next epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.arrays = [square(n) for n in range(ROWS)]

    def load(self, index: int) -> Any:
        return self.arrays[index][:]


class Odd(Mirrored):
    """Of a kind that is not kept."""

    def load(self, index: int) -> Any:
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
    assert target.changes == 0 and (kind is Shared or len(CALLS) >= 3 * ROWS) and target.reasons
    assert found == want


def test_a_result_in_64_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, real = Mirrored(), np.full
    with LocalTarget(str(tmp_path)) as target:
        cache_sample.apply(target, {"max_bytes": 1 << 24})
        drawn(data, 2)
        monkeypatch.setattr(np, "full", lambda shape, value, kind: real(shape, value and value + 1, kind))
        drawn(data, 2 + AGAIN // ROWS)
        CALLS.clear()
        drawn(data, 1)
        assert len(CALLS) == ROWS
    assert target.reasons == ["load gave another result for the same arguments"]


def test_comparisons_get_rarer_within_an_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hotlap.lever.witness._SHARE", 1e9)  # no looks between
    rows = [number % ROWS for number in range(31 * AGAIN)]
    with LocalTarget(str(tmp_path)) as target:
        cache_sample.apply(target, {"max_bytes": 1 << 24})
        loader: DataLoader[Any] = DataLoader(Mirrored(), 4, collate_fn=list, sampler=rows)
        counts = []
        for _ in range(3):
            CALLS.clear()
            list(loader)
            counts.append(len(CALLS))
    assert counts[1:] == [1 + 5] * 2, "a look, and after 64, 128, 256, 512 and 1,024 more"


class Listed(Mirrored):
    def load_all(self, rows: Any, *, where: Path) -> Any:
        return square(float(sum(rows)) + len(str(where)))

    def __getitem__(self, index: int) -> Any:
        return self.load_all([index, 1], where=Path("a")) + self.load_all((index,), where=Path("bc")) * random.random()


class Popping(Mirrored):
    def load_all(self, rows: Any) -> Any:
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
    assert found == want and target.reasons == ["load_all changes what it reads or is given"]


class OfPairs(Mirrored):
    """Arguments that cannot be looked up."""

    def load_all(self, rows: Any) -> Any:
        return square(float(np.sum(rows)))

    def __getitem__(self, index: int) -> Any:
        return self.load_all(np.array([index, 1])) + self.load_all(np.array([[index]])) * random.random()


class Slotted:
    __slots__ = ("scale",)

    def __init__(self) -> None:
        self.scale = 1.0

    def __call__(self, index: int) -> Any:
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
        return square(index + where)

    def __getitem__(self, index: int) -> Any:
        return self.load_at(index, random.random())


def test_arguments_that_do_not_come_again_are_given_up(tmp_path: Path) -> None:
    want = drawn(AtRandomPlaces(), PATIENCE + 2)
    found, _ = with_lever(AtRandomPlaces(), tmp_path, PATIENCE + 2)
    assert found == want
    assert (tmp_path / "caches.usage").stat().st_size == PROOFS + PATIENCE * ROWS + 1, "entries, of a page"


def test_what_takes_long_to_look_at_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hotlap.lever.part_memory.LONGEST_LOOK_S", 0.0)
    monkeypatch.setattr("hotlap.lever.part_memory.LOOK_PER_SAMPLE_S", 0.0)
    want = drawn(Mirrored())
    found, target = with_lever(Mirrored(), tmp_path)
    assert found == want and target.reasons == ["load reads more than can be watched"] and len(CALLS) == 3 * ROWS


def test_of_a_large_data_set_a_look_may_take_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hotlap.lever.part_memory.LONGEST_LOOK_S", 0.0)
    monkeypatch.setattr("hotlap.lever.part_memory.LOOK_PER_SAMPLE_S", 10.0 / ROWS)
    target = with_lever(Mirrored(), tmp_path)[1]
    assert target.changes == 1 and len(CALLS) < 2 * ROWS


class OneOfTwo(Mirrored):
    def load(self, index: int) -> Any:
        return square(index)

    def __getitem__(self, index: int) -> Any:
        return self.load(index % 2) * random.random()


def test_few_different_arguments_are_proved_as_soon(tmp_path: Path) -> None:
    want = drawn(OneOfTwo())
    found, target = with_lever(OneOfTwo(), tmp_path)
    assert found == want and target.changes == 1 and len(CALLS) <= 2 * PROOFS + 8


def test_a_quick_function_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hotlap.lever.part_memory.QUICK_S", 10.0)
    assert with_lever(Mirrored(), tmp_path)[1].changes == 0 and len(CALLS) <= 3 * ROWS + PROOFS + 4


class Failing(Mirrored):
    def load(self, index: int) -> Any:
        if index == 2:
            raise OSError("no such photo")
        return square(index)

    def __getitem__(self, index: int) -> Any:
        try:
            return self.load(index) * random.random()
        except OSError:
            return square(-1)


@pytest.mark.parametrize("fails_when_repeated", [False, True])
def test_errors_are_the_scripts(fails_when_repeated: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    want, real = drawn(Failing()), np.full

    def full(*args: Any) -> Any:
        found = real(*args)
        if fails_when_repeated and len(CALLS) == 2:
            raise OSError
        return found

    monkeypatch.setattr(np, "full", full)
    found, target = with_lever(Failing(), tmp_path)
    failed = ["load failed when it was called again (OSError)"]
    assert found == want and target.reasons == (failed if fails_when_repeated else [])


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
        assert len(CALLS) <= 4 * ROWS + 24
    assert not target.problems


class Overridden(Counting):
    """What it overrides is not called, and is no part."""


def test_a_method_that_is_overridden_is_no_part() -> None:
    assert not [part for part in constant_parts(Overridden()) if part.bound]
    assert [part.function for part in constant_parts(Mirrored())] == [Mirrored.load]


FORKED = {"num_workers": 2, "multiprocessing_context": "fork"}


def sums(batches: list[Any]) -> list[float]:
    return [float(np.abs(batch).sum()) for batch in batches]


def test_two_data_sets_of_a_class_are_kept_apart_in_workers_too(tmp_path: Path) -> None:
    train, val = Mirrored(), Mirrored()
    val.values = [100.0 + v for v in val.values]

    def both() -> list[float]:
        return [s for _ in range(2) for data in (train, val) for s in sums(drawn(data, 1, **FORKED))]

    want = both()
    with LocalTarget(str(tmp_path)) as target:
        cache_sample.apply(target, {"max_bytes": 1 << 24})
        assert both() == want


class OfClass(Mirrored):
    scale = 1.0

    def load(self, index: int) -> Any:
        return square(self.values[index]) * self.scale


def rescaled(data: Any) -> None:
    data.scale = 3.0


def rescaled_class(data: Any) -> None:
    type(data).scale = 4.0


def revalued_in_place(data: Any) -> None:
    data.values[5:] = [-7.0] * (ROWS - 5)


@pytest.mark.parametrize("options", [{}, FORKED], ids=["here", "workers"])
@pytest.mark.parametrize("change", [resized, revalued, rescaled, rescaled_class, revalued_in_place])
def test_what_changes_between_epochs_is_seen(change: Any, options: Any, tmp_path: Path) -> None:
    def changed_between() -> list[float]:
        OfClass.scale = 1.0
        data = OfClass()
        before = sums(drawn(data, 2, **options))
        change(data)
        return [*before, *sums(drawn(data, 2, **options))]

    want = changed_between()
    with LocalTarget(str(tmp_path)) as target:
        cache_sample.apply(target, {"max_bytes": 1 << 24})
        assert changed_between() == want


def test_a_part_that_is_not_kept_any_more_is_said_and_freed(tmp_path: Path) -> None:
    def step() -> None:
        weight = torch.nn.Parameter(torch.zeros(1))
        weight.grad = torch.zeros(1)
        torch.optim.SGD([weight], 0.1).step()

    data = Mirrored()
    with LocalTarget(str(tmp_path)) as target:
        cache_sample.apply(target, {"max_bytes": 1 << 24})
        drawn(data, 2)
        step()
        found = [thing for thing in gc.get_objects() if type(thing) is FileCache]
        (cache,) = [cache for cache in found if cache._folder.startswith(str(tmp_path))]
        assert cache._own and target.changes == 1
        revalued_in_place(data)
        drawn(data, 1)
        step()
        assert target.changes == 0 and target.reasons == ["load reads what was changed in place, or for long"]
        assert not cache._own


class OfFiles(Mirrored):
    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.paths = [folder / str(number) for number in range(ROWS)]

    def load(self, index: int) -> Any:
        return square(float(self.paths[index].read_text()))


@pytest.mark.parametrize("options", [{}, FORKED], ids=["here", "workers"])
def test_a_file_that_a_part_was_made_of_is_rewritten(options: Any, tmp_path: Path) -> None:
    def rewriting() -> list[float]:
        data = OfFiles(tmp_path)
        for number, path in enumerate(data.paths):
            path.write_text(f"{number:03d}")
        found = sums(drawn(data, 2, **options))
        for number in (2, 11):
            data.paths[number].write_text(f"{100 + number}")
            os.utime(data.paths[number], ns=(number, number))
        return [*found, *sums(drawn(data, 2, **options))]

    want = rewriting()
    with LocalTarget(str(tmp_path)) as target:
        cache_sample.apply(target, {"max_bytes": 1 << 24})
        CALLS.clear()
        assert rewriting() == want and len(CALLS) < 3 * ROWS


class Buffering(Mirrored):
    def __init__(self) -> None:
        super().__init__()
        self.buffer: list[int] = []
        self.background = itertools.cycle(range(7))

    def load(self, index: int) -> Any:
        self.buffer.append(index)
        return square(index)

    def __getitem__(self, index: int) -> Any:
        return self.load(index) * random.random() + len(self.buffer)


class Cycling(Buffering):
    def load(self, index: int) -> Any:
        return square(index + next(self.background))


class LongClips:
    def read(self, index: int) -> Any:
        return self.cut(np.full(3 + index, index))

    def cut(self, wave: Any) -> Any:
        return wave[:3] if len(wave) < 12 else wave[random.randint(0, 5) :][:3].copy()


class OfClips(Buffering):
    def __init__(self) -> None:
        super().__init__()
        self.reader = LongClips()

    def load(self, index: int) -> Any:
        return self.reader.read(index)


LOG = logging.getLogger("parts")


class Logging(Buffering):
    def load(self, index: int) -> Any:
        LOG.info("read %d", index)
        return square(index)


class OfFile(Buffering):
    def __init__(self) -> None:
        super().__init__()
        self.file = io.BytesIO(bytes(range(200)))

    def load(self, index: int) -> Any:
        return square(index + self.file.read(1)[0])


class OfModule(Buffering):
    def load(self, index: int) -> Any:
        return helpers.jittered(index)


class Delegating(Buffering):
    def __getattr__(self, name: str) -> Any:
        if name == "offset":
            return 1
        raise AttributeError(name)

    def load(self, index: int) -> Any:
        return square(index + self.offset)


helpers = ModuleType("helpers")
exec("import random\ndef jittered(x):\n    import numpy\n    return numpy.full(3, x + random.random())", vars(helpers))


@pytest.mark.parametrize("kind", [Buffering, Cycling, OfClips, Logging, OfFile, OfModule, Delegating])
def test_what_a_function_does_beside_its_result_is_done_as_often(
    kind: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    want, said = drawn(kind()), len(caplog.records)
    caplog.clear()
    found, target = with_lever(kind(), tmp_path)
    assert found == want and len(caplog.records) == said
    assert kind.load not in [part.function for part in constant_parts(kind())] or target.reasons


class Twice(Mirrored):
    """The same array lies twice in its result."""

    def load_both(self, index: int) -> Any:
        pixels = square(index)
        return {"pixels": pixels, "original": pixels}

    def __getitem__(self, index: int) -> Any:
        both = self.load_both(index)
        both["pixels"] *= random.random()
        return both["original"]


class Private(Mirrored):
    def __load(self, index: int) -> Any:
        return square(index)

    read = __load

    def __getitem__(self, index: int) -> Any:
        return self.__load(index) * random.random()


def test_aliases_within_a_result_and_of_a_name(tmp_path: Path) -> None:
    want = drawn(Twice())
    found, target = with_lever(Twice(), tmp_path)
    assert found == want and target.reasons == ["load_both gives what cannot be kept"]
    want = drawn(Private())
    found, target = with_lever(Private(), tmp_path)
    assert found == want and target.changes == 1 and len(CALLS) < 2 * ROWS


class TwoParts(Mirrored):
    """Two functions that read nothing: what tells their results apart is their names alone."""

    def photo(self, index: int) -> Any:
        return np.full((2, 3), index, np.float32)

    def mask(self, index: int) -> Any:
        return np.full((2, 3), 1000 + index, np.float32)

    def __getitem__(self, index: int) -> Any:
        return np.concatenate([self.photo(index), self.mask(index) * random.random()])


def test_functions_and_objects_have_names_of_their_own(tmp_path: Path) -> None:
    rng = list(range(ROWS))
    first, second = rng, rng[::-1]  # no proof of one asks for what the other has kept

    def both() -> list[Any]:
        train, val = TwoParts(), TwoParts()
        return [drawn(train, 2, sampler=first), drawn(val, 2, sampler=second), drawn(train, 1), drawn(val, 1)]

    want = both()
    with LocalTarget(str(tmp_path)) as target:
        cache_sample.apply(target, {"max_bytes": 1 << 24})
        assert both() == want and not target.reasons


def test_a_change_between_two_proofs_is_seen(tmp_path: Path) -> None:
    def changing() -> list[Any]:
        data = Mirrored()
        found = [drawn(Subset(data, range(2)), 1)]
        for size in (5, 3, 5):
            data.size = size
            found.append(drawn(data, 2, sampler=range(ROWS)[::-1]))
        return found

    want = changing()
    with LocalTarget(str(tmp_path)) as target:
        cache_sample.apply(target, {"max_bytes": 1 << 24})
        assert changing() == want


pick = random.choice


class Aliased(Buffering):
    def load(self, index: int) -> Any:
        return square(index if index < 12 else pick([1, 2]))


class OfMethod(Buffering):
    def __init__(self) -> None:
        super().__init__()
        self.byte = io.BytesIO(bytes(range(200))).read

    def load(self, index: int) -> Any:
        return square(index if index < 12 else self.byte(1)[0])


@pytest.mark.parametrize("kind", [Aliased, OfMethod])
def test_what_draws_or_streams_under_another_name_is_no_part(kind: Any, tmp_path: Path) -> None:
    assert kind.load not in [part.function for part in constant_parts(kind())]
    want = drawn(kind())
    assert with_lever(kind(), tmp_path)[0] == want


def test_views_of_one_array_are_aliases_and_empty_arrays_are_none() -> None:
    wave = np.arange(9)
    assert is_aliased((wave, wave[3:])) and is_aliased([torch.from_numpy(wave), {"a": wave}])
    assert not is_aliased((np.zeros(0), np.zeros(0), torch.zeros(0), torch.zeros(0), wave, 1, 1, "a", "a"))
    assert shares((wave, 1), (wave[:2], 1)) and not shares([wave], [wave.copy()])
    inner: list[int] = []
    assert is_aliased([inner, inner]) and shares((inner,), (inner,)) and not shares((1, "a"), (1, "a"))


class Settings(dict[str, Any]):
    __getattr__ = dict.__getitem__


CONFIG = Settings(size=3)


class Configured(Mirrored):
    def load(self, index: int) -> Any:
        return square(index * CONFIG.size)


def test_settings_that_answer_to_any_name(tmp_path: Path) -> None:
    want = drawn(Configured())
    assert with_lever(Configured(), tmp_path)[0] == want


def read_photo(name: str, size: int = 4) -> Any:
    from PIL import Image

    np.full(1, 1)
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


class RowError(ValueError):
    def __init__(self, row: int) -> None:
        super().__init__(f"no row {row}")
        self.row = row


class Raises(Mirrored):
    """Names a class of the user's whose constructor stores: of what is made, not of what is held."""

    def load(self, index: int) -> Any:
        if index >= len(self.values):
            raise RowError(index)
        return square(self.values[index])


def test_constructors_of_what_is_made_are_not_those_of_what_is_held() -> None:
    assert Raises.load in [part.function for part in constant_parts(Raises())]


def test_a_loader_of_other_data_makes_no_part_be_looked_at(tmp_path: Path) -> None:
    """A batch of a replay buffer in each step must not cost a look at the training data."""
    with LocalTarget(str(tmp_path)) as target:
        cache_sample.apply(target, {"max_bytes": 1 << 24})
        data, other = Mirrored(), [1.0, 2.0]
        drawn(data, 3)
        CALLS.clear()
        for _ in range(10):
            next(iter(DataLoader(other, 2)))
        assert not CALLS
        drawn(data, 1)
        assert CALLS, "its own epoch looks at it"
