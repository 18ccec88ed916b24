"""The packed-data loader: a data set becomes files that any training reads at the speed of memory.

    hotlap pack images/ faces.pack

    from hotlap.pack import Image, Loader
    for batch in Loader("faces.pack", 128, {"image": Image(crop=(112, 112), flip=0.5)}):
        train(batch["image"], batch["label"])

Usable alone: the rest of Hotlap is not needed, and is not imported. Names are imported when first asked for, so that
packing processes do without torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hotlap.pack.copied import source_of
    from hotlap.pack.dataset import PackedDataset, as_is
    from hotlap.pack.loader import Loader
    from hotlap.pack.order.plain import BlockShuffle, Sequential, Shuffle
    from hotlap.pack.order.quality import mixing
    from hotlap.pack.order.sampled import Balanced, LengthBuckets, OncePerClass, Weighted
    from hotlap.pack.order.tuples import Pairs, Triplets, Tuples
    from hotlap.pack.packer import pack
    from hotlap.pack.plan_parts import PackSettings
    from hotlap.pack.reader import Pack
    from hotlap.pack.settings import LoaderSettings
    from hotlap.pack.sources import SourceOptions, open_source
    from hotlap.pack.staging import stage
    from hotlap.pack.verifying import verify
    from hotlap.pack.views.clip import Clip
    from hotlap.pack.views.image import Image
    from hotlap.pack.views.plain import Flat, Padded, Whole
    from hotlap.records.errors import HotlapError

_HOME = {
    "Balanced": "order.sampled",
    "BlockShuffle": "order.plain",
    "Clip": "views.clip",
    "Flat": "views.plain",
    "HotlapError": "packer",
    "Image": "views.image",
    "LengthBuckets": "order.sampled",
    "Loader": "loader",
    "LoaderSettings": "settings",
    "OncePerClass": "order.sampled",
    "Pack": "reader",
    "PackSettings": "plan_parts",
    "PackedDataset": "dataset",
    "Padded": "views.plain",
    "Pairs": "order.tuples",
    "Sequential": "order.plain",
    "Shuffle": "order.plain",
    "SourceOptions": "sources",
    "Triplets": "order.tuples",
    "Tuples": "order.tuples",
    "Weighted": "order.sampled",
    "Whole": "views.plain",
    "as_is": "dataset",
    "mixing": "order.quality",
    "open_source": "sources",
    "pack": "packer",
    "source_of": "copied",
    "stage": "staging",
    "verify": "verifying",
}
__all__ = [
    "Balanced",
    "BlockShuffle",
    "Clip",
    "Flat",
    "HotlapError",
    "Image",
    "LengthBuckets",
    "Loader",
    "LoaderSettings",
    "OncePerClass",
    "Pack",
    "PackSettings",
    "PackedDataset",
    "Padded",
    "Pairs",
    "Sequential",
    "Shuffle",
    "SourceOptions",
    "Triplets",
    "Tuples",
    "Weighted",
    "Whole",
    "as_is",
    "mixing",
    "open_source",
    "pack",
    "source_of",
    "stage",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"hotlap.pack.{_HOME[name]}"), name)
