"""The run folder ``.hotlap/<time>-<script>/``: names of the documents, atomic writes, listing."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from hotlap.records.codec import dumps, loads
from hotlap.records.errors import HotlapError, RecordError

__all__ = ["ROOT", "RunFolder", "list_runs", "write_atomic"]

ROOT = ".hotlap"
NUMBERED = 10
"""Below this, folders of one second are told apart by a number alone: of one figure, so that their names sort."""
T = TypeVar("T")
_SPOILT = "It was damaged or edited: put it right, or remove the run's folder {folder}."


def write_atomic(path: Path, text: str, aside: Path | None = None, durable: bool = True) -> None:
    """Write under a temporary name and rename: a full disk or a kill never leaves half a file.

    ``aside``: a folder of ours for the temporary name, where ``path`` lies among the user's files: a kill -9 leaves
    nothing beside them. On another file system it cannot be renamed from there, and is made beside ``path`` after all.
    ``durable``: nor does a machine that goes down; a file that is worth nothing by then need not be synced.
    """
    folder = aside if aside is not None and _same_file_system(aside, path.parent) else path.parent
    temporary = folder / f".{path.name}.{os.getpid()}.tmp"
    try:
        with open(temporary, "w", encoding="utf-8", errors="replace") as out:  # a path may be no UTF-8
            out.write(text)
            out.flush()
            if durable:
                os.fsync(out.fileno())
        os.replace(temporary, path)
    except OSError as err:
        with contextlib.suppress(OSError):  # what it lies in may be no folder at all
            temporary.unlink(missing_ok=True)
        full = err.errno in (errno.ENOSPC, errno.EDQUOT)
        hint = "Free some space or pass `--runs DIR`." if full else "Name a file in a folder that you can write."
        raise HotlapError(f"Cannot write {path}: {err.strerror}.", hint) from err


def _names(name: str) -> Iterator[str]:
    """``name``, then numbered; where a crowd began in the same second (an array of tasks), this process' own."""
    yield name
    yield from (f"{name}-{number}" for number in range(2, NUMBERED))
    own = f"{name}-{socket.gethostname().partition('.')[0]}-{os.getpid()}"
    yield own
    yield from (f"{own}-{number}" for number in range(2, 100))


def _same_file_system(one: Path, other: Path) -> bool:
    try:
        return one.stat().st_dev == other.stat().st_dev
    except OSError:
        return False  # writing will say what is wrong with it


@dataclass(frozen=True)
class RunFolder:
    """One run's folder: ``run machine findings levers proof plan``.json, ``trials/*.json``, plan.yaml, report.html."""

    path: Path

    @staticmethod
    def create(script: str, root: Path | None = None) -> RunFolder:
        """Make a new folder named by time and script. Raises HotlapError where it cannot be made."""
        base = root if root is not None else Path(ROOT)
        stem = "".join(c if c.isalnum() or c in "-_" else "-" for c in Path(script).stem)[:40] or "run"
        ours = base.name == ROOT or not os.path.exists(base)  # nothing but runs is put into a folder of the user's
        name = time.strftime("%Y%m%d-%H%M%S-") + stem
        for path in (base / one for one in _names(name)):
            try:
                path.mkdir(parents=True)
            except FileExistsError:
                continue
            except OSError as err:
                raise HotlapError(
                    f"Cannot make the run folder {path}: {err.strerror}.",
                    "Pass `--runs DIR` with a folder you can write.",
                ) from err
            ignore = base / ".gitignore"
            with contextlib.suppress(OSError):  # a full disk: the run's first document says so
                if ours and not ignore.exists():
                    ignore.write_text("*\n")
            return RunFolder(path.resolve())
        raise HotlapError(f"Cannot make a run folder under {base}: {name} exists a hundred times for this process.")

    def timeline_dir(self, name: str) -> Path:
        """Folder for one arm's timelines, made here."""
        path = self.path / "timelines" / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def write(self, name: str, document: Any) -> Path:
        """Write a document as JSON under its name (``findings.json``)."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, dumps(document) + "\n")
        return path

    def read(self, name: str, cls: type[T]) -> T | None:
        """Read a document; ``None`` when the run never got there. RecordError when it is not what it should be."""
        path = self.path / name
        if path.exists() and not path.is_file():  # opening a pipe would wait for somebody who writes into it
            raise RecordError(f"{path} is no regular file.", _SPOILT.format(folder=self.path))
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except OSError as err:
            raise RecordError(f"Cannot read {path}: {err.strerror}.", "May you read it?") from err
        except UnicodeDecodeError as err:
            what = f"{path} is not UTF-8 text: {err.reason} at byte {err.start}."
            raise RecordError(what, _SPOILT.format(folder=self.path)) from err
        try:
            return loads(cls, text, str(path))
        except RecordError as err:
            raise RecordError(err.what, err.hint or _SPOILT.format(folder=self.path)) from err


def list_runs(root: Path | None = None) -> list[RunFolder]:
    """Runs under ``.hotlap``, oldest first."""
    base = root if root is not None else Path(ROOT)
    if not base.is_dir():
        return []
    return [RunFolder(p) for p in sorted(base.iterdir()) if p.is_dir() and (p / "run.json").exists()]
