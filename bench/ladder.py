"""A reference training from slow to fast, one change at a time, and what each change gives.

    python bench/ladder.py speaker_verify [--data DIR] [--save]        on this CPU
    python bench/ladder.py speaker_verify --on cuda                    on this GPU
    python bench/ladder.py speaker_verify --on A100 --mfu 0.3          on a simulated accelerator (bench/simulated.py)

Changes come in the order of bench/ladder_rungs.toml: quick wins, medium, advanced. Rungs take turns, each turn in a
process of its own; a factor is the median over the rounds, with its lowest and highest. Samples/s hold everything that
the settings ask for: the steps of a window after a warm-up, and their share of the epoch's start, of evaluations and of
checkpoints, of which the two last are timed once per rung. The roof is the same step on a resident batch, nothing else.

``--save`` writes bench/results/ladder_<workload>_<target>.json and .svg, and the throughput of the measured presets
into src/hotlap_workloads/measured.json, from where `python -m hotlap_workloads.train --list` takes it; with
``--for-list`` that alone.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from ladder_chart import chart
from ladder_figures import figures
from ladder_keep import place, remember
from ladder_rungs import Rung, ladder
from ladder_turn import Target, plain
from loader_rounds import Turn, take_turns, turn
from results import facts, save, without_folders
from simulated import Gpu

from hotlap.report import units
from hotlap_workloads.catalogue import NAMES, find_workload
from hotlap_workloads.engine.machine import check_machine
from hotlap_workloads.engine.overrides import parse_pairs
from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.measured import Measured
from hotlap_workloads.session import Request, settings_of

__all__ = ["TIMES", "TOGETHER", "TURN", "arms", "asked_of", "main", "show"]

TURN = Path(__file__).with_name("ladder_turn.py")
PRESET = "preset "
TOGETHER = "fast, all changes together"
TIMES = 50
"""The self-made sets are a few batches long. An evaluation and a checkpoint after every few steps is no training's."""
SIMULATED_MFU = 0.3
"""Said, not measured. ``--mfu`` says another."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload", choices=NAMES)
    parser.add_argument("--data", type=Path, help="the data set's folder; without it, the training makes a small set")
    parser.add_argument("--on", default="cuda" if torch.cuda.is_available() else "cpu",
                        help="cpu, cuda, or a GPU of peaks.toml to simulate")  # fmt: skip
    parser.add_argument("--mfu", type=float, default=SIMULATED_MFU, help="simulated: the share of the peak reached")
    parser.add_argument("--presets", action="store_true", help="measure the workload's other presets too")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for slow and fast alike")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=8, help="steps of a short epoch")
    parser.add_argument("--times", type=int, default=TIMES, help="self-made data: how often an epoch goes through them")
    parser.add_argument("--seconds", type=float, default=5.0, help="least length of a window, and of the roof's")
    parser.add_argument("--limit-s", type=float, default=570.0, help="begin no round that would end later")
    parser.add_argument("--no-evaluations", action="store_true", help="leave evaluations and checkpoints out")
    parser.add_argument("--ends", action="store_true", help="slow and fast alone, without the rungs between them")
    parser.add_argument("--for-list", action="store_true",
                        help="--ends --presets, which --save notes for the list alone")  # fmt: skip
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--chart", type=Path, help="write the SVG here")
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--label", help="ends the names of saved files, which then lie beside another machine's")
    args = parser.parse_args()
    if args.for_list:
        args.ends = args.presets = True
    if args.steps < 2:
        parser.error("--steps: two at least, the first of an epoch waits for the epoch's start")
    if args.on == "cuda" and not torch.cuda.is_available():
        parser.error("--on cuda: torch sees no GPU here")
    if args.on not in ("cpu", "cuda"):
        try:
            Gpu(args.on, args.mfu)
        except ValueError as err:
            parser.error(f"--on {args.on}: {err}")
    return args


def arms(args: argparse.Namespace, target: Target) -> tuple[list[Rung], dict[str, EngineSettings]]:
    """The rungs, and the settings of all that is measured by its name."""
    machine, values = target.machine, {"trackers": "", **parse_pairs(args.set)}  # whatever is installed here

    def check(settings: EngineSettings) -> None:
        settings.check()
        check_machine(settings, machine)

    def made(preset: str) -> EngineSettings:
        return settings_of(Request(args.workload, Path(), preset, values=values, data=args.data), machine)

    rungs = ladder(made("slow"), made("fast"), check, target.kind)
    if args.ends:
        rungs = [rungs[0], Rung(TOGETHER, "", {k: v for r in rungs for k, v in r.changes.items()}, rungs[-1].settings)]
    found = {rung.name: rung.settings for rung in rungs}
    if args.presets:
        others = [name for name in find_workload(args.workload).presets if name not in ("slow", "fast")]
        found |= {f"{PRESET}{name}": made(name) for name in others if _can_search(made(name), name, target)}
    return rungs, found


def _can_search(settings: EngineSettings, name: str, target: Target) -> bool:
    """Whether what the preset asks for can be measured: a simulated device has no memory to search a batch in."""
    can = target.on == "cuda" or not settings.search_batch_size
    if not can:
        print(f"{name} is left out: it searches its batch size, for which {target.on} has no memory", file=sys.stderr)
    return can


def asked_of(args: argparse.Namespace, target: Target, settings: EngineSettings, out: Path,
             periodic: bool) -> dict[str, Any]:  # fmt: skip
    """What a turn is told."""
    return {
        "workload": args.workload, "settings": plain(settings), "on": target.on, "mfu": target.mfu,
        "data": str(args.data.resolve()) if args.data else None, "out": str(out), "steps": args.steps,
        "times": 1 if args.data else args.times, "seconds": args.seconds, "periodic": periodic,
    }  # fmt: skip


def play(args: argparse.Namespace, target: Target, settings: dict[str, EngineSettings], out: Path, seen: set[str],
         name: str) -> Turn | str:  # fmt: skip
    """A turn. Evaluations and checkpoints are timed in the first of each name."""
    asked = asked_of(args, target, settings[name], out, name not in seen and not args.no_evaluations)
    seen.add(name)
    return turn(asked, script=TURN, limit_s=args.limit_s)


def show(rows: Sequence[dict[str, Any]], tiers: dict[str, str]) -> None:
    """The table. ``whole`` counts evaluations and checkpoints, ``steps`` does not."""
    memory = "device" if "device_bytes" in rows[0] else "host"
    print(f"{'':11}{'':40}{'samples/s':>10} {'factor':>8} {'whole':>8} {'spread':>14} {'steps':>8} {'wait':>7} "
          f"{'busy':>7} {memory:>9} {'of roof':>8} {'steps':>7}")  # fmt: skip
    for row in rows:
        total, name = row["cumulated"], row["name"]
        print(f"{tiers.get(name, ''):11}{name:40}{units.per_s(row['samples_per_s']):>10} "
              f"{units.ratio(row['factor']['median']):>8} {units.ratio(total['median']):>8} "
              f"{units.interval(total['lowest'], total['highest']):>14} "
              f"{units.ratio(row['steps_cumulated']['median']):>8} {units.share(row['data_wait_frac']):>7} "
              f"{units.share(row['busy_frac']):>7} {units.bytes_(row[f'{memory}_bytes']):>9} "
              f"{units.share(row['of_roof']):>8} {units.share(row['steps_of_roof']):>7}")  # fmt: skip


def about(args: argparse.Namespace, target: Target) -> str:
    """Where the figures come from, in a line."""
    data = args.data.name if args.data else f"self-made data, {args.times} times per epoch"
    if target.gpu is None:
        return f"measured on this {'GPU' if target.on == 'cuda' else 'CPU'}, {data}"
    return f"SIMULATED {target.on}: host work measured, each step a wait for its FLOPs at an assumed MFU of " \
           f"{target.mfu:g}, {data}"  # fmt: skip


def keep(args: argparse.Namespace, target: Target, rungs: list[Rung], document: dict[str, Any], drawn: str) -> None:
    """Figures, chart, and the list's throughputs."""
    if not args.for_list:
        simulated = "" if target.gpu is None else "_simulated"
        label = f"_{args.label}" if args.label else ""
        path = save(f"ladder_{args.workload}_{target.on.replace(' ', '_').lower()}{simulated}{label}", document)
        path.with_suffix(".svg").write_text(drawn, encoding="utf-8")
    if without_folders(args.set) or args.no_evaluations:
        print("measured.json is left as it was: --set and --no-evaluations measure something else than the presets")
        return
    now = facts()
    where = place(now["machine"], target.on, None if target.gpu is None else target.mfu)
    presets = {"slow": "slow", rungs[-1].name: "fast"}
    found = {}
    for row in document["rows"] + document["presets"]:
        preset = presets.get(row["name"]) or row["name"].removeprefix(PRESET)
        if row["name"] in presets or row["name"].startswith(PRESET):
            data = args.data.name if args.data else "self-made data"
            found[preset] = Measured(row["samples_per_s"], where, data, now["date"])
    remember(args.workload, found)


