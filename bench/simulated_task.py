"""A training whose device is simulated: data, order, loading and evaluation's host work are the real ones."""

from __future__ import annotations

import copy
import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from simulated import Device, late
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_flatten, tree_map
from torch.utils.flop_counter import FlopCounterMode

from hotlap_workloads.engine.loader import collated
from hotlap_workloads.engine.order import Draw, Position, RankBatches
from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.engine.task import Task

__all__ = ["Counted", "SimulatedTask", "answered", "count"]

COUNTED_SAMPLES = 4
"""At least so many make the batches on which FLOPs are counted; they grow with the batch."""
COUNTED_BATCHES = 9
"""On so many FLOPs are counted where batches differ in size: one of each ninth of them, by size."""
LOOKED_AT = 16 * COUNTED_BATCHES
LOOKING_S = 20.0
"""After so long a quarter of them has to do: images that are decoded and augmented one by one take minutes."""
ALIKE = 8
"""Batches of one size after which no other size is expected."""


@dataclass(frozen=True)
class Counted:
    """FLOPs of forward and backward per sample, and what the objective said of the last batch that was counted."""

    flops_per_sample: float
    said: Mapping[str, float]


def count(task: Task, settings: EngineSettings) -> Counted:
    """Count on small real batches. Attention is counted as the two products that it is.

    Where batches are of random sizes, many are looked at, and those counted stand for all of them.
    """
    size = -(-COUNTED_SAMPLES // task.order.grain) * task.order.grain
    sized: list[tuple[int, int, list[Draw]]] = []
    begun = time.perf_counter()
    for number, draws in enumerate(_draws(task, settings.seed, size)):
        sized.append((_elements(collated(task, draws)), number, draws))
        if len(sized) == ALIKE and sized[0][0] == max(sized)[0] == min(sized)[0]:
            break
        if len(sized) >= LOOKED_AT // 4 and time.perf_counter() - begun > LOOKING_S:
            break
    sized.sort()
    flops: dict[int, float] = {}
    said: Mapping[str, float] = {}
    chosen = [sized[(2 * part + 1) * len(sized) // (2 * COUNTED_BATCHES)] for part in range(COUNTED_BATCHES)]
    for elements, _, draws in chosen:
        if elements not in flops:
            flops[elements], said = _step(task.objective, collated(task, draws))
    mean = statistics.fmean(flops[elements] for elements, *_ in chosen)
    return Counted(mean / size, said)


def _step(objective: nn.Module, batch: Any) -> tuple[float, Mapping[str, float]]:
    """FLOPs of forward and backward, and what the objective said. What its parts compute is counted, not computed."""
    flops = 0.0

    def call(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        nonlocal flops
        found = _uncomputed(module, args, kwargs, trained=True)
        if found is None:
            return module(*args, **kwargs)
        flops += found[0]
        return found[1]

    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        with _calls_go_to(call):
            said = objective.forward(batch)
        if said["loss"].requires_grad:
            said["loss"].backward()
    objective.zero_grad(set_to_none=True)
    return flops + counter.get_total_flops(), {name: float(value.detach()) for name, value in said.items()}


def _draws(task: Task, seed: int, size: int) -> Iterator[list[Draw]]:
    """Batches of an epoch after the other: each draws other sizes."""
    epochs = (RankBatches(task.order, seed, size, Position(epoch)) for epoch in range(LOOKED_AT))
    return itertools.islice(itertools.chain.from_iterable(epochs), LOOKED_AT)


def _elements(batch: Any) -> int:
    """Of the largest tensor, which says how large the samples are."""
    return max(leaf.numel() for leaf in tree_flatten(batch)[0] if isinstance(leaf, torch.Tensor))


class SimulatedObjective(nn.Module):
    """Stands where the objective stood: launches a step, and says a loss that is late.

    The optimiser gets one scalar. The real objective is kept inside, without gradients: checkpoints write its weights.
    """

    def __init__(self, real: nn.Module, counted: Counted, device: Device, settings: EngineSettings) -> None:
        super().__init__()
        self.real = real.requires_grad_(False)
        self.nothing = nn.Parameter(torch.zeros(()))
        self._said, self._device = counted.said, device
        self._flops = counted.flops_per_sample * settings.batch_size
        self._copies_block = not (settings.pin_memory and settings.non_blocking)

    def forward(self, batch: Any) -> dict[str, torch.Tensor]:
        if self._copies_block:  # a copy from pageable memory is in the stream's order, and the host waits for its end
            self._device.wait()
        ready_at = self._device.launch(self._flops)
        return {name: late(value + self.nothing, self._device, ready_at) for name, value in self._said.items()}


class SimulatedTask:
    """The task with its device's work replaced by waiting, in training and in evaluation."""

    collate: Any

    def __init__(self, task: Task, counted: Counted, device: Device, settings: EngineSettings) -> None:
        self._task, self._device = task, device
        self._answers: dict[Any, tuple[float, Any]] = {}
        self.objective = SimulatedObjective(task.objective, counted, device, settings)
        self.train_set, self.order, self.collate, self.stages = task.train_set, task.order, task.collate, ()

    def evaluate(self, heavy: bool) -> dict[str, float]:
        """Metrics of nothing; what is real is the host's part of the time, from the second call on."""
        with answered(self._device, self._answers):
            return self._task.evaluate(heavy)


@contextmanager
def answered(device: Device, answers: dict[Any, tuple[float, Any]]) -> Iterator[None]:
    """Outermost calls of modules are waits. What they answer was made up once for each form of input, and counted."""

    def call(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        leaves = tree_flatten((args, kwargs))[0]
        form = (id(module), *[(leaf.shape, leaf.dtype) for leaf in leaves if isinstance(leaf, torch.Tensor)])
        if form not in answers:
            answers[form] = _uncomputed(module, args, kwargs) or _computed(module, args, kwargs)
        flops, answer = answers[form]
        device.wait(device.launch(flops))
        return copy.deepcopy(answer)

    with _calls_go_to(call):
        yield


@contextmanager
def _calls_go_to(answer: Callable[[nn.Module, tuple[Any, ...], dict[str, Any]], Any]) -> Iterator[None]:
    """Calls of modules, those within such a call excepted, are answered by a function of (module, args, kwargs)."""
    plain = nn.Module.__call__
    inside = False

    def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        nonlocal inside
        if inside:
            return plain(module, *args, **kwargs)
        inside = True
        try:
            return answer(module, args, kwargs)
        finally:
            inside = False

    nn.Module.__call__ = call  # type: ignore[method-assign]
    try:
        yield
    finally:
        nn.Module.__call__ = plain  # type: ignore[method-assign]


def _computed(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[float, Any]:
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        answer = module(*args, **kwargs)
    return float(counter.get_total_flops()), answer


def _uncomputed(
    module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], trained: bool = False
) -> tuple[float, Any] | None:
    """FLOPs of a call, of its backward too where ``trained``, and an answer of the right shapes: numbers from 0 to 1.

    Seconds on a CPU where the call itself takes minutes. None where the shapes depend on values.
    """
    stand_in = copy.deepcopy(module)  # what a call changes in its module stays out of the real one
    try:
        with _disable_current_modes(), FakeTensorMode(allow_non_fake_inputs=True) as mode:
            given, named = tree_map(lambda leaf: _faked(mode, leaf), (args, kwargs))
            with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
                answer = stand_in(*given, **named)
                sums = [leaf.float().sum() for leaf in tree_flatten(answer)[0] if _has_gradient(leaf)]
                if trained and sums:
                    torch.autograd.backward(sums)
    except (RuntimeError, TypeError):  # of many kinds: whatever fails so is computed
        return None
    return float(counter.get_total_flops()), tree_map(_made_up, answer)


def _faked(mode: FakeTensorMode, leaf: Any) -> Any:
    if not isinstance(leaf, torch.Tensor):
        return leaf
    return mode.from_tensor(leaf.detach().requires_grad_(leaf.requires_grad))


def _has_gradient(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.requires_grad


def _made_up(leaf: Any) -> Any:
    if not isinstance(leaf, torch.Tensor):
        return leaf
    if not leaf.is_floating_point():
        return torch.zeros(leaf.shape, dtype=leaf.dtype)
    return torch.rand(leaf.shape).to(leaf.dtype).requires_grad_(leaf.requires_grad)
