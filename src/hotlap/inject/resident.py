"""One batch that is given again and again, as it was: a script may change what it is given."""

from __future__ import annotations

from typing import Any

from hotlap.lever.nested import rebuilt, tensors_in

__all__ = ["ResidentBatch"]


class ResidentBatch:
    """Gives the same tensors each time, in lists and mappings of its own (a script pops the labels off).

    Once one of the tensors was found changed in place (``images.div_(255)``), copies are given from then on.
    """

    def __init__(self, batch: Any) -> None:
        self._batch = batch
        self._kept = rebuilt(batch, lambda tensor: tensor.clone())
        self._given = list(tensors_in(batch))
        self._versions = self._seen_versions()
        self._changes = False

    def _seen_versions(self) -> list[int]:
        """What torch counts in-place changes by; an inference tensor has none, and may not be changed."""
        return [0 if tensor.is_inference() else tensor._version for tensor in self._given]

    def give(self) -> Any:
        """The batch, for one step."""
        if not self._changes and self._seen_versions() == self._versions:
            return rebuilt(self._batch, lambda tensor: tensor)
        self._changes = True
        return rebuilt(self._kept, lambda tensor: tensor.clone())
