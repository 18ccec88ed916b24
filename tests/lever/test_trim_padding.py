"""trim-padding: what it cuts, what it leaves alone, and that a model that reads its mask learns the same."""

from __future__ import annotations

from collections import UserDict, namedtuple
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

from hotlap.lever.catalog import trim_padding
from hotlap.lever.contract import Refusal
from hotlap.lever.trimming import content_of, trimmed
from hotlap.testing.lever_kit import findings_of, machine_of
from hotlap.testing.lever_target import LocalTarget

SETTING = {"sequence": 8, "image": 32, "pool": 0}
DEALT = SETTING | {"pool": 16}


def cut(batch: Any) -> Any:
    return trimmed(batch, 8, 32)


def texts(lengths: tuple[int, ...] = (5, 20, 11), size: int = 64, fill: int = 0) -> dict[str, torch.Tensor]:
    mask = (torch.arange(size) < torch.tensor(lengths)[:, None]).long()
    return {"input_ids": torch.randint(1, 99, mask.shape) * mask + fill * (1 - mask), "attention_mask": mask,
            "labels": torch.arange(len(lengths))}  # fmt: skip


def test_texts_are_cut_to_the_longest() -> None:
    batch = texts()
    found = cut(batch)
    assert found["input_ids"].shape == (3, 24) == found["attention_mask"].shape, "a multiple of 8"
    assert torch.equal(found["input_ids"], batch["input_ids"][:, :24]) and found["labels"] is batch["labels"]
    assert found["input_ids"].is_contiguous() and batch["input_ids"].shape == (3, 64), "the script's own stays whole"
    assert cut(texts((60, 9, 9))) is not None and cut(texts((64, 9, 9)))["input_ids"].shape == (3, 64)
    assert cut(texts((2, 3, 4)))["input_ids"].shape == (3, 16), "a quarter stays"


def test_all_that_is_as_long_is_cut_alike() -> None:
    batch = texts(fill=50256)
    keep = batch["attention_mask"].bool()
    batch |= {
        "labels": torch.where(keep, batch["input_ids"], -100),
        "position_ids": torch.arange(64).repeat(3, 1),
        "padding": ~keep,
        "bias": (keep[:, :, None] & keep[:, None]).float(),
        "vectors": torch.randn(3, 64, 4) * keep[..., None],
        "wide": torch.randn(3, 10, 64),
    }
    shapes = {name: tuple(t.shape) for name, t in cut(batch).items()}
    assert shapes == {"input_ids": (3, 24), "attention_mask": (3, 24), "labels": (3, 24), "position_ids": (3, 24),
                      "padding": (3, 24), "bias": (3, 24, 24), "vectors": (3, 24, 4), "wide": (3, 10, 64)}  # fmt: skip


def test_what_does_not_say_where_it_ends_is_left_alone() -> None:
    batch = texts()
    no_mask = {"input_ids": batch["input_ids"]}
    ordinal = {"x": torch.randn(3, 4), "levels": batch["attention_mask"]}
    features = batch | {"features": torch.randn(3, 64)}
    holes = batch | {"attention_mask": batch["attention_mask"] * (torch.arange(64) % 3 > 0)}
    left = {name: value.flip(1) for name, value in batch.items() if value.dim() == 2}
    for other in (
        no_mask,
        ordinal,
        features,
        holes,
        left,
        {},
        [],
        "text",
        3,
        torch.ones(3, 64),
        {"x": torch.ones(3, 64).to_sparse()},
    ):
        assert cut(other) is other


def test_lengths_and_other_masks() -> None:
    batch = texts()
    keep = batch.pop("attention_mask").bool()
    lengths = {**batch, "lengths": keep.sum(1)}
    assert cut(lengths)["input_ids"].shape == (3, 24)
    wrong = {**batch, "lengths": torch.tensor([5, 21, 11])}
    assert cut(wrong) is wrong, "numbers that are no lengths"
    assert cut((batch["input_ids"], ~keep))[0].shape == (3, 24), "key_padding_mask: ones are padding"


