"""After a kill: is every document in a run folder readable, and what lies where it should not?"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from hotlap.inject.run_script import script_of
from hotlap.plan.file import load_plan
from hotlap.records.errors import HotlapError
from hotlap.records.run_folder import ROOT, RunFolder
from hotlap.records.timeline import read_timeline
from hotlap.report.saved import load_report

__all__ = ["alive", "contents", "strays", "unreadable"]

MARK = "HOTLAP_BENCH_KILL"


def contents(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """The user's files by the SHA-256 of their bytes; what is gone has none."""
    paths = {name: folder / name for name in names}
    return {n: hashlib.sha256(p.read_bytes()).hexdigest() if p.is_file() else "gone" for n, p in paths.items()}


def unreadable(folder: Path) -> list[str]:
    """What the product's own readers cannot read under ``.hotlap``, and plans beside it."""
    wrong: list[str] = []
    runs = [path for path in sorted((folder / ROOT).glob("*")) if path.is_dir()]
    for run in runs:
        try:
            if (run / "run.json").exists():  # killed before its first document: an empty folder, which is no run
                load_report(RunFolder(run))
            for path in sorted(run.rglob("*.jsonl")):
                read_timeline(path)
            if (run / "plan.yaml").exists():
                load_plan(run / "plan.yaml")
        except HotlapError as err:
            wrong.append(str(err))
    for path in sorted(folder.glob("*.yaml")):
        try:
            load_plan(path)
        except HotlapError as err:
            wrong.append(str(err))
    return wrong


def strays(folder: Path, expected: set[str]) -> list[str]:
    """Entries beside the user's files that are neither theirs nor what the command makes."""
    return sorted(path.name for path in folder.iterdir() if path.name not in expected)


def alive(mark: str) -> list[str]:
    """Processes that still carry the mark in their environment, frozen ones too; zombies have none any more."""
    found = []
    wanted = f"{MARK}={mark}".encode()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if wanted not in file.read().split(b"\0"):
                    continue
            with open(f"/proc/{name}/cmdline", "rb") as file:
                words = [os.fsdecode(word) for word in file.read().split(b"\0")]
            with open(f"/proc/{name}/stat", "rb") as file:
                state = file.read().rpartition(b")")[2].split()[0].decode()
        except OSError:
            continue
        found.append(f"{name} ({state}) {script_of(words) or ' '.join(words)[:80]}")
    return found
