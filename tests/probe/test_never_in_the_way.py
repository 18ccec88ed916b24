"""Scripts that override what objects do: no exception, frame or call of Hotlap's reaches them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from hotlap.probe.checkpoint import _size


def test_objects_that_refuse_everything(watched: Any) -> None:
    timeline, out = watched("""
    class Wrapped(nn.Module):
        def __init__(self, inner):
            super().__init__(); self.inner = inner
        def __eq__(self, other): raise TypeError("do not compare")
        __hash__ = None
        def __len__(self): raise TypeError("no length")
        def __bool__(self): raise TypeError("no truth")
        def named_modules(self, *a, **k): raise TypeError("no modules")
        def named_parameters(self, *a, **k): raise TypeError("no parameters")
        def forward(self, x): return self.inner(x)
    class Batch:
        @property
        def shape(self): raise RuntimeError("no shape")
        def __init__(self, x): self.x = x
    class Set(Dataset):
        def __len__(self): raise ValueError("no length")
        def __getitem__(self, i): return torch.ones(4)
    model = Wrapped(net())
    opt = torch.optim.SGD(model.inner.parameters(), lr=0.1)
    data = DataLoader(Set(), batch_sampler=[[0, 1], [2, 3]], collate_fn=lambda s: Batch(torch.stack(s)))
    for epoch in range(4):
        for batch in data:
            opt.zero_grad(); model(batch.x).sum().backward(); opt.step()
    print("done")
    """)
    assert out.split() == ["done"] and timeline.n_steps == 8
    assert [row.s for row in timeline.step] == [2] * 8


def test_no_frame_of_hotlap_in_a_traceback(watched: Any) -> None:
    _, out = watched("""
    import traceback
    class Odd(nn.Module):
        def __init__(self):
            super().__init__(); self.inner = net()
        def forward(self, x):
            if x is None: raise RuntimeError("no luck")
            return self.inner(x)
    class Bad(Dataset):
        def __len__(self): return 4
        def __getitem__(self, i): raise KeyError(i)
    outer = nn.Sequential(Odd())
    opt = torch.optim.SGD(outer.parameters(), lr=0.1)
    for x, y in loader():
        opt.zero_grad(); outer(x).sum().backward(); opt.step()
    def closure(): raise ValueError("closure")
    def bad_loss(): outer(x).backward()
    for act in (lambda: outer(None), lambda: next(iter(DataLoader(Bad()))), lambda: opt.step(closure),
                bad_loss, lambda: torch.ones(2).item(), lambda: print(1, sep=1),
                lambda: DataLoader(Bad(), batch_size=-1), lambda: torch.save(1, "/no/such/folder/file")):
        try: act()
        except Exception: print(traceback.format_exc())
    """)
    assert out.count("Traceback") == 8
    assert "hotlap/probe" not in out


def test_own_modes_and_subclasses_see_nothing_of_hotlap(watched: Any) -> None:
    _, out = watched("""
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode
    class Mode(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func); return func(*args, **(kwargs or {}))
    class Dispatch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func); return func(*args, **(kwargs or {}))
    def steps(n):
        model = net(); opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for k in range(n):
            opt.zero_grad(); loss = model(torch.ones(8, 4)).sum(); loss.backward(); opt.step()
    for mode in (Mode, Dispatch):
        counts = []
        for k in range(2):
            seen = []
            with mode(): steps(8)
            counts.append(len(seen))
            undo.undo_all()
        print(*counts)
    """)
    for line in out.splitlines():
        assert len(set(line.split())) == 1, line


def test_looking_up_a_checkpoint_s_size_waits_for_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def waiting(*args: object, **kwargs: object) -> None:
        raise AssertionError("under the lever checkpoint-async, this waits until the file has been written")

    (tmp_path / "m.pt").write_bytes(b"12345")
    monkeypatch.setattr(os, "stat", waiting)
    assert _size(tmp_path / "m.pt") == {"file_bytes": 5.0}
    assert _size(tmp_path / "none.pt") == {}
