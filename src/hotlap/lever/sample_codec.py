"""Samples as bytes: tensors, arrays, Pillow's images and plain values, nested, without importing numpy or Pillow."""

from __future__ import annotations

import ctypes
import io
import itertools
import pickle
import struct
import sys
from collections.abc import Iterator
from typing import Any

__all__ = ["copied", "is_aliased", "pack", "same_bits", "shares", "unpack"]

_ALIGN = 64
_HEAD = struct.Struct("<Q")
_IMAGE_MODES = ("L", "RGB", "RGBA", "F")
_IMAGE_HOLDS = {"im", "_im", "_mode", "_size", "info", "readonly", "_readonly"}
"""Attributes of Pillow's images that say no more than mode, size, pixels and info do."""
_PLAIN = frozenset((int, float, bool, str, bytes, complex, type(None)))


def pack(value: Any) -> bytes | None:
    """``value`` as bytes, or None when it holds anything but CPU tensors without gradient, numeric arrays, plain images
    and values in tuples, lists and dicts."""
    buffers: list[Any] = []
    try:
        skeleton = _flatten(value, buffers)
    except TypeError:
        return None
    head = _dump((skeleton, [len(b) for b in buffers]))
    out = bytearray(_HEAD.pack(len(head)) + head)
    for buffer in buffers:
        out += bytes(-len(out) % _ALIGN)
        out += buffer
    return bytes(out)


def _dump(value: Any) -> bytes:
    """Pickled without a memo: equal values give equal bytes, whatever objects they share."""
    out = io.BytesIO()
    pickler = pickle.Pickler(out, protocol=5)
    pickler.fast = True
    pickler.dump(value)
    return out.getvalue()


def unpack(data: bytearray) -> Any:
    """The value; its tensors and arrays are writable views of ``data``, which must be the caller's own copy."""
    (size,) = _HEAD.unpack_from(data)
    skeleton, sizes = pickle.loads(memoryview(data)[_HEAD.size : _HEAD.size + size])
    offsets, at = [], _HEAD.size + size
    for length in sizes:
        at += -at % _ALIGN
        offsets.append((at, length))
        at += length
    if at != len(data):
        raise ValueError(f"a packed sample of {at} bytes has {len(data)}")
    return _rebuild(skeleton, data, offsets)


