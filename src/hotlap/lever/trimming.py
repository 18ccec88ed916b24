"""Padding that all samples of a batch have in common, cut off every tensor of the batch alike.

Only where the batch itself says where its content ends: a mask of ones and zeros, the lengths of its samples, the sizes
of its images. What is cut has to be padding in every tensor that is as long; else the batch stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hotlap.lever.nested import rebuilt, tensors_in

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Content", "content_of", "trimmed"]

LEAST_FRAC = 0.25
"""Of a length, what stays at least: a model may halve its input several times, and needs something to halve."""


@dataclass(frozen=True)
class Content:
    """How far the content of each sample of a batch goes."""

    sizes: tuple[int, ...]
    """Lengths of the batch's texts along dimension 1 (several where a sample has several), or height and width of its
    images."""
    ends: Tensor
    """(samples, sizes), whole numbers: where each one's content ends in these."""
    measure: Tensor
    """(samples, 1) or (samples, 2): by which samples are alike: the length of all texts, or height and width."""
    is_image: bool = False


def content_of(batch: Any) -> Content | None:
    """What the batch says of its content; None where it says nothing (or lies on a device)."""
    import torch

    tensors = _tensors(torch, batch)
    texts = {size: found for size in _lengths_of(tensors) if (found := _ends(torch, tensors, size))}
    if texts:
        ends = torch.stack([_last(torch, found) for found in texts.values()], 1)
        whole = torch.stack([end for found in texts.values() for end in found]).sum(0)
        return Content(tuple(texts), ends, whole[:, None])
    for images in tensors:
        if images.dim() == 4 and images.shape[0] > 0:
            height, width = images.shape[2:]
            if (told := _told(torch, tensors, _masks(tensors, height, width), height, width)) is not None:
                return Content((height, width), told, told, is_image=True)
    return None


def trimmed(batch: Any, sequence: int, image: int) -> Any:
    """``batch`` with shorter tensors, in new lists and mappings of the same types; itself where nothing is cut.

    ``sequence``, ``image``: lengths along dimension 1, and heights and widths, are cut to multiples of these.
    """
    import torch

    tensors = _tensors(torch, batch)
    cuts = {**_sequences(torch, tensors, sequence), **_images(torch, tensors, image)}
    whole = {name: _whole(torch, cut) for name, cut in cuts.items()}
    return rebuilt(batch, lambda t: whole.get(id(t), t)) if cuts else batch


def _tensors(torch: Any, batch: Any) -> list[Tensor]:
    """Those with a row for each sample, where all are dense and on the CPU."""
    tensors = [t for t in tensors_in(batch) if t.dim() > 0]
    if any(t.device.type != "cpu" or t.layout != torch.strided for t in tensors):
        return []
    return [t for t in tensors if t.shape[0] == tensors[0].shape[0]]


def _lengths_of(tensors: list[Tensor]) -> list[int]:
    return sorted({t.shape[1] for t in tensors if t.dim() == 2}, reverse=True)


def _masks(tensors: list[Tensor], height: int, width: int) -> list[Tensor]:
    return [t for t in tensors if t.dim() == 3 and t.shape[1:] == (height, width)]


def _whole(torch: Any, cut: Tensor) -> Tensor:
    """Without gaps in memory (a script may call ``view``), channels last and pinned where they were."""
    last = cut.dim() == 4 and cut.stride(1) == 1 and cut.shape[1] > 1
    found: Tensor = cut.contiguous(memory_format=torch.channels_last if last else torch.contiguous_format)
    return found.pin_memory() if cut.is_pinned() else found


