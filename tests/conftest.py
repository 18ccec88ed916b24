"""What every test shares: elementary functions that give the same digits in every call."""

from __future__ import annotations

import sys

ELEMENTARY = ("exp", "log", "sqrt", "tanh", "sin", "cos", "erf", "log1p", "expm1")


def pytest_collection_finish() -> None:
    """Each function is called on one number, in one thread, before any test.

    The CPU builds of torch reach MKL's vector mathematics, which chooses a kernel in a function's first call; where
    two threads make that call together, one may compute with a kernel of a few thousand ulp
    (https://github.com/pytorch/pytorch/issues/188792), and a test that compares numbers fails once in many runs.
    """
    torch = sys.modules.get("torch")
    if torch is not None:
        for name in ELEMENTARY:
            getattr(torch, name)(torch.ones(1))
