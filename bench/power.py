"""How often is Hotlap wrong, and how often does it see a small gain? Rates, each with its exact 95 % interval.

Simulated: many laps on several kinds of machine, the product's own code deciding (power_trials.py), and many verdicts
on quality (power_quality.py). Real: what launches of equal arms gave on this machine (bench/results/honesty.json). A
true speedup is a factor on one arm's throughput, which moves an interval over launches by just that factor, so that the
same comparisons tell what would have been said of it. Whole proofs of a real 3 % are measured by real_proofs.py.

Wanted: false "faster" in 1 % at most, false "non-inferior" in 5 % at most, a true 3 % seen by the proof in 90 % at
least (a search, which has one pair of launches for each lever, finds larger gains alone). Exit code: 1 when a figure
falls short of that.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from power_noise import HONESTY, equal_arms, models, real_pairs
from power_quality import CASES, false_rates
from power_trials import Setup, enough_budget_s, one_lap
from real_proofs import FALSE_AT_MOST, SEEN_AT_LEAST
from results import save
from scipy.stats import binomtest

from hotlap.proof.speedup import LEVEL

TRUTHS = (1.0, 1.03, 1.05, 1.1, 1.2)
WANTED = {"false faster": FALSE_AT_MOST, "false non-inferior": 0.05, "3 % seen": SEEN_AT_LEAST}
PAIRS = (4, 5, 6, 8, 10, 12, 16, 24)
SEEN = 0.9
"""A speedup counts as within reach when so many laps see it."""


def rate(hits: int, n: int) -> dict[str, Any]:
    """A share with its exact interval (Clopper-Pearson)."""
    interval = binomtest(hits, n).proportion_ci(0.95, "exact")
    return {"hits": hits, "n": n, "share": hits / n, "low": float(interval.low), "high": float(interval.high)}


def told(found: dict[str, Any]) -> str:
    """A rate in one line."""
    return f"{100 * found['share']:.2f} % [{100 * found['low']:.2f}, {100 * found['high']:.2f}] of {found['n']}"


def simulated(n: int, few: int, folder: Path | None, seed: int) -> dict[str, Any]:
    """Per machine and true ratio: how many laps kept the lever, would claim it by a proof, and did claim it."""
    out: dict[str, Any] = {}
    pairs = [] if folder is None else real_pairs(folder)
    for noise in models(pairs, LEVEL):
        rows: dict[str, Any] = {}
        for truth in TRUTHS:
            g = np.random.default_rng(seed)
            laps = [one_lap(Setup(noise, truth), g) for _ in range(n if truth == 1.0 else few)]
            rows[f"{truth:g}"] = {
                "kept": rate(sum(lap.kept for lap in laps), len(laps)),
                "claimed by a proof": rate(sum(lap.claimed for lap in laps), len(laps)),
                "claimed, of those kept": rate(
                    sum(lap.kept and lap.claimed for lap in laps), max(1, sum(lap.kept for lap in laps))
                ),
                "claimed by a lap": rate(sum((lap.kept or lap.guessed) and lap.claimed for lap in laps), len(laps)),
                "launches": float(np.mean([lap.launches for lap in laps])),
            }
        out[noise.name] = {"launch_sd": noise.launch_sd, "by true ratio": rows}
        print(f"{noise.name} (launches of one arm differ by {100 * noise.launch_sd:.1f} %)", flush=True)
        for truth, row in rows.items():
            print(f"  {truth:>5}x  kept {told(row['kept'])}; claimed {told(row['claimed by a proof'])}", flush=True)
    return out


def launches_needed(n: int, folder: Path | None, seed: int) -> dict[str, int | None]:
    """Per machine: pairs of launches with which a proof claims a true 3 % in 90 %; None: not even the most tried."""
    found: dict[str, int | None] = {}
    for noise in models([] if folder is None else real_pairs(folder), LEVEL):
        found[noise.name] = None
        for pairs in PAIRS:
            g = np.random.default_rng(seed)
            setup = Setup(noise, 1.03, pairs=pairs, budget_s=enough_budget_s(pairs), budget_asked=True)
            if sum(one_lap(setup, g).claimed for _ in range(n)) >= SEEN * n:
                found[noise.name] = pairs
                break
        print(f"{noise.name}: 3 % needs {found[noise.name] or f'more than {PAIRS[-1]}'} pairs of launches", flush=True)
    return found


def quality(n: int, seed: int) -> dict[str, Any]:
    """Per case: false and true "non-inferior"."""
    out: dict[str, Any] = {}
    for case in CASES:
        found = false_rates(case, n, np.random.default_rng(seed))
        out[case.name] = {"false": rate(found.false, n), "true": rate(found.true, n), "at_delta": found.true_delta}
        print(f"{case.name}: false {told(out[case.name]['false'])}, true {told(out[case.name]['true'])}", flush=True)
    return out


def shifted(intervals: dict[str, list[list[float]]]) -> dict[str, Any]:
    """What real comparisons of equal arms said, and would have said of a true speedup; and the least seen by 90 %."""
    out = {}
    for name, rows in intervals.items():
        lows = [low for low, _, _ in rows]
        needed = float(np.quantile([1 / low for low in lows], SEEN, method="higher"))
        row: dict[str, Any] = {f"{t:g}": rate(sum(low * t > 1.0 for low in lows), len(lows)) for t in TRUTHS}
        out[name] = {"claimed by true ratio": row, "least ratio seen by 90 %": needed}
    return out


def shortfalls(figures: dict[str, Any]) -> list[str]:
    """Which figures fall short of what is wanted, a line for each."""
    rates: list[tuple[str, str, dict[str, Any]]] = []
    for name, row in figures["machines"].items():
        at = row["by true ratio"]
        rates += [
            ("false faster", f"{name}, a lap", at["1"]["claimed by a lap"]),
            ("false faster", f"{name}, a proof alone", at["1"]["claimed by a proof"]),
            ("3 % seen", f"{name}, a proof", at["1.03"]["claimed by a proof"]),
        ]
    for name, row in figures["equal_arms"].items():
        at = row["claimed by true ratio"]
        rates += [
            (what, f"real launches of {name}", at[t]) for what, t in (("false faster", "1"), ("3 % seen", "1.03"))
        ]
    rates += [("false non-inferior", name, row["false"]) for name, row in figures["quality"].items()]
    return [
        f"{what}, {name}: {told(found)}, wanted {100 * WANTED[what]:g} %"
        for what, name, found in rates
        if (found["share"] < WANTED[what] if what == "3 % seen" else found["share"] > WANTED[what])
    ]


def main() -> int:
    """Simulate, count, print the figures last; 1 when they fall short."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--laps", type=int, default=4000, help="simulated laps of equal arms on each kind of machine")
    parser.add_argument("--gains", type=int, default=1000, help="simulated laps of each true gain")
    parser.add_argument("--verdicts", type=int, default=4000, help="simulated verdicts on quality of each kind")
    parser.add_argument("--windows", type=Path, metavar="FOLDER", help="draw noise from the trials below it, too")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--save", action="store_true", help="write bench/results/power.json")
    args = parser.parse_args()
    machines = simulated(args.laps, args.gains, args.windows, args.seed)
    needed = launches_needed(max(1, args.gains // 2), args.windows, args.seed)
    verdicts = quality(args.verdicts, args.seed)
    honest = shifted(equal_arms())
    figures = {"machines": machines, "launches_for_3_percent": needed, "quality": verdicts, "equal_arms": honest,
               "wanted": WANTED}  # fmt: skip
    if args.save:
        save("power", figures)
    for name, row in honest.items():
        claimed = row["claimed by true ratio"]
        print(f"real launches of {name} ({HONESTY.name}): false faster {told(claimed['1'])}; 3 % seen "
              f"{told(claimed['1.03'])}; 90 % would see {row['least ratio seen by 90 %']:.2f}x")  # fmt: skip
    for name, row in machines.items():
        at = row["by true ratio"]
        print(f"{name}: false faster {told(at['1']['claimed by a lap'])}, by a proof alone "
              f"{told(at['1']['claimed by a proof'])}; 3 % seen {told(at['1.03']['kept'])} by the "
              f"search, {told(at['1.03']['claimed by a proof'])} by the proof, which would need "
              f"{needed[name] or f'more than {PAIRS[-1]}'} pairs of launches")  # fmt: skip
    for name, row in verdicts.items():
        print(f"{name}: false non-inferior {told(row['false'])}")
    short = shortfalls(figures)
    for line in short:
        print(f"short of what is wanted: {line}")
    return int(bool(short))


if __name__ == "__main__":
    sys.exit(main())
