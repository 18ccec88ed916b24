"""The training put together: data, model, loss, evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hotlap_workloads.anti_spoof.averaging import WeightMean
from hotlap_workloads.anti_spoof.clips import Clips
from hotlap_workloads.anti_spoof.data import BankClips, FileClips
from hotlap_workloads.anti_spoof.layouts import Part
from hotlap_workloads.anti_spoof.model import SpoofNet, make_front_end
from hotlap_workloads.anti_spoof.parts_read import PartReader
from hotlap_workloads.anti_spoof.presets import ALIASES, PRESETS, translated
from hotlap_workloads.anti_spoof.scoring import Feed, Scorer
from hotlap_workloads.anti_spoof.settings import SpoofSettings
from hotlap_workloads.engine.loader import as_batch
from hotlap_workloads.engine.order import Order, Shuffled
from hotlap_workloads.engine.task import Context, TrainSet
from hotlap_workloads.parts.audio_file import FromFiles
from hotlap_workloads.parts.crop import LongEnough
from hotlap_workloads.parts.flat_bank import flat_bank

__all__ = ["WORKLOAD", "SpoofObjective", "SpoofTask"]


class SpoofObjective(nn.Module):
    """A batch (waves or features, keys) to its loss: cross-entropy, each sample weighted by its class."""

    weights: Tensor

    def __init__(self, net: SpoofNet, s: SpoofSettings) -> None:
        super().__init__()
        self.net = net
        self.mean = WeightMean(net) if s.swa else None
        self.register_buffer("weights", torch.tensor(s.class_weights), persistent=False)

    def forward(self, batch: tuple[Tensor, Tensor]) -> dict[str, Tensor]:
        x, keys = batch
        logits = self.net(x)
        accuracy = (logits.argmax(dim=1) == keys).float().mean()
        return {"loss": F.cross_entropy(logits, keys, self.weights), "accuracy": accuracy}


@dataclass
class SpoofTask:
    """What the engine trains. ``scorer(part)`` opens a part of the data, when it is first needed."""

    objective: SpoofObjective
    train_set: TrainSet
    order: Order
    stages: Sequence[nn.Module]
    collate: Callable[[list[Any]], Any] | None
    scorer: Callable[[Part], Scorer]
    train_batches: Callable[[], Iterable[Tensor]]

    def evaluate(self, heavy: bool) -> dict[str, float]:
        """The dev part, or the eval part: also with the mean of the weights, where there is one."""
        mean = self.objective.mean
        if not heavy:
            measured = self.scorer("dev").measure()
            if mean is not None:
                mean.look(self.objective.net, measured["eer"])
            return measured
        scorer = self.scorer("eval")
        measured = {f"heavy_{name}": value for name, value in scorer.measure().items()}
        if mean is not None and mean.count:
            with self.final_weights():
                measured |= {f"heavy_swa_{name}": value for name, value in scorer.measure().items()}
        return measured

    def final_weights(self) -> AbstractContextManager[None]:
        """Within it, the network has the mean of its weights where the training keeps one."""
        mean = self.objective.mean
        if mean is None or not mean.count:
            return nullcontext()
        return mean.used_by(self.objective.net, self.train_batches())


class AntiSpoof:
    """The workload of this name."""

    name = "anti_spoof"
    summary = "recorded or made speech on ASVspoof-like sets: SE-ResNets over log-mel, LFCC or waveforms, EER and t-DCF"
    presets = PRESETS
    aliases = ALIASES
    translated = staticmethod(translated)

    def build(self, settings: SpoofSettings, context: Context) -> SpoofTask:
        s = settings
        read = PartReader(s, context)
        # all that will be due, now: what is wrong with it would end the training later
        due: list[Part] = ["dev", "eval"] if s.heavy_every_epochs > 0 else ["dev"]
        clips, *evaluated = read.clips("train", *due)
        known = {part: (found, read.asv(part)) for part, found in zip(due, evaluated, strict=True)}
        collate = as_batch if s.decode == "once" else None
        feed = Feed(context.device, s.eval_batch_size, s.eval_workers, collate)
        net = SpoofNet(s)
        train_set = _data(s, clips, "train", context)

        @cache
        def scorer(part: Part) -> Scorer:
            if part not in known:
                known[part] = read.clips(part)[0], read.asv(part)
            found, asv = known[part]
            return Scorer(net, found, _data(s, found, part, context), feed, context.ranks, asv)

        return SpoofTask(
            objective=SpoofObjective(net, s),
            train_set=train_set,
            order=Shuffled(len(clips.keys), s.seed),
            stages=list(net.stages),
            collate=collate,
            scorer=scorer,
            train_batches=lambda: feed.batches(train_set, list(range(len(train_set)))),
        )


def _data(s: SpoofSettings, clips: Clips, part: Part, context: Context) -> FileClips | BankClips:
    on_device = s.front_end_at == "batch" or s.front_end in ("sinc", "conv")
    features = None if on_device else make_front_end(s)
    if s.decode == "each_time":
        return FileClips(clips, s.samples, features, at_random=part == "train")
    read = LongEnough(FromFiles(clips.paths), s.samples)
    bank = flat_bank(context.out / f"{part}.bank", clips.paths, read, np.int16, context.ranks, made=s.samples)
    return BankClips(clips, s.samples, bank, features, at_random=part == "train")


WORKLOAD = AntiSpoof()
