"""Samples that never change as rows of tensors, filled as they are drawn: a batch is one gather per tensor."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hotlap.lever.fetching_threads import Epochs, FetchingThreads
from hotlap.lever.file_cache import FileCache, in_worker
from hotlap.lever.gathered import GatheredDataset, Trust, base_of, base_rows, plainly_stacked, same_batches
from hotlap.lever.kept_results import Comparisons
from hotlap.lever.nested_rows import Unfit, put_together, taken_apart
from hotlap.lever.opened_files import Files, are_unchanged, with_files

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Drawer", "SampleTable", "SampleTables"]


_FILE_BYTES = 500
"""What the name of a file and its state take."""


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
        self._files: dict[int, Files] = {}
        """Of rows that were made of files."""
        self._same_files: dict[Files, Files] = {}
        """One object for all rows that were made of the same."""
        self._full = False
        self._unfit = False
        self._kinds: Any = None
        """Of one sample: types, kinds of numbers and shapes, nested."""
        self._form: Any = None
        """Of a batch."""
        self._columns: list[Tensor] = []
        self.reserved = 0
        """Bytes."""

    def batch(self, indices: list[int]) -> Any:
        """The samples of these indices, stacked; None when samples are of several forms, or do not fit."""
        import torch

        if self._unfit or max(indices) >= len(self._missing):
            return None
        absent = [] if self._full and not self._files else self._absent(indices)
        if absent:
            try:
                self._fill(absent)
            except Unfit:
                self.clear()
                return None
        rows = torch.tensor(indices)
        return put_together(self._form, [column.index_select(0, rows) for column in self._columns])

    def agrees(self, index: int) -> bool:
        """Whether the sample of ``index``, drawn again, is the one in the table."""
        row = self.batch([index])
        return row is not None and same_batches(row, self._collate([self._draw(index)]))

    def clear(self) -> None:
        """Give its memory back: it holds nothing from now on."""
        self._unfit, self._columns, self._files, self._same_files = True, [], {}, {}

    def _absent(self, indices: list[int]) -> list[int]:
        """Those that have no row, or one that was made of a file that is another now."""
        files = {file for index in indices for file in self._files.get(index, ())}
        changed = {file for file in files if not are_unchanged([file])}
        missing = self._missing
        return list(dict.fromkeys(
            index for index in indices if missing[index] or not changed.isdisjoint(self._files.get(index, ()))
        ))  # fmt: skip

    def _fill(self, absent: list[int]) -> None:
        import torch

        drawn = [with_files(functools.partial(self._draw, index)) for index in absent]
        samples = [sample for sample, _ in drawn]
        if self._kinds is None:
            self._kinds = _kinds(samples[0])
        if any(_kinds(sample) != self._kinds for sample in samples):
            raise Unfit("samples are of several forms")
        tensors: list[Tensor] = []
        form = taken_apart(self._collate(samples), tensors)
        if self._form is None:
            self._make(tensors, _FILE_BYTES * max(len(files) for _, files in drawn))
            self._form = form
        if form != self._form:
            raise Unfit("a part of its samples is no number")
        rows = torch.tensor(absent)
        for column, tensor in zip(self._columns, tensors, strict=True):
            column.index_copy_(0, rows, tensor)
        for index, (_, files) in zip(absent, drawn, strict=True):
            self._missing[index] = 0
            if files or self._files:
                self._files[index] = self._same_files.setdefault(files, files)
        self._full = not any(self._missing)

    def _make(self, tensors: list[Tensor], beside: int) -> None:
        """Columns for all rows. ``beside``: bytes that a row takes besides its numbers."""
        length = len(self._missing)
        size = (sum(t[0].numel() * t.element_size() for t in tensors) + beside) * length
        plain = all(t.device.type == "cpu" and t.is_contiguous() and not t.requires_grad for t in tensors)
        if not tensors or not plain or not self._reserve(size):
            raise Unfit("its samples do not fit")
        self.reserved = size
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


@dataclass(frozen=True)
class Drawer:
    """Who draws samples of a data set."""

    dataset: Any
    draw: Callable[[int], Any]
    """Gives a sample, always the same one for an index as long as ``stands()``."""
    stands: Callable[[], bool]
    differs: Callable[[], None]
    """Called where a sample that was drawn again is another."""


class SampleTables:
    """A table for each data set whose samples never change, where a loader of this very process stacks them plainly."""

    def __init__(self, cache: FileCache, fetching: FetchingThreads) -> None:
        self._cache, self._fetching = cache, fetching
        self._drawers: dict[int, Drawer] = {}
        self._tables: dict[int, tuple[SampleTable, Trust, Comparisons, Epochs]] = {}

    def add(self, drawer: Drawer) -> None:
        """From now on, samples of a data set may be kept in a table."""
        self._drawers[id(drawer.dataset)] = drawer  # the reference keeps the id from being given to another

    def end(self, dataset: Any) -> None:
        """No more of its samples."""
        if self._drawers.pop(id(dataset), None) is not None and id(dataset) in self._tables:
            table = self._tables.pop(id(dataset))[0]
            table.clear()
            if table.reserved:
                self._cache.release(table.reserved)

    def choose(self, dataset: Any, collate: Any) -> GatheredDataset | None:
        """What a fetcher gets in place of ``dataset``."""
        base = base_of(dataset)
        if id(base) not in self._drawers or in_worker() or not plainly_stacked(collate):
            return None
        drawer = self._drawers[id(base)]
        if id(base) not in self._tables:
            table = SampleTable(drawer.draw, len(base), collate, self._cache.reserve)
            self._tables[id(base)] = table, Trust(drawer.differs), Comparisons(), Epochs(self._fetching)
        table, trust, comparisons, epochs = self._tables[id(base)]

        def gather(indices: list[Any]) -> Any:
            found = base_rows(dataset, indices) if drawer.stands() else None
            batch = None if found is None else table.batch(found[1])
            if epochs.begins():
                comparisons.begin()
            if found is None or batch is None or trust.left > 0 or not comparisons.are_due(len(found[1])):
                return batch
            if table.agrees(found[1][comparisons.given % len(found[1])]):
                return batch
            drawer.differs()
            return None

        return GatheredDataset(dataset, collate, gather, trust, lambda: None)
