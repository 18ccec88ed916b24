"""Losses against a direct transcription of their formulas; metrics against scikit-learn and against counting."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from hotlap_workloads.parts.verification import eer, tar_at_far
from hotlap_workloads.parts.verification_accuracy import best_accuracy, roc_auc
from hotlap_workloads.twin_verify.losses import Branches, BranchLoss, triplet_loss
from hotlap_workloads.twin_verify.scoring import measured
from hotlap_workloads.twin_verify.settings import TwinSettings
from hotlap_workloads.twin_verify.trials import Trials


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def transcribed(
    logits: list[float], same: list[float], features: np.ndarray, person: list[int], number: list[int]
) -> dict[str, float]:
    """BCE, focal (alpha 0.25, gamma 2) and batch-hard triplet (margin 0.3) as their papers write them."""
    bce = focal = 0.0
    for x, y in zip(logits, same, strict=True):
        p = sigmoid(x)
        bce -= y * math.log(p) + (1 - y) * math.log(1 - p)
        p_t, a_t = (p, 0.25) if y else (1 - p, 0.75)
        focal -= a_t * (1 - p_t) ** 2 * math.log(p_t)
    terms = []
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    for i in range(len(unit)):
        far = [
            float(np.linalg.norm(unit[i] - unit[j]))
            for j in range(len(unit))
            if person[j] == person[i] and number[j] != number[i]
        ]
        near = [float(np.linalg.norm(unit[i] - unit[j])) for j in range(len(unit)) if person[j] != person[i]]
        if far and near:
            terms.append(max(0.0, max(far) - min(near) + 0.3))
    return {"bce": bce / len(logits), "focal": focal / len(logits), "triplet": sum(terms) / max(1, len(terms))}


def drawn(seed: int) -> tuple[torch.Tensor, torch.Tensor, dict[str, torch.Tensor]]:
    """Six pairs: three anchors, each with its own person and with another."""
    random = torch.Generator().manual_seed(seed)
    number = torch.tensor([[0, 1], [0, 2], [3, 4], [3, 5], [6, 7], [6, 4]])
    person = torch.tensor([0, 0, 1, 2, 2, 0, 3, 3])[number]
    features = torch.randn(2, 6, 8, generator=random) + 0.5 * torch.randn(1, 6, 8, generator=random)
    logits = 2 * torch.randn(6, generator=random)
    return logits, features, {"same": (person[:, 0] == person[:, 1]).float(), "person": person, "number": number}


@pytest.mark.parametrize("seed", range(4))
def test_a_branch_by_the_formulas(seed: int) -> None:
    logits, features, batch = drawn(seed)
    said = BranchLoss(TwinSettings())(logits, (features[0], features[1]), batch)
    rows = features.reshape(12, 8).double().numpy()
    wanted = transcribed(
        logits.tolist(),
        batch["same"].tolist(),
        rows,
        batch["person"].T.flatten().tolist(),
        batch["number"].T.flatten().tolist(),
    )
    for name, value in wanted.items():
        assert said[name].item() == pytest.approx(value, rel=1e-5), name
    total = 0.4 * wanted["bce"] + 0.4 * wanted["triplet"] + 0.2 * wanted["focal"]
    assert said["loss"].item() == pytest.approx(total, rel=1e-5)
    assert wanted["triplet"] > 0.1


def test_without_the_triplet_loss_nothing_is_mined() -> None:
    logits, features, batch = drawn(0)
    said = BranchLoss(replace(TwinSettings(), triplet=0.0))(logits, (features[0], features[1]), batch)
    assert "triplet" not in said and said["loss"].item() == pytest.approx(
        0.4 * said["bce"].item() + 0.2 * said["focal"].item()
    )


def test_branches_are_weighed() -> None:
    losses = [torch.tensor(value) for value in (0.7, 0.4, 1.1)]
    assert Branches(TwinSettings())(losses).item() == pytest.approx(0.7 + 0.4 + 0.3 * 1.1)
    learned = Branches(replace(TwinSettings(), weighting="uncertainty"))
    with torch.no_grad():
        learned.log_weights.copy_(torch.tensor([0.5, -0.2, 1.0]))
    wanted = 0.5 * sum(math.exp(-w) * value + w for w, value in zip((0.5, -0.2, 1.0), (0.7, 0.4, 1.1), strict=True))
    assert learned(losses).item() == pytest.approx(wanted)
    learned(losses).backward()
    slopes = [0.5 * (1 - math.exp(-w) * value) for w, value in zip((0.5, -0.2, 1.0), (0.7, 0.4, 1.1), strict=True)]
    np.testing.assert_allclose(learned.log_weights.grad.numpy(), slopes, rtol=1e-5)


def test_triplets_that_do_not_exist_are_no_number_nowhere() -> None:
    x = torch.randn(4, 8, requires_grad=True)
    nobody_else = triplet_loss(x, torch.zeros(4), torch.arange(4), 0.3)
    nobody_alike = triplet_loss(x, torch.arange(4), torch.arange(4), 0.3)
    one_image_twice = triplet_loss(
        torch.stack([x[0], x[0], x[1], x[2]]), torch.tensor([0, 0, 0, 1]), torch.tensor([0, 0, 1, 2]), 3.0
    )
    (nobody_else + nobody_alike + one_image_twice).backward()
    assert nobody_else.item() == nobody_alike.item() == 0.0 and one_image_twice.item() > 0
    assert torch.isfinite(x.grad).all()


def scored(seed: int, ties: bool) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    labels = random.integers(0, 2, 500)
    scores = labels * random.uniform(0.2, 2) + random.standard_normal(500)
    return (scores.round(1) if ties else scores), labels


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_metrics_against_scikit_learn(seed: int, ties: bool) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    scores, labels = scored(seed, ties)
    far, tar, _ = metrics.roc_curve(labels, scores, drop_intermediate=False)
    assert roc_auc(scores, labels) == pytest.approx(metrics.roc_auc_score(labels, scores), abs=1e-12)
    thresholds = [np.inf, *np.unique(scores)]
    best = max(metrics.accuracy_score(labels, scores >= threshold) for threshold in thresholds)
    accuracy, threshold = best_accuracy(scores, labels)
    assert accuracy == pytest.approx(best, abs=1e-12)
    assert metrics.accuracy_score(labels, scores >= threshold) == pytest.approx(best, abs=1e-12)
    for wanted in (1e-2, 1e-3):
        assert tar_at_far(scores, labels, wanted) == pytest.approx(tar[far <= wanted].max(), abs=1e-12)
    crossing = np.interp(0, (far + tar - 1), far)
    assert eer(scores, labels) == pytest.approx(crossing, abs=1e-9)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_area_and_accuracy_by_counting(seed: int, ties: bool) -> None:
    scores, labels = scored(seed, ties)
    same, other = scores[labels == 1][:, None], scores[labels == 0][None]
    assert roc_auc(scores, labels) == pytest.approx(((same > other) + 0.5 * (same == other)).mean())
    right = [((scores >= t) == (labels == 1)).mean() for t in [np.inf, *np.unique(scores)]]
    accuracy, threshold = best_accuracy(scores, labels)
    assert accuracy == pytest.approx(max(right))
    assert ((scores >= threshold) == (labels == 1)).mean() == pytest.approx(accuracy)


def test_accuracy_on_twins_weighs_both_kinds_alike() -> None:
    #                   twins told apart: 1 of 2   recognised: 3 of 3   strangers and others
    scores = np.array([0.1, 0.9, 0.8, 0.7, 0.6, 0.0, 0.05, 0.5])
    trials = Trials([0] * 8, [1] * 8, same=[0, 0, 1, 1, 1, 0, 0, 1], twin=[1, 1, 1, 1, 1, 0, 0, 0])
    found = measured(scores, trials)
    assert found["accuracy"] == pytest.approx(7 / 8) and found["twin_accuracy"] == pytest.approx((1 / 2 + 1) / 2)
    assert "twin_accuracy" not in measured(scores, replace(trials, twin=[0] * 8))
