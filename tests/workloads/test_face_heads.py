"""Heads, margins and moved centres against a direct transcription of the papers' formulas into numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from hotlap_workloads.face_distill.workload import FaceObjective
from hotlap_workloads.parts.face_heads import FaceHead, Kind, MovedCentres, adaptive_weight

ROWS, DIM, CLASSES = 12, 8, 5
MARGINS: dict[Kind, float] = {"arcface": 0.45, "cosface": 0.35, "adaface": 0.4}


def drawn(seed: int, rows: int = ROWS) -> torch.Tensor:
    return torch.randn(rows, DIM, generator=torch.Generator().manual_seed(seed))


def cos(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def cross_entropy(logits: np.ndarray, label: int) -> float:
    return float(np.log(np.exp(logits - logits.max()).sum()) + logits.max() - logits[label])


def margined(kind: Kind, theta: float, quality: float) -> float:
    """ArcFace (Deng et al. 2019), CosFace (Wang et al. 2018), AdaFace (Kim et al. 2022, equation 11)."""
    m = MARGINS[kind]
    if kind == "arcface":
        return math.cos(theta + m) if theta + m < math.pi else math.cos(theta) - m * math.sin(m)
    if kind == "cosface":
        return math.cos(theta) - m
    return math.cos(min(max(theta - m * quality, 1e-3), math.pi - 1e-3)) - (m * quality + m)


def qualities(x: np.ndarray, mean: float, deviation: float) -> np.ndarray:
    return np.clip((np.linalg.norm(x, axis=1) - mean) / (deviation + 1e-3) * 0.333, -1, 1)


def loss_by_hand(kind: Kind, x: np.ndarray, centres: np.ndarray, labels: list[int], quality: np.ndarray) -> float:
    total = 0.0
    for row, label, q in zip(x, labels, quality, strict=True):
        logits = np.array([64 * cos(row, centre) for centre in centres])
        logits[label] = 64 * margined(kind, math.acos(cos(row, centres[label])), q)
        total += cross_entropy(logits, label)
    return total / len(x)


@pytest.mark.parametrize("kind", MARGINS)
def test_plain_heads(kind: Kind) -> None:
    torch.manual_seed(0)
    head = FaceHead(kind, DIM, CLASSES, 64.0, MARGINS[kind])
    x, labels = 10 * drawn(1), torch.arange(ROWS) % CLASSES
    x[:4] = 0.1 * x[:4] - 100 * head.centres.detach()[labels[:4]]  # angles beyond pi - m
    x = x.requires_grad_()
    loss = torch.nn.functional.cross_entropy(head(x, labels), labels)
    a = x.detach().numpy().astype(np.float64)
    norms = np.clip(np.linalg.norm(a, axis=1), 0.001, 100)
    mean, deviation = 20 + 0.01 * (norms.mean() - 20), 100 + 0.01 * (norms.std(ddof=1) - 100)
    centres = head.centres.detach().numpy().astype(np.float64)
    wanted = loss_by_hand(kind, a, centres, labels.tolist(), qualities(a, mean, deviation))
    assert loss.item() == pytest.approx(wanted, rel=1e-4)
    loss.backward()
    assert x.grad is not None and torch.isfinite(x.grad).all() and head.centres.grad is not None


@pytest.mark.parametrize("kind", MARGINS)
def test_adaptive_heads_move_their_centres_and_then_judge(kind: Kind) -> None:
    """AdaDistill: the weight of a centre's old place, the move, the margin over the moved centres."""
    torch.manual_seed(0)
    head = MovedCentres(kind, DIM, CLASSES, 64.0, MARGINS[kind])
    labels = torch.tensor([3, 0, 4])
    student, teacher = drawn(1, 3), drawn(2, 3)
    teacher[:2] = student[:2] + 0.3 * teacher[:2]
    head.centres.data[3] = teacher[0] + 0.5 * drawn(6, 1)
    before = head.centres.detach().numpy().astype(np.float64).copy()
    said = head.move(student, teacher, labels)
    s, t = (v.numpy().astype(np.float64) for v in (student, teacher))
    after = before.copy()
    for row, label in enumerate(labels.tolist()):
        weight = min(max(cos(s[row], t[row]) * cos(before[label], t[row]), 1e-6), 1.0)
        assert said[row].item() == pytest.approx(weight, rel=1e-4, abs=1e-6)
        after[label] = weight * before[label] + (1 - weight) * t[row] / np.linalg.norm(t[row])
    np.testing.assert_allclose(head.centres.detach().numpy(), after, atol=1e-6)
    assert said.max() > 0.1 > said.min()
    head.eval()
    loss = torch.nn.functional.cross_entropy(head(student, labels), labels).item()
    wanted = loss_by_hand(kind, s, after, labels.tolist(), qualities(s, 20.0, 100.0))
    assert loss == pytest.approx(wanted, rel=1e-4)


