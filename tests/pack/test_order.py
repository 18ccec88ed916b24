"""Orders: what each sampler promises, shuffling as a number, and ranks that never split what belongs together."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotlap.pack import (
    Balanced,
    BlockShuffle,
    LengthBuckets,
    Loader,
    LoaderSettings,
    OncePerClass,
    Pack,
    Pairs,
    Sequential,
    Shuffle,
    Triplets,
    Tuples,
    Weighted,
    mixing,
)
from hotlap.pack.draws import Draws
from hotlap.pack.order.contract import share_of_rank
from hotlap.records.errors import HotlapError

Make = Callable[..., Pack]


@pytest.fixture
def classes(make: Make) -> Pack:
    """120 rows; class k has 2k + 2 of the first 110, the last ten are alone in theirs."""
    labels = [k for k in range(10) for _ in range(2 * k + 2)] + list(range(10, 20))
    return make([{"label": k, "audio": np.zeros(5 + (7 * k) % 90, np.int16)} for k in labels])


def test_weighted(classes: Pack) -> None:
    weights = np.zeros(120)
    weights[[3, 7]] = 1, 3
    rows = Weighted(weights, count=8000).rows(classes, 0)
    assert set(rows) == {3, 7} and abs((rows == 7).mean() - 0.75) < 0.03
    for wrong in (weights[:5], -weights - 1, weights * 0, weights * np.nan):
        with pytest.raises(HotlapError, match="120 weights"):
            Weighted(wrong).rows(classes, 0)


def test_balanced(classes: Pack) -> None:
    order, labels = Balanced(classes=6, per_class=3), classes.values("label")
    batches = order.rows(classes, 0).reshape(-1, 6, 3)
    assert len(batches) == 120 // 18
    for batch in batches:
        assert len({int(k) for k in labels[batch[:, 0]]}) == 6
        assert (labels[batch] == labels[batch[:, :1]]).all()
        assert all(len(set(group)) == 3 for group in batch if (labels == labels[group[0]]).sum() >= 3)
    with pytest.raises(HotlapError, match="has 20"):
        Balanced(classes=21).rows(classes, 0)


def test_once_per_class(classes: Pack) -> None:
    labels = classes.values("label")
    rows = OncePerClass(batch=8).rows(classes, 0)
    assert len(set(rows.tolist())) == len(rows) > 80
    assert all(len(set(batch)) == 8 for batch in labels[rows].reshape(-1, 8))
    few = labels[OncePerClass(batch=8, per_class=2).rows(classes, 0)]
    assert np.bincount(few).max() == 2


def test_length_buckets(classes: Pack) -> None:
    lengths = classes.lengths("audio")
    rows = LengthBuckets("audio", 8, spread=5).rows(classes, 0)
    assert sorted(rows) == list(range(120))
    within = lengths[rows].reshape(-1, 8)
    alone = lengths[Shuffle().rows(classes, 0)].reshape(-1, 8)
    assert (within.max(1) - within.min(1)).mean() < 0.4 * (alone.max(1) - alone.min(1)).mean()
    assert not np.array_equal(within.max(1), np.sort(within.max(1)))


def test_fewer_rows_than_a_bucket_are_read_all_the_same(classes: Pack) -> None:
    few = Loader(classes, 500, {"label": None}, LengthBuckets("audio", 500))
    assert len(few) == 1 and len(next(iter(few))["row"]) == 120


def test_pairs(classes: Pack) -> None:
    labels = classes.values("label")
    a, b = Pairs(same=0.5).rows(classes, 0).reshape(-1, 2).T
    assert sorted(a) == list(range(120)) and (a != b).all()
    assert 0.3 < (labels[a] == labels[b]).mean() < 0.6
    a, b = Pairs(same=0.0, hard=[(1, 4)]).rows(classes, 0).reshape(-1, 2).T
    assert (labels[b][labels[a] == 1] == 4).all() and (labels[b][labels[a] == 4] == 1).all()
    assert (labels[a] != labels[b]).all()


def test_triplets_and_given_tuples(classes: Pack) -> None:
    labels = classes.values("label")
    a, p, n = Triplets().rows(classes, 0).reshape(-1, 3).T
    assert (labels[a] == labels[p]).all() and (a != p).all() and (labels[a] != labels[n]).all() and len(a) == 110
    table = [[1, 2], [3, 4], [5, 6]]
    assert Tuples(table, seed=None).rows(classes, 0).tolist() == [1, 2, 3, 4, 5, 6]
    assert sorted(Tuples(table).rows(classes, 1).reshape(-1, 2).tolist()) == table
    batch = next(iter(Loader(classes, 6, {"label": None}, Tuples(table, seed=None))))
    assert batch["row"][0::2].tolist() == [1, 3, 5]
    with pytest.raises(HotlapError, match="belong together by 2"):
        Loader(classes, 5, {"label": None}, Pairs())


def test_orders_are_functions_of_seed_and_epoch(classes: Pack) -> None:
    for make_order in (Shuffle, BlockShuffle, lambda seed: Weighted(np.ones(120), seed=seed),
                       lambda seed: Balanced(classes=5, seed=seed), lambda seed: OncePerClass(batch=8, seed=seed),
                       lambda seed: Pairs(seed=seed), lambda seed: Triplets(seed=seed),
                       lambda seed: LengthBuckets("audio", 8, seed=seed)):  # fmt: skip
        rows = [make_order(seed).rows(classes, epoch).tolist() for seed, epoch in ((0, 0), (0, 0), (0, 1), (1, 0))]
        assert rows[0] == rows[1] != rows[2] and rows[0] != rows[3]


class Many:
    """As long as a pack of a million rows, in chunks of 27."""

    chunk_rows = np.append(np.arange(0, 1_000_000, 27), 1_000_000)

    def __len__(self) -> int:
        return 1_000_000


def test_mixing_is_a_number() -> None:
    many: Pack = Many()  # type: ignore[assignment]
    assert mixing(Sequential().rows(many, 0)) < 0.001
    assert abs(mixing(Shuffle().rows(many, 0)) - 1) < 0.01
    by_window = [mixing(BlockShuffle(window_blocks=w).rows(many, 0)) for w in (1, 16, 256)]
    assert by_window[0] < 0.7 and by_window == sorted(by_window) and by_window[1] < 0.95 < 0.99 < by_window[2]


@pytest.mark.parametrize("block_rows", [1, 7, 20, 5000])
def test_blocks_are_whole_chunks(classes: Pack, block_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BlockShuffle, "window_rows", 1)  # nothing mixed: the blocks as they are drawn
    rows = BlockShuffle(2, block_rows).rows(classes, 0)
    assert sorted(rows.tolist()) == list(range(120))
    blocks = np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1)
    edges = set(classes.chunk_rows.tolist())
    assert len(edges) > 5 and all({int(b[0]), int(b[-1]) + 1} <= edges for b in blocks)
    longest = int(np.diff(classes.chunk_rows).max())
    assert len(blocks) >= 120 // (3 * max(block_rows, longest))


NAMES = ["ben", "adam", "bob", "anna", "a", "a\0", ""]


@pytest.mark.parametrize("kind", [str, bytes])
def test_classes_may_be_texts(make: Make, kind: type) -> None:
    """Texts that begin alike are classes of their own."""
    given = [name if kind is str else name.encode() for name in NAMES for _ in range(4)]
    named = make([{"speaker": name, "x": k} for k, name in enumerate(given)])
    assert named.texts("speaker") == given
    labels = np.array([NAMES.index(name if isinstance(name, str) else name.decode()) for name in given])
    for batch in Balanced("speaker", classes=7, per_class=2).rows(named, 0).reshape(-1, 7, 2):
        assert (labels[batch][:, 0] == labels[batch][:, 1]).all() and set(labels[batch[:, 0]]) == set(range(7))
    assert set(labels[OncePerClass("speaker", batch=7).rows(named, 0)].reshape(-1, 7)[0]) == set(range(7))
    a, p, n = Triplets("speaker").rows(named, 0).reshape(-1, 3).T
    assert (labels[a] == labels[p]).all() and (labels[a] != labels[n]).all() and len(a) == len(given)
    a, b = Pairs("speaker", same=0.0, hard=[(given[0], given[8])]).rows(named, 0).reshape(-1, 2).T
    assert (labels[b][labels[a] == 0] == 2).all() and (labels[b][labels[a] == 2] == 0).all()


def test_columns_that_are_no_classes(make: Make) -> None:
    found = make([{"name": "x", "audio": np.zeros(k + 1, np.int16), "pair": np.zeros(2)} for k in range(4)])
    with pytest.raises(HotlapError, match=r"'name' of .* is text; values\(\) .* texts\(\)"):
        found.values("name")
    with pytest.raises(HotlapError, match=r"'audio' of .* is ragged; values\(\)"):
        found.values("audio")
    with pytest.raises(HotlapError, match=r"'pair' of .* is tensor; texts\(\)"):
        found.texts("pair")
    with pytest.raises(HotlapError, match="'audio' is ragged; classes are"):
        Balanced("audio").rows(found, 0)
    with pytest.raises(HotlapError, match=r"shape \(2,\); classes are"):
        Triplets("pair").rows(found, 0)


@given(st.integers(0, 200), st.integers(1, 5), st.integers(1, 6))
def test_ranks_cover_everything_evenly(count: int, grain: int, world: int) -> None:
    rows = np.arange(count)
    shares = [share_of_rank(rows, grain, rank, world)[0] for rank in range(world)]
    assert len({len(s) for s in shares}) == 1
    assert set(np.concatenate(shares).tolist()) == set(range(count))
    for share in shares:
        whole = share[: len(share) // grain * grain].reshape(-1, grain)
        assert all((g == g[0] + np.arange(grain) % min(grain, count - g[0])).all() and g[0] % grain == 0 for g in whole)


def test_ranks_get_whole_pairs(classes: Pack) -> None:
    both = [[tuple(p) for b in Loader(classes, 6, {"label": None}, Pairs(), settings=LoaderSettings(rank=k, world=2))
             for p in b["row"].reshape(-1, 2).tolist()] for k in range(2)]  # fmt: skip
    pairs = {tuple(p) for p in Pairs().rows(classes, 0).reshape(-1, 2).tolist()}
    assert set(both[0]) | set(both[1]) == pairs and not set(both[0]) & set(both[1])


def test_draws_are_uniform_and_independent() -> None:
    n = 200_000
    draws = Draws(7, 3, np.arange(n))
    a, b = draws.uniform("crop-top"), draws.uniform("crop-left")
    for values in (a, b, Draws(7, 4, np.arange(n)).uniform("crop-top")):
        counts = np.bincount((values * 64).astype(int), minlength=64)
        assert ((counts - n / 64) ** 2 / (n / 64)).sum() < 120, "chi-square of 63 degrees: beyond 1 in 10,000"
    for other in (b, np.roll(a, 1), Draws(8, 3, np.arange(n)).uniform("crop-top"),
                  Draws(7, 4, np.arange(n)).uniform("crop-top")):  # fmt: skip
        assert abs(np.corrcoef(a, other)[0, 1]) < 0.01
    assert set(draws.below("k", 3)) == {0, 1, 2}
