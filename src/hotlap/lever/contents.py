"""What an object of the script's holds, as marks that can be compared later: contents, not only which objects."""

from __future__ import annotations

import array
import collections
import contextlib
import ctypes
import functools
import io
import sys
import types
from typing import TYPE_CHECKING, Any

from hotlap.lever.open_files import file_name, is_open_file, stream_stamp
from hotlap.lever.plain_digests import BytesRead, Unwatched, digest_of_plain
from hotlap.lever.sources import stream_key
from hotlap.lever.users_code import is_standard
from hotlap.lever.watched_kinds import attributes_of, in_slots, is_plain_object, is_settings, never_changes

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Contents", "Unwatched", "is_read_whole", "version_of"]

_MARKS = 100_000
_DEPTH = 50
_WHOLE_BYTES = 8 << 20
"""Arrays up to this size are read whole; of larger ones every n-th row."""
_PLAIN = (int, str, bool, bytes, complex, type(None))
_CONTAINERS = (list, tuple, dict, set, frozenset, collections.deque, collections.OrderedDict, collections.defaultdict)
_NAMES = (type, types.ModuleType, types.BuiltinFunctionType)


class Contents:
    """Marks of everything that the values hold, in order: the object itself where that tells, and a fact about it.
    Where it would take more than ``most_bytes`` in all to read, it is Unwatched."""

    def __init__(self, *values: Any, whole_bytes: int = _WHOLE_BYTES, most_bytes: int | None = None) -> None:
        self._whole_bytes = whole_bytes
        self._bytes = BytesRead(most_bytes)
        self.is_whole = True
        """Whether no change can be missed: nothing is known by the object itself alone, or by a part of it, that the
        script may change in place."""
        self.marks: list[tuple[Any, Any]] = []
        self.attributes: list[dict[str, Any]] = []
        """Of the objects met (not of the standard library's), the outermost first."""
        self._seen: set[int] = set()
        for value in values:
            self._look(value, 0)

    def same_as(self, other: Contents) -> bool:
        """Whether nothing has changed between the two."""
        pairs = zip(self.marks, other.marks, strict=False)
        return len(self.marks) == len(other.marks) and all(a[0] is b[0] and a[1] == b[1] for a, b in pairs)

    def _mark(self, held: Any, fact: Any = None) -> None:
        if len(self.marks) >= _MARKS:
            raise Unwatched
        self.marks.append((held, fact))

    def _look(self, value: Any, depth: int) -> None:
        kind = type(value)
        if kind in _PLAIN:
            self._mark(None, (kind, value))
        elif kind is float:
            self._mark(None, (kind, repr(value)))
        elif id(value) in self._seen:
            self._mark(value)
        elif depth > _DEPTH:
            raise Unwatched
        else:
            self._seen.add(id(value))
            self._look_into(value, kind, depth + 1)

    def _look_into(self, value: Any, kind: type, depth: int) -> None:
        numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
        if torch is not None and isinstance(value, torch.Tensor):
            self._mark(value, _tensor_fact(torch, value, self._whole_bytes, self._bytes))
            self.is_whole &= is_read_whole(value, self._whole_bytes)
        elif numpy is not None and isinstance(value, numpy.ndarray):
            self._look_at_array(numpy, value, kind, depth)
        elif kind in _CONTAINERS:
            self._look_inside(value, depth)
        elif isinstance(value, functools.partial):
            self._look_inside([value.func, value.args, value.keywords], depth)
        elif isinstance(value, types.MethodType):
            self._look_inside([value.__func__, value.__self__], depth)
        elif isinstance(value, types.FunctionType):
            self._mark(value)
            self._look_inside([value.__defaults__, value.__kwdefaults__], depth)
            for cell in value.__closure__ or ():
                with contextlib.suppress(ValueError):  # an empty one
                    self._look(cell.cell_contents, depth)
        elif isinstance(value, _NAMES):
            self._mark(value)
            if isinstance(value, types.BuiltinFunctionType):  # it may be an object's method
                self._look(value.__self__, depth)
        else:
            self._look_at_object(value, kind, depth)

    def _look_at_array(self, numpy: Any, value: Any, kind: type, depth: int) -> None:
        if value.dtype.hasobject:
            self._mark(value)
            self._look_inside(value.ravel().tolist(), depth)
        else:
            self._mark(value, _array_fact(numpy, value, self._whole_bytes, self._bytes))
            self.is_whole &= is_read_whole(value, self._whole_bytes) or is_open_file(value)
        if kind is not numpy.ndarray and kind is not numpy.memmap:  # it may have a mask
            self._look_at_attributes(value, depth)

    def _look_at_object(self, value: Any, kind: type, depth: int) -> None:
        if is_open_file(value):
            self._mark(value, file_name(value))
            return
        if isinstance(value, io.IOBase):
            self._mark(value, stream_key(value) if type(value) is io.BytesIO else stream_stamp(value))
        else:
            self._mark(value, self._bytes.digest(bytes(value)) if kind in (bytearray, array.array) else None)
        is_table = kind.__module__.partition(".")[0] == "pandas"
        arrays = getattr(getattr(value, "_mgr", None), "arrays", None) if is_table else None
        if arrays is not None:
            self._look_inside(list(arrays), depth)
            return
        is_container = isinstance(value, _CONTAINERS)
        if is_container:
            self._look_inside(list(value.items()) if isinstance(value, dict) else list(value), depth)
        if is_standard(kind.__module__) and not is_settings(kind):
            self.is_whole &= is_container or kind in (bytearray, array.array) or never_changes(value, kind)
            return
        self.is_whole &= is_container or is_plain_object(value, kind) or never_changes(value, kind)
        self._look_at_attributes(value, depth)

    def _look_inside(self, parts: Any, depth: int) -> None:
        digest = digest_of_plain(parts, self._bytes)
        if digest is not None:
            self._mark(None, digest)
            return
        self._mark(None, (type(parts), len(parts)))
        for part in [*parts.keys(), *parts.values()] if isinstance(parts, dict) else parts:
            self._look(part, depth)

    def _look_at_attributes(self, value: Any, depth: int) -> None:
        found = attributes_of(value)
        if found:
            self.attributes.append(found)
        for name, held in [*found.items(), *in_slots(value)]:
            self._mark(None, name)
            self._look(held, depth)


