"""Queries that begin at points of the image: where they are, and that they look there."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from hotlap_workloads.tiny_detr.model import TinyDetr
from hotlap_workloads.tiny_detr.settings import TinySettings
from hotlap_workloads.tiny_detr.spread_queries import place_code, points

TINY = replace(
    TinySettings(),
    **{"backbone": "resnet18", "width": 0.125, "d_model": 32, "ffn": 32, "heads": 2, "encoder_layers": 1},
    decoder_layers=2,
    queries=12,
    dropout=0.0,
)


@pytest.mark.parametrize("count", [1, 12, 100, 400])
def test_points_are_spread_over_the_image(count: int) -> None:
    found = points(count)
    assert found.shape == (count, 2)
    assert bool(((found > 0) & (found < 1)).all())
    assert len({(float(x), float(y)) for x, y in found}) == count
    if count >= 12:  # every sixth of the image has its share
        cells = (found[:, 0] * 3).long() * 2 + (found[:, 1] * 2).long()
        assert torch.bincount(cells, minlength=6).min() >= count // 12


def test_a_place_has_the_code_that_the_library_gives_it() -> None:
    library = pytest.importorskip("transformers.models.detr.modeling_detr")
    height, width = 6, 8
    inside = torch.ones(1, height, width)
    code = library.DetrSinePositionEmbedding(16, normalize=True)(
        shape=torch.Size((1, 3, height, width)), device=torch.device("cpu"), dtype=torch.float32, mask=inside
    )[0]
    where = torch.tensor(
        [[(column + 1) / width, (row + 1) / height] for row in range(height) for column in range(width)]
    )
    assert torch.allclose(place_code(where, 32), code.flatten(1).T, atol=1e-4)


def test_boxes_begin_around_their_points_and_queries_look_at_them() -> None:
    pytest.importorskip("transformers")
    torch.manual_seed(0)
    net = TinyDetr(replace(TINY, query_start="spread"), classes=3).eval()
    looks: list[torch.Tensor] = []
    layer = net.detr.model.decoder.layers[0].encoder_attn
    images, inside = torch.zeros(1, 3, 128, 192), torch.ones(1, 128, 192)
    net.detr.set_attn_implementation("eager")
    layer.register_forward_hook(lambda module, inputs, out: looks.append(out[1]))
    with torch.no_grad():
        boxes = net(images, inside)[1]
    assert torch.allclose(boxes[-1, 0, :, :2], points(12), atol=1e-4)
    assert float(boxes[..., 2:].max()) < 0.2
    weights = looks[0][0].mean(0)  # (queries, places) of an image without anything on it: where, not what
    rows, columns = 8, 12
    at = torch.tensor([[(c + 1) / columns, (r + 1) / rows] for r in range(rows) for c in range(columns)])
    near = torch.cdist(points(12), at) < 0.25
    more_than_evenly = (weights * near).sum(1) / near.float().mean(1)
    assert bool((more_than_evenly > 1.5).all()) and float(more_than_evenly.mean()) > 2  # 1: wherever


def test_published_queries_begin_anywhere_and_a_checkpoint_knows_how_its_began() -> None:
    pytest.importorskip("transformers")
    net = TinyDetr(TINY, classes=3).eval()
    assert not bool(net.begin.any())
    spread = TinyDetr(replace(TINY, query_start="spread"), classes=3).eval()
    net.load_state_dict(spread.state_dict())
    images, inside = torch.rand(1, 3, 64, 96), torch.ones(1, 64, 96)
    with torch.no_grad():
        assert torch.equal(net(images, inside)[1], spread(images, inside)[1])