def test_the_weight_stays_between_its_ends() -> None:
    x = drawn(0)
    torch.testing.assert_close(adaptive_weight(x, x, x), torch.ones(ROWS))
    torch.testing.assert_close(adaptive_weight(x, x, -x), torch.full((ROWS,), 1e-6))


def test_a_class_that_comes_twice_moves_to_the_mean_of_what_is_asked() -> None:
    torch.manual_seed(0)
    alone = [MovedCentres("arcface", DIM, CLASSES, 64.0, 0.45) for _ in range(3)]
    for head in alone[1:]:
        head.load_state_dict(alone[0].state_dict())
    student, teacher = drawn(1, 2), drawn(2, 2)
    alone[0].move(student, teacher, torch.tensor([1, 1]))
    alone[1].move(student[:1], teacher[:1], torch.tensor([1]))
    alone[2].move(student[1:], teacher[1:], torch.tensor([1]))
    torch.testing.assert_close(alone[0].centres[1], (alone[1].centres[1] + alone[2].centres[1]) / 2)


def test_a_student_that_broke_down_spares_the_centres() -> None:
    head = MovedCentres("arcface", DIM, CLASSES, 64.0, 0.45)
    before = head.centres.detach().clone()
    head.move(torch.full((1, DIM), torch.nan), drawn(2, 1), torch.tensor([1]))
    torch.testing.assert_close(head.centres.detach(), before)


def test_the_concentration_of_the_qualities_may_be_another() -> None:
    """AdaFace's h: with none of it no photo counts for more than another."""
    cosines = []
    for concentration in (0.333, 0.5, 0.0):
        torch.manual_seed(0)
        head = FaceHead("adaface", DIM, CLASSES, 64.0, 0.4, concentration).eval()
        x, labels = 10 * drawn(1), torch.arange(ROWS) % CLASSES
        cosines.append(head(x, labels) / 64)
        a, centres = x.numpy().astype(np.float64), head.centres.detach().numpy().astype(np.float64)
        quality = np.clip((np.linalg.norm(a, axis=1) - 20) / (100 + 1e-3) * concentration, -1, 1)
        wanted = [margined("adaface", math.acos(cos(a[row], centres[label])), quality[row])
                  for row, label in enumerate(labels.tolist())]  # fmt: skip
        np.testing.assert_allclose(cosines[-1][range(ROWS), labels].detach(), wanted, atol=1e-4)
    assert not torch.allclose(cosines[0], cosines[1])


def test_centres_are_saved_and_not_trained() -> None:
    head = MovedCentres("adaface", DIM, CLASSES, 64.0, 0.4)
    assert "centres" in head.state_dict() and not [p for p in head.parameters() if p.requires_grad]


@pytest.mark.parametrize("kind", MARGINS)
@pytest.mark.parametrize("moved", [False, True])
def test_every_head_teaches(kind: Kind, moved: bool) -> None:
    """A linear student learns five classes whose embeddings a teacher knows: the loss falls, the answers are right."""
    torch.manual_seed(0)
    net, teachers = torch.nn.Linear(DIM, DIM), torch.nn.functional.normalize(drawn(3, CLASSES))
    head = (MovedCentres if moved else FaceHead)(kind, DIM, CLASSES, 16.0, 0.2)
    objective = FaceObjective(net, head, None)
    labels = torch.arange(ROWS) % CLASSES
    batch = {"image": teachers[labels] @ torch.randn(DIM, DIM) + 0.05 * drawn(4), "label": labels}
    batch["teacher"] = (teachers[labels] + 0.05 * drawn(5)).half()
    optimizer = torch.optim.Adam([p for p in objective.parameters() if p.requires_grad], 0.05)
    seen = []
    for _ in range(80):
        said = objective(batch)
        optimizer.zero_grad()
        said["loss"].backward()
        optimizer.step()
        seen.append(said["loss"].item())
    assert seen[-1] < 0.6 * seen[0] and said["accuracy"] == 1
    assert ("centre_weight" in said) is moved
    if moved:
        assert torch.nn.functional.cosine_similarity(head.centres, teachers).min() > 0.95
