"""Presets, each derived from another, and what published configurations call the same settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hotlap_workloads.anti_spoof.settings import SpoofSettings
from hotlap_workloads.engine import profiles
from hotlap_workloads.engine.config_file import Values, left_out
from hotlap_workloads.engine.machine import Machine
from hotlap_workloads.engine.task import Preset

__all__ = ["ALIASES", "PRESETS", "translated"]


def slow(machine: Machine) -> SpoofSettings:
    """As such trainings are often run: batch, learning rates and decay of AASIST (Jung et al. 2022)."""
    return SpoofSettings(
        epochs=20,
        batch_size=24,
        eval_batch_size=24,
        workers=0,
        lr=1e-4,
        weight_decay=1e-4,
        schedule="cosine",
        deterministic=True,
        read_loss_every_step=True,
        evaluate_every_epochs=1.0,
        trackers=machine.tracker("tensorboard"),
    )


def fastest(machine: Machine) -> SpoofSettings:
    """All that changes no more than rounding. Not compiled: on two cores its step took as long as before."""
    return fed(profiles.fastest(slow(machine), machine), machine)


def balanced(machine: Machine) -> SpoofSettings:
    """Fast loading, and the arithmetic at fp32."""
    return fed(profiles.balanced(slow(machine), machine), machine)


def reproducible(machine: Machine) -> SpoofSettings:
    """Fast loading, and the same bits at every run."""
    return fed(profiles.reproducible(slow(machine), machine), machine)


def fed(settings: SpoofSettings, machine: Machine) -> SpoofSettings:
    """Data decoded once, features of whole batches, evaluation in the batches that a device without gradients takes.

    In bf16 on a CPU the stem's gradient by phase, too; in fp32 it takes as long as the library's, or longer.
    """
    return replace(
        profiles.from_pack(settings, machine),
        decode="once",
        front_end_at="batch",
        stem_gradient="by_phase" if settings.precision == "bf16" and not machine.gpu else "library",
        eval_batch_size=256 if machine.gpu else 48,
        eval_workers=machine.packed_workers,
    )


PRESETS = {
    "slow": Preset(
        slow,
        "no loading process, decoding and features sample by sample at each epoch, deterministic cuDNN, fp32, "
        ".item() each step",
    ),
    "fast": Preset(fastest, "tuned for this machine, at the model and batch of slow: here the same as fastest"),
    "fastest": Preset(
        fastest, "decoded once, features by batch on the device, autocast, channels last, cuDNN's best algorithms"
    ),
    "balanced": Preset(balanced, "decoded once, features by batch on the device, arithmetic left at fp32"),
    "reproducible": Preset(reproducible, "balanced, with the same bits at every run on this machine"),
}

IGNORED = {
    "model_path": "weights come from the run's own checkpoint",
    "eval_all_best": "the best of the development set is not evaluated by itself",
}
"""Keys of the published files that nothing here answers to, and why."""


def translated(values: Values, say: Callable[[str], None]) -> Values:
    """A file as AASIST's, with ``say`` for what is left out."""
    return left_out(values, IGNORED, say)


ALIASES = {
    "database_path": "database",
    "asv_score_path": "heavy_asv_scores",
    "num_epochs": "epochs",
    "num_workers": "workers",
    "cudnn_deterministic_toggle": "deterministic",
    "cudnn_benchmark_toggle": "cudnn_benchmark",
    "use_amp": "precision",
    "use_compile": "compile",
    "freq_aug": "freq_mask",
    "model_config.architecture": "model",
    "model_config.nb_samp": "samples",
    "model_config.front_end": "front_end",
    "model_config.bands": "bands",
    "model_config.pooling": "pooling",
    "optim_config.optimizer": "optimizer",
    "optim_config.base_lr": "lr",
    "optim_config.lr_min": "lr_min",
    "optim_config.betas": "betas",
    "optim_config.amsgrad": "amsgrad",
    "optim_config.weight_decay": "weight_decay",
    "optim_config.scheduler": "schedule",
}
"""Keys of the JSON ``.conf`` files of AASIST and its kin that mean the same here."""
