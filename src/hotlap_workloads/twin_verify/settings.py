"""What can be set of this training, beside the engine's knobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.errors import SettingsError

__all__ = ["TwinSettings"]


@dataclass(frozen=True)
class TwinSettings(EngineSettings):
    """Model, losses, data and evaluation of a twin verification training. A sample is a pair of images."""

    # --- model
    image_size: int = 448
    """Height and width that images are resized to, in pixels."""
    patch: int = 16
    """Height and width of a patch."""
    width: int = 768
    """Length of a token."""
    heads: int = 12
    """Heads of each attention."""
    mlp: int = 3072
    """Hidden width of each block's two linear layers."""
    sa_blocks: int = 12
    """L, the blocks of self-attention (SA)."""
    glca_blocks: int = 1
    """M, the blocks of global-local cross-attention (GLCA): the patches that matter most look at all of them."""
    pwca_blocks: int = 12
    """T, the blocks of pair-wise cross-attention (PWCA), with the weights of the first T of SA. In training alone."""
    stochastic_depth: float = 0.1
    """Chance that an image skips the last block; it grows from 0 at the first."""
    local_share: float = 0.15
    """R, the share of patches that GLCA asks for."""
    rollout_residual: float = 0.5
    """Share of the skip connection in attention rollout."""

    # --- how the same formulas are computed
    branches: Literal["each", "joint"] = "each"
    """each: every image of every pair by itself, whole matrices in rollout, PWCA for one image after the other,
    augmented in the loading process. joint: an image once per batch, the class token's row alone in rollout, PWCA of
    both images as one attention, augmented on the device."""
    attention: Literal["explicit", "fused"] = "explicit"
    """fused is scaled_dot_product_attention, wherever rollout does not need the weights."""

    # --- loss
    bce: float = 0.4
    """Weight of binary cross-entropy."""
    triplet: float = 0.4
    """Weight of the triplet loss."""
    focal: float = 0.2
    """Weight of the focal loss."""
    margin: float = 0.3
    """Margin of the triplet loss."""
    focal_alpha: float = 0.25
    """Weight of pairs of the same person in the focal loss; the others have the rest to 1."""
    focal_gamma: float = 2.0
    """How much the focal loss spares what is easy."""
    weighting: Literal["fixed", "uncertainty"] = "fixed"
    """How the branches are added: with the three weights below, or with learned ones."""
    sa_weight: float = 1.0
    """weighting=fixed: weight of SA."""
    glca_weight: float = 1.0
    """weighting=fixed: weight of GLCA."""
    pwca_weight: float = 0.3
    """weighting=fixed: weight of PWCA."""

    # --- data
    dataset_info: str = "dataset_infor.json"
    """{identity: [image, …]}. Where train_, val_ and test_ of that name lie beside it, they are the splits."""
    twin_pairs: str = "twin_pairs_infor.json"
    """[[identity, identity], …]."""
    image_folder: str = ""
    """Folder that the images' paths are relative to; the data's folder if not set."""
    expect_identities: int = 0
    """Identities that there must be, so that half a data set is noticed; 0 takes what there is."""
    split: tuple[float, ...] = (0.8, 0.1, 0.1)
    """Shares of identities for training, validation and test where no files say it. Twins stay together."""
    twin_share: float = 0.3
    """Share of twins among the pairs of different people."""
    pairs_per_epoch: int = 0
    """Pairs of an epoch, half of them of the same person; 0 is twice the training images."""
    pairs: Literal["run_time", "precomputed"] = "run_time"
    """Draw a pair when it is loaded, or all pairs before training. The same pairs."""
    images: Literal["files", "packed"] = "files"
    """Decode the file whenever it is used, or every file once into a pack of bytes."""
    augment: bool = True
    """Mirror, brightness and contrast at random."""

    # --- evaluation
    trials_per_image: int = 2
    """Trials of the same person per image, and as many of different people."""
    eval_embed: Literal["per_pair", "once"] = "per_pair"
    """Embed both images of every trial, or every image once."""
    eval_pwca: bool = False
    """Run PWCA in evaluation as in training. No score depends on it."""

    def check(self) -> None:
        super().check()
        for name in ("image_size", "patch", "width", "heads", "mlp", "sa_blocks", "glca_blocks", "trials_per_image"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name}={getattr(self, name)} is less than 1.")
        if self.image_size % self.patch:
            raise SettingsError(f"image_size={self.image_size} is not a multiple of patch={self.patch}.")
        if self.width % self.heads:
            raise SettingsError(f"width={self.width} is not a multiple of heads={self.heads}.")
        if not 0 <= self.pwca_blocks <= self.sa_blocks:
            raise SettingsError(
                f"pwca_blocks={self.pwca_blocks}: PWCA has the weights of SA, and sa_blocks={self.sa_blocks}."
            )
        if not 0 < self.local_share <= 1:
            raise SettingsError(f"local_share={self.local_share} is not above 0 and at most 1.")
        for name in ("twin_share", "stochastic_depth", "rollout_residual", "focal_alpha"):
            if not 0 <= getattr(self, name) <= 1:
                raise SettingsError(f"{name}={getattr(self, name)} is not from 0 to 1.")
        if self.eval_pwca and self.eval_embed == "once":
            raise SettingsError("eval_pwca=true is of pairs, and eval_embed=once is of images.", "Use per_pair.")
        if self.stochastic_depth == 1:
            raise SettingsError("stochastic_depth=1 leaves every block out.")
        if min(self.bce, self.triplet, self.focal) < 0 or self.bce + self.triplet + self.focal == 0:
            raise SettingsError("Of bce, triplet and focal none may be negative, and one must be above 0.")
        if self.pairs_per_epoch % 2 or self.pairs_per_epoch < 0:
            raise SettingsError(f"pairs_per_epoch={self.pairs_per_epoch} is not even: half are of the same person.")
        if len(self.split) != 3 or min(self.split) <= 0 or abs(sum(self.split) - 1) > 1e-6:
            raise SettingsError(f"split={self.split} is not three shares that add up to 1.", "For example 0.8,0.1,0.1")
