"""torch.tensor by the short ways: the same bits, type, shape and errors as torch's own."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hotlap.lever.catalog.collate_fast import FastCollate
from hotlap.lever.fast_tensor import fast_tensor
from hotlap.lever.used_mark import UsedMark

REAL = torch.tensor

CASES: list[tuple[Any, dict[str, Any], bool]] = [
    ([numpy.arange(6).astype(d).reshape(2, 3) for _ in range(3)], {}, True)
    for d in ("float32", "float64", "float16", "int64", "int32", "int16", "int8", "uint8", "bool")
]
CASES += [
    ([numpy.ones(3)] * 3, {"dtype": torch.float32}, True),
    ([numpy.ones(3, "int64")] * 3, {"dtype": torch.float32}, False),
    ([numpy.ones(3), numpy.ones(2)], {}, False),
    ([numpy.ones(3), numpy.ones(3, "float32")], {}, False),
    ([numpy.ones(3), [1.0, 1.0, 1.0]], {}, False),
    ([numpy.array(1.0), numpy.array(2.0)], {}, False),
    ([numpy.ones(3, ">f4")] * 2, {}, False),
    ([numpy.ones(0)] * 2, {}, False),
    ([numpy.float32(1.0)] * 100, {}, False),
    ([numpy.float64(1.0)] * 100, {}, False),
    ([[0.1, 0.2], (0.3, 0.4)], {}, True),
    ([[0.1, 0.2], [0.3, 4]], {}, False),
    ([[1, 2], [3, True]], {}, False),
    ([[1, 2], [3, 2**40]], {}, True),
    ([[1, 2], [3, 2**70]], {}, False),
    ([[1, 2], [3, 4]], {"dtype": torch.float32}, False),
    ([[1, 2], [3, 4]], {"dtype": torch.int32}, False),
    ([[True, False], [True, True]], {}, True),
    ([[0.1, 1e300], [float("inf"), float("nan")]], {}, True),
    ([[0.1, 1e300], [-0.0, 5e-324]], {"dtype": torch.float64}, True),
    ([[1.0], [2.0, 3.0]], {}, False),
    ([[], []], {}, False),
    ([[[0.5] * 4] * 3] * 2, {}, True),
    ([0.5] * 100, {}, True),
    ([3] * 100, {"dtype": torch.long}, True),
    ([0.5] * 3, {}, False),
    ([torch.tensor(1.0), torch.tensor(2.0)], {}, False),
    (["a", "b"], {}, False),
    ([[1.0, 2.0], [3.0, 4.0]], {"requires_grad": True}, False),
    (3.0, {}, False),
]


def outcome(make: Any, data: Any, kwargs: dict[str, Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            made = make(data, **kwargs)
        except Exception as err:
            return type(err), str(err)
    whole = made.detach().contiguous()
    return made.dtype, made.shape, made.stride(), made.requires_grad, whole.numpy().tobytes(), made.device


@pytest.mark.parametrize(("data", "kwargs", "short"), CASES, ids=range(len(CASES)))
def test_same_as_torch(data: Any, kwargs: dict[str, Any], short: bool) -> None:
    used: list[bool] = []
    fast = fast_tensor(REAL, lambda: used.append(True))
    assert outcome(fast, data, kwargs) == outcome(REAL, data, kwargs)
    assert bool(used) is short


numbers = st.one_of(st.floats(width=64), st.integers(-(2**70), 2**70), st.booleans())
kinds = st.sampled_from([st.floats(width=64), st.integers(-(2**63), 2**63 - 1), st.booleans(), numbers])


@settings(max_examples=150, deadline=None)
@given(st.data(), st.sampled_from([{}, {"dtype": torch.float32}, {"dtype": torch.float64}, {"dtype": torch.int64}]))
def test_any_nested_list(data: st.DataObject, kwargs: dict[str, Any]) -> None:
    rows = data.draw(st.lists(st.lists(data.draw(kinds), min_size=1, max_size=3), min_size=2, max_size=4))
    fast = fast_tensor(REAL, lambda: None)
    assert outcome(fast, rows, kwargs) == outcome(REAL, rows, kwargs)


def test_the_result_is_its_own() -> None:
    arrays = [numpy.zeros(3), numpy.zeros(3)]
    made = fast_tensor(REAL, lambda: None)(arrays)
    arrays[0][0] = 7.0
    assert made.sum() == 0


def _collate(samples: list[Any]) -> Any:
    assert torch.tensor is not REAL
    if samples[0] is None:
        raise KeyError("broken sample")
    return torch.tensor(samples)


def test_only_while_collating(tmp_path: Path) -> None:
    collate = pickle.loads(pickle.dumps(FastCollate(_collate, UsedMark(str(tmp_path / "used")))))
    assert collate([1, 2]).tolist() == [1, 2] and not (tmp_path / "used").exists(), "too short a list to gain"
    assert collate([[1.0, 2.0], [3.0, 4.0]]).shape == (2, 2) and (tmp_path / "used").exists()
    with pytest.raises(KeyError, match="broken sample"):
        collate([None])
    assert torch.tensor is REAL


def test_in_workers(tmp_path: Path) -> None:
    data: Any = [[float(i), 1.0] for i in range(8)]
    collate = FastCollate(_collate, UsedMark(str(tmp_path / "used")))
    loader = torch.utils.data.DataLoader(data, batch_size=4, num_workers=1, collate_fn=collate)
    assert torch.cat(list(loader)).tolist() == data and (tmp_path / "used").exists()