def main() -> None:
    """Measure, print, save."""
    args = arguments()
    target = Target(args.on, args.mfu)
    rungs, settings = arms(args, target)
    seen: set[str] = set()
    with tempfile.TemporaryDirectory() as out:
        turns, failed = take_turns(
            list(settings), partial(play, args, target, settings, Path(out), seen), args.rounds, args.limit_s
        )
    for name, reason in failed.items():
        print(f"FAILED {name}: {reason}")
    if "slow" not in turns:
        raise SystemExit("Without slow there is no ladder.")
    rows = figures([rung.name for rung in rungs], turns)
    others = [figures(["slow", name], turns)[1] for name in turns if name.startswith(PRESET)]
    tiers = {rung.name: rung.tier for rung in rungs}
    last_whole = rungs[-1].name in turns
    show([*rows, *others], tiers)
    told = about(args, target)
    title = f"{args.workload}, slow to fast" + (f" on a simulated {target.on}" if target.gpu is not None else "")
    drawn = chart(title, told, rows)
    document = {
        "about": told, "simulated": target.gpu is not None, "rows": rows, "presets": others, "failed": failed,
        "rungs": {rung.name: {"tier": rung.tier, "changes": rung.changes} for rung in rungs},
        "steps": args.steps, "times": args.times, "seconds": args.seconds, "set": without_folders(args.set),
        "evaluations": not args.no_evaluations,
    }  # fmt: skip
    if target.gpu is not None:
        document |= {"mfu": target.mfu, "peaks": {dtype: vars(peak) for dtype, peak in target.gpu.peaks.items()}}
    if args.json:
        args.json.write_text(json.dumps(document, default=str), encoding="utf-8")
    if args.chart:
        args.chart.write_text(drawn, encoding="utf-8")
    print(told)
    if not last_whole:
        raise SystemExit("The last rung failed: what fast gives is not known, and nothing is saved.")
    if args.save:
        keep(args, target, rungs, document, drawn)
    end = rows[-1]
    print(f"fast over slow {units.ratio(end['cumulated']['median'])}, steps alone "
          f"{units.ratio(end['steps_cumulated']['median'])}; fast reaches {units.share(end['of_roof'])} of its roof, "
          f"its steps alone {units.share(end['steps_of_roof'])}")  # fmt: skip


if __name__ == "__main__":
    main()
