"""The training set as InsightFace ships it: ``train.rec``, ``train.idx``, and ``property`` where it is there.

Record 0 says where the photos end and where the records of the persons end; each of those says which photos are a
person's. Files without such a record 0 are taken to hold photos alone.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hotlap_workloads.errors import DataError
from hotlap_workloads.parts.recordio import RecordFile, read_index, unpacked_record

__all__ = ["RecordPhotos"]

UNKNOWN = -1


class RecordPhotos:
    """Photos by row, read from the record file where the index says.

    ``forgive``: rows whose records are damaged or cut off are kept, for the reader to find; else they are an error.
    """

    def __init__(self, path: Path, most: int = 0, forgive: bool = False) -> None:
        self.path = path
        self._file = RecordFile(path)
        index = read_index(path.with_suffix(".idx"))
        if not forgive:
            self._file.read(max(index.values()))  # the last record is whole, or the file is cut short
        keys, persons = self._layout(index)
        missing = [key for key in keys if key not in index]
        if missing:
            raise DataError(path.with_suffix(".idx"), f"lacks record {missing[0]} and {len(missing) - 1} others.")
        self._keys: NDArray[np.int64] = np.array(keys, np.int64)
        self._offsets: NDArray[np.int64] = np.array([index[key] for key in keys], np.int64)
        labels = np.array(self._labels(forgive) if most or not persons else [], np.int64)
        some_unknown = bool((labels == UNKNOWN).any())  # and perhaps all photos of a person
        self.identities = persons or (int(labels.max()) + 1 if some_unknown else len(np.unique(labels)))
        self._check_property(some_unknown)
        if most:
            kept = _first_of_each(labels, most)
            self._keys, self._offsets = self._keys[kept], self._offsets[kept]

    def _layout(self, index: dict[int, int]) -> tuple[list[int], int]:
        """Keys of the photos, and how many persons there are, 0 where it is not told."""
        if 0 not in index:
            return sorted(index), 0
        flag, labels, _ = unpacked_record(self._file.read(index[0]), self.name_of(0))
        if flag == 0:
            return sorted(index), 0
        if len(labels) < 2 or not 1 < labels[0] <= labels[1]:
            raise DataError(self.name_of(0), f"says {labels.tolist()}, not where photos and persons end.")
        return list(range(1, int(labels[0]))), int(labels[1] - labels[0])

    def _check_property(self, more: bool) -> None:
        """``property`` holds ``persons,height,width``; ``more``: there may be more persons than were found."""
        path = self.path.with_name("property")
        if not path.exists():
            return
        text = path.read_text(encoding="utf-8").strip()
        if not text.split(",")[0].strip().isdecimal():
            raise DataError(path, f"holds {text[:40]!r}, not `persons,height,width`.")
        said = int(text.split(",")[0])
        if said < self.identities or (said > self.identities and not more):
            raise DataError(path, f"says {said} identities, and {self.path.name} has {self.identities}.")
        self.identities = said

    def __len__(self) -> int:
        return len(self._keys)

    def name_of(self, key: int) -> Path:
        """The file with the record's key behind it."""
        return self.path / f"record {key}"

    def name(self, row: int) -> Path:
        return self.name_of(int(self._keys[row]))

    def read(self, row: int) -> tuple[bytes, int]:
        content, label = self._parsed(row)
        if not content:
            raise DataError(self.name(row), "holds no image.")
        if label >= self.identities:
            raise DataError(self.name(row), f"is of identity {label}, and there are {self.identities}, from 0 on.")
        return content, label

    def _parsed(self, row: int) -> tuple[bytes, int]:
        _, labels, content = unpacked_record(self._file.read(int(self._offsets[row])), self.name(row))
        label = float(labels[0])
        if not label.is_integer() or label < 0:  # nor NaN or infinity
            raise DataError(self.name(row), f"has the label {label}, which is no number of a person.")
        return content, int(label)

    def _labels(self, forgive: bool) -> list[int]:
        """The person of each row; UNKNOWN where its record cannot be read and that is forgiven."""
        found = []
        for row in range(len(self._keys)):
            try:
                found.append(self._parsed(row)[1])
            except DataError:
                if not forgive:
                    raise
                found.append(UNKNOWN)
        return found

    def fingerprint(self) -> str:
        status = self.path.stat()
        return f"records {self.path} {status.st_size} {status.st_mtime_ns} {len(self)} {self.identities}"


def _first_of_each(labels: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Rows of the first ``most`` photos of each label, and all of which it is not known."""
    order = np.argsort(labels, kind="stable")
    sorted_labels = labels[order]
    begins = np.searchsorted(sorted_labels, sorted_labels)
    return np.sort(order[(np.arange(len(order)) - begins < most) | (sorted_labels == UNKNOWN)])
