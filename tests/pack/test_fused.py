"""The kernel gives torch's own bits, whatever is asked of it; without it all goes on in torch."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pack_support import mixed

from hotlap.pack import Clip, Image, Loader, LoaderSettings, Pack, fused, kernel, openmp

Make = Callable[..., Pack]
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
needs_team = pytest.mark.skipif(not openmp.team_functions(), reason="torch has no OpenMP library that is known here")


def batches(pack: Pack, views: Any) -> list[torch.Tensor]:
    """Cloned; the last batch is a short one."""
    found = Loader(pack, 7, views, settings=LoaderSettings(mode="inline"))
    return [b[name].clone(memory_format=torch.preserve_format) for b in found for name in views]


def with_and_without(pack: Pack, views: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kernel.ready(wait=True), kernel.state()
    called: list[str] = []
    for name in ("planes", "pixels", "sounds"):
        whole = getattr(fused, name)
        monkeypatch.setattr(fused, name, lambda *a, _name=name, _f=whole: (called.append(_name), _f(*a)))
    one = batches(pack, views)
    assert called, "the kernel must have been called"
    monkeypatch.setattr(kernel, "ready", lambda: False)
    called.clear()
    two = batches(pack, views)
    assert not called
    assert len(one) == len(two) > 1
    assert all(torch.equal(a, b) and a.stride() == b.stride() for a, b in zip(one, two, strict=True))


@needs_compiler
@pytest.mark.parametrize(("interleaved", "layout"), [(False, "nchw"), (True, "nchw"), (True, "channels_last")])
@pytest.mark.parametrize("flip", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("mean", "std"), [(None, None), (127.5, 128.0), ([123.7, 116.3, 103.5], [58.4, 57.1, 57.4]),
                                           (None, 255.0)])  # fmt: skip
def test_images(make: Make, interleaved: bool, layout: str, flip: float, mean: Any, std: Any,
                monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    rows = [{"image": r["image"].transpose(1, 2, 0).copy() if interleaved else r["image"]} for r in mixed(40)]
    view = Image((7, 5), flip=flip, mean=mean, std=std, layout=layout)
    with_and_without(make(rows), {"image": view}, monkeypatch)


@needs_compiler
@pytest.mark.parametrize("shape", [(12, 10), (1, 12, 10)])
def test_grey_images(make: Make, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    rows = [{"image": rng.integers(0, 256, shape, dtype=np.uint8)} for _ in range(40)]
    with_and_without(make(rows), {"image": Image((9, 9), flip=0.5, mean=3.0, std=7.0)}, monkeypatch)


@needs_compiler
@pytest.mark.parametrize("inner", [(), (2,)])
def test_sounds(make: Make, inner: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    rows = [{"audio": rng.integers(-32768, 32768, (int(rng.integers(3, 60)), *inner), dtype=np.int16)}
            for _ in range(40)]  # fmt: skip
    with_and_without(make(rows), {"audio": Clip(20)}, monkeypatch)


@needs_compiler
@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("width", [1504, 1503, 480])
def test_batches_larger_than_the_caches(make: Make, interleaved: bool, width: int,
                                        monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """Written past them, where a row divides by four; lines longer than the scratch in pieces."""
    height = 6_300_000 // (7 * 3 * 4 * width) + 1
    shape = (height, width, 3) if interleaved else (3, height, width)
    rng = np.random.default_rng(0)
    rows = [{"image": rng.integers(0, 256, shape, dtype=np.uint8)} for _ in range(9)]
    view = Image(flip=0.5, mean=[1.0, 2.0, 3.0], std=7.0, layout="channels_last" if interleaved else "nchw")
    with_and_without(make(rows), {"image": view}, monkeypatch)


@needs_compiler
def test_sounds_larger_than_the_caches(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    rows = [{"audio": rng.integers(-32768, 32768, 230_100, dtype=np.int16)} for _ in range(9)]
    with_and_without(make(rows), {"audio": Clip(230_000)}, monkeypatch)


@needs_compiler
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("width", [32, 20, 7])
def test_a_part_of_a_large_batch_has_the_same_bits(layout: torch.memory_format, width: int) -> None:
    assert kernel.ready(wait=True)
    memory = torch.randint(0, 256, (4 * 5 * width * 3,), dtype=torch.uint8)
    starts, numbers = np.arange(4) * 5 * width * 3, (torch.tensor([0.5, 2.0, 3.0]), torch.tensor([1.0, -1.0, 0.25]))
    found = []
    for batch in (4, 2_000_000 // (3 * 5 * width)):
        out = torch.empty((batch, 3, 5, width), memory_format=layout)[:4]
        fused.pixels(memory, starts, 2, (3, 5, width), width * 3, numbers, out)
        found.append(out)
    assert torch.equal(*found)
    wanted = memory.view(4, 5, width, 3).permute(0, 3, 1, 2).float() * numbers[0][:, None, None]
    wanted = wanted + numbers[1][:, None, None]
    wanted[:2] = wanted[:2].flip(-1)
    assert torch.equal(found[0], wanted)


PACKED_BEFORE = """
import sys
from hotlap.pack import checksum, kernel
assert kernel.ready(wait=True) and checksum.crc32(bytes(2 << 20)) == 0x8D89877E
assert "torch" not in sys.modules
"""
TEAM = """
import os, time, torch
from hotlap.pack import Image, Loader, LoaderSettings, Shuffle, kernel
assert kernel.ready(wait=True)
torch.set_num_threads(3)
threads = lambda: len(os.listdir("/proc/self/task"))
views = {"image": Image((112, 96), flip=0.5)}
before = threads()
made = {}
for mode in ("background", "inline"):
    loader = Loader(FOLDER, 40, views, settings=LoaderSettings(mode=mode, threads=1))
    made[mode] = [b["image"].numpy().copy() for b in loader]
    loader.close()
    time.sleep(0.3)  # the system takes a moment to bury a thread that was joined
    print(threads() - before)
