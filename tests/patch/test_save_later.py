"""States that the helper `save_later` leaves to torch.save, and scripts that import torch below it."""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
import threading
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
import torch

from hotlap.patch.additions import add_helpers

later = importlib.import_module("hotlap.patch.helpers.save_later")


def join_all() -> None:
    for thread in threading.enumerate():
        if "_write_all" in thread.name:  # other threads are pytest's own
            thread.join(5)


def saving_threads(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each torch.save from now on: whether the thread that trains makes it."""
    found, save = [], torch.save

    def seen(*args: object) -> None:
        found.append(threading.current_thread() is threading.main_thread())
        save(*args)

    monkeypatch.setattr(torch, "save", seen)
    return found


def test_torch_may_be_imported_below_the_helper(tmp_path: Path) -> None:
    source = f"""\
import os
import sys
if "--cpu" in sys.argv:
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
import torch

save_later({{"w": torch.ones(2)}}, "{tmp_path}/a.pt")
"""
    text = add_helpers(source, "s.py")
    assert text.index("def save_later") < text.index("import torch\n")
    exec(compile(text, "s.py", "exec"), {"__name__": "script"})
    join_all()
    assert torch.load(tmp_path / "a.pt")["w"].tolist() == [1, 1]


def test_a_state_that_cannot_be_copied_is_saved_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = saving_threads(monkeypatch)
    loss = torch.ones(2, requires_grad=True).sum()
    later.save_later({"loss": torch.zeros(1)}, tmp_path / "a.pt")
    later.save_later({"loss": loss}, tmp_path / "a.pt")
    assert here == [False, True] and torch.load(tmp_path / "a.pt")["loss"] == 2, "the newer of both"
    assert not later._waiting and not later._writers


class Mine:
    """A class of the script's own."""


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.nn.Linear(2, 1),
        lambda: {"model": torch.nn.Linear(2, 1)},
        lambda: [Mine()],
        lambda: {"a": np.array([None])},
        lambda: {"w": marked(torch.ones(2))},
    ],
)
def test_what_is_more_than_values_is_saved_in_place(
    make: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = saving_threads(monkeypatch)
    later.save_later(make(), tmp_path / "a.pt")  # type: ignore[operator]
    assert here == [True]


def marked(tensor: torch.Tensor) -> torch.Tensor:
    tensor.sharded = True  # type: ignore[attr-defined]
    return tensor


def test_a_state_of_values_is_written_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = saving_threads(monkeypatch)
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "weight": model.weight,
        "args": argparse.Namespace(lr=0.1, out=tmp_path),
        "best": OrderedDict(a=(1, 2.0, None, True, "b", b"c", {3}, np.float64(1), np.ones(2))),
        "kinds": [torch.float32, torch.device("cpu"), torch.Size([1])],
    }
    later.save_later(state, tmp_path / "a.pt")
    join_all()
    assert here == [False]
    assert torch.load(tmp_path / "a.pt", weights_only=False)["args"].out == tmp_path


@pytest.mark.parametrize(("more", "status"), [("", 120), ("save_later(state, 'b.pt')", 1)])
def test_a_last_checkpoint_that_is_not_written_is_told_by_the_status(more: str, status: int, tmp_path: Path) -> None:
    source = f"""\
import atexit
import os
import time
import torch

atexit.register(print, "all else is done", flush=True)
os.mkdir("a.pt.part") if os.environ.get("BLOCKED") else None
state = {{"w": torch.ones(2)}}
save_later(state, "a.pt")
print("trained")
while {bool(more)} and not _failed:
    time.sleep(0.01)
{more}
"""
    (tmp_path / "s.py").write_text(add_helpers(source, "s.py"))

    def run(**env: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "s.py"], cwd=tmp_path, env={**os.environ, **env}, capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip
        assert done.stdout == "trained\nall else is done\n"
        return done.returncode, done.stderr

    if not more:
        assert run() == (0, "") and torch.load(tmp_path / "a.pt")["w"].tolist() == [1, 1]
    ended, told = run(BLOCKED="1")
    assert ended == status and "Error" in told and ("a checkpoint was not written" in told) == (not more)


def test_half_a_file_does_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(state: object, path: str) -> None:
        Path(path).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", full)
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    later.save_later({"w": torch.ones(2)}, tmp_path / "a.pt")
    join_all()
    assert not list(tmp_path.iterdir())
    with pytest.raises(OSError, match="No space left"):
        later.save_later({"w": torch.ones(2)}, tmp_path / "a.pt")


def test_one_that_fails_takes_no_other_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, begun, told = torch.save, threading.Event(), list[str]()

    def one_fails(state: object, path: str) -> None:
        if "model" in path:
            begun.wait(10)
            raise OSError(28, "No space left on device")
        real(state, path)

    monkeypatch.setattr(torch, "save", one_fails)
    monkeypatch.setattr(threading, "excepthook", lambda told_of: told.append(str(told_of.exc_value)))
    later.save_later({"w": torch.ones(2)}, tmp_path / "model.pt")
    later.save_later({"w": torch.ones(2)}, tmp_path / "schedule.pt")
    begun.set()
    join_all()
    assert [path.name for path in tmp_path.iterdir()] == ["schedule.pt"] and len(told) == 1
    with pytest.raises(OSError, match="No space left"):
        later.save_later({"w": torch.ones(2)}, tmp_path / "schedule.pt")
