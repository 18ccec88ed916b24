"""IResNets and MobileFaceNet: as many parameters as published, folding changes nothing, published weights load."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hotlap_workloads.engine.task import Context
from hotlap_workloads.errors import DataError, SettingsError
from hotlap_workloads.face_distill.settings import FaceSettings
from hotlap_workloads.face_distill.teacher import Teacher, make_teacher
from hotlap_workloads.parts.iresnet import IResNet, folded
from hotlap_workloads.parts.mobile_face_net import MobileFaceNet

TINY = replace(FaceSettings(), teacher="iresnet18", teacher_width=0.125, embedding=16, size=32)
NO_PHOTOS: Any = None


def millions(net: nn.Module) -> float:
    return sum(p.numel() for p in net.parameters()) / 1e6


@pytest.mark.parametrize(("name", "published"), [("iresnet18", 24.02), ("iresnet50", 43.59), ("iresnet100", 65.15)])
def test_iresnets_are_as_large_as_published(name: str, published: float) -> None:
    """Boutros et al. 2022 (ElasticFace) and the tables of AdaDistill; images of 112, embeddings of 512."""
    with torch.device("meta"):
        assert millions(IResNet(name)) == pytest.approx(published, abs=0.02)


def test_mobilefacenet_is_as_large_as_published() -> None:
    """AdaDistill: 1.19 million, with embeddings of 512; with 128 the 0.99 million of Chen et al. 2018."""
    with torch.device("meta"):
        assert millions(MobileFaceNet()) == pytest.approx(1.19, abs=0.02)
        assert millions(MobileFaceNet(128)) == pytest.approx(0.99, abs=0.02)


@pytest.mark.parametrize("size", [32, 50])
def test_every_network_embeds_and_learns(size: int) -> None:
    for net in (MobileFaceNet(16, size, 0.25), IResNet("iresnet18", 16, size, 0.125)):
        out = net(torch.randn(4, 3, size, size))
        assert out.shape == (4, 16) and torch.isfinite(out).all()
        (out * torch.randn(4, 16)).sum().backward()
        assert all(p.grad is not None for p in net.parameters() if p.requires_grad)


def lived_in(name: str = "iresnet18") -> IResNet:
    """A network whose norms have seen something."""
    torch.manual_seed(0)
    net = IResNet(name, 16, 32, 0.125)
    for module in net.modules():
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias)
    return net.eval()


def test_folding_the_norms_changes_nothing_but_their_number() -> None:
    net, images = lived_in(), torch.randn(4, 3, 32, 32)
    with torch.no_grad():
        a, b = net(images), folded(net)(images)
    torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4 * a.abs().max().item())

    def norms(net: nn.Module) -> int:
        return sum(isinstance(m, nn.BatchNorm1d | nn.BatchNorm2d) for m in net.modules())

    assert (norms(net), norms(folded(net))) == (1 + 3 * 8 + 4 + 2, 8 + 1)


@pytest.mark.parametrize("precision", ["off", "bf16"])
def test_the_fast_teacher_says_what_the_plain_one_says(precision: Any) -> None:
    net, images, cpu = lived_in(), torch.randn(4, 3, 32, 32), torch.device("cpu")
    s = replace(TINY, precision=precision)
    plain = Teacher(net, s, cpu)(images)
    fast = Teacher(net, replace(s, teacher_mode="folded"), cpu)(images)
    assert (plain * fast).sum(1).min() > (1 - 1e-6 if precision == "off" else 0.995)
    assert not fast.is_inference() and not fast.requires_grad
    student = torch.randn(4, 16, requires_grad=True)
    (student * fast).sum().backward()  # its outputs may meet tensors with gradients


def test_weights_load_from_a_published_backbone_and_from_a_checkpoint(tmp_path: Path) -> None:
    net, images = lived_in(), torch.randn(2, 3, 32, 32)
    torch.save(net.state_dict(), tmp_path / "backbone.pth")
    torch.save({f"module.{k}": v for k, v in net.state_dict().items()}, tmp_path / "ranks.pth")
    inside = {f"net.{k}": v for k, v in net.state_dict().items()} | {"head.centres": torch.zeros(3, 16)}
    torch.save({"objective": inside, "batch_size": 4}, tmp_path / "checkpoint.pt")
    context = Context(torch.device("cpu"), tmp_path)
    wanted = Teacher(net, TINY, context.device)(images)
    for name in ("backbone.pth", "ranks.pth", "checkpoint.pt"):
        s = replace(TINY, teacher_weights=str(tmp_path / name))
        torch.testing.assert_close(make_teacher(s, NO_PHOTOS, context)(images), wanted)


def test_wrong_weights_are_named(tmp_path: Path) -> None:
    context = Context(torch.device("cpu"), tmp_path)
    with pytest.raises(SettingsError, match=r"needs a trained teacher.*--preset teacher"):
        make_teacher(TINY, NO_PHOTOS, context)
    with pytest.raises(DataError, match=r"none\.pth: cannot be read"):
        make_teacher(replace(TINY, teacher_weights=str(tmp_path / "none.pth")), NO_PHOTOS, context)
    cut = tmp_path / "cut.pth"
    torch.save(lived_in().state_dict(), cut)
    other = replace(TINY, teacher_weights=str(cut))
    with pytest.raises(DataError, match=r"is of another network: 1 tensors differ, the first is 'fc.weight'"):
        make_teacher(replace(other, size=64), NO_PHOTOS, context)
    cut.write_bytes(cut.read_bytes()[:2000])
    with pytest.raises(DataError, match=r"cut\.pth: holds no weights"):
        make_teacher(other, NO_PHOTOS, context)


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ([1, 2], "holds a list, not the weights"),
        ({"epoch": 3}, "holds a dict, not the weights"),
        ({"objective": {"net.fc.weight": 3}}, "holds a dict, not the weights"),
        ({0: torch.zeros(2)}, "holds a dict, not the weights"),
        (torch.zeros(2), "holds a Tensor, not the weights"),
    ],
)
def test_a_file_of_something_else_than_weights_is_named(tmp_path: Path, held: object, said: str) -> None:
    torch.save(held, tmp_path / "list.pth")
    with pytest.raises(DataError, match=rf"list\.pth: {said} of a network by name"):
        make_teacher(
            replace(TINY, teacher_weights=str(tmp_path / "list.pth")),
            NO_PHOTOS,
            Context(torch.device("cpu"), tmp_path),
        )


def test_names_are_those_of_insightface() -> None:
    """A sample of the keys of its backbone.pth."""
    with torch.device("meta"):
        keys = set(IResNet("iresnet50").state_dict())
    for key in ("conv1.weight", "bn1.running_var", "prelu.weight", "layer1.0.bn1.weight", "layer1.0.conv1.weight",
                "layer3.13.prelu.weight", "layer4.0.downsample.0.weight", "layer4.0.downsample.1.bias", "bn2.bias",
                "layer2.3.bn3.num_batches_tracked", "fc.weight", "fc.bias", "features.running_mean"):  # fmt: skip
        assert key in keys, key