def test_segments_that_say_nothing_are_no_mask() -> None:
    """As BERT's tokenizer gives them: zeros where there is one text, before the mask."""
    batch = texts()
    segments = torch.zeros(3, 64, dtype=torch.long)
    found = cut({"input_ids": batch["input_ids"], "token_type_ids": segments, "mask": batch["attention_mask"]})
    assert {tuple(t.shape) for t in found.values()} == {(3, 24)}
    told = content_of({"input_ids": batch["input_ids"], "token_type_ids": segments, "mask": batch["attention_mask"]})
    assert told is not None and told.ends.flatten().tolist() == [5, 20, 11] == told.measure.flatten().tolist()
    lengths = {"input_ids": batch["input_ids"], "token_type_ids": segments, "lengths": torch.tensor([5, 20, 11])}
    assert cut(lengths)["input_ids"].shape == (3, 24)
    nothing = {"input_ids": batch["input_ids"], "token_type_ids": segments}
    assert cut(nothing) is nothing


def test_of_several_texts_each_is_cut_to_its_longest() -> None:
    """A question and its answer, as sentence-transformers gives them; of one length, both to the longer one's."""
    first, second = texts((5, 20, 11)), texts((30, 7, 9), size=48)
    pair = {"a": first["input_ids"], "a_mask": first["attention_mask"], "b": second["input_ids"],
            "b_mask": second["attention_mask"]}  # fmt: skip
    assert [tuple(t.shape) for t in cut(pair).values()] == [(3, 24)] * 2 + [(3, 32)] * 2
    told = content_of(pair)
    assert told is not None and told.sizes == (64, 48) and told.measure.tolist() == [[35], [27], [20]]
    across = {**pair, "across": torch.zeros(3, 64, 48)}
    assert cut(across)["across"].shape == (3, 24, 48) and cut(across)["b"].shape == (3, 48), "its columns stay"
    second = texts((30, 7, 9))
    alike = {"a": first["input_ids"], "a_mask": first["attention_mask"], "b": second["input_ids"],
             "b_mask": second["attention_mask"]}  # fmt: skip
    assert {tuple(t.shape) for t in cut(alike).values()} == {(3, 32)}


def test_containers_keep_their_types() -> None:
    class Batch(UserDict[str, Any]):
        name = "mine"

    Pair = namedtuple("Pair", ("x", "text"))
    batch = texts()
    mine = cut(Batch(batch))
    assert type(mine) is Batch and mine.name == "mine" and mine["input_ids"].shape == (3, 24)
    pair = cut(Pair([batch["input_ids"], batch["attention_mask"]], "as it is"))
    assert type(pair) is Pair and pair.text == "as it is" and [tuple(t.shape) for t in pair.x] == [(3, 24)] * 2


