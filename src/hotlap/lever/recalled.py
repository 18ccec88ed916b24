"""A frozen network's forward that gives again what it gave before, once that has been proved to be the same."""

from __future__ import annotations

import weakref
from types import MethodType
from typing import TYPE_CHECKING, Any

from hotlap.lever.contract import Target
from hotlap.lever.fingerprints import AttributesWatch, WeightsWatch, attributes_of_torch, holdings, same_things
from hotlap.lever.nested_rows import Unfit, row_keys, some_rows, taken_apart
from hotlap.lever.random_state import random_states
from hotlap.lever.row_memory import RowMemory

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["Recalled"]

PROOFS = 3
"""Batches' worth of known rows that are computed all the same and compared, before one is given from memory."""
AGAIN, RAREST = 64, 512
"""Batches given from memory after which one is computed and compared again; twice as many after each comparison that
held, up to the last: where the network takes longer than the rest of the step, one in 64 is 2 % of the time."""
PATIENCE = 3
"""Rows, as a multiple of the data set's length, after which some must have come again. A network that is called twice
per step sees twice the data set in an epoch."""
LEAST_KNOWN_FRAC = 0.1
"""Of all rows until then. Pictures that are mirrored at random come again in 42 % of three epochs (0, 1/2 and
3/4 of their rows); a share that stays smaller than this saves nothing, and its memory grows."""
WORTH_FRAC = 0.75
"""A batch is computed in part where no more of its rows than these are new."""
NEVER = -1


