"""What the teacher says of each photo and of its mirror image, asked once: it is frozen, and says the same each time.

The file holds unit vectors in half precision, (photos, 2, dim): 2 KB a photo with 512 numbers. It is read through a
memory map, and made anew when the photos or the teacher have changed, and when it is not of the form it should have.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hotlap_workloads.engine.task import Context
from hotlap_workloads.errors import WorkloadError
from hotlap_workloads.parts.writing import writing

__all__ = ["TeacherBank", "build_bank"]

SAY_EVERY = 100
"""Batches between lines of progress."""
ROOM = "Make room, or set teacher_outputs=each_time."


class TeacherBank:
    """Embeddings by row and mirroring. Loading processes map the file for themselves."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._said = np.load(folder / "said.npy", mmap_mode="r")

    def read(self, rows: Sequence[int], mirrored: NDArray[np.bool_]) -> Tensor:
        """(rows, dim) in half precision."""
        return torch.from_numpy(self._said[np.asarray(rows), mirrored.astype(np.int64)])

    def __reduce__(self) -> tuple[type[TeacherBank], tuple[Path]]:
        return TeacherBank, (self._folder,)


def build_bank(
    folder: Path,
    fingerprint: str,
    shape: tuple[int, int],
    ask: Callable[[list[int]], tuple[Tensor, Tensor]],
    context: Context,
    batch_size: int = 128,
) -> TeacherBank:
    """Fill ``folder``, unless that has been done. ``shape`` is (photos, dim); each rank asks for its share.

    ``ask(rows)`` gives embeddings of photos and of their mirror images.
    """
    ranks, manifest = context.ranks, folder / "manifest.txt"
    done = manifest.exists() and manifest.read_bytes() == fingerprint.encode() and _is_whole(folder, shape)
    if ranks.any(not done, context.device):
        if ranks.first:
            with writing(folder, ROOM):
                _prepare(folder, shape)
            context.say(f"Asking the teacher about {shape[0]} photos and their mirror images, once.")
        ranks.wait()
        said = np.load(folder / "said.npy", mmap_mode="r+")
        for number, rows in enumerate(_shares(shape[0], batch_size, ranks.rank, ranks.world)):
            plain, mirrored = ask(rows)
            said[rows, 0] = plain.half().cpu().numpy()
            said[rows, 1] = mirrored.half().cpu().numpy()
            if number % SAY_EVERY == SAY_EVERY - 1:
                context.say(f"The teacher has seen {min(shape[0], (number + 1) * batch_size * ranks.world)} photos.")
        with writing(folder, ROOM):
            said.flush()
            ranks.wait()
            if ranks.first:
                manifest.with_suffix(".new").write_text(fingerprint, encoding="utf-8")
                os.replace(manifest.with_suffix(".new"), manifest)  # last: an interrupted pass is begun again
        ranks.wait()
    return TeacherBank(folder)


def _shares(count: int, batch_size: int, rank: int, world: int) -> Iterator[list[int]]:
    for begin in range(rank * batch_size, count, world * batch_size):
        yield list(range(begin, min(begin + batch_size, count)))


def _prepare(folder: Path, shape: tuple[int, int]) -> None:
    """An empty file of the right size, if the disk can hold it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    wanted, free = shape[0] * 2 * shape[1] * 2, shutil.disk_usage(folder).free
    if wanted > free:
        raise WorkloadError(
            f"{folder} needs {wanted} bytes for what the teacher says, and {free} are free.",
            ROOM,
        )
    empty: Any = np.lib.format.open_memmap(
        folder / "said.npy", mode="w+", dtype=np.float16, shape=(shape[0], 2, shape[1])
    )
    empty.flush()
    if hasattr(os, "posix_fallocate"):  # a disk that runs full under a memory map kills the process without a word
        with open(folder / "said.npy", "r+b") as file:
            os.posix_fallocate(file.fileno(), 0, os.fstat(file.fileno()).st_size)


def _is_whole(folder: Path, shape: tuple[int, int]) -> bool:
    try:
        said = np.lib.format.open_memmap(folder / "said.npy", mode="r")
    except Exception:  # numpy raises OSError, ValueError, EOFError, SyntaxError, TokenError, ... of a damaged file
        return False
    return said.shape == (shape[0], 2, shape[1]) and said.dtype == np.float16