def _array_fact(numpy: Any, value: Any, whole_bytes: int, read: BytesRead) -> Any:
    if isinstance(value, numpy.memmap) and not value.flags.writeable:
        return value.shape, file_name(value)
    step = -(-value.nbytes // whole_bytes)
    part = value[::step] if step > 1 and value.ndim else value
    return value.shape, value.dtype.str, read.digest(numpy.ascontiguousarray(part).reshape(-1).view("u1"))


def is_read_whole(value: Any, whole_bytes: int = _WHOLE_BYTES) -> bool:
    """Whether the fact of an array, or of a tensor, tells all that it holds."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        known = value.device.type == "cpu" and value.layout is torch.strided and not value.is_quantized
        return known and bool(value.nbytes <= whole_bytes)
    return not value.dtype.hasobject and bool(value.nbytes <= whole_bytes)


def version_of(value: Any) -> int | None:
    """How often a tensor has been changed in place; None for what is none, and for one that does not count."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor) or value.is_inference():
        return None
    return int(value._version)


def _tensor_fact(torch: Any, value: Tensor, whole_bytes: int, read: BytesRead) -> Any:
    fact = version_of(value), tuple(value.shape), value.dtype
    if value.device.type != "cpu" or value.layout is not torch.strided or value.is_quantized or not value.numel():
        return fact
    step = -(-value.nbytes // whole_bytes)
    part = value.detach()[::step] if step > 1 and value.dim() else value.detach()
    flat = part.resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8)
    return *fact, read.digest((ctypes.c_char * flat.numel()).from_address(flat.data_ptr()))
