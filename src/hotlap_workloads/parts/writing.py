"""What a training keeps on disk beside its checkpoints: a full disk ends it in a sentence, not in a traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hotlap_workloads.errors import WorkloadError

__all__ = ["writing", "writing_into"]


@contextmanager
def writing(folder: Path, hint: str) -> Iterator[None]:
    """Whatever the system refuses in here is a WorkloadError that names the folder and says what to do."""
    try:
        yield
    except OSError as err:
        raise WorkloadError(f"{folder} cannot be written: {err.strerror or err}.", hint) from err


@contextmanager
def writing_into(folder: Path, option: str) -> Iterator[None]:
    """The same for the folder that an option of the command line names; it is made where it is not there."""
    with writing(folder, f"{option} names a folder to write in."):
        folder.mkdir(parents=True, exist_ok=True)
        yield
