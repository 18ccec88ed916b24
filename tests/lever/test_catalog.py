"""Every lever of the catalog, through the conformance kit."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from hotlap.lever.contract import Lever
from hotlap.lever.registry import lever as by_id
from hotlap.lever.registry import levers
from hotlap.testing.lever_kit import LeverConformance


class TestCatalog(LeverConformance):
    @pytest.fixture(params=list(levers()))
    def lever(self, request: pytest.FixtureRequest) -> Lever:
        return by_id(request.param)

    @pytest.fixture(autouse=True)
    def small_heap(self, lever: Lever) -> Iterator[None]:
        """The collections in the training go through what it made, not through all of torch."""
        if lever.ID == "gc-freeze":
            yield
            return
        gc.freeze()
        yield
        gc.unfreeze()