def _top(longest: int, multiple: int, size: int) -> int:
    """What is kept of ``size``."""
    least = max(longest, int(LEAST_FRAC * size), 1)
    return min(size, -(-least // multiple) * multiple)


def _sequences(torch: Any, tensors: list[Tensor], multiple: int) -> dict[int, Tensor]:
    """Tensors that are shorter along dimension 1 (and further ones as long), by id of what they are cut from.

    Of each length by itself (a question and its answer); where one was cut, only what no other tensor has behind it.
    """
    cuts: dict[int, Tensor] = {}
    for size in _lengths_of(tensors):
        alike = _alike(tensors, size)
        ends = _ends(torch, tensors, size) if size > multiple else []
        if not ends or (top := _top(int(_last(torch, ends).max()), multiple, size)) >= size:
            continue
        if cuts and any(t.dim() > 2 and t.shape[1] != size and size in t.shape[2:] for t in tensors):
            continue
        if all(_same(t[:, top:]) for t in alike):
            cuts |= {id(t): _short(t, size, top) for t in alike}
    return cuts


def _short(tensor: Tensor, size: int, top: int) -> Tensor:
    for dim in range(1, tensor.dim()):
        if tensor.shape[dim] == size and (dim == 1 or _same(tensor.narrow(dim, top, size - top))):
            tensor = tensor.narrow(dim, 0, top)
    return tensor


def _alike(tensors: list[Tensor], size: int) -> list[Tensor]:
    return [t for t in tensors if t.dim() >= 2 and t.shape[1] == size]


def _last(torch: Any, ends: list[Tensor]) -> Tensor:
    """Where the longest of a sample's texts of one length ends."""
    found: Tensor = torch.stack(ends).amax(0)
    return found


def _ends(torch: Any, tensors: list[Tensor], size: int) -> list[Tensor]:
    """Where the content of each sample ends, as each mask of that length says, or lengths; empty where nothing does.

    A mask that says nothing (segments of which there is one, as BERT's tokenizer gives) counts where it is alone.
    """
    alike = _alike(tensors, size)
    full: list[Tensor] = []
    found: list[Tensor] = []
    for mask in alike if len(alike) > 1 else ():  # a mask of nothing else may be labels
        if mask.dim() == 2 and not mask.dtype.is_complex:
            ones = mask != 0
            if not (mask == ones.to(mask.dtype)).all():
                continue  # other values than 0 and 1
            for content in (ones, ~ones):  # of key_padding_mask the ones are padding
                ends = content.sum(1)
                if bool(ends.min() > 0) and bool((content == (torch.arange(size) < ends[:, None])).all()):
                    (full if bool((ends == size).all()) else found).append(ends)
                    break
    return found or _told_lengths(torch, tensors, alike, size) or full[:1]


def _told_lengths(torch: Any, tensors: list[Tensor], alike: list[Tensor], size: int) -> list[Tensor]:
    for lengths in tensors:
        whole = not lengths.dtype.is_floating_point and lengths.dtype != torch.bool and not lengths.dtype.is_complex
        if lengths.dim() == 1 and whole and bool(lengths.min() > 0) and int(lengths.max()) <= size:
            behind = torch.arange(size) >= lengths[:, None]
            if any(t.dim() == 2 and _ends_with(t, behind) for t in alike):
                return [lengths]
    return []


def _ends_with(tensor: Tensor, behind: Tensor) -> bool:
    """Whether one value stands wherever ``behind`` is, and ends no sample's content."""
    fill = tensor[behind]
    if not len(fill) or not bool((fill == fill[0]).all()):
        return False
    last = behind.logical_not().sum(1) - 1
    return bool((tensor.gather(1, last[:, None]) != fill[0]).all())


def _same(tail: Tensor) -> bool:
    """One value in all, or the same in every sample (positions)."""
    return bool((tail == tail.flatten()[0]).all()) or bool((tail == tail[:1]).all())


def _images(torch: Any, tensors: list[Tensor], multiple: int) -> dict[int, Tensor]:
    """Images without the rows and columns at their ends that are zero in all, and masks of pixels as large."""
    for images in tensors:
        if images.dim() != 4 or images.shape[0] == 0:
            continue
        height, width = images.shape[2:]
        masks = _masks(tensors, height, width)
        told = _told(torch, tensors, masks, height, width)
        if told is None:
            continue
        tallest, widest = told.max(0).values.tolist()
        tall = _top(max(tallest, _end(images, 2, multiple)), multiple, height)
        wide = _top(max(widest, _end(images, 3, multiple)), multiple, width)
        if (tall, wide) != (height, width):
            alike = [t for t in tensors if t.dim() == 4 and t.shape[2:] == (height, width)]
            if all(max(_end(t, 2, multiple) - tall, _end(t, 3, multiple) - wide) <= 0 for t in alike):
                found = {id(t): t[:, :, :tall, :wide] for t in alike}
                return found | {id(mask): mask[:, :tall, :wide] for mask in masks}
    return {}


def _told(torch: Any, tensors: list[Tensor], masks: list[Tensor], height: int, width: int) -> Tensor | None:
    """(samples, 2): height and width of each one's content, of masks of zeros and ones, or of sizes in either order."""
    for mask in masks:
        ones = mask != 0
        for content in (ones, ~ones):
            if bool((mask == ones.to(mask.dtype)).all()) and bool(content[:, 0, 0].all()):
                lines = (content.any(2), height), (content.any(1), width)
                found: Tensor = torch.stack([(some * torch.arange(1, n + 1)).amax(1) for some, n in lines], 1)
                return found
    for sizes in tensors:
        if sizes.dim() == 2 and sizes.shape[1] == 2 and not sizes.dtype.is_complex and bool(sizes.min() > 0):
            if sizes.dtype.is_floating_point and bool((sizes != sizes.round()).any()):
                continue
            for order in (sizes, sizes.flip(1)):
                if bool((order <= torch.tensor([height, width])).all()):
                    return order.long()
    return None


def _end(images: Tensor, dim: int, step: int) -> int:
    """Where the last line that is not zero ends, looked for from behind, ``step`` lines at a time."""
    end = images.shape[dim]
    while end > 0:
        begin = max(0, end - step)
        lines = images.narrow(dim, begin, end - begin)
        if bool((lines != 0).any()):
            return end
        end = begin
    return 0
