"""The packed-data loader beside every other way of feeding that is installed here, in one run.

    python bench/loader.py [--kind images|audio|boxes] [--part feed|write|memory] [--step-ms 0] [--save]

The data sets are made by the script: 10,000 photo-like 160x160 JPEGs read as 112x112 crops, mirrored half of the time;
2,000 recordings of four seconds read as clips of two; 10,000 96x96 images with 0 to 40 boxes. Batches are float32.

feed     samples/s, CPU time, first batch, epoch turn-around and anonymous memory of every way. ``--step-ms 30`` feeds a
         training that computes on all cores: its roof is the same steps on a resident batch
write    how long every library takes to write the data set in its own form, and the disk it takes
memory   a data set four times as large as the memory (a cgroup) that its reader may use, beside the disk's own rate

Ways take turns, each turn in a process of its own after one epoch to warm up; medians over the rounds, with the lowest
and the highest. After the first round of ``feed`` the quickest three of ours and of the rivals go on, of each kind. CPU
time and anonymous memory count all processes of a way. A library that is not installed is named.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from loader_data import COUNT, make_files
from loader_memory import compare_memory
from loader_rivals import installed
from loader_rounds import Turn, medians, ratios, take_turns, turn
from loader_turn import ALL_RIVALS, ways, writers
from loader_ways import IN_TURN, LIMIT, PURE_TORCH, ROOF

from hotlap.pack import kernel

__all__ = ["main", "summary"]

OURS = "hotlap.pack"
LIMITS = (LIMIT, IN_TURN, ROOF)
TIERS = ("decoded", "pure torch", "encoded")
GO_ON = 3
"""Ways of ours, and of the rivals, that get more turns than the first, in each tier."""


def _multiplications(step_ms: float) -> int:
    """How many make a step of this length, alone on the machine, in a process like those of the turns."""
    if step_ms == 0:
        return 0
    found = turn({"what": "step", "kind": "images", "folder": "", "usable": []})
    if isinstance(found, str):
        raise RuntimeError(f"The length of a step could not be measured: {found}")
    return max(1, round(step_ms / 1000 / found["multiplication_s"]))


def _tier(name: str) -> str:
    if name.startswith(PURE_TORCH):
        return "pure torch"
    return "encoded" if "JPEG" in name or "WAV" in name else "decoded"


def _ours(names: Iterable[str], tier: str) -> list[str]:
    return [n for n in names if n.startswith(OURS) and _tier(n) == tier]


def _rivals(names: Iterable[str], tier: str) -> list[str]:
    """Those of other libraries; beside ours in pure torch, the ones of decoded samples."""
    wanted = "encoded" if tier == "encoded" else "decoded"
    return [n for n in names if n not in LIMITS and not n.startswith(OURS) and _tier(n) == wanted]


def _rates(turns: dict[str, list[Turn]]) -> dict[str, float]:
    return {name: statistics.median(t["samples_per_s"] for t in found) for name, found in turns.items()}


def go_on(turns: dict[str, list[Turn]]) -> set[str]:
    """The limits, and the quickest of ours and of the rivals: a median is of no use for what is five times slower."""
    rate = _rates(turns)
    found = {n for n in rate if n in LIMITS}
    for tier in TIERS:
        for side in (_ours(rate, tier), _rivals(rate, tier)):
            found |= set(sorted(side, key=rate.__getitem__)[-GO_ON:])
    return found


def summary(turns: dict[str, list[Turn]]) -> dict[str, Any]:
    """Per tier: our quickest way over the quickest rival, and over the limit (memcpy, or the resident batch)."""
    rate = _rates(turns)
    found: dict[str, Any] = {}
    for tier in TIERS:
        ours = max(_ours(rate, tier), key=rate.__getitem__, default=None)
        rival = max(_rivals(rate, tier), key=rate.__getitem__, default=None)
        if ours is None or rival is None:
            continue
        found[tier] = {"ours": ours, "best_rival": rival}
        for key in ("samples_per_s", "cpu_s_per_1000", "anonymous_bytes"):
            found[tier][f"{key}_ratio"] = ratios(turns[ours], turns[rival], key)
        for limit in LIMITS:
            if limit in turns:
                found[tier][f"of {limit}"] = ratios(turns[ours], turns[limit], "samples_per_s")
                found[tier][f"best rival of {limit}"] = ratios(turns[rival], turns[limit], "samples_per_s")
    return found


def _feed(args: argparse.Namespace, folder: Path, usable: list[str]) -> dict[str, Any]:
    rivals = tuple(r for r in ALL_RIVALS if r.name in usable)
    missing = {}
    for name in writers(args.kind, rivals):
        if not (folder / name).exists():
            print(f"writing {name}", file=sys.stderr)
            found = _write_once(folder, args.kind, usable, folder / name, name)
            if isinstance(found, str):
                missing[name] = found
                shutil.rmtree(folder / name, ignore_errors=True)
    play = partial(_play, folder, args, usable, _multiplications(args.step_ms))
    skipped = (LIMIT, IN_TURN) if args.step_ms else (ROOF,)
    names = [n for n in ways(args.kind, rivals) if re.search(args.only, n) and n not in skipped]
    turns, failed = take_turns(names, play, args.rounds, args.limit_s, go_on)
    table = dict(sorted(medians(turns).items(), key=lambda entry: -entry[1]["samples_per_s"]))
    print(f"{'way':36} {'samples/s':>10} {'cpu ms/1000':>12} {'first ms':>9} {'epoch ms':>9} {'anon MB':>8}")
    for name, row in table.items():
        print(f"{name:36} {row['samples_per_s']:10,.0f} {1000 * row['cpu_s_per_1000']:12.1f} "
              f"{1000 * row['first_batch_s']:9.0f} {1000 * row['epoch_start_s']:9.1f} "
              f"{row['anonymous_bytes'] / 1e6:8.0f}")  # fmt: skip
    return {"ways": table, "failed": missing | failed, "summary": summary(turns), "step_ms": args.step_ms}


def _play(folder: Path, args: argparse.Namespace, usable: list[str], multiplications: int, name: str) -> Turn | str:
    return turn({"what": "feed", "kind": args.kind, "name": name, "folder": str(folder), "usable": usable,
                 "seconds": args.seconds, "multiplications": multiplications})  # fmt: skip


def _write_once(folder: Path, kind: str, usable: list[str], target: Path, name: str) -> Turn | str:
    return turn({"what": "write", "kind": kind, "name": name, "folder": str(folder), "target": str(target),
                 "usable": usable})  # fmt: skip


def _write(args: argparse.Namespace, folder: Path, usable: list[str]) -> dict[str, Any]:
    def play(name: str) -> Turn | str:
        with tempfile.TemporaryDirectory(dir=folder) as parent:
            return _write_once(folder, args.kind, usable, Path(parent) / "written", name)

    names = [n for n in writers(args.kind, tuple(r for r in ALL_RIVALS if r.name in usable)) if re.search(args.only, n)]
    turns, failed = take_turns(names, play, args.rounds, args.limit_s)
    table = dict(sorted(medians(turns).items(), key=lambda entry: entry[1]["wall_s"]))
    count = int((folder / "made").read_text())
    print(f"{'form':24} {'s':>8} {'rows/s':>10} {'cpu s':>8} {'MB':>8}")
    for name, row in table.items():
        print(f"{name:24} {row['wall_s']:8.2f} {count / row['wall_s']:10,.0f} {row['cpu_s']:8.2f} "
              f"{row['disk_bytes'] / 1e6:8.0f}")  # fmt: skip
    return {"forms": table, "failed": failed}


def _memory(args: argparse.Namespace, folder: Path, usable: list[str]) -> dict[str, Any]:
    return compare_memory(folder, args.rounds, args.limit_s, args.memory_mb)


def main() -> None:
    """Make the data, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=tuple(COUNT), default="images")
    parser.add_argument("--part", choices=("feed", "write", "memory"), default="feed")
    parser.add_argument("--rounds", type=int, default=5, help="at most; fewer if --limit-s is reached")
    parser.add_argument("--limit-s", type=float, default=390.0, help="time for the rounds (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=1.5, help="length of a turn")
    parser.add_argument("--step-ms", type=float, default=0.0, help="length of a training step beside it")
    parser.add_argument("--count", type=int, help="samples in the data set")
    parser.add_argument("--memory-mb", type=int, default=768, help="the memory limit of --part memory")
    parser.add_argument("--only", default="", metavar="REGEX", help="ways in whose name this is found")
    parser.add_argument("--folder", type=Path, help="where the data set is kept (default: made anew)")
    parser.add_argument("--save", action="store_true", help="keep the figures in bench/results")
    args = parser.parse_args()
    kernel.ready(wait=True)  # compiled once per machine; a first training makes its first batches without
    kernel_state = kernel.state()
    rivals = {r.name: {"version": installed(r), "settings": r.settings} for r in ALL_RIVALS if args.kind in r.kinds}
    usable = [name for name, r in rivals.items() if not r["version"].startswith("not installed")]
    with tempfile.TemporaryDirectory() as temporary:
        folder = (args.folder or Path(temporary)) / args.kind
        folder.mkdir(parents=True, exist_ok=True)
        if args.part != "memory":
            make_files(folder, args.kind, args.count or COUNT[args.kind])
        figures = {"feed": _feed, "write": _write, "memory": _memory}[args.part](args, folder, usable)
    figures |= {"kind": args.kind, "count": args.count or COUNT[args.kind], "rivals": rivals,
                "cores": len(os.sched_getaffinity(0)), "kernel": kernel_state, "torch": torch.__version__}  # fmt: skip
    for name in rivals.keys() - set(usable):
        print(f"{name}: {rivals[name]['version']}")
    for name, reason in figures.get("failed", {}).items():
        print(f"{name} failed: {reason}")
    if "summary" in figures:
        print(json.dumps(figures["summary"], indent=1))
    if args.save:
        from results import save

        beside = f"_beside_{args.step_ms:g}ms" if args.step_ms else ""
        kind = "" if args.part == "memory" else f"_{args.kind}"
        print(save(f"loader_{args.part}{kind}{beside}", figures))


if __name__ == "__main__":
    main()
