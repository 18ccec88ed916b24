"""DCAL's three attentions and rollout against a plain transcription into numpy; both ways of computing them agree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.special import erf

from hotlap_workloads.engine.optimise import make_optimizer
from hotlap_workloads.twin_verify.blocks import Block
from hotlap_workloads.twin_verify.model import DCAL
from hotlap_workloads.twin_verify.objective import TwinObjective
from hotlap_workloads.twin_verify.rollout import rollout_by_matrices, rollout_by_row, top_patches
from hotlap_workloads.twin_verify.settings import TwinSettings

Array = NDArray[np.float64]
TINY = TwinSettings(
    image_size=32,
    patch=8,
    width=16,
    heads=4,
    mlp=24,
    sa_blocks=3,
    glca_blocks=2,
    pwca_blocks=2,
    stochastic_depth=0.0,
    local_share=0.3,
)


def arrays(module: torch.nn.Module) -> dict[str, Array]:
    return {name: p.detach().double().numpy() for name, p in module.named_parameters()}


def randomised(s: TwinSettings) -> DCAL:
    """Weights far from their start, so that attention is not uniform and biases count."""
    torch.manual_seed(0)
    net = DCAL(s)
    for p in net.parameters():
        torch.nn.init.normal_(p, std=0.3)
    return net


def norm(x: Array, w: dict[str, Array], name: str) -> Array:
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6)
    return x * w[f"{name}.weight"] + w[f"{name}.bias"]


def softmax(x: Array) -> Array:
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def block(x: Array, context: Array, w: dict[str, Array], name: str, heads: int = 4) -> tuple[Array, Array]:
    """One image's tokens (tokens, width) attending to ``context``; also the weights averaged over the heads."""
    width = x.shape[1]
    seen, asked = norm(context, w, f"{name}.norm1"), norm(x, w, f"{name}.norm1")
    weight, bias = w[f"{name}.attn.qkv.weight"], w[f"{name}.attn.qkv.bias"]
    q = asked @ weight[:width].T + bias[:width]
    k = seen @ weight[width : 2 * width].T + bias[width : 2 * width]
    v = seen @ weight[2 * width :].T + bias[2 * width :]
    size = width // heads
    outs, maps = [], []
    for h in range(heads):
        part = slice(h * size, (h + 1) * size)
        a = softmax(q[:, part] @ k[:, part].T / np.sqrt(size))
        maps.append(a)
        outs.append(a @ v[:, part])
    out = np.concatenate(outs, 1) @ w[f"{name}.attn.proj.weight"].T + w[f"{name}.attn.proj.bias"]
    x = x + out
    hidden = norm(x, w, f"{name}.norm2") @ w[f"{name}.mlp.fc1.weight"].T + w[f"{name}.mlp.fc1.bias"]
    hidden = hidden * 0.5 * (1 + erf(hidden / np.sqrt(2)))
    x = x + hidden @ w[f"{name}.mlp.fc2.weight"].T + w[f"{name}.mlp.fc2.bias"]
    return x, np.mean(maps, 0)


def tokens(image: Array, w: dict[str, Array], patch: int) -> Array:
    size = image.shape[1] // patch
    out = [w["cls_token"][0, 0]]
    for row in range(size):
        for column in range(size):
            piece = image[:, row * patch : (row + 1) * patch, column * patch : (column + 1) * patch]
            out.append((w["patch_embed.weight"] * piece).sum((1, 2, 3)) + w["patch_embed.bias"])
    return np.stack(out) + w["pos_embed"][0]


def features(image: Array, w: dict[str, Array], s: TwinSettings) -> tuple[Array, Array]:
    x = tokens(image, w, s.patch)
    product = np.eye(len(x))
    for i in range(s.sa_blocks):
        x, mean = block(x, x, w, f"blocks.{i}")
        product = (s.rollout_residual * np.eye(len(x)) + (1 - s.rollout_residual) * mean) @ product
    row = product[0, 1:]
    chosen = np.argsort(-row)[: round(s.local_share * len(row))] + 1
    local = x[[0, *chosen]]
    for i in range(s.glca_blocks):
        local, _ = block(local, x, w, f"glca.{i}")
    return norm(x[0], w, "norm"), norm(local[0], w, "norm_glca")


