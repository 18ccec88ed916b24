"""Finding a kept run by its name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hotlap.records.errors import EXIT_USAGE, HotlapError
from hotlap.records.run_folder import ROOT, RunFolder, list_runs

__all__ = ["find_run", "kept_runs"]


def kept_runs(root: Path | None) -> list[RunFolder]:
    """The runs under ``root`` (None: where they are kept by default), oldest first; a folder that is named must be."""
    if root is not None and not root.is_dir():
        raise HotlapError(f"There is no folder {root}.", "--runs names the folder with the runs in it.", EXIT_USAGE)
    return list_runs(root)


def find_run(name: str | None, root: Path | None, suits: Callable[[RunFolder], bool] | None = None) -> RunFolder:
    """The run called ``name`` (a path, or a name under the runs folder); when None the newest, of those that ``suits``
    takes if there is one."""
    runs = kept_runs(root)
    if name is None:
        if not runs:
            raise HotlapError(
                f"There are no runs under {root or ROOT}.", "Start with: hotlap speedup -- python train.py"
            )
        return next((run for run in reversed(runs) if suits is None or suits(run)), runs[-1])
    for candidate in (Path(name), (root or Path(ROOT)) / name):
        if (candidate / "run.json").is_file():
            return RunFolder(candidate.resolve())
    raise HotlapError(f"{name!r} is not a run (no run.json in it).", "`hotlap runs` lists them.", EXIT_USAGE)
