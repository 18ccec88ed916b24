"""How faces are judged: accuracy over ten folds, templates of several photos, and search in a gallery."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hotlap_workloads.errors import WorkloadError

__all__ = ["FOLDS", "fold_accuracies", "rank_rates", "template_embeddings", "unit"]

Floats = NDArray[np.float64]
FOLDS = 10


def unit(rows: ArrayLike) -> Floats:
    """Rows with length 1."""
    x = np.asarray(rows, np.float64)
    out: Floats = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    return out


def fold_accuracies(left: ArrayLike, right: ArrayLike, same: ArrayLike, folds: int = FOLDS) -> Floats:
    """Accuracy on each of ``folds`` runs of trials, at the threshold that is best on all the others.

    Squared distances of unit vectors against thresholds 0.00, 0.01 ... 3.99, below is the same person: the protocol of
    LFW (Huang et al. 2007) as InsightFace has it. The first of equally good thresholds counts. Each fold has a trial.
    """
    distance = np.square(unit(left) - unit(right)).sum(axis=1)
    y = np.asarray(same).astype(bool)
    if not np.isfinite(distance).all():
        raise WorkloadError(f"{int((~np.isfinite(distance)).sum())} of {len(y)} distances are no numbers.")
    right_at = (distance[:, None] < np.arange(0, 4, 0.01)) == y[:, None]
    parts = np.array_split(np.arange(len(y)), folds)
    total = right_at.sum(axis=0)
    out = []
    for part in parts:
        here = right_at[part].sum(axis=0)
        best = int(np.argmax((total - here) / (len(y) - len(part))))
        out.append(here[best] / len(part))
    return np.array(out)


def template_embeddings(embeddings: ArrayLike, templates: ArrayLike, media: ArrayLike) -> tuple[Floats, dict[int, int]]:
    """One unit vector per template, and its row by template number.

    The frames of a video (equal media number) count as one photo: first their mean, then the sum over media, as the
    IJB protocol has it (Whitelam et al. 2017).
    """
    x, t, m = np.asarray(embeddings, np.float64), np.asarray(templates), np.asarray(media)
    pairs, number = np.unique(np.column_stack([t, m]), axis=0, return_inverse=True)
    number = number.reshape(-1)
    sums = np.zeros((len(pairs), x.shape[1]))
    np.add.at(sums, number, x)
    means = sums / np.bincount(number)[:, None]
    names, owner = np.unique(pairs[:, 0], return_inverse=True)
    pooled = np.zeros((len(names), x.shape[1]))
    np.add.at(pooled, owner.reshape(-1), means)
    return unit(pooled), {int(name): row for row, name in enumerate(names)}


def rank_rates(
    probes: ArrayLike, probe_ids: ArrayLike, gallery: ArrayLike, gallery_ids: ArrayLike, ranks: Sequence[int]
) -> list[float]:
    """Share of probes with their own person among the ``rank`` most alike photos of the gallery, for each rank.

    Photos as alike as the best right one count as before it. Who is not in the gallery is never found.
    """
    p, g = unit(probes), unit(gallery)
    ids, of = np.asarray(probe_ids), np.asarray(gallery_ids)
    place = np.empty(len(p), np.int64)
    for begin in range(0, len(p), 256):  # so many rows of the table at once
        scores = p[begin : begin + 256] @ g.T
        own = ids[begin : begin + 256, None] == of
        best = np.where(own, scores, -np.inf).max(axis=1, keepdims=True)
        place[begin : begin + 256] = ((scores >= best) & ~own).sum(axis=1)
    return [float((place < rank).mean()) for rank in ranks]
