"""Where a pack's rows come from; :func:`open_source` recognises the kind by name and content."""

from __future__ import annotations

import json
import re
from pathlib import Path

from hotlap.pack.sources.contract import BadRow, Source
from hotlap.pack.sources.options import RESIZED, SourceOptions
from hotlap.pack.sources.read import is_url, read_file
from hotlap.records.errors import HotlapError

__all__ = ["BadRow", "Source", "SourceOptions", "is_on_disk_alone", "names_rows", "open_source"]

_LISTS = (".txt", ".lst", ".csv", ".tsv")
_ARRAYS = (".npy", ".npz", ".pt", ".pth")
_RECORDS = (".tar", ".rec", ".parquet")


def open_source(spec: str, options: SourceOptions | None = None) -> Source:
    """``spec``: a folder, a list, ``.npy .npz .pt .json .tar .rec .parquet``, ``hf:NAME``, or ``module:Dataset``."""
    options = options or SourceOptions()
    source = _open(spec, options)
    if options.size is not None and RESIZED not in source.metadata:
        raise HotlapError(f"--size resizes images, and {spec} has none.", "Leave it out.", exit_code=2)
    return source


def is_on_disk_alone(spec: str) -> bool:
    """Whether files of this kind, which hold many rows each, are read from a local disk alone."""
    return spec.lower().endswith((*_ARRAYS, *_RECORDS))


def names_rows(spec: str) -> bool:
    """Whether it is a document that names the files of its rows."""
    return spec.lower().endswith((*_LISTS, ".json"))


def _open(spec: str, options: SourceOptions) -> Source:
    name = spec.lower()
    if options.root is not None and not names_rows(spec):
        raise HotlapError(f"--root is where the names in a list lie, and {spec} is no list.", "Leave it out.",
                          exit_code=2)  # fmt: skip
    if spec.startswith("hf:"):
        from hotlap.pack.sources.hugging import HubSource

        return HubSource(spec.removeprefix("hf:"), options)
    if re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*", spec) and not Path(spec).exists():
        from hotlap.pack.sources.python_dataset import DatasetSource

        return DatasetSource(spec)
    if not is_url(spec) and "{" not in spec and not Path(spec).exists():
        raise HotlapError(f"{spec} does not exist.", "Name a folder, a file, or module:Dataset.")
    if is_url(spec) and is_on_disk_alone(spec):
        raise HotlapError(f"{spec} is of a kind that is read from a local disk alone.",
                          "Copy it there first: hotlap stage URL DIR, or hotlap.pack.source_of.")  # fmt: skip
    if name.endswith(_ARRAYS):
        from hotlap.pack.sources.arrays import ArraySource

        return ArraySource(spec)
    found = _records(spec, options)
    return _files(spec, options) if found is None else found


def _records(spec: str, options: SourceOptions) -> Source | None:
    """Formats that hold many rows in one file."""
    name = spec.lower()
    if name.endswith(".tar"):
        from hotlap.pack.sources.webdataset import TarSource

        return TarSource(spec, options)
    if name.endswith(".rec"):
        from hotlap.pack.sources.recordio import RecordSource

        return RecordSource(spec, options)
    if name.endswith(".parquet") or (Path(spec).is_dir() and any(Path(spec).glob("*.parquet"))):
        from hotlap.pack.sources.parquet import ParquetSource

        return ParquetSource(spec, options)
    return None


def _files(spec: str, options: SourceOptions) -> Source:
    from hotlap.pack.sources.coco import coco_json
    from hotlap.pack.sources.listed import file_folder, file_list, identity_json

    if spec.lower().endswith(_LISTS):
        return file_list(spec, options)
    if spec.lower().endswith(".json"):
        try:
            found = json.loads(read_file(spec))
        except (ValueError, RecursionError) as err:
            raise HotlapError(f"{spec} is not JSON that can be read: {err}.") from err
        if isinstance(found, dict) and "images" in found and "annotations" in found:
            return coco_json(spec, found, options)
        if isinstance(found, dict) and found and all(isinstance(v, list) for v in found.values()):
            return identity_json(spec, found, options)
        raise HotlapError(f"{spec} is neither COCO annotations nor {{identity: [image, …]}}.")
    if not is_url(spec) and not Path(spec).is_dir():
        raise HotlapError(f"{spec} is of no kind that can be packed.", "See docs/how-to/pack.md for those there are.")
    return file_folder(spec, options)
