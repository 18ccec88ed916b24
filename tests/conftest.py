"""What every test shares: elementary functions that give the same digits in every call."""

from __future__ import annotations

import sys

from hotlap.inject.elementary import choose_kernels


def pytest_collection_finish() -> None:
    """Before any test: those that compare numbers fail once in many runs otherwise."""
    if "torch" in sys.modules:
        choose_kernels(sys.modules["torch"])
