"""Elementary functions that give the same digits from their first call on, so that two runs can be compared."""

from __future__ import annotations

from typing import Any

__all__ = ["choose_kernels"]

_FUNCTIONS = ("acos", "asin", "atan", "cos", "erf", "erfc", "exp", "expm1", "lgamma", "log", "log10", "log1p", "log2",
              "sin", "sqrt", "tan", "tanh", "trunc")  # fmt: skip
"""Those that ATen hands to MKL's vector mathematics (aten/src/ATen/cpu/vml.h), and their like."""


def choose_kernels(torch: Any) -> None:
    """Call each function on one number, in this thread alone.

    MKL chooses a function's kernel in its first call. Where two threads make that call together, which a busy machine
    invites, one may compute that one time with a kernel of a few thousand ulp
    (https://github.com/pytorch/pytorch/issues/188792): the losses of two equal runs differ from then on. No random
    number is drawn, and what is computed later is what would have been computed without the race.
    """
    for dtype in (torch.float32, torch.float64):
        one = torch.ones(1, dtype=dtype, device="cpu")
        for name in _FUNCTIONS:
            getattr(torch, name)(one)
