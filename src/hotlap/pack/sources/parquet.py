"""Parquet: a file or a folder of them, read by row group, images decoded where a column holds them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hotlap.pack.arrow import pyarrow
from hotlap.pack.sources.contract import BadRow
from hotlap.pack.sources.decode import image_size
from hotlap.pack.sources.files import ImageReader, is_encoded
from hotlap.pack.sources.options import SourceOptions
from hotlap.pack.sources.read import stamp
from hotlap.pack.sources.table_cells import cell, image_bytes, number_type
from hotlap.records.errors import HotlapError

__all__ = ["ParquetSource"]

_PROBED = 32
_GROUPS_PROBED = 8
"""Rows at the beginning, and more over the whole source (a row group is read for each), that tell what a column is."""


class ParquetSource:
    """Rows of all files in the order of their names. One row group is held at a time."""

    def __init__(self, spec: str, options: SourceOptions) -> None:
        pyarrow()
        import pyarrow.parquet as pq

        path = Path(spec)
        self._paths = [str(p) for p in sorted(path.glob("*.parquet"))] if path.is_dir() else [spec]
        self.metadata: dict[str, Any] = {"source": spec}
        self._groups: list[tuple[int, str, int]] = []
        total = 0
        try:
            for name in self._paths:
                found = pq.read_metadata(name)
                for group in range(found.num_row_groups):
                    self._groups.append((total, name, group))
                    total += found.row_group(group).num_rows
            kinds = pq.read_schema(self._paths[0])
        except (OSError, ValueError) as err:
            raise HotlapError(f"{spec} cannot be read: {err}") from err
        self._total = total
        self.ragged = frozenset(f.name for f in kinds if _is_list(f.type))
        self._numbers: dict[str, Any] = {}
        """Of the row group that is held: files of a folder may differ."""
        self._held: tuple[int, list[dict[str, Any]]] = (-1, [])
        self._images = self._image_columns(frozenset(f.name for f in kinds if _may_hold_files(f.type)))
        first = next(iter(sorted(self._images)), None)
        encoded = first is None or is_encoded(options, lambda i: image_bytes(self._raw(i)[first]) or b"", total)
        self._image = ImageReader(encoded, options, len(self._images) > 1)
        if first is not None:
            self.metadata |= self._image.metadata

    def __len__(self) -> int:
        return self._total

    def name(self, index: int) -> str:
        first, path, _ = self._group(index)[1]
        return f"{path}[{index - first}]"

    def _group(self, index: int) -> tuple[int, tuple[int, str, int]]:
        from bisect import bisect_right

        number = bisect_right(self._groups, index, key=lambda g: g[0]) - 1
        return number, self._groups[number]

    def _raw(self, index: int) -> dict[str, Any]:
        import pyarrow.parquet as pq

        number, (first, path, group) = self._group(index)
        if self._held[0] != number:
            table = pq.ParquetFile(path).read_row_group(group)
            self._held = (number, table.to_pylist())
            self._numbers = {f.name: number_type(f.type) for f in table.schema}
        return self._held[1][index - first]

    def _image_columns(self, asked: frozenset[str]) -> frozenset[str]:
        """Columns of which some row holds an image: the first ones may be empty (null) or damaged."""
        near, far = range(min(self._total, _PROBED)), range(0, self._total, max(1, self._total // _GROUPS_PROBED))
        found: set[str] = set()
        for index in [*near, *far]:
            if found == asked:
                break
            found |= {name for name in asked - found if _looks(self._raw(index).get(name))}
        return frozenset(found)

    def row(self, index: int) -> dict[str, Any]:
        row: dict[str, Any] = {}
        for name, value in self._raw(index).items():
            row |= cell(name, value, name in self._images, self._image, self._numbers.get(name))
        return row

    def fingerprint(self) -> str:
        return f"parquet {[(p, stamp(p)) for p in self._paths]} {self._image.mark}"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_held": (-1, [])}


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _may_hold_files(kind: Any) -> bool:
    """Bytes, or a path and bytes."""
    import pyarrow as pa

    return bool(pa.types.is_struct(kind)) or "binary" in str(kind)


def _looks(value: Any) -> bool:
    content = image_bytes(value)
    if content is None:
        return False
    try:
        image_size(content)
    except BadRow:
        return False
    return True
