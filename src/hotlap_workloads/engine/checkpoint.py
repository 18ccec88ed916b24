"""Checkpoints that a crash cannot spoil: written beside the last good one, which is kept."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from hotlap_workloads.errors import WorkloadError, first_line

__all__ = ["CURRENT", "PREVIOUS", "Saver", "fits", "is_there", "load", "load_weights"]

CURRENT = "checkpoint.pt"
PREVIOUS = "checkpoint.previous.pt"
NEW = f"{CURRENT}.new"


class Saver:
    """Writes ``checkpoint.pt``; the one before becomes ``checkpoint.previous.pt``.

    In the background, the state is copied to memory at once and written while training goes on; an error of that write
    is raised by the next call.
    """

    def __init__(self, folder: Path, background: bool) -> None:
        self._folder = folder
        self._background = background
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None

    def save(self, state: dict[str, Any]) -> None:
        """Write, or begin to."""
        self.wait()
        if self._background:
            self._thread = threading.Thread(target=self._write, args=(_copied(state),), name="checkpoint")
            self._thread.start()
        else:
            self._write(state)
            self.wait()

    def wait(self) -> None:
        """Until the last one is on disk."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._error is not None:
            error, self._error = self._error, None
            raise WorkloadError(f"Cannot write a checkpoint in {self._folder}: {error}.", "Free some space.") from error

    def _write(self, state: dict[str, Any]) -> None:
        try:
            write(self._folder, state)
        except (OSError, RuntimeError) as err:  # torch's own writer makes a RuntimeError of a full disk
            self._error = err


def write(folder: Path, state: dict[str, Any]) -> None:
    """Write under another name, bring it to disk, then rename: a reader sees the old file or the new one, whole."""
    new, current = folder / NEW, folder / CURRENT
    try:
        with open(new, "wb") as out:
            torch.save(state, out)
            out.flush()
            os.fsync(out.fileno())
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    if current.exists():
        os.replace(current, folder / PREVIOUS)
    os.replace(new, current)


def is_there(folder: Path) -> bool:
    """Whether the folder holds one, readable or not."""
    return any((folder / name).exists() for name in (CURRENT, NEW, PREVIOUS))


def load(folder: Path, say: Callable[[str], None], set_aside: bool = False) -> dict[str, Any] | None:
    """The newest checkpoint that can be read, None where there is none. Says so when it is not the last one.

    That may be the new one, whole but not renamed yet: a kill came between. ``set_aside``: a last one that cannot be
    read is renamed to ``checkpoint.pt.broken``, so that the next one written does not push out the one before it.
    """
    broken: list[str] = []
    for name in (CURRENT, NEW, PREVIOUS):
        if not (folder / name).exists():
            continue
        state = _read(folder / name)
        if isinstance(state, dict):
            for line in broken:
                say(f"{line}; going on from {name}.")
            if broken and set_aside:
                with suppress(OSError):  # where nothing can be renamed, nothing will be pushed out either
                    os.replace(folder / CURRENT, folder / f"{CURRENT}.broken")
                    say(f"It is kept as {CURRENT}.broken.")
            return state
        if name != NEW:  # that is half written wherever a kill came earlier
            broken.append(state)
    if broken:
        raise WorkloadError(f"No checkpoint can be read: {'; '.join(broken)}.", "Delete them to start anew.")
    return None


def load_weights(folder: Path, module: torch.nn.Module, say: Callable[[str], None]) -> None:
    """Give the module the weights of the run's last checkpoint. Raises WorkloadError where there is none that fits."""
    if (state := load(folder, say)) is None:
        raise WorkloadError(f"{folder} holds no checkpoint.", "Train first.")
    fits(state["objective"], module.state_dict(), folder)
    module.load_state_dict(state["objective"])


def _read(path: Path) -> dict[str, Any] | str:
    """The state, or what is wrong with the file."""
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as err:  # torch raises RuntimeError, EOFError, UnpicklingError, OSError, ... for a cut file
        return f"{path} cannot be read ({type(err).__name__}: {first_line(err)})"
    if not (isinstance(state, dict) and {"objective", "optimizer", "position"} <= state.keys()):
        return f"{path} is no checkpoint of a training"
    return state


def fits(state: dict[str, torch.Tensor], expected: dict[str, torch.Tensor], folder: Path) -> None:
    """Raise WorkloadError when the checkpoint is of another model."""
    odd = sorted(set(state) ^ set(expected))
    odd += [k for k in state if k in expected and state[k].shape != expected[k].shape]
    if odd:
        raise WorkloadError(
            f"The checkpoint in {folder} is of another model: {len(odd)} tensors differ, the first is {odd[0]!r}.",
            "Use the settings it was made with (settings.json beside it), or another --out.",
        )


def _copied(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().to("cpu", copy=True)
    if isinstance(value, dict):
        return {key: _copied(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_copied(part) for part in value)
    return value
