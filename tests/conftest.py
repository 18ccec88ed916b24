"""What tests share: elementary functions that give the same digits in every call; which of them run where."""

from __future__ import annotations

import os
import sys

import pytest

from hotlap.inject.elementary import choose_kernels


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--own-core", action="store_true", help="keep each worker of pytest-xdist on a core of its own")


def pytest_configure(config: pytest.Config) -> None:
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if config.getoption("--own-core") and worker and hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[int(worker.removeprefix("gw")) % len(cores)]})


def pytest_collection_finish() -> None:
    """Before any test: those that compare numbers fail once in many runs otherwise."""
    if "torch" in sys.modules:
        choose_kernels(sys.modules["torch"])


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests marked gpu run where there is one; those marked cousin where all are asked for, which takes its time."""
    if item.get_closest_marker("cousin") and os.environ.get("HOTLAP_TESTS") != "all":
        pytest.skip("another test shows nearly the same: HOTLAP_TESTS=all runs this one too")
    if item.get_closest_marker("gpu"):
        import torch

        if not torch.cuda.is_available():
            pytest.skip("needs a GPU")
