"""Heads and losses against a direct transcription of the papers' formulas into numpy."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from hotlap_workloads.parts.margin_heads import AAMSoftmax, AMSoftmax
from hotlap_workloads.speaker_verify.losses import GE2E, AngularPrototypical, Triplet, make_loss
from hotlap_workloads.speaker_verify.model import SpeakerNet
from hotlap_workloads.speaker_verify.settings import SpeakerSettings

SPEAKERS, GROUP, DIM = 6, 3, 8


def embeddings(seed: int = 0, group: int = GROUP) -> torch.Tensor:
    return torch.randn(SPEAKERS * group, DIM, generator=torch.Generator().manual_seed(seed))


def cos(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def cross_entropy(logits: np.ndarray, label: int) -> float:
    return float(np.log(np.exp(logits - logits.max()).sum()) + logits.max() - logits[label])


@pytest.mark.parametrize("margin", [0.0, 0.2, 0.5])
@pytest.mark.parametrize("head", [AMSoftmax, AAMSoftmax])
def test_margin_heads(head: type[AMSoftmax] | type[AAMSoftmax], margin: float) -> None:
    torch.manual_seed(0)
    made = head(DIM, 5, 30.0, margin)
    x, labels = embeddings(), torch.arange(SPEAKERS * GROUP) % 5
    x[:6] = 0.1 * x[:6] - made.weight.detach()[labels[:6]]  # angles beyond pi - m
    weight = made.weight.detach().numpy().astype(np.float64)
    got = make_loss(replace(SpeakerSettings(), loss="softmax", embedding=DIM), 5)
    got.head = made
    total = 0.0
    for row, label in zip(x.numpy().astype(np.float64), labels.tolist(), strict=True):
        logits = np.array([30 * cos(row, w) for w in weight])
        theta = math.acos(cos(row, weight[label]))
        if head is AMSoftmax:
            logits[label] = 30 * (math.cos(theta) - margin)
        else:
            beyond = theta + margin >= math.pi
            logits[label] = 30 * (math.cos(theta) - margin * math.sin(margin) if beyond else math.cos(theta + margin))
        total += cross_entropy(logits, label)
    assert got(x, labels)["loss"].item() == pytest.approx(total / len(x), rel=1e-5)


def test_angular_margin_is_smooth_at_the_ends() -> None:
    head = AAMSoftmax(DIM, 2, 30.0, 0.3)
    x = torch.cat([head.weight.detach()[:1], -head.weight.detach()[:1]]).requires_grad_()
    head(x, torch.tensor([0, 0])).sum().backward()
    assert torch.isfinite(x.grad).all() and torch.isfinite(head.weight.grad).all()


def test_angular_prototypical() -> None:
    x = embeddings().numpy().reshape(SPEAKERS, GROUP, DIM).astype(np.float64)
    total = 0.0
    for i in range(SPEAKERS):
        logits = np.array([10 * cos(x[i, 0], x[j, 1:].mean(0)) - 5 for j in range(SPEAKERS)])
        total += cross_entropy(logits, i) / SPEAKERS
    assert AngularPrototypical(GROUP)(embeddings(), torch.empty(0))["loss"].item() == pytest.approx(total, rel=1e-5)


def test_ge2e() -> None:
    x = embeddings().numpy().reshape(SPEAKERS, GROUP, DIM).astype(np.float64)
    total = 0.0
    for j in range(SPEAKERS):
        for i in range(GROUP):
            others = [m for m in range(GROUP) if m != i]
            centres = [x[k, others].mean(0) if k == j else x[k].mean(0) for k in range(SPEAKERS)]
            logits = np.array([10 * cos(x[j, i], centre) - 5 for centre in centres])
            total += cross_entropy(logits, j) / (SPEAKERS * GROUP)
    assert GE2E(GROUP)(embeddings(), torch.empty(0))["loss"].item() == pytest.approx(total, rel=1e-5)


def test_triplet() -> None:
    x = embeddings(group=2).numpy().reshape(SPEAKERS, 2, DIM).astype(np.float64)
    x /= np.linalg.norm(x, axis=2, keepdims=True)
    total = 0.0
    for i in range(SPEAKERS):
        near = ((x[i, 0] - x[i, 1]) ** 2).sum()
        hardest = min(((x[i, 0] - x[j, 1]) ** 2).sum() for j in range(SPEAKERS) if j != i)
        total += max(0.0, near - hardest + 0.3) / SPEAKERS
    assert Triplet(2, 0.3)(embeddings(group=2), torch.empty(0))["loss"].item() == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize("loss", ["softmax", "amsoftmax", "aamsoftmax", "angleproto", "ge2e", "triplet"])
def test_every_loss_falls_when_trained_on_one_batch(loss: str) -> None:
    torch.manual_seed(0)
    s = replace(SpeakerSettings(), loss=loss, embedding=DIM, utterances=2)  # type: ignore[arg-type]
    made = make_loss(s, SPEAKERS)
    x = embeddings(group=2).requires_grad_()
    labels = torch.arange(SPEAKERS).repeat_interleave(2)
    optimizer = torch.optim.Adam([x, *made.parameters()], 0.05)
    seen = []
    for _ in range(60):
        said = made(x, labels)
        optimizer.zero_grad()
        said["loss"].backward()
        optimizer.step()
        seen.append(said["loss"].item())
    assert seen[-1] < 0.2 * seen[0] and said["accuracy"].item() == 1.0


@pytest.mark.parametrize(
    ("model", "pooling", "mels", "millions"),
    [("ResNetSE34L", "SAP", 40, 1.4), ("ResNetSE34V2", "ASP", 64, 8.0)],
)
def test_parameters_are_as_many_as_published(model: str, pooling: str, mels: int, millions: float) -> None:
    """Chung et al. 2020 (1.4 M) and Kwon et al. 2021 (8.0 M), with embeddings of 512."""
    s = replace(SpeakerSettings(), model=model, pooling=pooling, mels=mels)  # type: ignore[arg-type]
    assert sum(p.numel() for p in SpeakerNet(s).parameters()) / 1e6 == pytest.approx(millions, abs=0.06)


@pytest.mark.parametrize("model", ["ResNetSE34L", "ResNetSE34V2", "ResNetSE152"])
@pytest.mark.parametrize("pooling", ["SAP", "ASP"])
def test_every_model_embeds(model: str, pooling: str) -> None:
    s = replace(SpeakerSettings(), model=model, pooling=pooling, mels=40, width=0.25)  # type: ignore[arg-type]
    net = SpeakerNet(s).eval()
    out = net(torch.randn(2, 8000))
    assert out.shape == (2, 512) and torch.isfinite(out).all()
    out.sum().backward()
    assert all(p.grad is not None for p in net.parameters())
