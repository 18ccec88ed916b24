"""Presets, each derived from another, and what the published trainer calls the same settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hotlap_workloads.engine.config_file import Values, left_out
from hotlap_workloads.engine.machine import Machine
from hotlap_workloads.engine.profiles import compiled, fastest, from_pack
from hotlap_workloads.engine.task import Preset
from hotlap_workloads.errors import SettingsError
from hotlap_workloads.speaker_verify.settings import SpeakerSettings

__all__ = ["ALIASES", "PRESETS", "translated"]


EARNED_BACK = 1_000
"""Steps from which on compiling pays. Prior: they save almost two minutes, at 0.83 instead of 0.94 s a step on two
cores (one round: bench/results/ladder_speaker_verify_cpu.json), and a first start is taken to last no longer."""


def slow(machine: Machine) -> SpeakerSettings:
    """As such trainings are often run."""
    return SpeakerSettings(
        epochs=10,
        batch_size=100,
        workers=1,
        lr=1e-3,
        weight_decay=5e-5,
        schedule="step",
        decay=0.75,
        decay_every_epochs=3.0,
        augment="sample",
        read_loss_every_step=True,
        evaluate_every_epochs=1.0,
        eval_batch_size=10,
        trackers=machine.tracker("tensorboard"),
    )


def fast(machine: Machine) -> SpeakerSettings:
    """The same training on the same samples, tuned by hand for this machine.

    A CPU keeps the batch of 100: twice the batch gains nothing there, and would change the training, as it does on a
    GPU, where the learning rate stays that of 100.
    """
    tuned = fastest(slow(machine), machine)
    return replace(
        compiled(from_pack(tuned, machine), machine, EARNED_BACK),
        batch_size=200 if machine.gpu else 100,
        augment="batch",
        decode="once",
        evaluate_every_epochs=3.0,
        eval_batch_size=80,
        eval_workers=min(tuned.workers, 4),
    )


def fast_accumulate(machine: Machine) -> SpeakerSettings:
    """Four micro-batches of 100 make a step: the gradients of 400 in the memory of 100."""
    return replace(fast(machine), batch_size=100, accumulate=4)


def small_model(machine: Machine) -> SpeakerSettings:
    """Half the channels and half the embedding: about a quarter of the arithmetic."""
    return replace(fast(machine), width=0.5, embedding=256)


PRESETS = {
    "slow": Preset(
        slow, "one loading process, decoding and augmentation per sample, fp32, .item() each step, one file at a time"
    ),
    "fast": Preset(
        fast,
        "decoded once, augmented by batch, autocast, compiled on a CPU, no waiting for the loss, evaluated in batches "
        "every 3 epochs; a batch of 200 on a GPU, at the learning rate of 100",
    ),
    "fast_accumulate": Preset(fast_accumulate, "fast, with steps of 4 x 100 samples"),
    "small_model": Preset(small_model, "fast, with half the width"),
}

IGNORED = {
    "nClasses": "the speakers of train_list are counted",
    "nLcasses": "the speakers of train_list are counted",
    "save_path": "--out names the run's folder",
    "log_input": "the mel energies are always logarithms",
    "patience": "no training stops early here",
    "max_seg_per_spk": "an epoch has every utterance of every speaker once",
}
"""Keys of the published trainer's files that nothing here answers to, and why."""


def translated(values: Values, say: Callable[[str], None]) -> Values:
    """A file as the VoxCeleb trainer's with what means something else there, and ``say`` for what is left out.

    There ``batch_size`` counts speakers, each with ``nPerSpeaker`` utterances, the learning rate falls every
    ``test_interval`` epochs, ``max_frames`` and ``eval_frames`` are the lengths of crops in frames of 10 ms, and
    ``augment`` is a switch: true is the way in which the preset augments.
    """
    out = left_out(values, IGNORED, say)
    for theirs, ours in (("max_frames", "crop_s"), ("eval_frames", "eval_crop_s")):
        if theirs in out:
            out[ours] = _seconds(theirs, out.pop(theirs))
    if "scheduler" in out:
        if (scheduler := out.pop("scheduler")) != "steplr":
            raise SettingsError(f"scheduler={scheduler!r} is not known here.", "steplr is; or set schedule=cosine.")
        out.setdefault("schedule", "step")
    if isinstance(switch := out.get("augment"), bool):
        del out["augment"]
        out |= {} if switch else {"augment": "none"}
    size, each = out.get("batch_size"), out.get("nPerSpeaker")
    if isinstance(size, int) and isinstance(each, int) and each > 1:
        out["batch_size"] = size * each
        say(f"batch_size={size} speakers with nPerSpeaker={each} utterances each are batch_size={size * each} here.")
    if "test_interval" in out:
        out.setdefault("decay_every_epochs", out["test_interval"])
    return out


def _seconds(name: str, frames: object) -> float:
    """The length of a crop: frames every 10 ms, and as much more as the trainer reads for the last window."""
    if isinstance(frames, bool) or not isinstance(frames, int) or frames < 1:
        raise SettingsError(f"{name}={frames!r} is not a number of frames of 10 ms, of at least 1.", "For example 200.")
    return (frames * 160 + 240) / 16_000


ALIASES = {
    "nDataLoaderThread": "workers",
    "max_epoch": "epochs",
    "test_interval": "evaluate_every_epochs",
    "nOut": "embedding",
    "n_mels": "mels",
    "encoder_type": "pooling",
    "trainfunc": "loss",
    "nPerSpeaker": "utterances",
    "num_eval": "eval_crops",
    "lr_decay": "decay",
    "dcf_p_target": "p_target",
    "dcf_c_miss": "c_miss",
    "dcf_c_fa": "c_fa",
    "test_list": "trials",
    "train_path": "wav_folder",
    "test_path": "trial_folder",
    "musan_path": "musan",
    "rir_path": "rirs",
    "mixedprec": "precision",
}
"""Keys of the VoxCeleb trainer's ``experiment_01.yaml`` that mean the same here."""
