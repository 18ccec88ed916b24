"""What autocast does with a weight that it has cast without gradients and is to cast again with them."""

from __future__ import annotations

import functools

__all__ = ["casts_forget_gradients"]


@functools.cache
def casts_forget_gradients() -> bool:
    """Whether this torch, in one region of autocast, gives the same cast again without gradients.

    Older ones do: a network that guesses under ``no_grad`` first, and then computes from its guess, would not be
    trained. There casts must not be kept, which costs another cast where a weight is used twice. It is tried: no
    version has to be known.
    """
    import torch
    from torch.nn.functional import linear

    with torch.inference_mode(False), torch.enable_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        given = torch.ones(1, 1, dtype=torch.float32, device="cpu")
        weight = torch.ones(1, 1, dtype=torch.float32, device="cpu", requires_grad=True)
        with torch.no_grad():
            linear(given, weight)
        return not linear(given, weight).requires_grad