def pwca(left: Array, right: Array, w: dict[str, Array], s: TwinSettings) -> tuple[Array, Array]:
    a, b = tokens(left, w, s.patch), tokens(right, w, s.patch)
    for i in range(s.pwca_blocks):
        name = f"blocks.{i}"
        a, b = (
            block(a, np.concatenate([a, b]), w, name)[0],
            block(b, np.concatenate([b, a]), w, name)[0],
        )
    return norm(a[0], w, "norm"), norm(b[0], w, "norm")


@pytest.mark.parametrize("attention", ["explicit", "fused"])
@pytest.mark.parametrize("branches", ["each", "joint"])
def test_the_three_attentions_are_those_of_the_paper(branches: Any, attention: Any) -> None:
    s = replace(TINY, branches=branches, attention=attention)
    net = randomised(s).double().eval()
    images = torch.randn(4, 3, 32, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    w = arrays(net)
    sa, glca = net.features(net.tokens(images))
    way = net.pwca_each if branches == "each" else net.pwca_joint
    left, right = way(net.tokens(images[:2]), net.tokens(images[2:]))
    for i in range(4):
        wanted = features(images[i].numpy(), w, s)
        # rollout's maps are kept in fp32
        np.testing.assert_allclose(sa[i].detach().numpy(), wanted[0], atol=1e-9)
        np.testing.assert_allclose(glca[i].detach().numpy(), wanted[1], atol=1e-9)
    for i in range(2):
        wanted = pwca(images[i].numpy(), images[2 + i].numpy(), w, s)
        np.testing.assert_allclose(left[i].detach().numpy(), wanted[0], atol=1e-9)
        np.testing.assert_allclose(right[i].detach().numpy(), wanted[1], atol=1e-9)


@pytest.mark.parametrize("residual", [0.0, 0.5, 0.9])
def test_rollout_by_row_is_rollout(residual: float) -> None:
    random = np.random.default_rng(0)
    maps = [softmax(random.standard_normal((2, 10, 10))) for _ in range(4)]
    wanted = np.stack([np.eye(10)] * 2)
    for a in maps:
        wanted = np.einsum("bij,bjk->bik", residual * np.eye(10) + (1 - residual) * a, wanted)
    ours = [torch.from_numpy(a) for a in maps]
    for way in (rollout_by_matrices, rollout_by_row):
        np.testing.assert_allclose(way(ours, residual).numpy(), wanted[:, 0], atol=1e-12)


def test_the_patches_chosen_are_those_with_most() -> None:
    row = torch.tensor([[0.9, 0.1, 0.4, 0.2, 0.3, 0.05, 0.02]])
    assert sorted(top_patches(row, 0.5)[0].tolist()) == [2, 3, 4]
    assert top_patches(row, 0.01)[0].tolist() == [2]


def batch(joint: bool) -> dict[str, torch.Tensor]:
    """Pairs (0, 1) and (0, 2) share their anchor; (3, 4) are alone."""
    random = torch.Generator().manual_seed(3)
    images = torch.randint(0, 256, (5, 3, 32, 32), dtype=torch.uint8, generator=random)
    left, right = torch.tensor([0, 0, 3]), torch.tensor([1, 2, 4])
    sides = torch.stack([left, right], 1)
    out = {"same": torch.tensor([1.0, 0.0, 0.0]), "number": sides, "person": torch.tensor([7, 7, 8, 9, 8])[sides]}
    floats = images.float() / 127.5 - 1
    if joint:
        looks = torch.tensor([[0.0, 1.0, 1.0]] * 5)
        return {**out, "images": images, "looks": looks, "left": left, "right": right}
    return {**out, "left": floats[left], "right": floats[right]}


@pytest.mark.parametrize("attention", ["explicit", "fused"])
@pytest.mark.parametrize("pwca_blocks", [2, 0])
def test_joint_gives_the_loss_and_gradients_of_each(attention: Any, pwca_blocks: int) -> None:
    found = []
    for branches in ("each", "joint"):
        s = replace(TINY, branches=branches, attention=attention, pwca_blocks=pwca_blocks)
        torch.manual_seed(0)
        objective = TwinObjective(s)
        for p in objective.parameters():
            if p.ndim > 1:
                torch.nn.init.normal_(p, std=0.15)
        said = objective(batch(branches == "joint"))
        said["loss"].backward()
        found.append((said, {name: p.grad for name, p in objective.named_parameters()}))
    (each, each_grads), (joint, joint_grads) = found
    assert all(torch.allclose(each[name], joint[name], atol=1e-5) for name in each) and each.keys() == joint.keys()
    for name, wanted in each_grads.items():
        assert wanted is not None and float(wanted.abs().max()) > 0, name
        torch.testing.assert_close(joint_grads[name], wanted, atol=2e-5, rtol=1e-3, msg=name)


def test_images_skip_blocks_each_for_itself_and_only_in_training() -> None:
    torch.manual_seed(0)
    made = Block(16, 4, 24, 0.5, False)
    x = torch.randn(200, 2 * 5, 16)
    out, _ = made(x, None, False, 2)
    same = (out == x).view(200, 2, -1).all(dim=2).float()
    assert 0.15 < same.mean() < 0.35  # both parts skipped: a quarter
    assert 0.2 < (same[:, 0] != same[:, 1]).float().mean() < 0.55  # one image, not the other: 3/8
    made.eval()
    full, _ = made(x)
    assert (made(x)[0] == full).all()
    made.train()
    attended = made._skipped(torch.ones(4000, 4, 1), 2)
    assert attended.mean().item() == pytest.approx(1.0, abs=0.05) and set(attended.unique().tolist()) == {0.0, 2.0}


def test_a_pair_has_no_order() -> None:
    torch.manual_seed(0)
    objective = TwinObjective(TINY).eval()
    a, b = (objective.embed(torch.randn(3, 3, 32, 32)) for _ in range(2))
    torch.testing.assert_close(objective.scores(a, b), objective.scores(b, a), atol=1e-6, rtol=0)
    assert a.shape == (3, 2, 16)


def test_an_embedding_is_one_call_of_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever watches calls of modules (hooks, a simulated device) sees the whole of it."""
    objective = TwinObjective(TINY).eval()
    called: list[str] = []
    depth = [0]
    plain = torch.nn.Module.__call__

    def call(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        called.extend([type(module).__name__] * (depth[0] == 0))
        depth[0] += 1
        try:
            return plain(module, *args, **kwargs)
        finally:
            depth[0] -= 1

    monkeypatch.setattr(torch.nn.Module, "__call__", call)
    objective.embed(torch.randn(2, 3, 32, 32))
    assert called == ["DCAL"]


def test_the_trunk_has_the_parameters_of_the_published_transformer() -> None:
    """ViT-B/16 without a head at 224 pixels, as timm counts it (85.8 M); DCAL at 448 has more positions, and GLCA."""
    with torch.device("meta"):
        small, whole = DCAL(TwinSettings(image_size=224)), DCAL(TwinSettings())
    trunk = {name: p.numel() for name, p in small.named_parameters() if not name.startswith(("glca", "norm_glca"))}
    assert sum(trunk.values()) == 85_798_656
    of_block = sum(p.numel() for p in whole.blocks[0].parameters())
    assert sum(p.numel() for p in whole.parameters()) == 85_798_656 + (784 - 196) * 768 + of_block + 2 * 768


def test_the_class_token_and_the_positions_do_not_decay() -> None:
    """As in the training of vision transformers (Dosovitskiy et al. 2021; Touvron et al. 2021)."""
    objective = TwinObjective(TINY)
    groups = make_optimizer(objective, replace(TINY, optimizer="adamw", weight_decay=0.1)).param_groups
    decay = {id(p): group["weight_decay"] for group in groups for p in group["params"]}
    found = {name: decay[id(p)] for name, p in objective.named_parameters()}
    assert len(found) == sum(len(group["params"]) for group in groups)
    assert found["net.cls_token"] == found["net.pos_embed"] == found["net.patch_embed.bias"] == 0
    assert found["net.patch_embed.weight"] == found["net.blocks.0.attn.qkv.weight"] == 0.1