def images(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    found = torch.zeros(2, 3, 256, 320, dtype=dtype)
    found[0, :, :100, :150], found[1, :, :60, :170] = 1, 1
    return found


def test_images_by_their_sizes_or_masks() -> None:
    sizes = torch.tensor([[100, 150], [60, 170]])
    for told in (sizes, sizes.flip(1), sizes.float()):
        batch = {"images": images(), "sizes": told, "boxes": torch.rand(5, 4)}
        found = cut(batch)
        assert found["images"].shape[2] in (128, 192) and found["images"].shape[3] == 192 and found["sizes"] is told
    mask = images()[:, 0] > 0
    found = cut({"images": images(torch.uint8), "mask": ~mask, "copy": images()})
    assert found["images"].shape == (2, 3, 128, 192) == found["copy"].shape and found["mask"].shape == (2, 128, 192)
    last = cut({"images": images().contiguous(memory_format=torch.channels_last), "mask": mask})["images"]
    assert last.is_contiguous(memory_format=torch.channels_last) and float(last.sum()) == float(images().sum())


def test_images_without_sizes_or_with_content_at_their_ends() -> None:
    sizes = torch.tensor([[100, 150], [60, 170]])
    other = images()
    other[0, 0, 255, 319] = 1
    for batch in ({"images": images()}, {"images": other, "sizes": sizes}, {"a": images(), "b": other, "sizes": sizes},
                  {"images": images(), "sizes": sizes * 9}):  # fmt: skip
        assert cut(batch) is batch


class Reader(nn.Module):
    """Reads its mask: the mean over the words that are there."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.out = nn.Embedding(99, 8), nn.Linear(8, 2)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> Any:
        return self.out((self.table(ids) * mask[..., None]).sum(1) / mask.sum(1, keepdim=True))


def train(rows: int = 32, shuffle: bool = False, most: int = 12) -> tuple[list[float], list[int]]:
    torch.manual_seed(0)
    data = [{name: value[0] for name, value in texts((3 + k % (most - 3),)).items()} for k in range(rows)]
    model, lengths = Reader(), list[int]()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for batch in DataLoader(data, batch_size=4, shuffle=shuffle):  # type: ignore[arg-type]
        lengths.append(batch["input_ids"].shape[1])
        loss = nn.functional.cross_entropy(model(batch["input_ids"], batch["attention_mask"]), batch["labels"])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(loss.item())
    return losses, lengths


def test_a_model_that_reads_its_mask_learns_the_same(tmp_path: Path) -> None:
    bare, lengths = train()
    assert set(lengths) == {64}
    with LocalTarget(str(tmp_path)) as target:
        trim_padding.apply(target, SETTING)
        losses, lengths = train()
    assert losses == pytest.approx(bare, rel=1e-5) and max(lengths) == 16 and target.changes == 8


def test_a_batch_that_cannot_be_looked_at_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("of its own")

    monkeypatch.setattr(trim_padding, "trimmed", fails)
    bare, _ = train()
    with LocalTarget(str(tmp_path)) as target:
        trim_padding.apply(target, SETTING)
        losses, _ = train()
    assert losses == bare and target.changes == 0
    assert target.problems == ["failed: RuntimeError: of its own"], "told, and the lever is undone"


def test_the_iterator_is_the_loaders_in_all_else(tmp_path: Path) -> None:
    loader: Any = DataLoader([texts((5,)) for _ in range(4)], batch_size=2)  # type: ignore[arg-type]
    with LocalTarget(str(tmp_path)) as target:
        trim_padding.apply(target, SETTING)
        iterator = iter(loader)
        assert len(iterator) == 2 and iterator._num_yielded == 0


def test_texts_of_like_length_share_batches(tmp_path: Path) -> None:
    lengths = {}
    for setting in (SETTING, DEALT):
        with LocalTarget(str(tmp_path)) as target:
            trim_padding.apply(target, setting)
            losses, lengths[setting["pool"]] = train(rows=160, shuffle=True, most=63)
            assert target.problems == [] and len(losses) == 40
    assert sum(lengths[16]) < 0.8 * sum(lengths[0])


def test_an_order_of_the_scripts_own_is_kept(tmp_path: Path) -> None:
    bare, _ = train()
    with LocalTarget(str(tmp_path)) as target:
        trim_padding.apply(target, DEALT)
        losses, lengths = train()
    assert losses == pytest.approx(bare, rel=1e-5) and max(lengths) == 16


def test_what_is_offered() -> None:
    plain = findings_of("padding")
    assert plain.script.loader is not None
    shuffled = replace(plain.script.loader, shuffled=True)
    found = replace(plain, script=replace(plain.script, loader=shuffled))
    finding = found.findings[0]
    finding.evidence.update(padding_frac=0.08, common_frac=0.01, one_size=False)
    cut, dealt = {**SETTING, "sequence": 1}, {**DEALT, "sequence": 1}  # on a CPU any length is as good
    assert isinstance(trim_padding.settings(finding, found, machine_of()), Refusal)
    finding.evidence.update(padding_frac=0.5)
    assert trim_padding.settings(finding, found, machine_of()) == [dealt], (
        "each batch to its longest: only dealing helps"
    )
    finding.evidence.update(common_frac=0.45, one_size=True)
    assert trim_padding.settings(finding, found, machine_of()) == [cut], "no sample is much shorter than its batch"
    finding.evidence.update(common_frac=0.25)
    assert trim_padding.settings(finding, found, machine_of()) == [dealt, cut]
    assert trim_padding.gain(finding, found, SETTING).high_s == pytest.approx(1.2 * 0.5 * 0.03)
    assert trim_padding.gain(finding, found, DEALT).high_s == pytest.approx(1.2 * 0.85 * 0.03)
    assert trim_padding.settings(finding, plain, machine_of()) == [cut], "its order may mean something"
    ranks = replace(found, script=replace(found.script, world_size=2))
    assert trim_padding.settings(finding, ranks, machine_of()) == [cut], "ranks would wait for each other's lengths"
    on_device = replace(found, script=replace(found.script, device="NVIDIA H200"))
    assert trim_padding.settings(finding, on_device, machine_of()) == [DEALT, SETTING], (
        "tensor cores like multiples of 8"
    )
    found.script.model["compiled"] = True
    assert "compiled" in str(trim_padding.settings(finding, found, machine_of()))
