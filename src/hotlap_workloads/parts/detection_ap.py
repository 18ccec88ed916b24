"""Average precision of detections as COCO defines it, with as many detections per image as wanted.

Detections are matched to objects in the order of their scores, each to the free object that it overlaps most; precision
is read at 101 recalls and averaged over classes, and over overlaps from 0.50 to 0.95 (Lin et al. 2014, and the code of
the COCO evaluation). Objects outside the range of areas, and crowds, neither count nor punish.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hotlap_workloads.parts.coco_json import Labelled

__all__ = ["Found", "average_precision"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
OVERLAPS = np.linspace(0.5, 0.95, 10)
RECALLS = np.linspace(0.0, 1.0, 101)
SMALL_PX2 = 32.0**2
"""Area of the largest small object."""
ALL_PX2 = 1e10


@dataclass(frozen=True)
class Found:
    """The detections of one image: ``boxes`` (n, 4) as left, top, width, height in pixels."""

    boxes: Floats
    labels: NDArray[np.int64]
    scores: Floats


@dataclass(frozen=True)
class Judged:
    """Detections of one class in one image, best first: right and ignored by overlap (10, n); objects that count."""

    scores: Floats
    right: Bools
    ignored: Bools
    objects: int


def average_precision(truths: Sequence[Labelled], found: Sequence[Found], most: int = 100) -> dict[str, float]:
    """``ap``, ``ap50`` and ``ap_small``, 0 to 1, with the ``most`` best detections of a class and image.

    A metric that no object counts for is left out.
    """
    classes = sorted({int(label) for truth in truths for label in truth.labels})
    tables: dict[str, list[Floats]] = {"all": [], "small": []}
    for label in classes:
        pairs = [(_only_truth(t, label), _best(f, label, most)) for t, f in zip(truths, found, strict=True)]
        overlaps = [_overlaps(best.boxes, truth) for truth, best in pairs]
        for name, limit in (("all", ALL_PX2), ("small", SMALL_PX2)):
            judged = [_judge(t, b, o, limit) for (t, b), o in zip(pairs, overlaps, strict=True)]
            if sum(j.objects for j in judged):
                tables[name].append(_precision(judged))
    out = {}
    if tables["all"]:
        out = {"ap": float(np.mean(tables["all"])), "ap50": float(np.mean([table[0] for table in tables["all"]]))}
    if tables["small"]:
        out["ap_small"] = float(np.mean(tables["small"]))
    return out


def _only_truth(truth: Labelled, label: int) -> Labelled:
    own = truth.labels == label
    return Labelled(truth.boxes[own], truth.labels[own], truth.areas[own], truth.crowd[own])


def _best(found: Found, label: int, most: int) -> Found:
    own = np.flatnonzero(found.labels == label)
    own = own[np.argsort(-found.scores[own], kind="stable")][:most]
    return Found(found.boxes[own], found.labels[own], found.scores[own])


def _overlaps(boxes: Floats, truth: Labelled) -> Floats:
    """(detections, objects): intersection over union; over the detection's own area where the object is a crowd."""
    a, b = boxes[:, None], truth.boxes[None]
    sides = np.minimum(a[..., :2] + a[..., 2:], b[..., :2] + b[..., 2:]) - np.maximum(a[..., :2], b[..., :2])
    inner = np.clip(sides, 0, None).prod(-1)
    own, other = a[..., 2:].prod(-1), b[..., 2:].prod(-1)
    whole = np.where(truth.crowd[None], own, own + other - inner)
    out: Floats = np.divide(inner, whole, out=np.zeros_like(inner), where=whole > 0)
    return out


def _judge(truth: Labelled, best: Found, overlaps: Floats, limit: float) -> Judged:
    """Match, at all overlaps side by side. An object that counts comes before any that does not."""
    skipped = truth.crowd | (truth.areas > limit)
    shape = (len(OVERLAPS), len(best.scores))
    right, ignored = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
    taken = np.zeros((len(OVERLAPS), len(truth.labels)), np.bool_)
    for number in np.flatnonzero(overlaps.max(axis=1, initial=0.0) >= OVERLAPS[0]):
        near = overlaps[number]
        reached = (near >= OVERLAPS[:, None]) & (~taken | truth.crowd)
        counted = reached & ~skipped
        counts = counted.any(axis=1)
        candidates = np.where(counts[:, None], counted, reached)
        hit = np.flatnonzero(candidates.any(axis=1))
        backwards = np.where(candidates, near, -1.0)[:, ::-1]
        chosen = candidates.shape[1] - 1 - backwards.argmax(axis=1)  # of equals the last one, as COCO has it
        right[hit, number] = True
        ignored[hit, number] = skipped[chosen[hit]]
        taken[hit, chosen[hit]] = True
    outside = best.boxes[:, 2:].prod(axis=1) > limit
    ignored |= ~right & outside
    return Judged(best.scores, right, ignored, int((~skipped).sum()))


def _precision(judged: Sequence[Judged]) -> Floats:
    """(overlaps, recalls) of one class over all images: at each recall the best precision from there on."""
    scores = np.concatenate([j.scores for j in judged])
    order = np.argsort(-scores, kind="stable")
    right = np.concatenate([j.right for j in judged], axis=1)[:, order]
    counts = ~np.concatenate([j.ignored for j in judged], axis=1)[:, order]
    hits, alarms = np.cumsum(right & counts, axis=1), np.cumsum(~right & counts, axis=1)
    recall = hits / sum(j.objects for j in judged)
    precision = hits / np.maximum(hits + alarms, 1)
    envelope = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
    out = np.zeros((len(OVERLAPS), len(RECALLS)))
    for line, (reached, best) in enumerate(zip(recall, envelope, strict=True)):
        at = np.searchsorted(reached, RECALLS, side="left")
        inside = at < len(best)
        out[line, inside] = best[at[inside]]
    return out
