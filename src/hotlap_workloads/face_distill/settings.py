"""What can be set of this training, beside the engine's knobs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.errors import SettingsError
from hotlap_workloads.parts.face_heads import Kind

__all__ = ["LEAST_PHOTOS", "UNTRAINED", "FaceSettings"]

UNTRAINED = "untrained"
MARGINS = {"arcface": 0.45, "cosface": 0.35, "adaface": 0.4}
"""As AdaDistill and AdaFace publish them."""
LEAST_PHOTOS = 2
"""In a batch of a rank: the embeddings' norm makes nothing of one alone."""


@dataclass(frozen=True)
class FaceSettings(EngineSettings):
    """Networks, head, data and evaluation of a face recognition training."""

    # --- networks
    student: Literal["mobilefacenet", "iresnet18", "iresnet50", "iresnet100"] = "mobilefacenet"
    """The network that is trained: 1.2, 24, 44 or 65 million parameters."""
    teacher: Literal["iresnet18", "iresnet50", "iresnet100"] = "iresnet50"
    """The frozen network whose embeddings move the class centres; heads without ``adaptive`` have none."""
    teacher_weights: str = ""
    """The teacher's weights: a backbone.pth of InsightFace, or the checkpoint.pt of a run of ``--preset teacher``.
    ``untrained`` draws them, with norms fitted to the data: for measuring time, not for quality."""
    embedding: int = 512
    """Length of a face's vector."""
    student_width: float = 1.0
    """Channels of the student, as a factor."""
    teacher_width: float = 1.0
    """Channels of the teacher, as a factor."""

    # --- head
    head: Literal["adaptive_arcface", "adaptive_cosface", "adaptive_adaface", "arcface", "cosface", "adaface"] = (
        "adaptive_arcface"
    )
    """The margin, over class centres moved towards the teacher (adaptive) or trained like other weights."""
    scale: float = 64.0
    """Scale of the cosines."""
    margin: float = -1.0
    """Margin; below 0 the published one: 0.45 (ArcFace), 0.35 (CosFace), 0.4 (AdaFace)."""
    concentration: float = 0.333
    """AdaFace's h: how far the length of an embedding, which stands for the photo's quality, moves the margin."""

    # --- how the teacher runs
    teacher_mode: Literal["plain", "folded"] = "plain"
    """As its code is written, or as a copy with norms folded into convolutions, channels-last, in the autocast type."""
    teacher_outputs: Literal["each_time", "once"] = "each_time"
    """Ask the teacher at each step; or once per photo and its mirror image, before training, and read the answers."""

    # --- data
    train: str = ""
    """The training set below the data's folder: a .rec file, a list ``label path``, or a folder with one of photos per
    identity. By default train.rec, train_list.txt or train/, whichever is there."""
    identities: int = 0
    """Identities that the training set must have; 0 takes what is found."""
    photos_per_identity: int = 0
    """At most so many photos of an identity, the first ones; 0 takes all."""
    size: int = 112
    """Side of the squares that the networks see."""
    middle: int = 0
    """Take the middle so many pixels of larger photos before resizing; 0 takes the largest square."""
    decode: Literal["each_time", "once"] = "each_time"
    """Read and decode a photo whenever it is used; or decode all once and pack them (``hotlap.pack``)."""
    flip_on: Literal["loader", "device"] = "loader"
    """Where half of the photos are mirrored and made floats: one by one while loading, or by batch on the device."""
    page_cache_mb: float = 0.0
    """Slow storage, on purpose (Linux): once so many MB of photos were read, the others are read past the page cache,
    as where the memory holds no more of them. 0 leaves it alone."""
    storage_ms: float = 5.0
    """How long the slow storage is busy with a photo, whichever process asks."""

    # --- evaluation
    verification: tuple[str, ...] = ()
    """Verification sets below the data's folder: lfw for lfw.bin, or NAME.txt for trials ``label path path``.
    By default every .bin file, or val_trials.txt where there is none."""
    heavy: tuple[str, ...] = ()
    """Heavy evaluations: folders in the form of IJB (ijbb, ijbc), ``tinyface``, or NAME.txt for trials.
    By default all that are there, with test_trials*.txt."""
    fars: tuple[float, ...] = (1e-4, 1e-5)
    """False accept rates at which templates are judged."""

    def check(self) -> None:
        super().check()
        if self.size < 16:
            raise SettingsError(f"size={self.size} is less than 16: the networks halve it four times.")
        if self.batch_size < LEAST_PHOTOS:
            raise SettingsError(f"batch_size={self.batch_size}: the norm of the embeddings takes two photos at least.")
        if self.concentration < 0:
            raise SettingsError(f"concentration={self.concentration} is negative.")
        if self.embedding < 1:
            raise SettingsError(f"embedding={self.embedding} is less than 1.")
        for name in ("identities", "photos_per_identity", "middle"):
            if getattr(self, name) < 0:
                raise SettingsError(f"{name}={getattr(self, name)} is negative.")
        if self.adaptive and self.teacher_outputs == "once" and self.decode != "once":
            raise SettingsError("teacher_outputs=once asks the teacher about packed photos.", "Set decode=once too.")
        if self.decode == "once" and self.flip_on == "loader":
            raise SettingsError("decode=once reads whole batches of bytes.", "Set flip_on=device too.")
        if self.page_cache_mb < 0 or self.storage_ms < 0:
            raise SettingsError(
                f"page_cache_mb={self.page_cache_mb} and storage_ms={self.storage_ms}: neither below 0."
            )
        if self.page_cache_mb and not hasattr(os, "posix_fadvise"):
            raise SettingsError("page_cache_mb reads past the page cache, which this system has no call for.")
        if any(not 0 < far < 1 for far in self.fars):
            raise SettingsError(f"fars={self.fars} are not all between 0 and 1.")

    @property
    def adaptive(self) -> bool:
        """Whether a teacher moves the centres."""
        return self.head.startswith("adaptive_")

    @property
    def kind(self) -> Kind:
        """The margin without its centres."""
        kinds: dict[str, Kind] = {"arcface": "arcface", "cosface": "cosface", "adaface": "adaface"}
        return kinds[self.head.removeprefix("adaptive_")]

    @property
    def margin_used(self) -> float:
        """The margin, or the published one."""
        return self.margin if self.margin >= 0 else MARGINS[self.kind]
