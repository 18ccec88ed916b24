"""EER, minDCF and TAR against torchmetrics' ROC curve and against counting by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.interpolate import interp1d
from scipy.optimize import brentq

from hotlap_workloads.errors import WorkloadError
from hotlap_workloads.parts.verification import eer, min_dcf, tar_at_far


def drawn(seed: int, ties: bool) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    labels = random.integers(0, 2, 400)
    scores = labels * random.uniform(0.2, 2) + random.standard_normal(400)
    return (scores.round(1) if ties else scores), labels


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_against_an_established_roc(seed: int, ties: bool) -> None:
    roc = pytest.importorskip("torchmetrics.functional.classification").binary_roc
    scores, labels = drawn(seed, ties)
    # between 0 and 1, since torchmetrics sends anything else through a sigmoid
    unit = (scores - scores.min()) / (scores.max() - scores.min())
    far, tar, _ = (x.double().numpy() for x in roc(torch.tensor(unit), torch.tensor(labels)))
    reference = brentq(lambda x: 1 - x - interp1d(far, tar)(x), 0, 1)
    assert eer(scores, labels) == pytest.approx(reference, abs=1e-6)
    cost = (0.05 * (1 - tar) + 0.95 * far).min() / 0.05
    assert min_dcf(scores, labels) == pytest.approx(cost, abs=1e-6)
    for wanted in (0.01, 0.1):
        assert tar_at_far(scores, labels, wanted) == pytest.approx(tar[far <= wanted].max(), abs=1e-6)


def test_by_hand() -> None:
    labels = [1, 1, 1, 0, 0, 0]
    assert eer([3, 2, 1, 0, -1, -2], labels) == 0.0 and min_dcf([3, 2, 1, 0, -1, -2], labels) == 0.0
    assert eer([-3, -2, -1, 0, 1, 2], labels) == 1.0
    assert eer([0, 0, 0, 0, 0, 0], labels) == 0.5 and min_dcf([0, 0, 0, 0, 0, 0], labels) == 1.0
    assert eer([5, 4, 1, 2, 0, -1], labels) == pytest.approx(1 / 3)
    assert tar_at_far([5, 4, 1, 2, 0, -1], labels, 0.0) == pytest.approx(2 / 3)


def test_what_cannot_be_measured_is_said() -> None:
    with pytest.raises(WorkloadError, match="both kinds are needed"):
        eer([1.0, 2.0], [1, 1])
    with pytest.raises(WorkloadError, match="1 of 2 scores are no numbers"):
        eer([1.0, float("nan")], [1, 0])