class Recalled:
    """Stands as ``forward`` of one module. Copies of the module (deep ones, pickled ones) have their plain forward."""

    def __init__(self, module: nn.Module, target: Target, most_bytes: int) -> None:
        self._module = weakref.ref(module)
        self._real = type(module).forward
        self._target = target
        self._memory: RowMemory | None = RowMemory(most_bytes)
        self._weights = WeightsWatch()
        self._attributes = AttributesWatch()
        self._proved = 0
        self._since_proof, self._again = 0, AGAIN
        self._has_given = False
        self._parts_proved = 0
        """Batches of which a part gave the same rows as the whole; NEVER: one did not."""
        self._seen = 0
        self.dataset_len: int | None = None
        """Length of the longest training data set, as soon as it is known."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        import torch

        module = self._module()
        assert module is not None, "a module is called while it is alive"
        tracing = torch.jit.is_tracing()  # type: ignore[attr-defined,no-untyped-call]
        if self._memory is None or torch.compiler.is_compiling() or tracing:
            return self._real(module, *args, **kwargs)
        keys = self._look(module, (args, kwargs))
        if keys is None:
            return self._real(module, *args, **kwargs)
        new: list[int] = []
        if self._proved >= PROOFS * len(keys) and self._since_proof < self._again:
            given = self._given(module, self._memory, keys, (args, kwargs))
            if given is not None:
                self._since_proof += 1
                self._has_given = True
                return given[0]
            new = _new(self._memory, keys) if self._memory is not None else []
        output = self._computed(module, keys, (args, kwargs))
        if 0 < len(new) < len(keys) and self._memory is not None and 0 <= self._parts_proved < PROOFS:
            self._prove_part(module, self._memory, [keys[row] for row in new], some_rows((args, kwargs), new))
        return output

    def _computed(self, module: nn.Module, keys: list[bytes], given: Any) -> Any:
        """What the network gives for it, learnt."""
        before = (random_states(), holdings(module))
        output = self._real(module, *given[0], **given[1])
        self._learn(module, keys, given, output, before)
        return output

    def _given(self, module: nn.Module, memory: RowMemory, keys: list[bytes], given: Any) -> tuple[Any] | None:
        """The output, of rows that are kept and rows that are computed now; None where all have to be computed."""
        new = _new(memory, keys)
        if new and (self._parts_proved < PROOFS or len(new) > WORTH_FRAC * len(keys)):  # NEVER is less, too
            return None
        try:
            if new:
                self._computed(module, [keys[row] for row in new], some_rows(given, new))
                if self._memory is None:
                    return None
            return (memory.get(keys),)
        except Exception as err:  # the script's call must not suffer from ours
            self._stop_for(err)
            return None

    def _prove_part(self, module: nn.Module, memory: RowMemory, keys: list[bytes], given: Any) -> None:
        """Compute the new rows of a batch, which has just been learnt as a whole, by themselves too: a network may take
        whole batches alone, or be given something beside the samples that is as long as they are many."""
        try:
            same = not memory.differs(keys, self._real(module, *given[0], **given[1]))
        except Exception:  # then only batches that are known as a whole are given
            same = False
        self._parts_proved = self._parts_proved + 1 if same else NEVER

    def stop(self, why: str) -> None:
        """From now on the network computes as ever."""
        if self._memory is not None:
            self._memory = None
            self._attributes = AttributesWatch()  # it holds what the network held
            self._target.unfit(f"{type(self._module()).__name__}: {why}")
            self._target.changed(-1)

    def _stop_for(self, err: Exception) -> None:
        """The script's call must not suffer from ours; the reason is told."""
        self.stop(str(err) if isinstance(err, Unfit) else f"{type(err).__name__}: {err}")

    def _look(self, module: nn.Module, given: Any) -> list[bytes] | None:
        """Keys of the rows, where this call is to be kept or given."""
        try:
            return self._keys(module, given)
        except Exception as err:
            self._stop_for(err)
            return None

    def _keys(self, module: nn.Module, given: Any) -> list[bytes] | None:
        """Keys of this call's rows; None for a call that is nobody's business (gradients pass through it)."""
        import torch

        if torch.is_inference_mode_enabled():
            return None
        weights: list[Tensor | None] = []
        attributes: list[Any] = []
        of_torch = attributes_of_torch()
        left = [module]
        while left:  # torch's own generators, one for each question, take ten times as long
            part = left.pop()
            if part.training:
                raise Unfit(f"a {type(part).__name__} in it is in training mode: call eval() on the network")
            hooked = part._forward_hooks or part._forward_pre_hooks or part._backward_hooks or part._backward_pre_hooks
            if hooked and part is not module:
                raise Unfit(f"somebody has hooked into a {type(part).__name__} of it")
            weights += (*part._parameters.values(), *part._buffers.values())
            attributes += [v for name, v in vars(part).items() if name not in of_torch and v is not self]
            children = [child for child in part._modules.values() if child is not None]
            attributes += children
            left += children
        held = [t for t in weights if t is not None]
        if any(t.requires_grad for t in held):
            raise Unfit("its parameters require gradients")
        tensors: list[Tensor] = []
        taken_apart(given, tensors)
        if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
            return None
        if self._weights.changed(held):
            raise Unfit("its weights changed")
        if self._attributes.changed(attributes):
            raise Unfit("one of its attributes changed")
        kinds = ("cpu", "cuda")
        cast = [(k, torch.get_autocast_dtype(k)) for k in kinds if torch.is_autocast_enabled(k)]
        return row_keys(given, (cast, torch.are_deterministic_algorithms_enabled()))

    def _learn(self, module: nn.Module, keys: list[bytes], given: Any, output: Any, before: Any) -> None:
        """Compare what is known, keep what is new."""
        memory = self._memory
        if memory is None:
            return
        try:
            if random_states() != before[0]:
                raise Unfit("its forward draws random numbers")
            if not same_things(before[1], holdings(module)):
                raise Unfit("its forward keeps something in an attribute")
            if memory.differs(keys, output):
                raise Unfit("for the same input it gave another output")
            known = sum(map(memory.has, keys))
            self._seen += len(keys)
            self._proved += known
            late = self._seen > PATIENCE * (self.dataset_len or self._seen)
            if late and not self._has_given and self._proved < LEAST_KNOWN_FRAC * self._seen:
                raise Unfit("its inputs do not come again (random augmentation?)")
            memory.put(keys, given, output)
        except Exception as err:
            self._stop_for(err)
            return
        if known:
            self._again = min(2 * self._again, RAREST) if self._since_proof >= self._again else self._again
            self._since_proof = 0

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return MethodType(self._real, memo.get(id(self._module()), self._module()))

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (self._module(), "forward")


def _new(memory: RowMemory, keys: list[bytes]) -> list[int]:
    """Rows that are not kept yet."""
    return [row for row, key in enumerate(keys) if not memory.has(key)]
