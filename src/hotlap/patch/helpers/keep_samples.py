"""Samples of a data set that never change, each computed once."""

import os as _os
import pickle as _pickle
import random as _random
import sys as _sys
from typing import Any

import torch

__all__ = ["keep_samples"]

TRIED_SAMPLES = 8
"""Samples that are computed twice before any is kept."""
MOST_TRIES = 3
"""Times that a data set is tried again since it has changed; one that always changes is left alone."""


def keep_samples(dataset: Any, max_bytes: int) -> "KeptSamples":
    """``dataset``, whose samples are kept in memory up to ``max_bytes``; each use gets a copy of its own."""
    return KeptSamples(dataset, max_bytes // int(_os.environ.get("LOCAL_WORLD_SIZE") or 1))  # torchrun's ranks here


class KeptSamples:
    """Looks and behaves as the data set does. What is changed of it lets all samples go; worker processes keep none."""

    def __init__(self, dataset: Any, max_bytes: int) -> None:
        vars(self).update(dataset=dataset, max_bytes=max_bytes, held={}, kept={}, left=0, tries=0, constant=False)

    def __len__(self) -> int:
        return len(self.dataset)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "dataset" not in vars(self):
            raise AttributeError(name)
        return getattr(self.dataset, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.dataset, name, value)

    def __getitem__(self, index: Any) -> Any:
        return self._sample(index) if self._keeps() else self.dataset[index]

    def __getitems__(self, indices: Any) -> Any:
        keeps = self._keeps()  # asked once for a batch
        return [self._sample(index) if keeps else self.dataset[index] for index in indices]

    def _keeps(self) -> bool:
        own = vars(self)
        if torch.utils.data.get_worker_info() is not None:
            return False
        if _has_changed(self.dataset, own["held"]) or not own["left"]:
            own["tries"] += 1
            constant = own["tries"] <= MOST_TRIES and _is_constant(self.dataset)
            own.update(held=_attributes(self.dataset), kept={}, left=self.max_bytes, constant=constant)
        return bool(own["constant"])

    def _sample(self, index: Any) -> Any:
        own = vars(self)
        if type(index) is not int:
            return self.dataset[index]
        if index in own["kept"]:
            return _own_copy(own["kept"][index])
        sample = self.dataset[index]
        size = _size(sample)
        if size is not None and size < own["left"]:
            own["kept"][index] = _own_copy(sample)
            own["left"] -= size
        return sample


def _attributes(dataset: Any) -> Any:
    return dict(getattr(dataset, "__dict__", {}))


def _has_changed(dataset: Any, held: Any) -> bool:
    now = getattr(dataset, "__dict__", {})
    return len(now) != len(held) or any(name not in held or held[name] is not now[name] for name in now)


def _random_states() -> Any:
    numpy = _sys.modules.get("numpy")
    return _random.getstate(), numpy.random.get_state() if numpy else None, torch.get_rng_state()


def _have_moved(states: Any) -> bool:
    python, numpy, of_torch = _random_states()
    same = python == states[0] and _pickle.dumps(numpy) == _pickle.dumps(states[1])  # arrays and numbers in a tuple
    return not (same and torch.equal(of_torch, states[2]))


def _put_back(states: Any) -> None:
    _random.setstate(states[0])
    if states[1] is not None:
        _sys.modules["numpy"].random.set_state(states[1])
    torch.set_rng_state(states[2])


def _is_constant(dataset: Any) -> bool:
    """Whether some samples are the same when they are computed again, and draw nothing random."""
    before = _random_states()
    places = sorted({len(dataset) * n // TRIED_SAMPLES for n in range(TRIED_SAMPLES)}) if len(dataset) else []
    pairs = [(dataset[place], dataset[place]) for place in places]
    if _have_moved(before):
        _put_back(before)  # as if nothing had been tried
        return False
    return all(_size(one) is not None and _same(one, other) for one, other in pairs)


def _is_array(value: Any) -> bool:
    return type(value).__module__ == "numpy" and hasattr(value, "tobytes")


def _size(value: Any) -> Any:
    """Bytes of a sample; None where it holds what cannot be copied or compared for certain."""
    if type(value) is torch.Tensor:
        return None if value.requires_grad else 64 + value.nelement() * value.element_size()
    if _is_array(value):
        return None if value.dtype.hasobject else 64 + value.nbytes
    if type(value) in (int, float, bool, str, bytes, type(None)):
        return 64 + (len(value) if isinstance(value, (str, bytes)) else 0)
    if type(value) in (tuple, list, dict):
        parts = [_size(part) for part in (value.values() if isinstance(value, dict) else value)]
        return None if None in parts else 64 + sum(parts)
    return None


def _same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if type(one) is torch.Tensor:
        return one.dtype == other.dtype and one.shape == other.shape and torch.equal(one, other)
    if _is_array(one):
        return bool(one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes())
    if isinstance(one, dict):
        return list(one) == list(other) and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def _own_copy(value: Any) -> Any:
    if type(value) is torch.Tensor:
        return value.clone()
    if _is_array(value):
        return value.copy()
    if isinstance(value, dict):
        return {key: _own_copy(part) for key, part in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(map(_own_copy, value))
    return value
