"""DETR from the transformers library: no torchvision, no timm, weights of its own from the first step on."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

from hotlap_workloads.errors import SettingsError
from hotlap_workloads.tiny_detr.settings import TinySettings
from hotlap_workloads.tiny_detr.spread_queries import spread

__all__ = ["TinyDetr"]

DEPTHS = {"resnet18": (2, 2, 2, 2), "resnet34": (3, 4, 6, 3), "resnet50": (3, 4, 6, 3), "resnet101": (3, 4, 23, 3)}
STAGES = {8: 2, 16: 3, 32: 4}
"""Stages of the backbone that lead to each stride."""
SMALL_BOX = -2.0
"""The bias from which boxes begin: 12 % of the image's sides, not half of them (as in Zhu et al. 2021)."""
LIBRARY = 5
"""The first version of transformers that names the backbone's parts as :attr:`TinyDetr.stages` does."""


class TinyDetr(nn.Module):
    """Images (batch, 3, height, width), normalised, and which pixels are of an image, to classes and boxes."""

    def __init__(self, s: TinySettings, classes: int) -> None:
        super().__init__()
        self.auxiliary = s.auxiliary
        self.detr = _library().DetrForObjectDetection(_config(s, classes))
        _free_backbone(self.detr)
        _begin_as_detr(self.detr)
        begin = spread(self.detr) if s.query_start == "spread" else torch.zeros(s.queries, 4)
        self.register_buffer("begin", begin)  # in checkpoints: boxes that were learned as offsets stay ones

    @property
    def stages(self) -> list[nn.Module]:
        """The stages of the backbone."""
        return list(self.detr.model.backbone.model.encoder.stages)

    def forward(self, images: Tensor, inside: Tensor) -> tuple[Tensor, Tensor]:
        """(layers, batch, queries, classes + 1) and (layers, batch, queries, 4), in fp32: bf16 has too few places for
        the edges of a tiny box. The last layer is the answer."""
        said = self.detr.model(pixel_values=images, pixel_mask=inside)
        states = said.last_hidden_state[None]
        if self.auxiliary:
            states = torch.cat([said.intermediate_hidden_states[:-1], states])
        with torch.autocast(images.device.type, enabled=False):
            states = states.float()
            return self.detr.class_labels_classifier(states), (self.detr.bbox_predictor(states) + self.begin).sigmoid()


def _library() -> Any:
    try:
        library = import_module("transformers")
        library.DetrForObjectDetection  # noqa: B018  # the library imports its parts when they are asked for
    except (ImportError, AttributeError) as err:
        raise SettingsError(
            f"tiny_detr takes its model from transformers, which cannot be used: {err}.",
            "pip install 'hotlap[workloads]'",
        ) from err
    if int(library.__version__.split(".")[0]) < LIBRARY:
        raise SettingsError(
            f"tiny_detr takes its model from transformers {LIBRARY} or later, whose parts have other names than those "
            f"of {library.__version__}, which is installed.",
            "pip install 'hotlap[workloads]'",
        )
    return library


def _config(s: TinySettings, classes: int) -> Any:
    library = _library()
    bottleneck = s.backbone in ("resnet50", "resnet101")
    count = STAGES[s.stride]
    channels = [max(8, round(s.width * c / 8) * 8) for c in (64, 128, 256, 512)]
    backbone = library.ResNetConfig(
        embedding_size=channels[0],
        hidden_sizes=[c * (4 if bottleneck else 1) for c in channels[:count]],
        depths=list(DEPTHS[s.backbone][:count]),
        layer_type="bottleneck" if bottleneck else "basic",
        out_features=[f"stage{count}"],
    )
    return library.DetrConfig(
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        backbone_config=backbone,
        num_labels=classes,
        num_queries=s.queries,
        d_model=s.d_model,
        encoder_layers=s.encoder_layers,
        decoder_layers=s.decoder_layers,
        encoder_attention_heads=s.heads,
        decoder_attention_heads=s.heads,
        encoder_ffn_dim=s.ffn,
        decoder_ffn_dim=s.ffn,
        dropout=s.dropout,
        auxiliary_loss=s.auxiliary,
    )


def _free_backbone(detr: Any) -> None:
    """The library takes the backbone for a trained one, and freezes it with norms that do nothing. Here it learns."""
    backbone = detr.model.backbone
    _learning_norms(backbone)
    for parameter in backbone.parameters():
        parameter.requires_grad_(True)
    for module in backbone.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")


def _begin_as_detr(detr: Any) -> None:
    """First weights as in DETR's own program; the library's are so small that all queries begin alike."""
    for part in (detr.model.encoder, detr.model.decoder):
        for parameter in part.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)
    for layer in (detr.model.input_projection, detr.class_labels_classifier, *detr.bbox_predictor.layers):
        layer.reset_parameters()
    nn.init.normal_(detr.model.query_position_embeddings.weight)
    nn.init.constant_(detr.bbox_predictor.layers[-1].bias[2:], SMALL_BOX)


def _learning_norms(module: nn.Module) -> None:
    for name, child in module.named_children():
        if type(child).__name__ == "DetrFrozenBatchNorm2d":
            setattr(module, name, nn.BatchNorm2d(len(child.weight)))  # type: ignore[arg-type]
        else:
            _learning_norms(child)
