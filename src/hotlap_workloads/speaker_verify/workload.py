"""The training put together: data, order, model, loss, evaluation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from torch import Tensor, nn

from hotlap_workloads.engine.loader import as_batch
from hotlap_workloads.engine.quarantine import quarantined
from hotlap_workloads.engine.scored_task import ScoredTask
from hotlap_workloads.engine.task import Context, TrainSet
from hotlap_workloads.errors import SettingsError, WorkloadError
from hotlap_workloads.parts.audio_file import FromFiles, Wave, read_wave
from hotlap_workloads.parts.class_order import ClassGroups
from hotlap_workloads.parts.crop import LongEnough
from hotlap_workloads.parts.flat_bank import FlatBank, flat_bank
from hotlap_workloads.parts.trials import Trials, read_trials
from hotlap_workloads.speaker_verify.augment_batch import BatchAugment
from hotlap_workloads.speaker_verify.augment_sample import SampleAugment
from hotlap_workloads.speaker_verify.data import BankCrops, FileCrops
from hotlap_workloads.speaker_verify.lists import read_train_list
from hotlap_workloads.speaker_verify.losses import make_loss
from hotlap_workloads.speaker_verify.made_data import make_data
from hotlap_workloads.speaker_verify.model import SpeakerNet, samples_of
from hotlap_workloads.speaker_verify.noises import NoiseFiles, find_noises
from hotlap_workloads.speaker_verify.presets import ALIASES, PRESETS, translated
from hotlap_workloads.speaker_verify.scoring import EvalCrops, Scorer
from hotlap_workloads.speaker_verify.settings import PAIR_LOSSES, SpeakerSettings

__all__ = ["WORKLOAD", "SpeakerObjective"]


class SpeakerObjective(nn.Module):
    """A batch (waves, labels) to its loss; waves are int16 or floats in -1 to 1, (batch, samples)."""

    def __init__(self, net: SpeakerNet, loss: nn.Module, augment: BatchAugment | None) -> None:
        super().__init__()
        self.net, self.loss, self.augment = net, loss, augment

    def forward(self, batch: tuple[Tensor, Tensor]) -> dict[str, Tensor]:
        waves, labels = batch
        waves = waves if waves.is_floating_point() else waves.float() / 32768
        if self.augment is not None:
            waves = self.augment(waves)
        said: dict[str, Tensor] = self.loss(self.net(waves), labels)
        return said


class SpeakerVerify:
    """The workload of this name."""

    name = "speaker_verify"
    summary = "speaker verification on VoxCeleb-like lists: SE-ResNets, margin and pair losses, EER and minDCF"
    presets = PRESETS
    aliases = ALIASES
    translated = staticmethod(translated)

    def build(self, settings: SpeakerSettings, context: Context) -> ScoredTask:
        s = settings
        data, noises = _folders(s, context)
        utterances = read_train_list(data / s.train_list, data / s.wav_folder, must_exist=not context.quarantine)
        # all that will be due, now: what is wrong with it would end the training later
        due = (False, True) if s.heavy_every_epochs > 0 else (False,)
        trials = [_trials(s, data, heavy, context) for heavy in due]
        listed = [*utterances.paths, *(noises.paths if noises else []), *(path for one in trials for path in one.paths)]
        bad = quarantined(listed, read_wave, context)
        utterances, trials = utterances.without(bad), [one.without(bad) for one in trials]
        noises = noises.without(bad) if noises else None
        most = _most(s, len(utterances.speakers), context)
        net = SpeakerNet(s)
        on_device: BatchAugment | None = None
        in_loader: SampleAugment | None = None
        if noises and s.augment == "batch":
            on_device = BatchAugment(noises, s.noise_minutes, context.device, s.rooms)
        elif noises:
            in_loader = SampleAugment(noises)
        samples = samples_of(s.crop_s)
        train_set: TrainSet = FileCrops(utterances, samples, in_loader)
        if s.decode == "once":
            train_set = BankCrops(utterances, _bank(utterances.paths, "train", context, samples), samples, in_loader)

        @cache
        def scorer(heavy: bool) -> Scorer:
            if heavy and len(trials) == 1:  # quarantined with those of before, so that quarantine.txt stays complete
                found = _trials(s, data, True, context)
                trials.append(found.without(quarantined([*listed, *found.paths], read_wave, context)))
            return _scorer(s, net, trials[heavy], context, "heavy" if heavy else "trials")

        return ScoredTask(
            objective=SpeakerObjective(net, make_loss(s, len(utterances.speakers)), on_device),
            train_set=train_set,
            order=ClassGroups(utterances.labels, s.seed, s.group),
            stages=list(net.stages),
            collate=as_batch if s.decode == "once" else None,
            scorer=scorer,
            batch_most=most,
        )


def _folders(s: SpeakerSettings, context: Context) -> tuple[Path, NoiseFiles | None]:
    """The data's folder, and the noises where they are asked for."""
    data, musan, rirs = context.data_or_made(make_data), s.musan, s.rirs
    if s.augment == "none":
        return data, None
    if (data / "musan").is_dir() and (data / "rirs").is_dir():
        musan, rirs = musan or str(data / "musan"), rirs or str(data / "rirs")
    if not (musan and rirs):
        raise SettingsError(
            f"augment={s.augment} needs noises and rooms.", "Set musan=DIR and rirs=DIR, or augment=none."
        )
    return data, find_noises(Path(musan), Path(rirs))


def _trials(s: SpeakerSettings, data: Path, heavy: bool, context: Context) -> Trials:
    """With quarantine, files that are not there are found by reading them, like any other that cannot be read."""
    file, root = data / (s.heavy_trials if heavy else s.trials), data / (s.trial_folder or s.wav_folder)
    return read_trials(file, root, must_exist=not context.quarantine)


def _most(s: SpeakerSettings, speakers: int, context: Context) -> int:
    """The largest batch that has a speaker once, where the loss wants that; else 0. Raises where it is exceeded."""
    if s.loss not in PAIR_LOSSES:
        return 0
    most = speakers // context.ranks.world * s.group
    if s.batch_size > most:
        places = s.batch_size * context.ranks.world // s.group
        raise WorkloadError(
            f"loss={s.loss} wants each speaker once in a batch; {places} places, {speakers} speakers.",
            f"Set batch_size to at most {most}.",
        )
    return most


def _bank(paths: Sequence[Path], name: str, context: Context, least: int = 0) -> FlatBank[np.int16]:
    read = LongEnough(FromFiles(paths), least)
    return flat_bank(context.out / f"{name}.bank", paths, read, np.int16, context.ranks, made=least)


def _scorer(s: SpeakerSettings, net: nn.Module, trials: Trials, context: Context, name: str) -> Scorer:
    read: Callable[[int], Wave] = FromFiles(trials.paths)
    if s.decode == "once":
        read = _bank(trials.paths, name, context)
    crops = EvalCrops(len(trials.paths), read, samples_of(s.eval_crop_s), s.eval_crops)
    costs = s.p_target, s.c_miss, s.c_fa
    return Scorer(net, crops, trials, context.device, context.ranks, s.eval_files, s.eval_workers, *costs)


WORKLOAD = SpeakerVerify()
