"""What a batch holds: the right pixels in every layout, each row once, the same after a resume, never overwritten."""

from __future__ import annotations

import concurrent.futures
import gc
import itertools
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from pack_support import jpeg, mixed

from hotlap.pack import (
    BlockShuffle,
    Clip,
    Flat,
    Image,
    Loader,
    LoaderSettings,
    Pack,
    PackedDataset,
    Padded,
    Pairs,
    Sequential,
    Shuffle,
    Tuples,
    as_is,
    threads,
)
from hotlap.pack import loader as loader_module
from hotlap.pack.placement import Placement
from hotlap.pack.threads import one_thread
from hotlap.pack.ways import default_views
from hotlap.records.errors import HotlapError

Make = Callable[..., Pack]
INLINE, BACKGROUND = LoaderSettings(mode="inline"), LoaderSettings(mode="background", threads=2, ahead=3)


def pictures(count: int, interleaved: bool = False) -> list[dict[str, Any]]:
    """Images whose pixels tell where they come from."""
    rng = np.random.default_rng(0)
    rows = [{"image": rng.integers(0, 256, (3, 20, 17), dtype=np.uint8), "label": k} for k in range(count)]
    return [{**r, "image": r["image"].transpose(1, 2, 0)} for r in rows] if interleaved else rows


def find_crop(image: np.ndarray, crop: np.ndarray) -> list[tuple[int, int, bool]]:
    """Where in ``image`` the crop lies, and whether it is mirrored."""
    h, w = crop.shape[1:]
    places = itertools.product(range(image.shape[1] - h + 1), range(image.shape[2] - w + 1), (False, True))
    return [(y, x, flip) for y, x, flip in places
            if np.array_equal(image[:, y : y + h, x : x + w][:, :, :: -1 if flip else 1], crop)]  # fmt: skip


@pytest.mark.parametrize("settings", [INLINE, BACKGROUND])
@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("layout", ["nchw", "channels_last"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8, torch.bfloat16])
def test_crops_are_windows_of_their_images(make: Make, settings: LoaderSettings, interleaved: bool, layout: str,
                                           dtype: torch.dtype) -> None:  # fmt: skip
    rows = pictures(37)
    pack = make(pictures(37, interleaved), part_bytes=9000)
    view = Image(crop=(8, 7), flip=0.5, layout=layout, dtype=dtype)
    places = []
    for batch in Loader(pack, 10, {"image": view, "label": None}, settings=settings):
        images = batch["image"]
        assert images.dtype == dtype and images.shape[1:] == (3, 8, 7)
        assert images.is_contiguous(memory_format=torch.channels_last) == (layout == "channels_last")
        assert batch["row"].tolist() == batch["label"].tolist()
        for image, label in zip(images, batch["label"].tolist(), strict=True):
            found = find_crop(rows[label]["image"], image.to(torch.uint8).numpy())
            assert len(found) == 1
            places += found
    assert len(places) == 37
    assert len({(y, x) for y, x, _ in places}) > 20 and 5 < sum(flip for *_, flip in places) < 32


@pytest.mark.parametrize("layout", ["nchw", "channels_last"])
@pytest.mark.parametrize(("mean", "std"), [(127.5, 128.0), ((123.0, 117.0, 104.0), (58.0, 57.0, 56.0)), (None, 255.0)])
def test_normalisation(make: Make, layout: str, mean: Any, std: Any) -> None:
    rows = pictures(9)
    batch = next(iter(Loader(make(rows), 9, {"image": Image(mean=mean, std=std, layout=layout)}, Sequential())))
    shift, scale = (torch.tensor(0.0 if v is None else v).reshape(-1, 1, 1) for v in (mean, std))
    wanted = (torch.from_numpy(np.stack([r["image"] for r in rows])).float() - shift) / scale
    assert torch.allclose(batch["image"], wanted, atol=1e-5)


