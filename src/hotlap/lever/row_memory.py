"""Outputs of a network kept row by row, each under the key of the sample that it belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hotlap.lever.nested_rows import Unfit, put_together, taken_apart

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["RowMemory"]

ROW_BYTES = 400
"""What a row costs beside its numbers: key, table entry and tuple of CPython 3.11."""
ROUNDING = {"float64": 1e-9, "float32": 1e-4, "float16": 2e-2, "bfloat16": 4e-2}
"""Largest difference, as a share of the largest number, that is put down to rounding: the same sample at another place
in its batch may be added up in another order. 8 bits of bf16 are 0.4 %, over a dozen layers."""


class RowMemory:
    """Rows by key. :meth:`put` raises :class:`Unfit` for what cannot be cut into rows or does not fit."""

    def __init__(self, most_bytes: int) -> None:
        self._left = most_bytes
        self._form: Any = None
        self._rows: dict[bytes, tuple[list[Tensor], int]] = {}
        self._channels_last: list[bool] = []

    def has(self, key: bytes) -> bool:
        """Whether a row is kept under the key."""
        return key in self._rows

    def get(self, keys: list[bytes]) -> Any:
        """The output made of the rows under ``keys``, all of which are kept: new tensors, as the network gives them."""
        import torch

        found = [self._rows[key] for key in keys]
        tensors = []
        for leaf, last in enumerate(self._channels_last):
            rows = [block[leaf][row] for block, row in found]
            if any(row.shape != rows[0].shape or row.dtype is not rows[0].dtype for row in rows):
                raise Unfit("its outputs for inputs of one shape have several")
            tensor = torch.stack(rows)
            tensors.append(tensor.contiguous(memory_format=torch.channels_last) if last else tensor)
        return put_together(self._form, tensors)

    def put(self, keys: list[bytes], given: Any, output: Any) -> None:
        """Keep copies of the rows that are new. ``given``: the input, of which the output must not be a part."""
        import torch

        tensors = self._checked(keys, given, output)
        new = {key: row for row, key in enumerate(keys) if key not in self._rows}
        if not new:
            return
        index = torch.tensor(list(new.values()), device=tensors[0].device)
        self._left -= len(new) * ROW_BYTES + sum(len(new) * t[0].numel() * t.element_size() for t in tensors)
        if self._left < 0:
            raise Unfit("its outputs do not fit the memory that the setting gives them")
        block = [t.detach().index_select(0, index).contiguous() for t in tensors]
        self._rows.update({key: (block, row) for row, key in enumerate(new)})

    def differs(self, keys: list[bytes], output: Any) -> bool:
        """Whether rows of a fresh output are others than those kept, beyond rounding. ``keys``: any of them kept."""
        import torch

        fresh: list[Tensor] = []
        form = taken_apart(output, fresh)
        known = [(row, *self._rows[key]) for row, key in enumerate(keys) if key in self._rows]
        if not known:
            return False
        if form != self._form:
            return True
        index = torch.tensor([row for row, _, _ in known], device=fresh[0].device)
        for leaf, tensor in enumerate(fresh):
            kept = [block[leaf][at] for _, block, at in known]
            if any(row.shape != tensor.shape[1:] or row.dtype is not tensor.dtype for row in kept):
                return True
            if not _close(torch.stack(kept), tensor.detach().index_select(0, index)):
                return True
        return False

    def _checked(self, keys: list[bytes], given: Any, output: Any) -> list[Tensor]:
        """The tensors of an output that can be cut into rows."""
        import torch

        tensors: list[Tensor] = []
        form = taken_apart(output, tensors)
        inputs: list[Tensor] = []
        taken_apart(given, inputs)
        theirs = {t.untyped_storage().data_ptr() for t in inputs}
        last = []
        for t in tensors:
            if t.dim() == 0 or t.shape[0] != len(keys):
                raise Unfit("its output has no row for each sample of its input")
            if t.requires_grad or t.is_inference() or t.untyped_storage().data_ptr() in theirs:
                raise Unfit("its output is a part of its input, or of a graph")
            last.append(not t.is_contiguous())
            if last[-1] and not (t.dim() == 4 and t.is_contiguous(memory_format=torch.channels_last)):
                raise Unfit("its output lies in memory in a way of its own")
        if not tensors or (self._form is not None and (form, last) != (self._form, self._channels_last)):
            raise Unfit("its output has no fixed form")
        self._form, self._channels_last = form, last
        return tensors


def _close(kept: Tensor, fresh: Tensor) -> bool:
    """Equal, or equal but for rounding (no number that is none is equal to anything)."""
    import torch

    if torch.equal(kept, fresh):
        return True
    allowed = ROUNDING.get(str(fresh.dtype).removeprefix("torch."))
    if allowed is None:
        return False
    difference = (kept.double() - fresh.double()).abs().max()
    return bool(difference <= allowed * fresh.double().abs().max())
