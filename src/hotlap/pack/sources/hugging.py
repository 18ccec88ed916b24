"""Hugging Face ``datasets``: a folder that ``save_to_disk`` wrote, or a data set by name (``hf:NAME#SPLIT``)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hotlap.pack.sources.files import ImageReader, is_encoded
from hotlap.pack.sources.options import SourceOptions
from hotlap.pack.sources.table_cells import cell, image_bytes, number_type
from hotlap.records.errors import HotlapError

__all__ = ["HubSource"]


class HubSource:
    """Rows of one split, images and audio as the files they are stored as."""

    def __init__(self, spec: str, options: SourceOptions) -> None:
        if not spec.partition("#")[0]:
            raise HotlapError("hf: names no data set.", "Write hf:NAME, hf:NAME#SPLIT or hf:FOLDER.", exit_code=2)
        try:
            import datasets
        except ImportError as err:
            raise HotlapError("This source needs the package datasets.", "pip install datasets") from err
        data: Any = _open(datasets, spec)
        self._images = {n for n, f in data.features.items() if isinstance(f, datasets.Image)}
        for column in self._images:
            data = data.cast_column(column, datasets.Image(decode=False))
        for column in [n for n, f in data.features.items() if isinstance(f, datasets.Audio)]:
            data = data.cast_column(column, datasets.Audio(decode=False))
        self._numbers = {f.name: number_type(f.type) for f in data.features.arrow_schema}
        self._data = data
        self._spec = spec
        self.ragged = frozenset(n for n, f in data.features.items() if isinstance(f, datasets.Sequence | list))
        labels = {n: f.names for n, f in data.features.items() if isinstance(f, datasets.ClassLabel)}
        self.metadata: dict[str, Any] = {
            "source": f"hf:{spec}",
            **({"classes": next(iter(labels.values()))} if labels else {}),
        }
        first = next(iter(sorted(self._images)), None)
        encoded = first is None or is_encoded(options, lambda i: self._file(data[i][first]) or b"", len(data))
        self._image = ImageReader(encoded, options, len(self._images) > 1)
        if first is not None:
            self.metadata |= self._image.metadata

    @staticmethod
    def _file(value: Any) -> bytes | None:
        if isinstance(value, dict) and value.get("bytes") is None and value.get("path"):
            return Path(value["path"]).read_bytes()
        return image_bytes(value)

    def __len__(self) -> int:
        return len(self._data)

    def name(self, index: int) -> str:
        return f"hf:{self._spec}[{index}]"

    def row(self, index: int) -> dict[str, Any]:
        row: dict[str, Any] = {}
        for name, value in self._data[index].items():
            is_file = isinstance(value, dict) and "path" in value
            content = self._file(value) if is_file else value
            row |= cell(name, content, name in self._images, self._image, self._numbers.get(name))
        return row

    def fingerprint(self) -> str:
        return f"hf {self._spec} {self._data._fingerprint} {self._image.mark}"


def _open(datasets: Any, spec: str) -> Any:
    """The split that ``spec`` names (else ``train``), of a saved folder or by name."""
    name, _, split = spec.partition("#")
    try:
        if not any((Path(name) / file).exists() for file in ("dataset_info.json", "dataset_dict.json")):
            return datasets.load_dataset(name, split=split or "train")
        data = datasets.load_from_disk(name)
    except (OSError, ValueError) as err:
        raise HotlapError(f"hf:{spec} cannot be opened: {err}") from err
    if not isinstance(data, Mapping):
        if not split or data.split is None:
            return data
        data = {str(data.split): data}
    split = split or "train"
    if split not in data:
        raise HotlapError(f"{name} holds the splits {', '.join(data)}, no {split!r}.", "Name one: hf:FOLDER#SPLIT.")
    return data[split]
