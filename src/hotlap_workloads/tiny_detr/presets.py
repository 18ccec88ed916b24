"""Presets, each derived from another, and what DETR's own program calls the same settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hotlap_workloads.engine.config_file import Values
from hotlap_workloads.engine.machine import Machine
from hotlap_workloads.engine.profiles import fastest
from hotlap_workloads.engine.task import Preset
from hotlap_workloads.tiny_detr.settings import TinySettings

__all__ = ["ALIASES", "PRESETS", "translated"]


def training(machine: Machine) -> TinySettings:
    """As such trainings are commonly set up."""
    common = TinySettings(
        epochs=20,
        batch_size=24,
        eval_batch_size=24,
        workers=4,
        eval_workers=2,
        prefetch_factor=2,
        precision=machine.autocast,
        query_start="spread",
        channels_last=True,
        tf32=machine.tf32,
        optimizer="adamw",
        lr=2e-4,
        weight_decay=1e-4,
        clip_norm=0.1,
        schedule="cosine",
        warmup_epochs=1.0,
        clahe=True,
        motion_blur=True,
        evaluate_every_epochs=1.0,
        print_every_steps=20,
        track_every_steps=50,
        cleanup_every_steps=10,
        memory_check_every_steps=50,
        trackers=machine.tracker("mlflow"),
        track_model=True,
    )
    return common if machine.gpu else _for_cpu(common)


def _for_cpu(s: TinySettings) -> TinySettings:
    """A model that a CPU can train: an eighteenth of the arithmetic per image."""
    return replace(
        s,
        backbone="resnet18",
        width=0.5,
        d_model=128,
        ffn=512,
        encoder_layers=3,
        decoder_layers=3,
        size=256,
        size_low=192,
        size_high=320,
        longest=416,
    )


def training_fast_a5000(machine: Machine) -> TinySettings:
    """The settings with which users of an A5000 halve the time; without CLAHE and blur it is another training."""
    return replace(
        training(machine),
        batch_size=32 if machine.gpu else 36,
        search_batch_size=machine.gpu,
        search_most=40,
        workers=12,
        prefetch_factor=6,
        persistent_workers=True,
        clahe=False,
        motion_blur=False,
        evaluate_every_epochs=2.0,
        print_every_steps=100,
        track_every_steps=200,
        cleanup_every_steps=30,
        memory_check_every_steps=100,
        track_model=False,
    )


def slow(machine: Machine) -> TinySettings:
    """``training`` with what makes such trainings slow in practice."""
    return replace(
        training(machine),
        padding="worst",
        matching="one_by_one",
        read_loss_every_step=True,
        eval_batch_size=1,
        eval_workers=0,
    )


def fast(machine: Machine) -> TinySettings:
    """The training of ``slow``, same model and batch, tuned by hand for this machine."""
    tuned = fastest(slow(machine), machine)
    return replace(
        tuned,
        padding="bucket",
        matching="at_once",
        decode="once",
        augment="batch",
        eval_batch_size=24,
        eval_workers=min(tuned.workers, 4),
        evaluate_every_epochs=2.0,
        cleanup_every_steps=0,
        memory_check_every_steps=100,
        track_model=False,
    )


PRESETS = {
    "slow": Preset(
        slow,
        "training, padded to the largest image of all, matched image by image, .item() each step, one image at a time "
        "at evaluation",
    ),
    "training": Preset(training, "as such trainings are set up: decoded and augmented per sample, 4 workers"),
    "training_fast_a5000": Preset(
        training_fast_a5000, "batch 36 by search, 12 workers that stay, no CLAHE and blur, half the evaluations"
    ),
    "fast": Preset(
        fast,
        "decoded once, batches of one shape, CLAHE and blur by batch, matching in one go, evaluated every 2 epochs",
    ),
}


def translated(values: Values, say: Callable[[str], None]) -> Values:
    """A file as DETR's, where ``clip_max_norm`` of 0 or less is no clipping."""
    norm = values.get("clip_max_norm")
    return {**values, "clip_max_norm": 0} if isinstance(norm, int | float) and norm < 0 else values


ALIASES = {
    "num_queries": "queries",
    "hidden_dim": "d_model",
    "nheads": "heads",
    "dim_feedforward": "ffn",
    "enc_layers": "encoder_layers",
    "dec_layers": "decoder_layers",
    "num_workers": "workers",
    "clip_max_norm": "clip_norm",
    "aux_loss": "auxiliary",
    "set_cost_class": "cost_class",
    "set_cost_bbox": "cost_box",
    "set_cost_giou": "cost_giou",
    "bbox_loss_coef": "weight_box",
    "giou_loss_coef": "weight_giou",
    "eos_coef": "no_object_weight",
}
"""Arguments of DETR's ``main.py`` that mean the same here."""
