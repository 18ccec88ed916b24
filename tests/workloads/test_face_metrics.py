"""Ten-fold accuracy, templates and gallery search against independent, slow ways of computing them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hotlap_workloads.errors import WorkloadError
from hotlap_workloads.face_distill.evaluations import TemplateSet
from hotlap_workloads.parts.face_metrics import fold_accuracies, rank_rates, template_embeddings, unit


def pairs(seed: int, count: int, noise: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    same = random.integers(0, 2, count).astype(bool)
    left, right = random.standard_normal((2, count, 16))
    right[same] = left[same] + noise * right[same]
    return left, right, same


def protocol(left: np.ndarray, right: np.ndarray, same: np.ndarray, folds: int) -> list[float]:
    """The protocol step by step: for each run, try every threshold on the others, take the first best one."""
    count, out = len(same), []
    sizes = [count // folds + (i < count % folds) for i in range(folds)]
    begin = 0
    for size in sizes:
        test = set(range(begin, begin + size))
        begin += size
        distances = []
        for a, b in zip(left, right, strict=True):
            a, b = a / np.sqrt((a * a).sum()), b / np.sqrt((b * b).sum())
            distances.append(((a - b) ** 2).sum())
        best, best_threshold = -1.0, 0.0
        for threshold in np.arange(0, 4, 0.01):
            right_ones = sum((distances[i] < threshold) == same[i] for i in range(count) if i not in test)
            accuracy = right_ones / (count - size)
            if accuracy > best:
                best, best_threshold = accuracy, threshold
        out.append(sum((distances[i] < best_threshold) == same[i] for i in test) / size)
    return out


@pytest.mark.parametrize(("seed", "count", "noise"), [(0, 60, 1.0), (1, 57, 2.0), (2, 40, 0.3)])
def test_accuracy_over_folds(seed: int, count: int, noise: float) -> None:
    left, right, same = pairs(seed, count, noise)
    np.testing.assert_allclose(fold_accuracies(5 * left, right, same), protocol(left, right, same, 10))


def test_accuracy_at_its_ends() -> None:
    left, right, same = pairs(3, 200, 0.01)
    assert fold_accuracies(left, right, same).mean() == 1.0
    assert 0.3 < fold_accuracies(left, np.random.default_rng(0).standard_normal(left.shape), same).mean() < 0.7
    left[3] = np.nan
    with pytest.raises(WorkloadError, match="1 of 200 distances are no numbers"):
        fold_accuracies(left, right, same)


def test_templates_average_videos_and_then_add_media() -> None:
    random = np.random.default_rng(0)
    x = random.standard_normal((7, 4))
    templates, media = [9, 9, 9, 2, 2, 9, 2], [1, 1, 3, 3, 3, 1, 8]
    vectors, row = template_embeddings(x, templates, media)
    nine = (x[0] + x[1] + x[5]) / 3 + x[2]
    two = (x[3] + x[4]) / 2 + x[6]
    np.testing.assert_allclose(vectors[row[9]], nine / np.linalg.norm(nine))
    np.testing.assert_allclose(vectors[row[2]], two / np.linalg.norm(two))
    assert sorted(row) == [2, 9]


def test_tar_at_far_of_templates_against_an_established_roc() -> None:
    """Against torchmetrics' curve, over templates pooled by hand."""
    roc = pytest.importorskip("torchmetrics.functional.classification").binary_roc
    random = np.random.default_rng(0)
    persons = random.standard_normal((30, 16))
    templates = np.repeat(np.arange(60), 2)
    photos = persons[templates // 2] + 1.5 * random.standard_normal((120, 16))
    left, right = np.triu_indices(60, 1)
    same = (left // 2 == right // 2).astype(int)
    weights = random.uniform(0.5, 1, 120)
    fars = (0.1, 0.01)
    made = TemplateSet("ijbc", None, templates, np.arange(120), weights, left, right, same, fars)  # type: ignore[arg-type]
    measured = made.measure(lambda squares, name: (0.25 * photos, 0.75 * photos))  # type: ignore[arg-type, return-value]
    pooled = unit([(photos * weights[:, None])[templates == t].sum(0) for t in range(60)])
    scores = torch.tensor([(pooled[a] @ pooled[b] + 1) / 2 for a, b in zip(left, right, strict=True)])
    far, tar, _ = (curve.numpy() for curve in roc(scores, torch.tensor(same)))
    for wanted in fars:
        assert measured[f"ijbc_tar_at_far_{wanted:.0e}"] == pytest.approx(tar[far <= wanted].max(), abs=1e-6)
    assert 0.1 < measured["ijbc_tar_at_far_1e-02"] < measured["ijbc_tar_at_far_1e-01"] < 1


def test_search_in_a_gallery() -> None:
    random = np.random.default_rng(0)
    gallery, ids = random.standard_normal((400, 8)), np.append(np.arange(300) % 50, [-1] * 100)
    probe_ids = random.integers(0, 50, 300)
    probes = gallery[probe_ids] + 1.2 * random.standard_normal((300, 8))
    found = rank_rates(probes, probe_ids, gallery, ids, (1, 5, 400))
    hits = {1: 0, 5: 0, 400: 0}
    for probe, person in zip(probes, probe_ids, strict=True):
        cosines = [probe @ g / np.linalg.norm(probe) / np.linalg.norm(g) for g in gallery]
        order = sorted(range(400), key=lambda i: -cosines[i])
        for rank in hits:
            hits[rank] += any(ids[i] == person for i in order[:rank])
    assert found == [hits[1] / 300, hits[5] / 300, 1.0]
    assert 0.1 < found[0] < found[1] < 1
    assert rank_rates(probes[:1], [77], gallery, ids, (1, 400)) == [0.0, 0.0], "nobody there can be found"


def test_photos_as_alike_as_the_right_one_count_against_it() -> None:
    gallery = np.ones((3, 4))
    assert rank_rates(np.ones((1, 4)), [2], gallery, [0, 1, 2], (1, 2, 3)) == [0.0, 0.0, 1.0]
