"""What can be set of this training, beside the engine's knobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.errors import SettingsError

__all__ = ["SpoofSettings"]

USUAL_BANDS = {"log_mel": 80, "lfcc": 20, "sinc": 70, "conv": 70}


@dataclass(frozen=True)
class SpoofSettings(EngineSettings):
    """Front end, model, data and evaluation of an anti-spoofing training."""

    # --- front end
    front_end: Literal["log_mel", "lfcc", "sinc", "conv"] = "log_mel"
    """Log-mel energies, LFCC with their changes, or the raw waveform through fixed (sinc) or learned (conv) filters."""
    bands: int = 0
    """Mel bands, linear filters, or filters in time; 0 is what is usual: 80, 20 (60 with the changes), 70."""
    taps: int = 129
    """sinc and conv: length of a filter in samples."""
    front_end_at: Literal["sample", "batch"] = "sample"
    """Where log_mel and lfcc are computed: sample by sample in the loading process, or for the batch on the device.
    sinc and conv are layers of the network, and always there."""
    freq_mask: bool = False
    """Hide neighbouring bands of each training sample."""
    freq_mask_most: int = 20
    """freq_mask: most bands that are hidden."""

    # --- model and loss
    model: Literal["SEResNet18", "SEResNet34", "SEResNet50"] = "SEResNet34"
    """Depth; 34 has 1.3 M parameters."""
    width: float = 1.0
    """Channels of every stage, as a factor."""
    pooling: Literal["mean", "SAP", "ASP"] = "mean"
    """From frames to a recording: mean, self-attentive, or attentive statistics."""
    stem_gradient: Literal["library", "by_phase"] = "library"
    """The first convolution's gradient towards the normed features: torch's own, or as one more convolution, which has
    the same formula and is quicker on a CPU."""
    loss: Literal["CCE"] = "CCE"
    """Cross-entropy, weighted by class."""
    class_weights: tuple[float, ...] = (0.1, 0.9)
    """Weights of spoofed and bona fide samples in the loss: there is far more of the first."""
    swa: bool = False
    """Also keep the mean of the weights at all evaluations that were the best so far (stochastic weight averaging,
    Izmailov et al. 2018). The heavy evaluation measures it too, and the evaluation file is made with it. An evaluation
    that is not due but comes with the end is not among them: a run that goes on keeps what one without a stop keeps."""

    # --- data
    samples: int = 64_600
    """Samples of each recording, cut at random in training, from its start in evaluation. Short ones are repeated."""
    database: str = ""
    """Folder of the data, where --data does not name it."""
    layout: Literal["asvspoof", "fake_or_real", "scenefake"] = "asvspoof"
    """Protocol files with FLAC, or folders of real and fake recordings."""
    track: Literal["LA", "PA", "DF"] = "LA"
    """asvspoof: which published files. DF trains on LA of 2019 and its heavy evaluation is DF of 2021."""
    train_protocol: str = ""
    """asvspoof: file below the data's folder; empty is the published name."""
    dev_protocol: str = ""
    """asvspoof: of the evaluation."""
    eval_protocol: str = ""
    """asvspoof: of the heavy evaluation."""
    asv_scores: str = ""
    """Scores of a speaker verification system for the evaluation's min t-DCF; empty is the published name."""
    heavy_asv_scores: str = ""
    """The same for the heavy evaluation."""
    decode: Literal["each_time", "once"] = "each_time"
    """Read and decode the file whenever it is used, or decode all files once into a file that is mapped into memory."""
    eval_output: str = "eval_scores.txt"
    """Name of the evaluation file in the run's folder."""

    def check(self) -> None:
        super().check()
        if self.bands < 0 or self.samples < 1600:
            raise SettingsError(f"bands={self.bands}, samples={self.samples}: at least 0 bands and 1600 samples.")
        if self.taps < 3 or self.taps % 2 == 0:
            raise SettingsError(f"taps={self.taps}: a filter has a middle, so an odd number, and at least 3.")
        if len(self.class_weights) != 2 or min(self.class_weights) <= 0:
            raise SettingsError(f"class_weights={self.class_weights} are not two numbers above 0.")
        if self.freq_mask and not 1 <= self.freq_mask_most <= self.features:
            raise SettingsError(f"freq_mask_most={self.freq_mask_most} is not from 1 to all {self.features} bands.")
        if self.swa and not self.evaluate_every_epochs:
            raise SettingsError("swa=true keeps the weights of evaluations, and evaluate_every_epochs=0 has none.")
        if self.database and self.stage_to:
            raise SettingsError("stage_to copies what --data names, and database is set.", "Use --data alone.")

    @property
    def count(self) -> int:
        """Bands, the usual number put in."""
        return self.bands or USUAL_BANDS[self.front_end]

    @property
    def features(self) -> int:
        """Rows that the network sees."""
        return 3 * self.count if self.front_end == "lfcc" else self.count
