"""What can be set of this training, beside the engine's knobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.errors import SettingsError

__all__ = ["TinySettings"]


@dataclass(frozen=True)
class TinySettings(EngineSettings):
    """Model, loss, data and evaluation of a DETR for tiny objects."""

    # --- model
    backbone: Literal["resnet18", "resnet34", "resnet50", "resnet101"] = "resnet50"
    """The convolutional network in front."""
    width: float = 1.0
    """Channels of the backbone's stages, as a factor."""
    stride: Literal[8, 16, 32] = 16
    """Pixels from one place of the feature map to the next: the backbone ends at the stage that has it. DETR has 32."""
    d_model: int = 256
    """Width of the transformer. A multiple of 4 and of heads."""
    heads: int = 8
    """Heads of each attention."""
    ffn: int = 2048
    """Width within the transformer's feed-forward parts."""
    encoder_layers: int = 6
    """Layers that look at the feature map."""
    decoder_layers: int = 6
    """Layers in which the queries look at the encoded map."""
    queries: int = 400
    """Objects that can be found in an image at most."""
    query_start: Literal["random", "spread"] = "random"
    """Queries begin anywhere, as DETR's own, or at points spread over the image, which learns with far fewer images."""
    dropout: float = 0.1
    """Share of the transformer's activations that are left out in training."""

    # --- loss
    auxiliary: bool = True
    """The loss at every layer of the decoder instead of at the last alone."""
    cost_class: float = 1.0
    """Matching: weight of the probability of the object's class."""
    cost_box: float = 5.0
    """Matching: weight of the L1 distance of the boxes."""
    cost_giou: float = 2.0
    """Matching: weight of the generalised overlap."""
    weight_box: float = 5.0
    """Loss: weight of the L1 distance; the class has weight 1."""
    weight_giou: float = 2.0
    """Loss: weight of the generalised overlap."""
    no_object_weight: float = 0.1
    """Weight of queries without an object in the cross-entropy: there are many of them."""
    matching: Literal["one_by_one", "at_once"] = "at_once"
    """Costs image by image and layer by layer, waiting for each, or all of them in one go and one copy to the host."""

    # --- data
    train_json: str = "instances_train.json"
    """COCO annotations of the training."""
    eval_json: str = "instances_val.json"
    """COCO annotations of the evaluation."""
    heavy_json: str = "instances_test.json"
    """COCO annotations of the heavy evaluation."""
    image_folder: str = "images"
    """Folder that the file names in the annotations are relative to."""
    decode: Literal["each_time", "once"] = "each_time"
    """Decode the file whenever it is used, or all files once into a file that is mapped into memory."""

    # --- sizes
    size: int = 512
    """Short side of the images, in evaluation and without multi_scale."""
    size_low: int = 384
    """multi_scale: smallest short side."""
    size_high: int = 640
    """multi_scale: largest short side; decode=once keeps no more than this."""
    longest: int = 1024
    """No side is longer, even if the short one becomes shorter than asked for."""
    padding: Literal["worst", "batch", "bucket"] = "batch"
    """Pad to the largest image of all, to the largest of the batch, or batch images of one shape and scale."""

    # --- augmentation
    augment: Literal["sample", "batch"] = "sample"
    """CLAHE and motion blur sample by sample in the loading process, or for the whole batch on the device."""
    flip: bool = True
    """Mirror every second image."""
    multi_scale: bool = True
    """Short sides from size_low to size_high, in steps of 32 pixels."""
    clahe: bool = False
    """Local contrast (contrast-limited histogram equalisation) for some images."""
    motion_blur: bool = False
    """A smear along a line for some images."""

    # --- evaluation
    most_detections: int = 400
    """Detections of an image that count. COCO's own 100 is too few where hundreds of objects lie in an image."""

    def check(self) -> None:
        super().check()
        for name in ("queries", "encoder_layers", "decoder_layers", "ffn", "most_detections"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name}={getattr(self, name)} is less than 1.")
        if not 0 <= self.dropout < 1:
            raise SettingsError(f"dropout={self.dropout} is not from 0 to below 1.")
        if self.width <= 0:
            raise SettingsError(f"width={self.width} is not above 0.")
        if self.heads < 1 or self.d_model % self.heads or self.d_model % 4:
            raise SettingsError(f"d_model={self.d_model} is not a multiple of 4 and of heads={self.heads}.")
        if not 32 <= self.size_low <= self.size_high <= self.longest or not 32 <= self.size <= self.longest:
            raise SettingsError(
                f"size_low={self.size_low}, size_high={self.size_high}, size={self.size}, longest={self.longest}: "
                "not 32 or more, in this order."
            )
