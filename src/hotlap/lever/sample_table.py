"""Samples that never change as rows of tensors, filled as they are drawn: a batch is one gather per tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hotlap.lever.file_cache import in_worker
from hotlap.lever.gathered import GatheredDataset, Trust, base_of, base_rows, plainly_stacked
from hotlap.lever.nested_rows import Unfit, put_together, taken_apart

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["SampleTable", "SampleTables"]


class SampleTable:
    """The samples of one data set, all of one form: tensors, arrays and numbers of fixed kinds and shapes.

    ``draw`` gives a sample, ``collate`` is torch's own function that stacks them, ``reserve(bytes)`` says whether there
    is room for the whole table; memory is taken up as rows are filled.
    """

    def __init__(
        self,
        draw: Callable[[int], Any],
        length: int,
        collate: Callable[[list[Any]], Any],
        reserve: Callable[[int], bool],
    ) -> None:
        self._draw, self._collate, self._reserve = draw, collate, reserve
        self._missing = bytearray(b"\x01") * length
        self._full = False
        self._unfit = False
        self._kinds: Any = None
        """Of one sample: types, kinds of numbers and shapes, nested."""
        self._form: Any = None
        """Of a batch."""
        self._columns: list[Tensor] = []

    def batch(self, indices: list[int]) -> Any:
        """The samples of these indices, stacked; None when samples are of several forms, or do not fit."""
        import torch

        if self._unfit or max(indices) >= len(self._missing):
            return None
        if not self._full:
            absent = list(dict.fromkeys(i for i in indices if self._missing[i]))
            if absent:
                try:
                    self._fill(absent)
                except Unfit:
                    self._unfit, self._columns = True, []
                    return None
        rows = torch.tensor(indices)
        return put_together(self._form, [column.index_select(0, rows) for column in self._columns])

    def _fill(self, absent: list[int]) -> None:
        import torch

        samples = [self._draw(index) for index in absent]
        if self._kinds is None:
            self._kinds = _kinds(samples[0])
        if any(_kinds(sample) != self._kinds for sample in samples):
            raise Unfit("samples are of several forms")
        tensors: list[Tensor] = []
        form = taken_apart(self._collate(samples), tensors)
        if self._form is None:
            self._make(tensors)
            self._form = form
        if form != self._form:
            raise Unfit("a part of its samples is no number")
        rows = torch.tensor(absent)
        for column, tensor in zip(self._columns, tensors, strict=True):
            column.index_copy_(0, rows, tensor)
        for index in absent:
            self._missing[index] = 0
        self._full = not any(self._missing)

    def _make(self, tensors: list[Tensor]) -> None:
        length = len(self._missing)
        size = sum(t[0].numel() * t.element_size() for t in tensors) * length
        plain = all(t.device.type == "cpu" and t.is_contiguous() and not t.requires_grad for t in tensors)
        if not tensors or not plain or not self._reserve(size):
            raise Unfit("its samples do not fit")
        try:
            self._columns = [t.new_empty((length, *t.shape[1:])) for t in tensors]
        except RuntimeError as err:  # torch's word for memory that is refused
            raise Unfit(str(err)) from err


def _kinds(value: Any) -> Any:
    """What decides how torch's collate function stacks ``value``."""
    kind = type(value)
    if kind in (tuple, list):
        return kind, tuple([_kinds(v) for v in value])
    if kind is dict:
        return kind, tuple([(k, _kinds(v)) for k, v in value.items()])
    return kind, getattr(value, "dtype", None), getattr(value, "shape", None)


class SampleTables:
    """A table for each data set whose samples never change, where a loader of this very process stacks them plainly."""

    def __init__(self, reserve: Callable[[int], bool]) -> None:
        self._reserve = reserve
        self._drawers: dict[int, tuple[Any, Callable[[int], Any], Callable[[], bool]]] = {}
        self._tables: dict[int, tuple[SampleTable, Trust]] = {}

    def add(self, dataset: Any, draw: Callable[[int], Any], stands: Callable[[], bool]) -> None:
        """``draw`` gives a sample of ``dataset``, always the same one for an index as long as it ``stands``."""
        self._drawers[id(dataset)] = dataset, draw, stands  # the reference keeps the id from being given to another

    def choose(self, dataset: Any, collate: Any) -> GatheredDataset | None:
        """What a fetcher gets in place of ``dataset``."""
        base = base_of(dataset)
        if id(base) not in self._drawers or in_worker() or not plainly_stacked(collate):
            return None
        if id(base) not in self._tables:
            table = SampleTable(self._drawers[id(base)][1], len(base), collate, self._reserve)
            self._tables[id(base)] = table, Trust()
        table, trust = self._tables[id(base)]
        stands = self._drawers[id(base)][2]

        def gather(indices: list[Any]) -> Any:
            found = base_rows(dataset, indices) if stands() else None
            return None if found is None else table.batch(found[1])

        return GatheredDataset(dataset, collate, gather, trust, lambda: None)