assert all((a == b).all() for a, b in zip(made["background"], made["inline"], strict=True))
"""


def said(make: Make, script: str) -> str:
    """What a script prints that reads a pack of 120 images."""
    rng = np.random.default_rng(0)
    pack = make([{"image": rng.integers(0, 256, (3, 128, 100), dtype=np.uint8)} for _ in range(120)])
    code = script.replace("FOLDER", repr(str(pack.folder)))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_compiler
@needs_team
@pytest.mark.parametrize("before", ["", PACKED_BEFORE], ids=["", "packed without torch"])
def test_inline_a_batch_is_made_by_torchs_own_team(make: Make, before: str) -> None:
    alone, team = map(int, said(make, before + TEAM).split())
    assert (alone, team) == (0, 2), "in the background one thread alone; inline torch's own and two more"


FORKED = """
import os, signal, torch
from hotlap.pack import Image, Loader, LoaderSettings, kernel
assert kernel.ready(wait=True)
torch.set_num_threads(3)
loaders = [Loader(FOLDER, 40, {"image": Image((112, 96))}, settings=LoaderSettings(mode=mode, threads=2))
           for mode in ("inline", "background")]
reading = [iter(loader) for loader in loaders]
for batches in reading:
    next(batches)
child = os.fork()
if child == 0:
    signal.alarm(20)
    one, two = (next(batches)["image"] for batches in reading)
    os._exit(0 if (one.numpy() == two.numpy()).all() else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@needs_compiler
@needs_team
def test_a_forked_process_reads_on_without_its_parents_threads(make: Make) -> None:
    assert said(make, FORKED).split() == ["0"], "not ended by its alarm"


def test_the_library_of_torch_goes_before_those_of_others() -> None:
    site = Path("/venv/site-packages")
    others = [
        str(site / "scikit_learn.libs/libgomp-a34b3233.so.1.0.0"),
        "/usr/lib/libomptarget.so",
        "/usr/lib/libomp.so.5",
    ]
    for own in ("torch/lib/libgomp.so.1", "torch.libs/libgomp-98df74fd.so.1", "torch/lib/libiomp5.so"):
        assert openmp._of_torch([*others, str(site / own)], site / "torch") == str(site / own)
    assert openmp._of_torch(others[1:], site / "torch") == others[2]
    assert openmp._of_torch([others[1], "/tmp/libgomp/x.so"], site / "torch") is None
