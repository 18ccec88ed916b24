"""Presets, each derived from another, by the names that people know them by."""

from __future__ import annotations

from dataclasses import replace

from hotlap_workloads.engine.machine import Machine
from hotlap_workloads.engine.profiles import compiled, fastest, from_pack
from hotlap_workloads.engine.task import Preset
from hotlap_workloads.twin_verify.settings import TwinSettings

__all__ = ["ALIASES", "PRESETS", "for_made_data"]


EARNED_BACK = 5_000
"""Steps from which on compiling pays. Prior: they save three minutes and a half, at 101 instead of 143 ms a step on two
cores (the made images' size, one round: bench/results/ladder_twin_verify_cpu.json), and a first start is taken to last
no longer."""


def slow(machine: Machine) -> TwinSettings:
    """As such trainings are often run."""
    return TwinSettings(
        epochs=10,
        batch_size=3,
        eval_batch_size=3,
        workers=2,
        optimizer="adamw",
        lr=3e-4,
        lr_for_samples=64,
        weight_decay=0.05,
        schedule="cosine",
        warmup_epochs=1.0,
        read_loss_every_step=True,
        eval_pwca=True,
        trackers=machine.tracker("tensorboard"),
    )


def fast(machine: Machine) -> TwinSettings:
    """The same training on the same pairs, tuned by hand for this machine.

    On a CPU explicit attention is faster than the fused one in bf16.
    """
    return replace(
        compiled(from_pack(fastest(slow(machine), machine), machine), machine, EARNED_BACK),
        eval_workers=machine.packed_workers,
        branches="joint",
        attention="fused" if machine.gpu else "explicit",
        pairs="precomputed",
        images="packed",
        eval_batch_size=64 if machine.gpu else 16,
        eval_embed="once",
        eval_pwca=False,
    )


def kaggle_p100_fast(machine: Machine) -> TwinSettings:
    """Half the blocks, from files, with loading processes instead of a pack: six where the machine has the cores."""
    workers = machine.workers(6)
    return replace(
        fast(machine),
        sa_blocks=6,
        pwca_blocks=6,
        batch_size=12,
        workers=workers,
        persistent_workers=workers > 0,
        eval_workers=workers,
        pairs="run_time",
        images="files",
    )


def kaggle_p100_minimal(machine: Machine) -> TwinSettings:
    """A third of the blocks and the two losses that need no mining."""
    return replace(kaggle_p100_fast(machine), sa_blocks=4, pwca_blocks=4, batch_size=16, triplet=0.0)


def kaggle_p100_data_optimized(machine: Machine) -> TwinSettings:
    """kaggle_p100_fast on what optimize_data made, or makes at the start."""
    return replace(fast(machine), sa_blocks=6, pwca_blocks=6, batch_size=12)


def local_2080ti_fast(machine: Machine) -> TwinSettings:
    """kaggle_p100_fast in 11 GB, for each of two GPUs."""
    workers = machine.workers(4)
    return replace(
        kaggle_p100_fast(machine),
        batch_size=8,
        workers=workers,
        persistent_workers=workers > 0,
        eval_workers=workers,
    )


def for_made_data(settings: TwinSettings, machine: Machine) -> TwinSettings:
    """What the self-made photos can bear; on a CPU small images and thin blocks, as many as before."""
    few = replace(settings, epochs=3)
    return few if machine.gpu else replace(few, image_size=112, width=192, heads=3, mlp=768)


PRESETS = {
    "slow": Preset(
        slow,
        "batch 3, two loading processes, pairs drawn and images decoded at run time, fp32, an image embedded for every "
        "pair that it is in, PWCA in evaluation too",
    ),
    "fast": Preset(
        fast,
        "the model and batch of slow: pairs precomputed, images packed, an image embedded once, PWCA as one attention "
        "and in training alone, autocast, compiled on a CPU",
    ),
    "kaggle_p100_fast": Preset(kaggle_p100_fast, "6 + 1 + 6 blocks, batch 12, autocast, up to 6 loading processes"),
    "kaggle_p100_minimal": Preset(
        kaggle_p100_minimal, "4 + 1 + 4 blocks, batch 16, no triplet loss: the quickest look at a data set"
    ),
    "kaggle_p100_data_optimized": Preset(
        kaggle_p100_data_optimized,
        "kaggle_p100_fast with pairs precomputed and images packed: give it optimize_data's folder",
    ),
    "local_2080ti_fast": Preset(
        local_2080ti_fast, "6 + 1 + 6 blocks, batch 8 per GPU, for torchrun --nproc-per-node 2 on two cards of 11 GB"
    ),
}

ALIASES = {
    "img_size": "image_size",
    "patch_size": "patch",
    "embed_dim": "width",
    "num_heads": "heads",
    "num_sa_blocks": "sa_blocks",
    "num_glca_blocks": "glca_blocks",
    "num_pwca_blocks": "pwca_blocks",
    "drop_path_rate": "stochastic_depth",
    "local_ratio": "local_share",
    "num_workers": "workers",
    "learning_rate": "lr",
    "num_epochs": "epochs",
    "triplet_margin": "margin",
    "gradient_accumulation_steps": "accumulate",
    "max_grad_norm": "clip_norm",
}
"""What configurations of such trainings call the same settings."""
