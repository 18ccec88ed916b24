"""A batch taken apart into its samples, and batches put together of samples."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ROWS", "Kinds", "Path", "batch_of", "kinds_of", "leaves", "samples_of"]

Path = tuple[Any, ...]
"""Keys and indices that lead to a part of a batch."""

ROWS, LIST, OWNED, OWNER, SAME = "rows", "list", "owned", "owner", "same"
"""What a part is: a tensor with a row for each sample; a list with an entry for each; a tensor with as many rows for
each sample as its count says (boxes); the sample of each of those rows; one value for all batches."""
DEEPEST = 4
"""Levels of lists and mappings that are looked into."""
_PLAIN = (bool, int, float, str, bytes)
"""Values that can be compared; of an array or an object of the script's own, nobody knows whose it is."""


@dataclass(frozen=True)
class Kinds:
    """What the parts of a script's batches are."""

    rows: int
    """Samples of a batch."""
    of: Mapping[Path, str]
    counts: Path | None
    """The part that has each sample's number of rows in the tensors that have several."""
    same: Mapping[Path, Any]
    """The values that are one for all batches."""


def kinds_of(batches: Sequence[Any], rows: int) -> Kinds | None:
    """Learned from several batches of ``rows`` samples, since a tensor of boxes may have ``rows`` of them by chance.

    None where the samples of a batch cannot be told apart.
    """
    seen = [dict(leaves(batch, rows)) for batch in batches]
    if any(found.keys() != seen[0].keys() for found in seen):
        return None
    kinds: dict[Path, str] = {}
    loose: list[Path] = []
    for path in seen[0]:
        values = [found[path] for found in seen]
        if all(_has_rows(value) for value in values):
            kinds[path] = ROWS
            if any(value.shape[0] != rows for value in values):
                loose.append(path)
        elif any(_has_rows(value) for value in values):
            return None
        else:
            kinds[path] = LIST if all(_per_sample(value, rows) for value in values) else SAME
    same = {path: seen[0][path] for path, kind in kinds.items() if kind == SAME}
    if not all(_equal(found[path], value) for path, value in same.items() for found in seen):
        return None
    if not loose:
        return Kinds(rows, kinds, None, same)
    totals = [{found[path].shape[0] for path in loose} for found in seen]
    for path in kinds.keys() - set(loose):
        told = [_counts(found[path], rows) for found in seen]
        if all(counts is not None and {sum(counts)} == total for counts, total in zip(told, totals, strict=True)):
            for part in loose:
                pairs = zip((found[part] for found in seen), told, strict=True)
                kinds[part] = OWNER if all(_is_owner(value, counts or []) for value, counts in pairs) else OWNED
            return Kinds(rows, kinds, path, same)
    return None


def samples_of(batch: Any, kinds: Kinds) -> list[dict[Path, Any]] | None:
    """Each sample's share of each part, in memory of its own; None where this batch is not of these kinds."""
    found = dict(leaves(batch, kinds.rows))
    if found.keys() != kinds.of.keys():
        return None
    counts = [0] * kinds.rows if kinds.counts is None else _counts(found[kinds.counts], kinds.rows)
    samples: list[dict[Path, Any]] = [{} for _ in range(kinds.rows)]
    for path, kind in kinds.of.items():
        if kind == SAME and not _equal(found[path], kinds.same[path]):
            return None
        shares = _shares(found[path], kind, counts, kinds.rows)
        if shares is None:
            return None
        for sample, share in zip(samples, shares, strict=True):
            sample[path] = share
    return samples


def _shares(value: Any, kind: str, counts: list[int] | None, rows: int) -> Sequence[Any] | None:
    if kind == SAME:
        return [value] * rows
    if kind == LIST:
        return value if _per_sample(value, rows) else None
    if not _has_rows(value) or counts is None:
        return None
    each = [1] * rows if kind == ROWS else counts
    if value.shape[0] != sum(each):
        return None
    if kind == OWNER:
        return [value[:0].clone()] * rows if _is_owner(value, counts) else None
    return [share.clone() for share in value.split(each)]


