"""What can be set of this training, beside the engine's knobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.errors import SettingsError

__all__ = ["PAIR_LOSSES", "SpeakerSettings"]

PAIR_LOSSES = ("angleproto", "ge2e", "triplet")
"""Losses that compare several utterances of each speaker in the batch."""
LEAST_CROP_S = 0.025


@dataclass(frozen=True)
class SpeakerSettings(EngineSettings):
    """Model, loss, data and evaluation of a speaker verification training."""

    # --- model
    model: Literal["ResNetSE34L", "ResNetSE34V2", "ResNetSE152"] = "ResNetSE34L"
    """The light ResNet-34 (1.4 M parameters), the half-width one (8 M), or the deep one."""
    pooling: Literal["SAP", "ASP"] = "SAP"
    """From frames to a recording: self-attentive, or attentive statistics."""
    mels: int = 40
    """Mel bands: 40 with ResNetSE34L, 64 with the others. A multiple of 8."""
    embedding: int = 512
    """Length of the speaker's vector."""
    width: float = 1.0
    """Channels of every stage, as a factor."""

    # --- loss
    loss: Literal["softmax", "amsoftmax", "aamsoftmax", "angleproto", "ge2e", "triplet"] = "amsoftmax"
    """Classification (plain, additive margin, additive angular margin), or comparison within the batch."""
    scale: float = 30.0
    """Scale of the cosines in the margin losses."""
    margin: float = 0.3
    """Margin of the margin losses and of triplet."""
    utterances: int = 2
    """Utterances of a speaker in a batch, for angleproto, ge2e and triplet; one for the others."""

    # --- data
    train_list: str = "train_list.txt"
    """Lines ``speaker path``."""
    trials: str = "val_trials.txt"
    """Lines ``label path path``; 1 is the same speaker."""
    heavy_trials: str = "test_trials.txt"
    """Trials of the heavy evaluation."""
    wav_folder: str = "wav"
    """Folder that the paths of lists and trials are relative to."""
    trial_folder: str = ""
    """Folder that the paths of trials are relative to, where that is another."""
    crop_s: float = 2.0
    """Seconds of each utterance in training."""
    decode: Literal["each_time", "once"] = "each_time"
    """Read and decode the file whenever it is used, or decode all files once into a file that is mapped into memory."""

    # --- augmentation
    augment: Literal["none", "sample", "batch"] = "none"
    """Noise, music, voices and rooms: per sample in the loading process, or for the whole batch on the device."""
    musan: str = ""
    """Folder of MUSAN (noise/, music/, speech/); the self-made data bring their own."""
    rirs: str = ""
    """Folder of room impulse responses."""
    noise_minutes: float = 20.0
    """augment=batch: minutes of each kind of noise kept in memory."""
    rooms: int = 256
    """augment=batch: rooms kept in memory, spread over all there are; 0 keeps all (the published ones take 4 GB)."""

    # --- evaluation
    eval_crops: int = 10
    """Crops per utterance, evenly spread. eval_batch_size counts them, in whole utterances, one at least."""
    eval_crop_s: float = 3.0
    """Seconds of each crop."""
    p_target: float = 0.05
    """minDCF: share of trials of the same speaker."""
    c_miss: float = 1.0
    """minDCF: what a miss costs."""
    c_fa: float = 1.0
    """minDCF: what a false alarm costs."""

    def check(self) -> None:
        super().check()
        for name in ("embedding", "utterances", "eval_crops"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name}={getattr(self, name)} is less than 1.")
        if self.width <= 0:
            raise SettingsError(f"width={self.width} is not above 0.")
        for name in ("crop_s", "eval_crop_s"):
            if getattr(self, name) < LEAST_CROP_S:
                hint = f"A window of the front end takes {LEAST_CROP_S} s."
                raise SettingsError(f"{name}={getattr(self, name)} is too short.", hint)
        for name in ("noise_minutes", "rooms"):
            if getattr(self, name) < 0:
                raise SettingsError(f"{name}={getattr(self, name)} is negative.")
        if not (0 < self.p_target < 1 and self.c_miss > 0 and self.c_fa > 0):
            costs = f"p_target={self.p_target}, c_miss={self.c_miss}, c_fa={self.c_fa}"
            raise SettingsError(f"{costs}: minDCF takes a share between 0 and 1, and costs above 0.")
        if self.mels % 8:
            raise SettingsError(f"mels={self.mels} is not a multiple of 8, by which the network divides it.")
        if self.loss in PAIR_LOSSES and self.utterances < 2:
            raise SettingsError(f"loss={self.loss} compares utterances of a speaker, and utterances={self.utterances}.")
        if self.batch_size % self.group:
            raise SettingsError(f"batch_size={self.batch_size} is not a multiple of utterances={self.group}.")

    @property
    def eval_files(self) -> int:
        """Utterances per batch of the evaluation: as many as have ``eval_batch_size`` crops."""
        return max(1, self.eval_batch_size // self.eval_crops)

    @property
    def group(self) -> int:
        """Utterances of one speaker that stand together in a batch."""
        return self.utterances if self.loss in PAIR_LOSSES else 1
