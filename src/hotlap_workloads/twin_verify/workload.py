"""The training put together: data, order, model, losses, evaluation."""

from __future__ import annotations

from functools import cache, partial

from hotlap_workloads.engine.loader import as_batch
from hotlap_workloads.engine.quarantine import quarantined
from hotlap_workloads.engine.scored_task import ScoredTask
from hotlap_workloads.engine.task import Context
from hotlap_workloads.errors import DataError, SettingsError
from hotlap_workloads.twin_verify.album import Album
from hotlap_workloads.twin_verify.data import BatchOfPairs, OnePair
from hotlap_workloads.twin_verify.made_data import make_data
from hotlap_workloads.twin_verify.objective import TwinObjective
from hotlap_workloads.twin_verify.optimized import Optimized, is_optimized, read_optimized
from hotlap_workloads.twin_verify.pairs import Groups, PairLaw, PairOrder, PairTable, compute_pairs
from hotlap_workloads.twin_verify.pixels import FromFiles, FromPack, Pixels, pack_images, read_sized
from hotlap_workloads.twin_verify.presets import ALIASES, PRESETS, for_made_data
from hotlap_workloads.twin_verify.scoring import Scorer
from hotlap_workloads.twin_verify.settings import TwinSettings
from hotlap_workloads.twin_verify.splits import read_people
from hotlap_workloads.twin_verify.trials import Trials, make_trials

__all__ = ["WORKLOAD"]

REPACK = "Run optimize_data again."


class TwinVerify:
    """The workload of this name."""

    name = "twin_verify"
    summary = "verification of identical twins by DCAL: a vision transformer with three attentions, pairs of images"
    presets = PRESETS
    aliases = ALIASES
    for_made_data = staticmethod(for_made_data)

    def build(self, settings: TwinSettings, context: Context) -> ScoredTask:
        s = settings
        data = context.data_or_made(make_data)
        if context.data is None:
            images = f"images of {s.image_size}x{s.image_size} and tokens of {s.width}"
            context.say(f"No --data: training on {data}, made here, with {images}.")
        made = read_optimized(data) if is_optimized(data) else None
        album, splits = (made.album, made.splits) if made else read_people(s, data)
        if made is None:
            album = album.without(quarantined(album.paths, partial(read_sized, size=s.image_size), context))
        law = PairLaw(album, splits["train"], s.seed, s.twin_share)
        law.check(data)

        @cache
        def trials(heavy: bool) -> Trials:
            split = "test" if heavy else "val"
            return make_trials(album, splits[split], s.trials_per_image, s.twin_share).of_both_kinds(data, split)

        trials(False)  # now, and what is due later as well: an evaluation that cannot be would end the training
        if s.heavy_every_epochs > 0:
            trials(True)
        if made is not None and not s.pairs_per_epoch:
            count = made.groups
        else:
            count = (s.pairs_per_epoch or 2 * sum(len(album.images_of[p]) for p in splits["train"])) // 2
        _check_ranks(s, context)
        groups: Groups = law
        if s.pairs == "precomputed":
            table = made.pairs_for(s, count) if made else None
            groups = PairTable(compute_pairs(law, s.epochs, count) if table is None else table)
        pixels = _pixels(s, album, made, context)
        objective = TwinObjective(s)
        kind = BatchOfPairs if s.branches == "joint" else OnePair
        return ScoredTask(
            objective=objective,
            train_set=kind(groups, count, pixels, album.person_of(), s.seed if s.augment else None),
            order=PairOrder(count, s.seed, 1 if s.batch_size % 2 else 2),
            stages=[*objective.net.blocks, *objective.net.glca],
            collate=as_batch if s.branches == "joint" else None,
            scorer=lambda heavy: Scorer(objective, pixels, trials(heavy), s, context.device, context.ranks),
        )


def _check_ranks(s: TwinSettings, context: Context) -> None:
    if context.ranks.world > 1 and s.batch_size % 2:
        raise SettingsError(
            f"batch_size={s.batch_size} is odd, and the two pairs of a group go to the same of the "
            f"{context.ranks.world} ranks.",
            f"Set batch_size={s.batch_size + 1}.",
        )


def _pixels(s: TwinSettings, album: Album, made: Optimized | None, context: Context) -> Pixels:
    if s.images == "files":
        for number in album.used():
            if not album.paths[number].exists():
                raise DataError(album.paths[number], "does not exist.", "--quarantine leaves such images out.")
        return FromFiles(album.paths, s.image_size)
    if made is not None:
        pack = FromPack(made.images, REPACK)
        if pack.size != s.image_size:
            raise DataError(
                made.images,
                f"holds images of {pack.size} pixels, image_size={s.image_size}.",
                REPACK,
            )
        return pack
    folder = context.out / "images.pack"
    if context.ranks.first:
        pack_images(album, s.image_size, folder)
    context.ranks.wait()
    return FromPack(folder)


WORKLOAD = TwinVerify()