def copied(value: Any) -> Any:
    """A copy that shares nothing that can be changed with ``value`` (one that :func:`pack` takes)."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is tuple:
        return tuple([copied(v) for v in value])
    if kind is list:
        return [copied(v) for v in value]
    if kind is dict:
        return {k: copied(v) for k, v in value.items()}
    if not hasattr(value, "copy"):
        return value.clone()
    copy = value.copy()  # of an array, or an image
    if hasattr(value, "flags"):
        copy.flags.writeable = value.flags.writeable
    return copy


def same_bits(a: Any, b: Any) -> bool:
    """Whether two samples are equal bit for bit (NaN equals itself); False for what cannot be packed."""
    left = pack(a)
    return left is not None and left == pack(b)


def shares(a: Any, b: Any) -> bool:
    """Whether anything that can be changed lies in both of two values that :func:`pack` takes, neither aliased."""
    return _meet([*_spans(a), *_spans(b)])


def is_aliased(value: Any) -> bool:
    """Whether the same thing that can be changed lies twice in a value that :func:`pack` takes: a copy has two."""
    return _meet(list(_spans(value)))


def _meet(spans: list[tuple[int, int]]) -> bool:
    spans.sort()
    return any(end > begin for (_, end), (begin, _) in itertools.pairwise(spans))


def _spans(value: Any) -> Iterator[tuple[int, int]]:
    """Where everything in it that can be changed lies: the numbers of tensors and arrays, and other objects."""
    kind = type(value)
    if kind in _PLAIN:
        return
    if kind in (tuple, list, dict):
        if kind is not tuple:
            yield id(value), id(value) + 1
        for part in value.values() if kind is dict else value:
            yield from _spans(part)
    elif not hasattr(value, "nbytes"):  # an image
        yield id(value), id(value) + 1
    else:
        begin = int(value.data_ptr() if hasattr(value, "data_ptr") else value.ctypes.data)
        yield begin, begin + int(value.nbytes)


def _flatten(value: Any, buffers: list[Any]) -> tuple[str, Any]:
    kind = type(value)
    if value is None or kind in (int, float, bool, str, bytes, complex):
        return "v", value
    if kind is tuple or kind is list:
        return kind.__name__[0], [_flatten(v, buffers) for v in value]
    if kind is dict:
        return "d", [(_flatten(k, buffers), _flatten(v, buffers)) for k, v in value.items()]
    numpy = sys.modules.get("numpy")
    if numpy is not None and kind is numpy.ndarray and value.dtype.kind in "biufc" and value.flags.c_contiguous:
        buffers.append(value.tobytes())
        return "n", (len(buffers) - 1, value.dtype.str, value.shape, value.flags.writeable)
    pillow = sys.modules.get("PIL.Image")
    if pillow is not None and kind is pillow.Image:
        return "i", _flatten_image(value, buffers)
    torch = sys.modules.get("torch")
    if torch is not None and kind is torch.Tensor:
        return "x", _flatten_tensor(torch, value, buffers)
    raise TypeError(f"a {kind.__name__} is not cached")


def _flatten_image(image: Any, buffers: list[Any]) -> tuple[int, str, tuple[int, int], Any]:
    more = {name for name, held in vars(image).items() if held is not None} - _IMAGE_HOLDS
    if image.mode not in _IMAGE_MODES or more:
        raise TypeError(f"an image in mode {image.mode} with {more} is not cached")
    buffers.append(image.tobytes())
    return len(buffers) - 1, image.mode, image.size, _flatten(image.info, buffers)


def _flatten_tensor(torch: Any, value: Any, buffers: list[Any]) -> tuple[int, str, tuple[int, ...], bool]:
    if value.device.type != "cpu" or value.requires_grad or value.layout is not torch.strided or value.is_quantized:
        raise TypeError("only plain CPU tensors are cached")
    turned = value.dim() == 2 and not value.is_contiguous() and value.t().is_contiguous()
    data = value.t() if turned else value
    if not data.is_contiguous() or data.is_conj() or data.is_neg():
        raise TypeError("only contiguous tensors are cached")
    buffers.append(ctypes.string_at(data.data_ptr(), data.numel() * data.element_size()) if data.numel() else b"")
    return len(buffers) - 1, str(value.dtype).removeprefix("torch."), tuple(data.shape), turned


def _rebuild(node: tuple[str, Any], data: bytearray, offsets: list[tuple[int, int]]) -> Any:
    kind, body = node
    if kind == "v":
        return body
    if kind in "tl":
        parts = [_rebuild(v, data, offsets) for v in body]
        return tuple(parts) if kind == "t" else parts
    if kind == "d":
        return {_rebuild(k, data, offsets): _rebuild(v, data, offsets) for k, v in body}
    at, length = offsets[body[0]]
    if kind == "i":
        image = sys.modules["PIL.Image"].frombytes(body[1], body[2], bytes(memoryview(data)[at : at + length]))
        image.info = _rebuild(body[3], data, offsets)
        return image
    if kind == "n":
        numpy = sys.modules["numpy"]
        dtype = numpy.dtype(body[1])
        count = 1
        for size in body[2]:
            count *= size
        array = numpy.frombuffer(data, dtype=dtype, count=count, offset=at).reshape(body[2])
        array.flags.writeable = body[3]
        return array
    torch = sys.modules["torch"]
    _, name, shape, turned = body
    dtype = getattr(torch, name)
    count = 1
    for size in shape:
        count *= size
    if count == 0:
        tensor = torch.empty(shape, dtype=dtype)
    else:
        tensor = torch.frombuffer(data, dtype=dtype, count=count, offset=at).reshape(shape)
    return tensor.t() if turned else tensor