def batch_of(samples: Sequence[Mapping[Path, Any]], kinds: Kinds, like: Any, fills: Mapping[Path, Any]) -> Any:
    """A batch of these samples in containers as those of ``like``, a batch of this kind.

    Tensors of several lengths are filled up with what ``fills`` has for them. They are pinned where those of ``like``
    are.
    """
    parts: dict[Path, Any] = {}
    for path, kind in kinds.of.items():
        values = [sample[path] for sample in samples]
        if kind == SAME:
            parts[path] = values[0]
        elif kind == LIST:
            parts[path] = values
        elif kind == OWNER:
            assert kinds.counts is not None
            parts[path] = _owners([int(sample[kinds.counts]) for sample in samples], values[0])
        else:
            parts[path] = _together(values, fills.get(path), kind == ROWS)
    for path, value in leaves(like, kinds.rows):
        if _has_rows(value) and value.is_pinned():
            parts[path] = parts[path].pin_memory()
    return _rebuilt(like, parts, kinds.rows, ())


def _together(values: list[Tensor], fill: Any, alike: bool) -> Tensor:
    import torch

    if not alike or len({value.shape for value in values}) == 1:
        return torch.cat(values)
    shape = [max(sizes) for sizes in zip(*(value.shape[1:] for value in values), strict=True)]
    whole = values[0].new_full((len(values), *shape), fill)
    for row, value in zip(whole, values, strict=True):
        row[tuple(slice(size) for size in value.shape[1:])] = value[0]
    return whole


def _owners(counts: list[int], like: Tensor) -> Tensor:
    import torch

    return torch.repeat_interleave(torch.arange(len(counts), dtype=like.dtype), torch.tensor(counts))


def leaves(batch: Any, rows: int, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Tensors, lists with an entry for each sample, and whatever else is no list and no mapping."""
    if len(path) < DEEPEST and isinstance(batch, MutableMapping):
        for key, part in batch.items():
            yield from leaves(part, rows, (*path, key))
    elif len(path) < DEEPEST and _is_list(batch) and not _per_sample(batch, rows):
        for number, part in enumerate(batch):
            yield from leaves(part, rows, (*path, number))
    else:
        yield path, batch


def _rebuilt(like: Any, parts: Mapping[Path, Any], rows: int, path: Path) -> Any:
    if path in parts:
        return type(like)(parts[path]) if _per_sample(like, rows) else parts[path]
    if isinstance(like, MutableMapping):
        out = copy.copy(like)
        for key, part in like.items():
            out[key] = _rebuilt(part, parts, rows, (*path, key))
        return out
    inner = [_rebuilt(part, parts, rows, (*path, number)) for number, part in enumerate(like)]
    return type(like)(*inner) if hasattr(like, "_fields") else type(like)(inner)


def _is_list(value: Any) -> bool:
    return type(value) in (list, tuple) or (isinstance(value, tuple) and hasattr(value, "_fields"))


def _has_rows(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor) and value.dim() > 0


def _per_sample(value: Any, rows: int) -> bool:
    """A list with an entry for each sample, and not one of as many fields, each of which has an entry for each."""
    if type(value) not in (list, tuple) or len(value) != rows:
        return False
    return not any(_is_field(part, rows) for part in value)


def _is_field(part: Any, rows: int) -> bool:
    return part.shape[0] == rows if _has_rows(part) else type(part) in (list, tuple) and len(part) == rows


def _counts(value: Any, rows: int) -> list[int] | None:
    """A whole number for each sample, none of them negative."""
    numbers = value.tolist() if _has_rows(value) and value.dim() == 1 else value
    if not isinstance(numbers, list | tuple) or len(numbers) != rows:
        return None
    return list(numbers) if all(type(n) is int and n >= 0 for n in numbers) else None


def _is_owner(value: Tensor, counts: list[int]) -> bool:
    import torch

    if value.dim() != 1 or value.dtype not in (torch.int32, torch.int64):
        return False
    return torch.equal(value, _owners(counts, value))


def _equal(a: Any, b: Any) -> bool:
    import torch

    if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
        return isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and torch.equal(a, b)
    return a is b or (type(a) is type(b) and type(a) in _PLAIN and bool(a == b))
