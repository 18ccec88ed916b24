"""Elementary functions are called once, alone, before two threads can."""

from __future__ import annotations

import torch

from hotlap.inject.elementary import choose_kernels


class Noted:
    """torch, with the calls of its functions."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, torch.dtype, int]] = []

    def __getattr__(self, name: str) -> object:
        real = getattr(torch, name)
        if name == "ones" or isinstance(real, torch.dtype):
            return real

        def call(x: torch.Tensor) -> torch.Tensor:
            self.calls.append((name, x.dtype, x.numel()))
            found: torch.Tensor = real(x)
            return found

        return call


def test_each_function_on_one_number_of_each_width() -> None:
    before, noted = torch.get_rng_state(), Noted()
    choose_kernels(noted)
    for width in (torch.float32, torch.float64):
        assert {("sqrt", width, 1), ("exp", width, 1), ("tanh", width, 1)} <= set(noted.calls)
    assert {numbers for _, _, numbers in noted.calls} == {1}, "one number is computed by one thread"
    assert torch.equal(torch.get_rng_state(), before)
