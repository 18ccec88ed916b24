"""Samples of like length in one batch: every sample once and whole, and nothing dealt that might not be a sample's."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from hotlap.lever import dealing, trimming
from hotlap.lever.batch_parts import kinds_of, samples_of
from hotlap.lever.dealing import Dealing, rows_to_deal

ROWS = 4


def text(number: int, length: int, size: int) -> dict[str, Any]:
    mask = (torch.arange(size) < length).long()
    return {"ids": (number + 1) * mask, "mask": mask, "labels": torch.where(mask > 0, number, -100), "number": number}


def texts(count: int, one_size: bool, rows: int = ROWS) -> list[dict[str, Any]]:
    """Batches of texts of 3 to 60 words, padded to 64 or to the longest of each."""
    dice = torch.Generator().manual_seed(0)
    lengths = torch.randint(3, 61, (count * rows,), generator=dice).tolist()
    out = []
    for k in range(count):
        mine = lengths[k * rows : (k + 1) * rows]
        size = 64 if one_size else max(mine)
        samples = [text(k * rows + i, length, size) for i, length in enumerate(mine)]
        batch: dict[str, Any] = {name: torch.stack([s[name] for s in samples]) for name in ("ids", "mask", "labels")}
        out.append({**batch, "names": [f"text {s['number']}" for s in samples], "task": "reading"})
    return out


def failed(err: Exception) -> None:
    raise AssertionError(f"it failed: {err!r}")


def dealt(batches: Iterable[Any], pool: int = 8, rows: int = ROWS) -> list[Any]:
    return list(Dealing(iter(batches), rows, pool, failed))


def check_texts(given: list[dict[str, Any]], batches: list[dict[str, Any]]) -> None:
    """Each text of ``batches`` is there once, with all that belongs to it, filled up with what its tensors hold."""
    assert len(given) == len(batches)
    numbers = []
    for batch in given:
        assert batch["task"] == "reading" and len(batch["names"]) == len(batch["ids"])
        for ids, mask, labels, name in zip(batch["ids"], batch["mask"], batch["labels"], batch["names"], strict=True):
            number, length = int(ids[0]) - 1, int(mask.sum())
            assert name == f"text {number}" and mask[:length].all()
            assert (ids[:length] == number + 1).all() and (ids[length:] == 0).all()
            assert (labels[:length] == number).all() and (labels[length:] == -100).all()
            numbers.append((number, length))
    every = [(int(ids[0]) - 1, int(mask.sum())) for b in batches for ids, mask in zip(b["ids"], b["mask"], strict=True)]
    assert sorted(numbers) == sorted(every)


def padding(batches: list[dict[str, Any]]) -> float:
    """Of the words up to the longest of each batch, those that are padding."""
    return statistics.fmean(
        1 - float(b["mask"].sum()) / (len(b["mask"]) * int(b["mask"].sum(1).max())) for b in batches
    )


@pytest.mark.parametrize("one_size", [True, False])
def test_every_text_comes_once_with_all_that_is_its_own_and_among_its_like(one_size: bool) -> None:
    batches = texts(60, one_size)
    given = dealt(batches)
    check_texts(given, batches)
    assert padding(given) < 0.4 * padding(batches)


def test_pairs_of_texts_stay_together_and_are_filled_up_each_with_its_own() -> None:
    """Question and answer, each padded to the longest of its batch."""
    firsts, seconds = texts(40, one_size=False), texts(41, one_size=False)[1:]
    batches = [
        {"a": a["ids"], "a_mask": a["mask"], "b": torch.where(b["mask"] > 0, b["ids"], 7777), "b_mask": b["mask"]}
        for a, b in zip(firsts, seconds, strict=True)
    ]
    given = dealt(batches)
    assert len(given) == 40

    def rows(some: list[dict[str, Any]]) -> list[tuple[list[int], list[int]]]:
        return sorted(
            (a[m > 0].tolist(), b[n > 0].tolist())
            for batch in some
            for a, m, b, n in zip(batch["a"], batch["a_mask"], batch["b"], batch["b_mask"], strict=True)
        )

    assert rows(given) == rows(batches)
    for batch in given:
        assert (batch["a"][batch["a_mask"] == 0] == 0).all() and (batch["b"][batch["b_mask"] == 0] == 7777).all()

    def measured(some: list[dict[str, Any]]) -> float:
        return statistics.fmean(float((b["a_mask"].sum(1) + b["b_mask"].sum(1)).float().std()) for b in some)

    assert measured(given) < 0.5 * measured(batches)


def test_none_waits_longer_than_there_are_samples_in_the_pool() -> None:
    batches = texts(100, one_size=True)
    given = dealt(batches, pool=4)
    when = {name: k for k, batch in enumerate(given) for name in batch["names"]}
    late = [when[name] - k for k, batch in enumerate(batches) for name in batch["names"]]
    assert max(late) <= 4 * ROWS and min(late) >= -4


def test_what_is_left_over_comes_last_as_it_is() -> None:
    last = {name: value[:3] if name != "task" else value for name, value in texts(1, one_size=True)[0].items()}
    batches = [*texts(12, one_size=True), last]
    assert dealt(batches)[-1] is last and len(dealt(batches)) == 13
    assert [len(b["ids"]) for b in dealt([last])] == [3]
    assert dealt([]) == []


def test_the_loader_is_asked_for_no_more_than_two_batches_at_a_time() -> None:
    asked: list[int] = []

    def batches() -> Iterator[Any]:
        for k, batch in enumerate(texts(40, one_size=True)):
            asked.append(k)
            yield batch

    at = []
    for _ in Dealing(batches(), ROWS, 8, failed):
        at.append(len(asked))
    assert max(b - a for a, b in itertools.pairwise(at)) == 2
    assert all(seen - given - 1 < 8 for given, seen in enumerate(at)), "no more wait than the pool holds"


def test_boxes_go_with_their_images_also_where_there_are_as_many_as_images() -> None:
    """Their number per image is in a list; which image each is of is told anew."""
    counts = [[1, 0, 2, 1], [3, 2, 0, 1], [1, 1, 1, 1], [0, 0, 4, 0], [2, 2, 1, 0], [0, 0, 0, 0]] * 4

    def batch(k: int, boxes: list[int]) -> dict[str, Any]:
        sizes = torch.tensor([[32 + 8 * ((k * 5 + i * 3) % 9), 40 + 8 * ((k + i) % 7)] for i in range(4)])
        images = torch.zeros(4, 3, 128, 96)
        for i, (tall, wide) in enumerate(sizes.tolist()):
            images[i, :, :tall, :wide] = k * 4 + i + 1
        owner = torch.repeat_interleave(torch.arange(4), torch.tensor(boxes))
        return {"images": images, "sizes": sizes, "boxes": (k * 4 + owner + 1.0)[:, None].expand(-1, 4).clone(),
                "owner": owner, "counts": boxes}  # fmt: skip

    batches = [batch(k, boxes) for k, boxes in enumerate(counts)]
    given = dealt(batches, pool=4)
    assert [b is a for a, b in zip(batches, given, strict=True)].count(True) == dealing.LOOKED_AT
    seen: list[Any] = []
    for found in given:
        numbers = found["images"][:, 0, 0, 0]
        assert torch.equal(found["boxes"][:, 0], numbers[found["owner"]])
        assert torch.bincount(found["owner"], minlength=4).tolist() == found["counts"]
        seen += zip(numbers.tolist(), found["counts"], map(tuple, found["sizes"].tolist()), strict=True)
    every = [(float(k * 4 + i + 1), n, tuple(size)) for k, b in enumerate(batches)
             for i, (n, size) in enumerate(zip(b["counts"], b["sizes"].tolist(), strict=True))]  # fmt: skip
    assert sorted(seen) == sorted(every)


@pytest.mark.parametrize("odd", [
    lambda k, b: b | {"extra": torch.zeros(3 + k % 2, 2)},  # whose rows these are, nothing says
    lambda k, b: b | {"size": k},  # another value for each batch
    lambda k, b: {"ids": b["ids"]},  # nothing says where the content ends
    lambda k, b: b | {"spans": np.arange(k + 2)},  # no tensor
    lambda k, b: b["ids"],
])  # fmt: skip
def test_batches_whose_samples_cannot_be_told_apart_are_handed_on(odd: Any) -> None:
    batches = [odd(k, b) for k, b in enumerate(texts(12, one_size=True))]
    assert all(a is b for a, b in zip(dealt(batches), batches, strict=True))


def test_a_batch_of_another_kind_in_between_is_handed_on_and_no_sample_is_lost() -> None:
    batches = texts(20, one_size=True)
    batches[9] = batches[9] | {"task": "writing"}
    given = dealt(batches)
    assert sum(b is batches[9] for b in given) == 1
    check_texts([b | {"task": "reading"} for b in given], [b | {"task": "reading"} for b in batches])


def test_tensors_with_no_padding_of_one_value_are_not_filled_up() -> None:
    """Features that go on behind the text: such batches of several lengths cannot share samples."""
    batches = [b | {"features": torch.rand(b["ids"].shape)} for b in texts(12, one_size=False)]
    by_text = {name: row for b in batches for name, row in zip(b["names"], b["features"], strict=True)}
    for found in dealt(batches):
        for name, row in zip(found["names"], found["features"], strict=True):
            assert torch.equal(row, by_text[name])


def test_batches_are_pinned_where_the_loader_pinned_them(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = texts(12, one_size=False)
    pinned = {id(b["ids"]) for b in batches}
    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda tensor: id(tensor) in pinned)
    made: list[torch.Tensor] = []

    def pin(tensor: torch.Tensor) -> torch.Tensor:
        made.append(tensor.clone())
        return made[-1]

    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    given = dealt(batches)[dealing.LOOKED_AT :]
    assert len(made) == len(given) and all(b["ids"] is tensor for b, tensor in zip(given, made, strict=True))


def test_a_sample_that_waits_keeps_no_batch_alive() -> None:
    batches = texts(2, one_size=True)
    kinds = kinds_of(batches, ROWS)
    assert kinds is not None
    (first, *_) = samples_of(batches[0], kinds) or [{}]
    assert first["ids",].untyped_storage().nbytes() == first["ids",].nbytes == 64 * 8


def test_large_samples_make_a_small_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dealing, "MOST_BYTES", 1)
    asked: list[int] = []

    def batches() -> Iterator[Any]:
        for k, batch in enumerate(texts(20, one_size=True)):
            asked.append(k)
            yield batch

    ahead = [len(asked) - given for given, _ in enumerate(Dealing(batches(), ROWS, 8, failed), 1)]
    assert max(ahead) <= 2


def test_an_error_of_the_scripts_own_types_is_told_and_no_sample_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Exception] = []
    batches = texts(20, one_size=True)
    real = trimming.content_of

    def content_of(batch: Any) -> Any:
        if batch is batches[10]:
            raise RuntimeError("of its own")
        return real(batch)

    monkeypatch.setattr(dealing, "content_of", content_of)
    given = list(Dealing(iter(batches), ROWS, 4, told.append))
    assert [str(err) for err in told] == ["of its own"]
    assert all(any(b is later for b in given) for later in batches[10:]), "handed on as they are from there on"
    check_texts(given, batches)


def test_an_error_of_the_loader_reaches_the_script_and_the_samples_that_wait_come_after_it() -> None:
    class Breaks:
        def __init__(self, batches: list[Any]) -> None:
            self.left: list[Any] = [*batches[:10], KeyError("a file is gone"), *batches[10:]]

        def __iter__(self) -> Breaks:
            return self

        def __next__(self) -> Any:
            if not self.left:
                raise StopIteration
            if isinstance(found := self.left.pop(0), Exception):
                raise found
            return found

    batches = texts(20, one_size=True)
    given, errors = [], 0
    iterator = Dealing(Breaks(batches), ROWS, 4, failed)
    while True:
        try:
            given.append(next(iterator))
        except KeyError:
            errors += 1
        except StopIteration:
            break
    assert errors == 1
    check_texts(given, batches)


def test_only_where_torchs_own_samplers_shuffle() -> None:
    rows = [torch.zeros(3)] * 8

    class Mine(Sampler[int]):
        def __iter__(self) -> Iterator[int]:
            return iter(range(8))

    class Numbered(BatchSampler):
        """As sentence-transformers' own: torch's, which is told the epoch."""

        epoch = 0

    class Pairs(BatchSampler):
        def __iter__(self) -> Iterator[list[int]]:
            return iter([[0, 1], [2, 3]])

    class StatefulDataLoader(DataLoader[Any]):
        """As torchdata's, which can be saved in the middle of an epoch."""

    assert rows_to_deal(DataLoader(rows, batch_size=4, shuffle=True)) == 4  # type: ignore[arg-type]
    for shuffling in (RandomSampler(rows), SubsetRandomSampler(range(8))):
        assert rows_to_deal(DataLoader(rows, batch_sampler=Numbered(shuffling, 4, False))) == 4  # type: ignore[arg-type]
    assert rows_to_deal(StatefulDataLoader(rows, batch_size=4, shuffle=True)) is None  # type: ignore[arg-type]
    for other in (
        {"batch_size": 4},
        {"batch_size": 1, "shuffle": True},
        {"batch_size": None, "shuffle": True},
        {"batch_size": 4, "sampler": Mine()},
        {"batch_size": 4, "sampler": WeightedRandomSampler([1.0] * 8, 8)},
        {"batch_sampler": Numbered(SequentialSampler(rows), 4, False)},
        {"batch_sampler": Pairs(RandomSampler(rows), 4, False)},
    ):
        assert rows_to_deal(DataLoader(rows, **other)) is None  # type: ignore[arg-type]
