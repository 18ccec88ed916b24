"""Finding a kept run by its name."""

from __future__ import annotations

from pathlib import Path

from hotlap.records.errors import EXIT_USAGE, HotlapError
from hotlap.records.run_folder import ROOT, RunFolder, list_runs

__all__ = ["find_run"]


def find_run(name: str | None, root: Path | None) -> RunFolder:
    """The run called ``name`` (a path, or a name under the runs folder); the newest when None."""
    runs = list_runs(root)
    if name is None:
        if not runs:
            raise HotlapError(
                f"There are no runs under {root or ROOT}.", "Start with: hotlap speedup -- python train.py"
            )
        return runs[-1]
    for candidate in (Path(name), (root or Path(ROOT)) / name):
        if (candidate / "run.json").is_file():
            return RunFolder(candidate.resolve())
    raise HotlapError(f"{name!r} is not a run (no run.json in it).", "`hotlap runs` lists them.", EXIT_USAGE)
