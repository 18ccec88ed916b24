"""Every knob of the engine: one typed field each, its help below it. A training's settings derive from this class."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Literal

from hotlap_workloads.errors import SettingsError

__all__ = ["EngineSettings", "TrackerName"]

TrackerName = Literal["tensorboard", "wandb", "mlflow"]

NOT_NEGATIVE = (
    *("seed", "workers", "eval_workers", "threads", "lr", "lr_min", "momentum", "decay"),
    *("search_most", "profile_after_steps", "batches_ahead"),
)
OFF_AT_ZERO = (
    *("max_steps", "lr_for_samples", "weight_decay", "warmup_epochs", "clip_norm", "evaluate_every_epochs"),
    *("heavy_every_epochs", "checkpoint_every_epochs", "track_every_steps", "cleanup_every_steps"),
    *("memory_check_every_steps", "profile_steps", "decay_every_epochs"),
)


@dataclass(frozen=True)
class EngineSettings:
    """What a preset sets. Times are in steps (one optimiser update) or epochs, as the name says; 0 is never."""

    # --- length and reproducibility
    epochs: int = 10
    """Epochs to train."""
    max_steps: int = 0
    """Stop after so many steps, whatever the epochs say."""
    seed: int = 1
    """Seed of the weights, the order of the data and the augmentation."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to train; auto is the GPU where there is one."""
    threads: int = 0
    """Threads of torch on the CPU; 0 leaves torch's own choice."""
    keep_freed_memory: bool = False
    """Keep the memory of freed tensors for the next step instead of giving it back to the system. Linux with glibc."""

    # --- loader
    batch_size: int = 64
    """Samples per micro-batch and rank."""
    eval_batch_size: int = 64
    """Samples per batch in evaluation, which keeps no activations and so may take more."""
    workers: int = 0
    """Loading processes for training; 0 loads in the training process."""
    eval_workers: int = 0
    """Loading processes for evaluation."""
    prefetch_factor: int = 2
    """Batches each worker keeps ready."""
    batches_ahead: int = 0
    """Where workers=0: batches that a thread of this process makes ahead, for a GPU; 0 makes them when due."""
    persistent_workers: bool = False
    """Keep the workers from one epoch to the next instead of starting new ones."""
    pin_memory: bool = False
    """Batches in page-locked memory: needed for copies that do not block. GPU only; nothing on a CPU."""
    non_blocking: bool = False
    """Copy to the device while it computes. Needs pin_memory."""
    drop_last: bool = True
    """Leave an incomplete last batch out."""
    stage_to: str = ""
    """Copy the data that --data names to this folder on a local disk first, and read them there."""

    # --- arithmetic
    precision: Literal["off", "fp16", "bf16", "auto"] = "off"
    """Autocast: off is fp32; fp16 scales the loss; auto is bf16, fp16 on GPUs without it. True is auto, False off."""
    tf32: bool = False
    """TF32 for matrix products and convolutions, also in what autocast leaves in fp32: 10 bits of precision instead of
    23. GPUs since Ampere."""
    channels_last: bool = False
    """Weights and activations of convolutions as NHWC. Same formula, other memory order."""
    cudnn_benchmark: bool = False
    """Let cuDNN try its algorithms and take the fastest: pays where shapes stay the same."""
    deterministic: bool = False
    """Only algorithms that give the same bits every time. torch warns of an operation that has none on a GPU."""
    compile: bool = False
    """torch.compile the training objective: tens of seconds once, a faster step afterwards."""
    compile_from_steps: int = 0
    """A training of fewer steps is not compiled, though ``compile`` asks for it: it would not earn the start back."""
    compile_mode: Literal["default", "reduce-overhead", "max-autotune"] = "default"
    """Mode of torch.compile."""
    compile_dynamic: bool = False
    """Compile for varying shapes instead of once per shape."""
    activation_checkpointing: bool = False
    """Forget activations of the model's stages and compute them again in backward: less memory, more time."""

    # --- optimiser and schedule
    optimizer: Literal["sgd", "adam", "adamw"] = "adam"
    """Update rule; sgd has Nesterov-free momentum."""
    lr: float = 1e-3
    """Learning rate at the start, after warm-up."""
    lr_for_samples: int = 0
    """Samples of a step that ``lr`` is meant for: with another global batch it is scaled in proportion; 0 leaves it."""
    weight_decay: float = 0.0
    """L2 penalty (sgd, adam) or decoupled decay (adamw). With adamw not on biases, norms and other vectors, nor on the
    class token and position embedding of a vision transformer."""
    momentum: float = 0.9
    """Momentum of sgd."""
    betas: tuple[float, ...] = (0.9, 0.999)
    """Decay of the two moments of adam and adamw."""
    amsgrad: bool = False
    """adam and adamw divide by the largest second moment so far (Reddi et al. 2018)."""
    optimizer_loop: Literal["auto", "single", "foreach", "fused"] = "auto"
    """One parameter after the other, in groups (foreach), or in one kernel (fused)."""
    zero_grad_to_none: bool = True
    """Free gradients between steps instead of writing zeros."""
    schedule: Literal["constant", "cosine", "step"] = "constant"
    """How the learning rate falls."""
    lr_min: float = 0.0
    """schedule=cosine: learning rate at the end."""
    warmup_epochs: float = 0.0
    """Epochs in which the learning rate grows linearly from nothing."""
    decay_every_epochs: float = 10.0
    """schedule=step: epochs between two decays."""
    decay: float = 0.95
    """schedule=step: factor of each decay."""
    accumulate: int = 1
    """Micro-batches whose gradients make one step."""
    clip_norm: float = 0.0
    """Gradients longer than this are shortened to it; 0 leaves them."""

    # --- cadences
    evaluate_every_epochs: float = 1.0
    """Epochs between evaluations; fractions are converted to steps."""
    heavy_every_epochs: float = 0.0
    """Epochs between heavy evaluations."""
    checkpoint_every_epochs: float = 1.0
    """Epochs between checkpoints."""
    checkpoint_in_background: bool = False
    """Copy the state to memory and write it while training goes on."""
    print_every_steps: int = 20
    """Steps between lines of progress."""
    track_every_steps: int = 50
    """Steps between points of the trackers."""
    read_loss_every_step: bool = False
    """Wait for the device to finish each step to read its loss, instead of once a line."""
    cleanup_every_steps: int = 0
    """Steps between garbage collections with the device's cache emptied."""

    # --- guards
    on_nan: Literal["stop", "skip"] = "stop"
    """A loss that is no number: stop with the batch saved, or skip the step and count it."""
    memory_check_every_steps: int = 0
    """Steps between looks at the device's memory; above memory_ceiling_frac the batch is lowered."""
    memory_ceiling_frac: float = 0.95
    """Share of the device's memory that the training may take."""
    search_batch_size: bool = False
    """Raise batch_size until memory runs out before training, and keep a margin. GPU only."""
    search_most: int = 0
    """Largest batch that the search tries; 0 is the whole data set."""

    # --- watching
    trackers: tuple[TrackerName, ...] = ()
    """Where metrics go: none, one or several. Presets choose one where it is installed; trackers= is none."""
    track_model: bool = False
    """Give the trackers the checkpoint as an artefact when the training ends."""
    profile_steps: int = 0
    """Steps that torch.profiler records for TensorBoard; 0 is none."""
    profile_after_steps: int = 10
    """Steps before the profiler's window."""

    def check(self) -> None:
        """Raise SettingsError for a value that makes no sense on any machine."""
        for name in ("epochs", "batch_size", "eval_batch_size", "accumulate", "prefetch_factor", "print_every_steps"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name}={getattr(self, name)} is less than 1.")
        for name, value in asdict(self).items():
            numbers = value if isinstance(value, tuple) else (value,)
            if any(isinstance(number, float) and not math.isfinite(number) for number in numbers):
                raise SettingsError(f"{name}={value} is no finite number.", "0 is off." if name in OFF_AT_ZERO else "")
        for name in (*NOT_NEGATIVE, *OFF_AT_ZERO):
            if getattr(self, name) < 0:
                hint = "0 is off." if name in OFF_AT_ZERO else ""
                raise SettingsError(f"{name}={getattr(self, name)} is negative.", hint)
        if self.persistent_workers and self.workers == 0:
            raise SettingsError(
                "persistent_workers=true needs loading processes.",
                "Set workers=1 or more, or persistent_workers=false.",
            )
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise SettingsError(f"betas={self.betas} are not two numbers from 0 to below 1.")
        if self.lr_min > self.lr and not self.lr_for_samples:  # else what it is scaled to counts
            raise SettingsError(f"lr_min={self.lr_min} is above lr={self.lr}.")
        if self.deterministic and self.cudnn_benchmark:
            raise SettingsError("deterministic=true and cudnn_benchmark=true contradict each other.", "Drop one.")
        if not 0 < self.memory_ceiling_frac <= 0.95:
            raise SettingsError(f"memory_ceiling_frac={self.memory_ceiling_frac} is not above 0 and at most 0.95.")
