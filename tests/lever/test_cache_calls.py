"""Which functions of a script are taken for pure, and what a function with a memory gives."""

from __future__ import annotations

import math
import random
import re
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from hotlap.lever.catalog import cache_calls
from hotlap.lever.memo import AGAIN, CHANGES, TRIED, Room, remembering
from hotlap.lever.pure_functions import PureFunction, pure_functions
from hotlap.testing.lever_target import LocalTarget

NUMBER = re.compile(r"\d+")
SCALE = 3
counted: list[str] = []


def scaled(number: int) -> int:
    return SCALE * number


def counting(text: str) -> int:
    counted.append(text)
    return len(text)


def logged(text: str) -> str:
    print(text)
    return text


class Vocabulary:
    def __init__(self) -> None:
        self.ids = {"a": 1, "b": 2}

    def look_up(self, word: str) -> int:
        return self.ids.get(word, 0)


class Texts(Dataset[Any]):
    """Every kind of method that a data set may have on the way to a sample."""

    def __init__(self) -> None:
        self.words = ["a b", "b c 7", "a b"] * 4
        self.vocabulary = Vocabulary()
        self.ids = {"a": 1, "b": 2}
        self.calls = 0
        self.buffer = [0]
        self.noise = random.Random(0)

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, index: int) -> Any:
        text = self.words[index]
        return (
            *self.encode(text), self.numbers(text), self.padded(len(text)), self.roots(4.0), self.joined(text),
            scaled(3), self.count(text), self.reuse(text), self.jitter(text), self.inner(), self.alias(text),
            self.by_word(text), counting(text), logged(text), self.read(text), self.half(text, half=2),
            self.many(1, 2), self.bump(index),
        )  # fmt: skip

    def encode(self, text: str) -> list[int]:
        found, start = [], 0
        for word in text.split():
            found.append(self.ids.get(word, 0))
            start += 1
        return [*found, start]

    def numbers(self, text: str) -> list[str]:
        return NUMBER.findall(text)

    def padded(self, length: int) -> list[float]:
        row: list[float] = [0.0] * length
        row[0] = 1.0
        return row

    def roots(self, number: float) -> tuple[float, ...]:
        return tuple(math.sqrt(k) for k in range(int(number)))

    def joined(self, text: str) -> str:
        return "|".join(sorted({w + "" for w in text.split()}, key=lambda w: (len(w), w)))

    def by_word(self, text: str) -> int:
        return sum(self.ids.get(w, 0) * scaled(1) for w in text.split())

    def half(self, text: str, half: int = 1) -> str:
        return text[: len(text) // half]

    def count(self, text: str) -> int:
        self.calls += 1
        return len(text)

    def reuse(self, text: str) -> list[int]:
        self.buffer[0] = len(text)
        return self.buffer

    def alias(self, text: str) -> int:
        mine = self.buffer
        mine.append(len(text))
        return len(mine)

    def jitter(self, text: str) -> float:
        return self.noise.random() * len(text)

    def inner(self) -> list[int]:
        return self.buffer

    def read(self, text: str) -> bool:
        return Path(text).exists()

    def many(self, *numbers: int) -> int:
        return sum(numbers)

    def bump(self, index: int) -> int:
        total = self.buffer
        total += [index]
        return len(total)


PURE = {"encode", "numbers", "padded", "roots", "joined", "by_word", "half", "inner", "scaled", "look_up"}


def found_in(dataset: Any, collate: Any = None) -> dict[str, PureFunction]:
    return {p.function.__name__: p for p in pure_functions(dataset, collate)}


def test_what_only_computes_is_found_and_nothing_else() -> None:
    assert set(found_in(Texts())) == PURE - {"look_up"}
    assert set(found_in(None, lambda rows: [v.look_up(r) for v in () for r in rows])) == set()


class Reading(Texts):
    def __getitem__(self, index: int) -> Any:
        return self.vocabulary.look_up(self.words[index])


def test_methods_of_what_an_object_holds_are_found() -> None:
    assert set(found_in(Reading())) == {"look_up"}


class Slots(Dataset[Any]):
    __slots__ = ("words",)

    def __init__(self) -> None:
        self.words = ["a"]

    def __getitem__(self, index: int) -> Any:
        return self.size(self.words[index])

    def size(self, text: str) -> int:
        return len(text) + len(self.words)


def test_objects_without_a_dict_are_looked_through_all_the_same() -> None:
    assert set(found_in(Slots())) <= {"size"}
    texts: Any = Slots()
    for pure in found_in(texts).values():
        assert remembering(pure, Room(1000), lambda: None, print)(texts, "ab") == 3


def test_a_list_that_somebody_else_holds_is_no_new_result() -> None:
    found = found_in(Texts())
    assert not found["inner"].new_result and found["encode"].new_result and found["padded"].new_result


def remembered(name: str, dataset: Any, room: int = 1 << 20) -> tuple[Any, list[int], list[str]]:
    """The method with a memory, how often it computes, and what was said against it."""
    pure = found_in(dataset)[name]
    real, calls, said = pure.function, [0], []

    def noted(*args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        return real(*args, **kwargs)

    noted.__name__ = name
    pure.function = noted  # type: ignore[assignment]
    return remembering(pure, Room(room), lambda: None, said.append), calls, said


def test_a_result_is_computed_once_and_each_caller_has_its_own() -> None:
    texts = Texts()
    encode, calls, _ = remembered("encode", texts)
    first = encode(texts, "a b")
    first.append(9)
    second = encode(texts, "a b")
    second.clear()
    assert encode(texts, "a b") == [1, 2, 2] and calls == [1]
    assert encode(texts, text="a b") == [1, 2, 2] and calls == [2], "by keyword it is simply called"


def test_numbers_that_are_equal_are_not_the_same() -> None:
    roots, calls, _ = remembered("roots", Texts())
    texts = Texts()
    assert [roots(texts, n) for n in (1, 1.0, True, 1, 1.0)] == [(0.0,)] * 5 and calls == [3]


def test_arguments_that_are_no_plain_values_and_other_objects_are_simply_computed() -> None:
    texts, others = Texts(), Texts()
    others.ids = {"a": 5}
    encode, calls, _ = remembered("encode", texts)
    assert encode(texts, "a") == [1, 1] and encode(others, "a") == [5, 1] == encode(others, "a") and calls == [3]

    class Text(str):
        pass

    assert encode(texts, Text("a")) == [1, 1] and calls == [4]
    with pytest.raises(TypeError):
        encode(texts)
    with pytest.raises(AttributeError):
        encode(texts, 3)


def test_a_table_that_is_replaced_is_read_anew_at_once() -> None:
    texts = Texts()
    encode, calls, said = remembered("encode", texts)
    assert {tuple(encode(texts, "a")) for _ in range(5)} == {(1, 1)}
    texts.ids = {"a": 7}
    assert [encode(texts, "a")[0] for _ in range(3 * AGAIN)] == [7] * (3 * AGAIN)
    texts.ids["a"] = 9
    assert encode(texts, "a") == [9, 1], "so is a short one that is changed in place"
    assert said == [] and calls[0] < 10
    for k in range(2 * CHANGES):
        texts.ids["a"] = k
        assert encode(texts, "a") == [k, 1]
    before = calls[0]
    [encode(texts, "a") for _ in range(10)]
    assert calls[0] == before + 10, "what changes all the time is left alone"


def test_a_switch_of_the_module_or_the_class_is_seen_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = Texts()
    by_word, _, said = remembered("by_word", texts)
    assert [by_word(texts, "a b") for _ in range(3)] == [9] * 3
    monkeypatch.setitem(globals(), "SCALE", 4)
    assert [by_word(texts, "a b") for _ in range(3)] == [12] * 3
    sized = Sized()
    size, *_ = remembered("size", sized)
    assert [size(sized, "a") for _ in range(3)] == [2] * 3
    monkeypatch.setattr(Sized, "length", 5)
    assert [size(sized, "a") for _ in range(3)] == [5] * 3
    sized.length = 6
    assert [size(sized, "a") for _ in range(3)] == [6] * 3 and said == []


class Sized(Texts):
    length = 2

    def __getitem__(self, index: int) -> Any:
        return self.size(self.words[index])

    def size(self, text: str) -> int:
        return len(text) * self.length


@pytest.mark.parametrize(("key", "late"), [("z", 2 * AGAIN), ("0", 2 * AGAIN)])
def test_a_long_table_that_is_changed_in_place_is_noticed(key: str, late: int) -> None:
    texts = Texts()
    texts.ids = {str(k): k for k in range(100)}
    encode, _, said = remembered("encode", texts)
    assert encode(texts, key)[0] == 0
    texts.ids[key] = 9
    given = [encode(texts, key)[0] for _ in range(late)]
    assert given.count(0) < AGAIN and given[-1] == 9 and given == sorted(given)
    assert said == ([] if key == "z" else ["encode gave another result for the same arguments"])


def test_the_next_object_takes_its_place_when_the_first_is_gone() -> None:
    texts = Texts()
    encode, calls, _ = remembered("encode", texts)
    gone = weakref.ref(texts)
    assert [encode(texts, "a") for _ in range(3)] == [[1, 1]] * 3
    del texts
    assert gone() is None, "nothing keeps the user's object"
    texts = Texts()
    texts.ids = {"a": 4}
    assert [encode(texts, "a") for _ in range(3)] == [[4, 1]] * 3 and calls == [2]


def kept_by_somebody(text: str) -> str:
    return text.upper()


SOMEBODY = [kept_by_somebody]


def test_a_function_that_somebody_holds_is_left_where_it_is() -> None:
    assert found_in(None, lambda rows: [scaled(r) for r in rows]).keys() == {"scaled"}
    assert not found_in(None, lambda rows: [kept_by_somebody(r) for r in rows])


def test_memory_is_bounded() -> None:
    texts = Texts()
    encode, calls, _ = remembered("encode", texts, room=2000)
    for _ in range(2):
        [encode(texts, str(k)) for k in range(100)]
    assert 180 < calls[0] < 200


def test_what_never_comes_again_is_left_alone() -> None:
    texts = Texts()
    encode, calls, _ = remembered("encode", texts, room=1 << 30)
    for k in range(TRIED + AGAIN):
        encode(texts, str(k))
    calls[0] = 0
    [encode(texts, "a") for _ in range(10)]
    assert calls == [10]


def test_an_exception_is_raised_each_time() -> None:
    texts = Texts()
    padded, calls, _ = remembered("padded", texts)
    for _ in range(2):
        with pytest.raises(IndexError):
            padded(texts, 0)
    assert calls == [2]


class Lines(Dataset[Any]):
    def __init__(self) -> None:
        self.lines = [f"{k % 3},{k % 2}" for k in range(24)]

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, index: int) -> Any:
        return torch.tensor(self.parsed(self.lines[index])) + torch.rand(2)

    def parsed(self, line: str) -> list[float]:
        return [float(v) for v in line.split(",")]


def trained(tmp_path: Path, workers: int, on: bool) -> tuple[list[Any], LocalTarget]:
    torch.manual_seed(0)
    model = torch.nn.Linear(2, 1)
    batches = []
    with LocalTarget(str(tmp_path)) as target:
        if on:
            cache_calls.apply(target, {"max_bytes": 1 << 20})
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            for batch in DataLoader(Lines(), batch_size=6, num_workers=workers):
                batches.append(batch.clone())
                optimizer.zero_grad()
                model(batch).sum().backward()
                optimizer.step()
    return batches, target


@pytest.mark.parametrize("workers", [0, 1])
def test_batches_are_the_same_and_nothing_is_left_behind(tmp_path: Path, workers: int) -> None:
    real = Lines.parsed
    plain, _ = trained(tmp_path, workers, on=False)
    early, target = trained(tmp_path, workers, on=True)
    assert all(torch.equal(a, b) for a, b in zip(plain, early, strict=True))
    assert target.changes == 1 and Lines.parsed is real and target.problems == []


def test_nothing_pure_is_no_effect(tmp_path: Path) -> None:
    class Plain(Lines):
        def __getitem__(self, index: int) -> Any:
            return torch.rand(2)

    with LocalTarget(str(tmp_path)) as target:
        cache_calls.apply(target, {"max_bytes": 1 << 20})
        list(DataLoader(Plain(), batch_size=6))
    assert target.changes == 0
