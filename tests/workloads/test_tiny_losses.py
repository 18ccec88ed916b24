"""The set loss and its matching against the formulas written out in numpy, image by image."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment

from hotlap_workloads.tiny_detr.losses import SetLoss
from hotlap_workloads.tiny_detr.matching import NOBODY, match
from hotlap_workloads.tiny_detr.settings import TinySettings

CLASSES = 3
S = replace(TinySettings(), cost_class=1.5, cost_box=4.0, cost_giou=2.5, weight_box=3.0, weight_giou=1.5)


def drawn(counts: list[int], queries: int = 9, layers: int = 2) -> tuple[torch.Tensor, torch.Tensor, dict[str, Any]]:
    generator = torch.Generator().manual_seed(sum(counts))
    total = sum(counts)
    logits = torch.randn(layers, len(counts), queries, CLASSES + 1, generator=generator)
    boxes = torch.rand(layers, len(counts), queries, 4, generator=generator) * 0.4 + 0.1
    return (
        logits.requires_grad_(),
        boxes.requires_grad_(),
        {
            "boxes": torch.rand(total, 4, generator=generator) * 0.4 + 0.1,
            "labels": torch.randint(0, CLASSES, (total,), generator=generator),
            "owner": torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts)),
            "counts": counts,
        },
    )


def plain_giou(a: np.ndarray, b: np.ndarray) -> float:
    (al, at), (ar, ab) = a[:2] - a[2:] / 2, a[:2] + a[2:] / 2
    (bl, bt), (br, bb) = b[:2] - b[2:] / 2, b[:2] + b[2:] / 2
    inner = max(0.0, min(ar, br) - max(al, bl)) * max(0.0, min(ab, bb) - max(at, bt))
    union = a[2] * a[3] + b[2] * b[3] - inner
    hull = (max(ar, br) - min(al, bl)) * (max(ab, bb) - min(at, bt))
    return inner / union - (hull - union) / hull


def by_hand(logits: np.ndarray, boxes: np.ndarray, batch: dict[str, Any]) -> tuple[float, list[list[int]]]:
    """The loss, and the query of each object in each layer."""
    total, matched = 0.0, []
    labels, wanted = batch["labels"].numpy(), batch["boxes"].numpy().astype(float)
    for of_layer, boxes_of_layer in zip(logits, boxes, strict=True):
        nll, weights, distance, lack, queries_of, begin = 0.0, 0.0, 0.0, 0.0, [], 0
        for image, count in enumerate(batch["counts"]):
            p = np.exp(of_layer[image]) / np.exp(of_layer[image]).sum(1, keepdims=True)
            offered = boxes_of_layer[image]
            own = range(begin, begin + count)
            cost = np.array(
                [
                    [
                        -S.cost_class * p[q, labels[t]]
                        + S.cost_box * np.abs(offered[q] - wanted[t]).sum()
                        - S.cost_giou * plain_giou(offered[q], wanted[t])
                        for q in range(len(p))
                    ]
                    for t in own
                ]
            ).reshape(count, len(p))
            chosen = dict(zip(*linear_sum_assignment(cost), strict=True))
            classes = np.full(len(p), CLASSES)
            for t in range(count):
                queries_of.append(int(chosen.get(t, NOBODY)))
                if t in chosen:
                    classes[chosen[t]] = labels[begin + t]
                    distance += np.abs(offered[chosen[t]] - wanted[begin + t]).sum()
                    lack += 1 - plain_giou(offered[chosen[t]], wanted[begin + t])
            for q, label in enumerate(classes):
                weight = S.no_object_weight if label == CLASSES else 1.0
                nll -= weight * np.log(p[q, label])
                weights += weight
            begin += count
        count = max(1, len(labels))
        total += nll / weights + (S.weight_box * distance + S.weight_giou * lack) / count
        matched.append(queries_of)
    return total, matched


@pytest.mark.parametrize("counts", [[3, 5, 1], [0, 4], [0, 0], [12, 2]], ids=["plain", "empty", "none", "crowded"])
@pytest.mark.parametrize("matching", ["at_once", "one_by_one"])
def test_loss_and_matching_by_the_formulas(counts: list[int], matching: str) -> None:
    logits, boxes, batch = drawn(counts)
    s = replace(S, matching=matching)  # type: ignore[arg-type]
    said = SetLoss(s, CLASSES)(logits, boxes, batch)
    wanted, matched = by_hand(logits.detach().double().numpy(), boxes.detach().double().numpy(), batch)
    assert float(said["loss"].detach()) == pytest.approx(wanted, rel=1e-5)
    assert match(logits, boxes, batch, s).tolist() == matched
    said["loss"].backward()
    assert torch.isfinite(logits.grad).all()
    assert (boxes.grad is not None and bool((boxes.grad != 0).any())) == (sum(counts) > 0)


def test_the_last_layer_is_reported() -> None:
    logits, boxes, batch = drawn([3, 2])
    said = SetLoss(S, CLASSES)(logits, boxes, batch)
    alone = SetLoss(S, CLASSES)(logits[1:], boxes[1:], batch)
    total = alone["loss_class"] + S.weight_box * alone["loss_box"] + S.weight_giou * alone["loss_giou"]
    torch.testing.assert_close(alone["loss"], total)
    assert all(torch.equal(said[name], alone[name]) for name in ("loss_class", "loss_box", "loss_giou"))


def test_a_loss_that_is_no_number_reaches_the_engine() -> None:
    logits, boxes, batch = drawn([3, 2])
    broken = logits.detach().clone()
    broken[1, 0, 4] = float("nan")
    assert torch.isnan(SetLoss(S, CLASSES)(broken, boxes, batch)["loss"])
