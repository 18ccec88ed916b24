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
    from hotlap.pack.packer import pack
    from hotlap.pack.plan_parts import PackSettings
    from hotlap.pack.reader import Pack
    from hotlap.pack.sources import SourceOptions, open_source

_HOME = {
    "Pack": "reader",
    "PackSettings": "plan_parts",
    "SourceOptions": "sources",
    "open_source": "sources",
    "pack": "packer",
}
__all__ = ["Pack", "PackSettings", "SourceOptions", "open_source", "pack"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"hotlap.pack.{_HOME[name]}"), name)