@pytest.mark.parametrize("layout", ["nchw", "channels_last"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_normalised_numbers_are_rounded_once(make: Make, layout: str, dtype: torch.dtype) -> None:
    pack = make(pictures(9))
    views = [Image(mean=(123.0, 117.0, 104.0), std=(58.0, 57.0, 56.0), layout=layout, dtype=kind)
             for kind in (torch.float32, dtype)]  # fmt: skip
    whole, half = (next(iter(Loader(pack, 9, {"image": view}, Sequential())))["image"] for view in views)
    error = (half.double() - whole.double()).abs()
    ulp = torch.finfo(dtype).eps * whole.double().abs()
    assert half.dtype == dtype and (error <= ulp / 2 + 1e-6).all()


@pytest.mark.parametrize("shape", [(20, 17, 2), (2, 20, 17), (20, 17, 5), (3, 20, 4)])
def test_channels_that_the_shape_does_not_tell(make: Make, shape: tuple[int, ...]) -> None:
    pack = make([{"image": np.zeros(shape, np.uint8)}])
    with pytest.raises(HotlapError, match=rf"rows of shape \({shape[0]}, .*could be them\. Read it as stored"):
        Loader(pack, 1, {"image": Image(flip=0.5)})
    assert default_views(pack, None, None) == {"image": None}


def test_devices_that_batches_are_not_copied_to(make: Make) -> None:
    with pytest.raises(HotlapError, match=r"Loader\(device='mps'\): .* batch\[name\]\.to\('mps'\)"):
        Loader(make(pictures(1)), 1, device="mps")


def test_centre_and_mask_together(make: Make) -> None:
    rows = [{**r, "mask": r["image"][:1]} for r in pictures(12)]
    pack = make(rows)
    centre = next(iter(Loader(pack, 12, {"image": Image((8, 7), at="center")}, Sequential())))
    assert np.array_equal(centre["image"][3].numpy(), rows[3]["image"][:, 6:14, 5:12])
    view = Image((8, 7), flip=0.5)
    both = next(iter(Loader(pack, 12, {"image": view, "mask": view})))
    assert torch.equal(both["image"][:, :1], both["mask"])


def epochs(loader: Loader, count: int) -> Iterator[dict[str, Any]]:
    for _ in range(count):
        yield from loader


def test_each_row_once_and_another_order_each_epoch(make: Make) -> None:
    for order in (Shuffle(3), BlockShuffle(3, block_rows=4, window_blocks=3)):
        loader = Loader(make(mixed(50), f"{order}".split("(")[0]), 8, {"label": None}, order)
        first, second = ([r for b in loader for r in b["row"].tolist()] for _ in range(2))
        assert sorted(first) == sorted(second) == list(range(50)) and first != second and first != sorted(first)
        assert len(loader) == 7


def snapshot(batches: Any) -> list[tuple[list[int], bytes]]:
    return [(b["row"].tolist(), b["image"].numpy().tobytes()) for b in batches]


@pytest.mark.parametrize("settings", [INLINE, BACKGROUND])
@pytest.mark.parametrize("stop", [0, 3, 5, 9])
def test_a_resume_gives_the_very_next_batch(make: Make, settings: LoaderSettings, stop: int) -> None:
    pack = make(pictures(40))
    views = {"image": Image((8, 8), flip=0.5)}
    whole = snapshot(epochs(Loader(pack, 8, views, Shuffle(1), settings=settings), 3))
    left = Loader(pack, 8, views, Shuffle(1), settings=settings)
    assert snapshot(itertools.islice(epochs(left, 3), stop)) == whole[:stop]
    state = left.state_dict()
    resumed = Loader(pack, 8, views, Shuffle(1), settings=settings)
    resumed.load_state_dict(state)
    assert snapshot(itertools.islice(epochs(resumed, 3), len(whole) - stop)) == whole[stop:]
    other = Loader(pack, 5, views, Shuffle(1))
    with pytest.raises(HotlapError, match="batch_size"):
        other.load_state_dict(state)


def test_the_epoch_that_was_left_goes_on_when_it_is_named_again(make: Make) -> None:
    pack = make(pictures(40))
    left = Loader(pack, 8, {"label": None}, Shuffle(1))
    seen = [b["row"].tolist() for b in itertools.islice(epochs(left, 2), 7)]
    resumed = Loader(pack, 8, {"label": None}, Shuffle(1))
    resumed.load_state_dict(left.state_dict())
    resumed.set_epoch(1)
    assert len(rest := [b["row"].tolist() for b in resumed]) == 3
    assert sorted(itertools.chain(*seen[5:], *rest)) == list(range(40))
    resumed.set_epoch(1)
    assert [b["row"].tolist() for b in resumed][:2] == seen[5:], "asked for anew it is read anew"


@pytest.mark.parametrize("settings", [INLINE, BACKGROUND])
def test_going_back_to_an_epoch_that_was_had(make: Make, settings: LoaderSettings) -> None:
    loader = Loader(make(pictures(40)), 8, {"label": None}, Shuffle(1), settings=settings)
    state = loader.state_dict()
    first, *_ = ([b["row"].tolist() for b in loader] for _ in range(3))
    for back in (lambda: loader.set_epoch(0), lambda: loader.load_state_dict(state)):
        back()
        assert len(loader) == 5 and [b["row"].tolist() for b in loader] == first
        list(loader)


def test_what_is_no_state(make: Make) -> None:
    loader = Loader(make(pictures(40)), 8, {"label": None})
    for wrong, told in (({}, "'epoch' is 'missing'"), (loader.state_dict() | {"batch": -1}, "'batch' is -1"),
                        (loader.state_dict() | {"rows": "40"}, "'rows' is '40'")):  # fmt: skip
        with pytest.raises(HotlapError, match=f"not a Loader's: {told} in it.*state_dict"):
            loader.load_state_dict(wrong)  # type: ignore[arg-type]


def test_another_order_does_not_go_on(make: Make) -> None:
    pack = make(pictures(40))
    state = Loader(pack, 8, order=Tuples([[0, 1], [2, 3], [4, 5], [6, 7]])).state_dict()
    Loader(pack, 8, order=Tuples([[0, 1], [2, 3], [4, 5], [6, 7]])).load_state_dict(state)
    for order in (Tuples([[0, 1], [2, 3], [4, 5], [6, 8]]), Shuffle(), Pairs()):
        with pytest.raises(HotlapError, match="reads in another order"):
            Loader(pack, 8, order=order).load_state_dict(state)


@pytest.mark.parametrize("layout", ["nchw", "channels_last"])
def test_pairs_stay_pairs_where_some_are_mirrored(make: Make, layout: str) -> None:
    rows = pictures(12)
    table = [[k, k + 1] for k in range(11)]
    view = Image((20, 17), at="center", flip=0.5, dtype=torch.uint8, layout=layout)
    mirrored = 0
    for batch in Loader(make(pictures(12)), 6, {"image": view, "label": None}, Tuples(table, seed=None)):
        assert (batch["row"][1::2] - batch["row"][0::2]).eq(1).all() and batch["label"].equal(batch["row"])
        assert batch["image"].is_contiguous(memory_format=torch.channels_last) == (layout == "channels_last")
        for row, image in zip(batch["row"].tolist(), batch["image"].numpy(), strict=True):
            plain = rows[row]["image"]
            mirrored += np.array_equal(image, plain[:, :, ::-1])
            assert np.array_equal(image, plain) or np.array_equal(image, plain[:, :, ::-1])
    assert 3 <= mirrored <= 19


def test_a_damaged_batch_made_ahead_does_not_keep_the_threads(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    loader = Loader(make(pictures(40)), 8, {"label": None}, settings=BACKGROUND)
    real = loader._maker.make
    monkeypatch.setattr(loader._maker, "make", lambda e, n: 1 / 0 if n else real(e, n))
    next(iter(loader))
    loader.close()
    assert loader._threads is None


def test_a_pass_that_failed_at_its_first_batch_begins_with_it_again(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = Loader(make(pictures(40)), 8, {"label": None}, Sequential(), settings=BACKGROUND)
    real = loader._maker.make
    for error in (KeyboardInterrupt, HotlapError("damaged")):
        with monkeypatch.context() as patched:
            patched.setattr(loader._maker, "make", lambda e, n, error=error: (_ for _ in ()).throw(error))
            loader.set_epoch(0)
            with pytest.raises((KeyboardInterrupt, HotlapError)):
                next(iter(loader))
        assert loader._maker.make == real
        loader.set_epoch(0)
        assert next(iter(loader))["label"].tolist() == list(range(8))
    loader.close()


def test_threads_and_placement_do_not_change_batches(make: Make) -> None:
    pack = make(pictures(40))
    views = {"image": Image((8, 8), flip=0.5)}
    runs = [snapshot(epochs(Loader(pack, 8, views, settings=LoaderSettings(mode=mode, threads=n)), 12))
            for mode, n in (("inline", 1), ("background", 3), ("auto", 1), ("auto", None))]  # fmt: skip
    assert runs[0] == runs[1] == runs[2] == runs[3]


def placed(placement: Placement, wall_s: Callable[[int], float], waited_s: Callable[[int], float]) -> int:
    """The number of threads that is found best, of a training whose batches take this long with so many threads."""
    for _ in range(400):
        placement.note(wall_s(placement.threads), waited_s(placement.threads))
    assert placement.decided
    return placement.threads


def test_auto_decides_by_the_times_it_is_told() -> None:
    for better in (1, 0):
        assert (
            placed(Placement("auto"), lambda n, better=better: 0.010 if n == better else 0.013, lambda n: 0) == better
        )


def test_more_threads_where_the_training_waits_and_they_pay() -> None:
    def decoding(threads: int) -> float:  # inline 12 ms, in the background 24 ms of work beside a step of 4 ms
        return max(0.004, 0.024 / threads) if threads else 0.016

    assert placed(Placement("auto", most=8), decoding, lambda n: decoding(n) - 0.004) == 8
    assert placed(Placement("background", most=3), decoding, lambda n: decoding(n) - 0.004) == 3
    assert placed(Placement("auto", threads=1, most=8), decoding, lambda n: decoding(n) - 0.004) == 0, "as was asked"
    assert placed(Placement("auto", most=8), lambda n: 0.004 if n else 0.016, lambda n: 0.0) == 1, "it never waits"
    crowded = [0.020, 0.016, 0.018, 0.018, 0.018]  # two threads take the cores that the training wants
    assert placed(Placement("auto", most=4), lambda n: crowded[n], lambda n: 0.008) == 1


def test_a_validation_in_a_turn_does_not_hide_that_the_training_waits() -> None:
    placement = Placement("background", most=2)
    for number in range(200):
        pause_s = 10.0 if number % 13 == 3 else 0.0
        placement.note(pause_s + (0.012 if placement.threads == 1 else 0.008), 0.004)
    assert placement.decided and placement.threads == 2


def test_the_placement_is_found_again_once() -> None:
    placement = Placement("auto", most=2)
    assert placed(placement, lambda n: 0.01 if n == 2 else 0.02, lambda n: 0.005) == 2, "the disk is slow"
    placement.ask_again()
    assert not placement.decided
    assert placed(placement, lambda n: 0.02 if n else 0.01, lambda n: 0.0) == 0
    placement.ask_again()
    assert placement.decided, "the second time it stays"
    given = Placement("background", threads=1, most=8)
    given.ask_again()
    assert given.decided and given.threads == 1


def test_the_placement_is_found_again_after_a_whole_epoch_and_by_a_whole_kernel(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = Loader(make(pictures(40)), 8, {"label": None}, settings=LoaderSettings(mode="auto", threads=1))
    told: list[str] = []
    monkeypatch.setattr(loader.placement, "ask_again", lambda: told.append("again"))
    monkeypatch.setattr(loader.placement, "note", lambda wall_s, waited_s: told.append("note"))
    monkeypatch.setattr(loader_module.kernel, "state", lambda: "compiling")
    next(iter(loader))
    list(loader)
    assert told == ["again"], "a batch of an epoch that was left, and a whole one"
    monkeypatch.setattr(loader_module.kernel, "state", lambda: "ready")
    loader.load_state_dict({**loader.state_dict(), "batch": 3})
    list(loader)
    assert told == ["again", "note", "note"]


def test_threads_have_room_for_their_batches(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "cores", lambda: 32)
    loader = Loader(make(pictures(40)), 8, {"image": Image((8, 8)), "label": None})
    size = loader._maker.batch_bytes()
    assert size == 8 * 8 * 8 * 3 * 4 + 8 * 8
    for batches, most in ((100, 8), (9, 5), (4, 1), (0, 1)):
        monkeypatch.setattr(threads, "memory_bytes", lambda batches=batches: 8 * size * batches)
        assert threads.most_threads(size, ahead=2) == most
    stored = make([{"file": bytes(1000)} for _ in range(40)], "stored")
    assert 8000 < Loader(stored, 8)._maker.batch_bytes() < 16000, "buffers of its own"


class Device:
    """Copies of batches, counted while somebody holds them."""

    def __init__(self) -> None:
        self.held: list[weakref.ref[torch.Tensor]] = []
        self.copies = 0

    def enter_thread(self) -> None:
        """Its threads begin anywhere."""

    def start(self, batch: dict[str, Any], slot: Any) -> tuple[dict[str, Any], str]:
        moved = {name: value.clone() for name, value in batch.items()}
        self.held.append(weakref.ref(moved["label"]))
        self.copies += 1
        return moved, "event"

    def hand_over(self, batch: dict[str, Any], done: str) -> dict[str, Any]:
        assert done == "event"
        return batch


def test_the_device_holds_no_more_batches_for_more_threads(make: Make) -> None:
    loader = Loader(make(pictures(80)), 4, {"label": None}, settings=LoaderSettings("background", threads=6, ahead=2))
    device = loader._copy = Device()  # type: ignore[assignment]
    rows = []
    for batch in epochs(loader, 3):
        rows += batch["row"].tolist()
        concurrent.futures.wait([future for _, future in loader._made])
        assert sum(ref() is not None for ref in device.held) <= 1 + 2, "the training's own, and those ahead"
    assert sorted(rows) == sorted([*range(80)] * 3) and device.copies >= 60
    loader.close()


def test_slots_of_the_ways_that_were_tried_are_let_go(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    loader = Loader(make(pictures(80)), 4, {"image": Image()}, settings=LoaderSettings("auto", threads=1))
    ring, placement = loader._maker.ring, loader.placement
    for slot in [ring.take() for _ in range(9)]:
        ring.give_back(slot, 12)
    monkeypatch.setattr(loader_module.kernel, "state", lambda: "ready")
    monkeypatch.setattr(placement, "note", lambda *_: None)
    loader._note(0.01, 0.0)
    assert len(ring._idle) == 9
    monkeypatch.setattr(placement, "note", lambda *_: setattr(placement, "decided", True))
    loader._note(0.01, 0.0)
    assert not ring._idle


def test_threads_are_added_while_batches_lie_ready(make: Make) -> None:
    pack = make(pictures(40))
    views = {"image": Image((8, 8), flip=0.5)}
    wanted = snapshot(epochs(Loader(pack, 8, views, settings=INLINE), 12))
    loader = Loader(pack, 8, views, settings=LoaderSettings(mode="background", threads=1))
    found = []
    for number, batch in enumerate(epochs(loader, 12)):
        found.append(batch)
        loader.placement.threads = (1, 3, 0, 2)[number % 4]
    assert snapshot(iter(found)) == wanted
    loader.close()


def test_a_batch_that_is_kept_is_not_overwritten(make: Make) -> None:
    loader = Loader(make(pictures(64)), 8, {"image": Image()}, settings=BACKGROUND)
    kept = [b["image"] for b in epochs(loader, 3)]
    copies = [b["image"].clone() for b in epochs(Loader(loader.pack, 8, {"image": Image()}), 3)]
    assert all(torch.equal(a, b) for a, b in zip(kept, copies, strict=True))
    views = [b["image"][0, 0].numpy() for b in Loader(loader.pack, 8, {"image": Image()})]
    assert all(np.array_equal(v, c[0, 0].numpy()) for v, c in zip(views, copies[:8], strict=True))


def test_buffers_are_used_again(make: Make) -> None:
    loader = Loader(make(pictures(64)), 8, {"image": Image()}, settings=BACKGROUND)
    for _ in epochs(loader, 10):
        pass
    assert loader._maker.ring.allocated <= BACKGROUND.ahead + BACKGROUND.threads + 3


@pytest.mark.parametrize("world", [2, 3])
def test_ranks_share_an_epoch(make: Make, world: int) -> None:
    pack = make(mixed(50))
    parts = [[r for b in Loader(pack, 4, {"label": None}, settings=LoaderSettings(rank=k, world=world)) for r in
              b["row"].tolist()] for k in range(world)]  # fmt: skip
    assert len({len(p) for p in parts}) == 1, "every rank takes as many steps"
    assert set(itertools.chain(*parts)) == set(range(50))
    assert sum(map(len, parts)) - 50 < world


def test_leaving_an_epoch_begins_the_next(make: Make) -> None:
    loader = Loader(make(mixed(40)), 8, {"label": None}, settings=BACKGROUND)
    next(iter(loader))
    assert len(list(loader)) == 5 and loader.epoch == 2
    loader.set_epoch(0)
    again = [b["row"].tolist() for b in loader]
    assert again == [b["row"].tolist() for b in Loader(loader.pack, 8, {"label": None})]


def test_drop_last_and_short_packs(make: Make) -> None:
    pack = make(mixed(21))
    assert [len(b["row"]) for b in Loader(pack, 8)] == [8, 8, 5]
    assert [len(b["row"]) for b in Loader(pack, 8, drop_last=True)] == [8, 8]
    assert list(Loader(pack, 30, drop_last=True)) == []


def test_every_column_as_stored(make: Make) -> None:
    rows = mixed(30)
    for batch in Loader(make(rows), 7, order=Sequential()):
        for k, row in enumerate(batch["row"].tolist()):
            assert batch["name"][k] == rows[row]["name"] and batch["file"][k] == rows[row]["file"]
            for name in ("audio", "boxes"):
                length = int(batch[f"{name}_length"][k])
                assert (
                    np.array_equal(batch[name][k, :length].numpy(), rows[row][name])
                    and not batch[name][k, length:].any()
                )


def test_flat_and_padded(make: Make) -> None:
    rows = mixed(12)
    batch = next(iter(Loader(make(rows), 12, {"boxes": Flat(), "audio": Padded(7)}, Sequential())))
    assert np.array_equal(batch["boxes"].numpy(), np.concatenate([r["boxes"] for r in rows]))
    assert (batch["audio"][0, len(rows[0]["audio"]) :] == 7).all()


@pytest.mark.parametrize("short", ["repeat", "zero"])
def test_clips(make: Make, short: str) -> None:
    rng = np.random.default_rng(0)
    rows = [{"audio": rng.integers(-30000, 30000, n, dtype=np.int16)} for n in (0, 3, 19, 20, 21, 50, 400)]
    loader = Loader(make(rows), 7, {"audio": Clip(20, short=short)}, Sequential())
    seen = set()
    for batch in epochs(loader, 30):
        for clip, row in zip((batch["audio"] * 32768).round().short().numpy(), rows, strict=True):
            whole = row["audio"]
            if len(whole) >= 20:
                starts = [k for k in range(len(whole) - 19) if np.array_equal(whole[k : k + 20], clip)]
                assert len(starts) == 1
                seen.add((len(whole), starts[0]))
            elif short == "zero" or not len(whole):
                assert np.array_equal(clip, np.pad(whole, (0, 20 - len(whole))))
            else:
                assert np.array_equal(clip, np.resize(whole, 20))
    assert (20, 0) in seen and {(21, 0), (21, 1)} <= seen and len(seen) > 25


def test_clips_at_the_start_as_stored(make: Make) -> None:
    rows = [{"audio": np.arange(k, k + 40, dtype=np.int16)} for k in range(5)]
    batch = next(iter(Loader(make(rows), 5, {"audio": Clip(8, at="start", dtype=None)}, Sequential())))
    assert np.array_equal(batch["audio"].numpy(), np.stack([r["audio"][:8] for r in rows]))


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64", "int16"])
@pytest.mark.parametrize("wanted", [None, torch.int64], ids=str)
def test_clips_of_numbers_without_a_sign(make: Make, dtype: str, wanted: torch.dtype | None) -> None:
    rows = [{"tokens": np.arange(k, k + 40 + k % 7, dtype=dtype)} for k in (5, 30_001)]
    view = Clip(8, at="start", dtype=wanted)
    batch = next(iter(Loader(make(rows, ragged={"tokens"}), 2, {"tokens": view}, Sequential())))
    assert batch["tokens"].tolist() == [r["tokens"][:8].tolist() for r in rows]
    assert batch["tokens"].dtype == (wanted or getattr(torch, dtype))


def test_encoded_images(make: Make) -> None:
    from hotlap.pack.sources.decode import decode_image

    rows = [{"image": jpeg(k, (24 + k, 20)), "label": k} for k in range(8)]
    pack = make(rows)
    for batch in Loader(pack, 4, {"image": Image((16, 15), flip=0.5), "label": None}):
        for image, label in zip(batch["image"], batch["label"].tolist(), strict=True):
            assert find_crop(decode_image(rows[label]["image"]), image.to(torch.uint8).numpy())
    with pytest.raises(HotlapError, match="less than the crop"):
        next(iter(Loader(pack, 4, {"image": Image((50, 15))})))


def test_damage_found_by_a_thread_reaches_the_training(make: Make) -> None:
    pack = make(pictures(40))
    part = pack.manifest.parts[-1]
    path = pack.folder / part.file
    content = bytearray(path.read_bytes())
    content[part.chunks[-1].data["image"]] ^= 255
    path.write_bytes(content)
    for settings in (INLINE, BACKGROUND):
        with pytest.raises(HotlapError, match=f"{part.file} is damaged"):
            list(Loader(pack.folder, 8, settings=settings))


def test_what_cannot_be_asked_for(make: Make) -> None:
    pack = make(mixed(10))
    for views, message in (({"nothing": None}, "has no column 'nothing'.*image"), ({"label": Image()}, "not images"),
                           ({"image": Image((99, 9))}, "does not fit"), ({"image": Clip(5)}, "varying length"),
                           ({"image": Image(at="left")}, "random or center"), ({"audio": Clip(0)}, "positive"),
                           ({"image": Image(mean=(1, 2))}, "2 numbers"),
                           ({"image": Image(flip=2.0)}, r"flip=2\.0\): it is a probability"),
                           ({"image": Image(flip=float("nan"))}, "it is a probability"),
                           ({"image": Image(std=0)}, r"std=0\): pixels .* none of them 0"),
                           ({"image": Image(std=(1, 0, 1))}, r"std=\(1, 0, 1\)\): "),
                           ({"image": Image(mean=float("inf"))}, r"mean=inf\): pixels"),
                           ({"image": Image(dtype=torch.uint8, std=2)}, "on the device")):  # fmt: skip
        with pytest.raises(HotlapError, match=message):
            Loader(pack, 4, views)  # type: ignore[arg-type]
    for bad in (LoaderSettings(mode="fast"), LoaderSettings(rank=2, world=2), LoaderSettings(threads=0)):
        with pytest.raises(HotlapError):
            Loader(pack, 4, settings=bad)


def test_random_generators_are_left_alone(make: Make) -> None:
    torch.manual_seed(0)
    np.random.seed(0)
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    for _ in Loader(make(pictures(20)), 5, {"image": Image((8, 8), flip=0.5)}):
        pass
    assert torch.equal(before[0], torch.get_rng_state()) and (before[1] == np.random.get_state()[1]).all()


def test_threads_of_the_training_are_left_alone() -> None:
    import threading

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    seen: list[int] = []

    def elsewhere() -> None:
        with one_thread():
            seen.append(torch.get_num_threads())
            seen.append(int(torch.ones(1 << 20).sum()))

    try:
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        with one_thread():
            seen.append(torch.get_num_threads())
        assert torch.get_num_threads() == 2 and seen == [1, 1 << 20, 1]
        later = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
        later.start()
        later.join()
        assert seen[-1] == 2, "threads that start later are not ours to change either"
    finally:
        torch.set_num_threads(before)


def test_packed_dataset_in_a_data_loader(make: Make) -> None:
    from torch.utils.data import DataLoader

    rows = mixed(23)
    data = PackedDataset(make(rows).folder)
    assert len(data) == 23 and data[4]["name"] == "größe-4" and int(data[4]["label"]) == 4
    for workers in (0, 2):
        loader = DataLoader(data, 5, shuffle=True, collate_fn=as_is, num_workers=workers)
        seen = [n for batch in loader for n in batch["name"]]
        assert sorted(seen) == sorted(r["name"] for r in rows)


def test_one_sample_of_a_packed_dataset_has_all_its_boxes(make: Make) -> None:
    rows = mixed(12)
    data = PackedDataset(make(rows).folder, {"boxes": Flat(), "label": None})
    for sample, row in zip((data[k] for k in range(12)), rows, strict=True):
        assert np.array_equal(sample["boxes"].numpy(), row["boxes"])
        assert int(sample["boxes_length"]) == len(row["boxes"]) and int(sample["label"]) == row["label"]


def test_views_mirror_together_or_not_at_all(make: Make) -> None:
    pack = make([{**r, "mask": r["image"][:1]} for r in pictures(9)])
    views = {"image": Image(flip=0.5), "mask": Image(flip=0.9)}
    for read in (lambda: Loader(pack, 4, views), lambda: PackedDataset(pack.folder, views)):
        with pytest.raises(HotlapError, match=r"different probabilities \[0.5, 0.9\]"):
            read()
    alone = PackedDataset(pack.folder, {"image": Image(flip=1.0), "mask": Image(), "label": None})
    both = alone.__getitems__([3, 5])
    assert torch.equal(both["image"].flip(-1)[:, :1], both["mask"]) and both["label"].tolist() == [3, 5]


def test_nothing_is_left_open(make: Make) -> None:
    import psutil

    pack = make(pictures(40))
    mine = psutil.Process()

    def mapped() -> int:
        return sum(str(pack.folder) in m.path for m in mine.memory_maps(grouped=False))

    loader = Loader(pack.folder, 8, settings=BACKGROUND)
    for _ in loader:
        break
    assert mapped() > 0
    loader.close()
    del loader, pack.memory
    gc.collect()
    pack_folder_maps = mapped()
    assert pack_folder_maps == 0


def test_crop_and_mirroring_belong_to_the_sample_not_to_its_batch(make: Make) -> None:
    pack = make(pictures(40))
    views = {"image": Image((8, 8), flip=0.5)}
    runs = []
    for size in (5, 8, 40):
        batches = Loader(pack, size, views, Shuffle(2), settings=BACKGROUND)
        runs.append(
            sorted((int(r), x.numpy().tobytes()) for b in batches for r, x in zip(b["row"], b["image"], strict=True))
        )
    assert runs[0] == runs[1] == runs[2]


def test_packed_dataset_can_be_sent_to_a_spawned_worker_after_use(make: Make) -> None:
    import pickle

    data = PackedDataset(make(mixed(9)).folder)
    before = data[3]["name"]
    assert pickle.loads(pickle.dumps(data))[3]["name"] == before
