"""Presets, each derived from another, and what the published training calls the same settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hotlap_workloads.engine.config_file import Values
from hotlap_workloads.engine.machine import Machine
from hotlap_workloads.engine.profiles import compiled, fastest, from_pack
from hotlap_workloads.engine.task import Preset
from hotlap_workloads.face_distill.settings import UNTRAINED, FaceSettings

__all__ = ["ALIASES", "PRESETS", "for_made_data", "translated"]


EARNED_BACK = 4_000
"""Steps from which on compiling pays. Prior: they save half a minute, at 35 instead of 43 ms a step on two cores
(bench/results/ladder_face_distill_cpu.json), and a first start is taken to last no longer."""


def slow(machine: Machine) -> FaceSettings:
    """As published, with the habits that make it slow."""
    return FaceSettings(
        epochs=26,
        batch_size=128,
        workers=16,
        eval_batch_size=10,
        optimizer="sgd",
        lr=0.1,
        lr_for_samples=512,
        weight_decay=5e-4,
        schedule="step",
        decay=0.1,
        decay_every_epochs=7.0,
        clip_norm=5.0,
        pin_memory=machine.gpu,
        read_loss_every_step=True,
        evaluate_every_epochs=0.25,
        heavy_every_epochs=1.0,
        trackers=machine.tracker("tensorboard"),
    )


def fast(machine: Machine) -> FaceSettings:
    """The same training on the same samples, tuned by hand for this machine.

    In fp32 on a CPU: MobileFaceNet convolves each channel by itself, which bf16 makes slower there.
    """
    tuned = from_pack(fastest(slow(machine), machine), machine)
    return replace(
        compiled(tuned, machine, EARNED_BACK),
        precision=machine.autocast if machine.gpu else "off",
        eval_batch_size=256 if machine.gpu else 64,
        decode="once",
        flip_on="device",
        teacher_mode="folded",
        teacher_outputs="once",
        evaluate_every_epochs=1.0,
        heavy_every_epochs=4.0,
    )


def reduced_eval(machine: Machine) -> FaceSettings:
    """Fewer evaluations still."""
    return replace(fast(machine), evaluate_every_epochs=2.0, heavy_every_epochs=5.0)


def teacher(machine: Machine) -> FaceSettings:
    """The network that others learn from, trained with centres of its own (Deng et al. 2019)."""
    whole = replace(fast(machine), precision=machine.autocast, compile=False, compile_from_steps=0)
    return replace(whole, student="iresnet50", head="arcface", margin=0.5, warmup_epochs=1.0)


def slow_storage(machine: Machine) -> FaceSettings:
    """The drop that users saw: 930 samples/s until step 1050, and 170 to 210 from there on.

    Step 1050 is where 672 MB of photos of 5 kB each are read, in batches of 128; 5.2 ms a photo are 190 a second.
    """
    return replace(slow(machine), page_cache_mb=672.0, storage_ms=5.2)


def for_made_data(settings: FaceSettings, machine: Machine) -> FaceSettings:
    """What the self-made photos can bear; on a CPU small crops, thin networks, small batches: seconds on two cores.

    Both networks are half as wide, so that the teacher keeps its published share of the arithmetic.
    """
    few = replace(settings, epochs=4, teacher_weights=UNTRAINED, fars=(1e-1, 1e-2))
    if few.page_cache_mb:
        # few are loaded ahead, or the storage would have an epoch's 20 batches ready at its beginning
        few = replace(few, epochs=6, workers=2, page_cache_mb=8.0, storage_ms=50.0)
    if machine.gpu:
        return few
    return replace(
        few,
        size=32,
        batch_size=32,
        lr_for_samples=64,
        embedding=64,
        student_width=0.5,
        teacher_width=0.5,
    )


PRESETS = {
    "slow": Preset(
        slow,
        "16 workers whatever the cores, each photo decoded in each epoch, the teacher in fp32 at each step, "
        ".item() each step, validation four times an epoch in batches of 10, heavy evaluation every epoch",
    ),
    "fast": Preset(
        fast,
        "photos and teacher's embeddings computed once and packed, mirrored by batch on the device, autocast on a GPU, "
        "compiled on a CPU, "
        "workers by cores, no waiting for the loss, validation every epoch, heavy evaluation every 4 epochs",
    ),
    "reduced_eval": Preset(
        reduced_eval, "fast, with validation every 2 and heavy evaluation every 5 epochs: less is known, sooner"
    ),
    "slow_storage": Preset(
        slow_storage,
        "slow, and photos come from a slow disk once the page cache is used up",
    ),
    "teacher": Preset(teacher, "the IResNet-50 that teaches, with plain ArcFace: for teacher_weights of the others"),
}


def translated(values: Values, say: Callable[[str], None]) -> Values:
    """A file as AdaDistill's, where ``warmup_epoch: -1`` is no warm-up."""
    epochs = values.get("warmup_epoch")
    return {**values, "warmup_epoch": 0} if isinstance(epochs, int | float) and epochs < 0 else values


ALIASES = {
    "network": "student",
    "pretrained_teacher_path": "teacher_weights",
    "embedding_size": "embedding",
    "num_classes": "identities",
    "num_epoch": "epochs",
    "warmup_epoch": "warmup_epochs",
    "val_targets": "verification",
    "sample": "photos_per_identity",
    "s": "scale",
    "m": "margin",
}
"""Keys of AdaDistill's ``config.py`` that mean the same here."""
