"""Is a reference training's fast preset as good as its slow one, and how much sooner is it there?

    python bench/quality.py speaker_verify --data DIR [--seeds 3] [--epochs 10] [--save]

Both presets are trained by their command line, in turn, seed by seed, on the same number of samples. The verdict is one
of non-inferiority: how much worse fast may be at most, with 95 % confidence. Where the training scores trials, that
bound resamples identities, not trials (bench/quality_verdict.py); elsewhere it rests on the spread of the seeds. With
``--keep`` what was trained is kept in a folder, and the same command goes on from there. Time
to quality is the wall time, start-up included, until an evaluation is as good as slow's last one on average: it is as
fine as the presets evaluate often.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from quality_scores import FILE
from quality_verdict import Trials, Verdict, by_identity, by_seed, time_to_quality
from results import save, without_folders

from hotlap_workloads.catalogue import NAMES
from hotlap_workloads.engine.overrides import parse_pairs
from hotlap_workloads.session import Request, settings_of

__all__ = ["evaluation", "main"]

SCORES = Path(__file__).with_name("quality_scores.py")
METRICS = {"eer": (False, 0.001), "ap": (True, 0.005), "accuracy": (True, 0.001)}
"""Metric -> (whether higher is better, how much worse is still the same): EER within 0.1 points, AP within 0.5."""
LINE = re.compile(r"Step (\d+)  (\w.*)")
PRESETS = ("slow", "fast")


def evaluation(line: str) -> tuple[int, dict[str, float]] | None:
    """The step and the metrics of a line that reports an evaluation; None for any other line."""
    match = LINE.fullmatch(line.strip())
    if match is None:
        return None
    words = match[2].split()
    return int(match[1]), {name: float(value) for name, value in zip(words[::2], words[1::2], strict=True)}


def steps_of(args: argparse.Namespace, preset: str) -> int:
    """``--steps`` counts slow's; every preset sees as many samples. 0: the epochs say."""
    per_step = {}
    for name in ("slow", preset):
        settings = settings_of(Request(args.workload, Path(), name, values=parse_pairs(args.set), data=args.data))
        per_step[name] = settings.batch_size * settings.accumulate
    return round(args.steps * per_step["slow"] / per_step[preset])


def trained(args: argparse.Namespace, preset: str, seed: int, out: Path) -> dict[str, Any]:
    """Train by the command line; the evaluations with their wall time, by the clock of this process."""
    values = [f"seed={seed}", f"epochs={args.epochs}", f"max_steps={steps_of(args, preset)}", "trackers=", *args.set]
    command = [sys.executable, "-m", "hotlap_workloads.train", args.workload, "--preset", preset, "--out", str(out)]
    command += [*(["--data", str(args.data)] if args.data else []), *(w for v in values for w in ("--set", v))]
    evaluations: list[dict[str, float]] = []
    begun, last = time.monotonic(), 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if (found := evaluation(line)) is not None:
                if found[0] != last:  # a heavy evaluation of the same step joins the light one
                    evaluations.append({"at_s": time.monotonic() - begun, "step": found[0]})
                last = found[0]
                evaluations[-1] |= found[1]
    wall_s = time.monotonic() - begun
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    settings = json.loads((out / "settings.json").read_text(encoding="utf-8"))
    samples = last * settings["batch_size"] * settings["accumulate"]
    return {"seed": seed, "wall_s": wall_s, "samples": samples, "evaluations": evaluations}


def scored(args: argparse.Namespace, out: Path) -> dict[str, Any] | None:
    """The scores of the run's model, None where the training has no trials."""
    data = str(args.data.resolve()) if args.data else None
    asked = {"workload": args.workload, "out": str(out), "data": data, "heavy": args.heavy}
    subprocess.run([sys.executable, str(SCORES), json.dumps(asked)], check=True)
    return dict(np.load(out / FILE)) if (out / FILE).exists() else None


def once(args: argparse.Namespace, preset: str, seed: int) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """A run and its scores, trained now or kept from before. Raises SystemExit where the kept one is another."""
    asked = {"set": args.set, "epochs": args.epochs, "steps": args.steps, "heavy": args.heavy, "data": str(args.data)}
    stem = args.keep and args.keep / f"{args.workload}_{preset}_{seed}"
    if stem and stem.with_suffix(".json").exists():
        kept = json.loads(stem.with_suffix(".json").read_text(encoding="utf-8"))
        if kept["asked"] != asked:
            raise SystemExit(f"{stem}.json is of {kept['asked']}, and asked is {asked}: keep this one elsewhere.")
        return kept["run"], dict(np.load(stem.with_suffix(".npz"))) if kept["scored"] else None
    with tempfile.TemporaryDirectory() as folder:
        run = trained(args, preset, seed, Path(folder))
        scores = scored(args, Path(folder))
    if stem:
        stem.parent.mkdir(parents=True, exist_ok=True)
        if scores is not None:
            np.savez(stem.with_suffix(".npz"), **scores)
        text = json.dumps({"asked": asked, "run": run, "scored": scores is not None})
        stem.with_suffix(".json").write_text(text, encoding="utf-8")
    return run, scores


def verdict(
    metric: str, margin: float | None, runs: dict[str, list[dict[str, Any]]], scores: dict[str, list[Any]]
) -> Verdict:
    """On the EER of trials, by identity, where every run has scores; else on the metric, by the seeds' spread."""
    every = [found for preset in PRESETS for found in scores[preset]]
    if all(found is not None for found in every):
        trials = Trials(every[0]["left"], every[0]["right"], every[0]["same"])
        slow, fast = ([found["scores"] for found in scores[preset]] for preset in PRESETS)
        return by_identity(trials, slow, fast, METRICS["eer"][1] if margin is None else margin)
    higher, usual = METRICS.get(metric, (False, METRICS["eer"][1]))
    slow_values, fast_values = ([run["evaluations"][-1][metric] for run in runs[preset]] for preset in PRESETS)
    return by_seed(slow_values, fast_values, usual if margin is None else margin, higher, metric)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload", choices=NAMES)
    parser.add_argument("--data", type=Path, help="the data set's folder; self-made data are too few to judge quality")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--steps", type=int, default=0, help="stop slow after so many; fast sees as many samples")
    parser.add_argument("--metric", help=f"default: the first that there is of {', '.join(METRICS)}")
    parser.add_argument("--margin", type=float, help="how much worse is still the same (default: 0.001, AP 0.005)")
    parser.add_argument("--heavy", action="store_true", help="score the trials of the heavy evaluation at the end")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for slow and fast alike")
    parser.add_argument("--limit-s", type=float, default=float("inf"), help="begin no seed that would end later")
    parser.add_argument("--keep", type=Path, help="a folder for what was trained, to go on from")
    parser.add_argument("--save", action="store_true", help="write bench/results/quality_<workload>.json")
    return parser.parse_args()


def measure(args: argparse.Namespace) -> tuple[dict[str, list[dict[str, Any]]], dict[str, list[Any]]]:
    """Runs and scores of both presets, seed by seed."""
    runs: dict[str, list[dict[str, Any]]] = {preset: [] for preset in PRESETS}
    scores: dict[str, list[Any]] = {preset: [] for preset in PRESETS}
    begun = time.monotonic()
    for number in range(args.seeds):
        if number and (time.monotonic() - begun) * (number + 1) / number > args.limit_s:
            print(f"{number} of {args.seeds} seeds fit {args.limit_s:.0f} s")
            break
        for preset in PRESETS:
            run, found = once(args, preset, number + 1)
            runs[preset].append(run)
            scores[preset].append(found)
            metrics = {k: v for k, v in run["evaluations"][-1].items() if k not in ("at_s", "step")}
            print(f"seed {number + 1} {preset}: {run['wall_s']:.0f} s, {run['samples']} samples, {metrics}", flush=True)
    return runs, scores


def main() -> None:
    """Train, score, judge."""
    args = arguments()
    runs, scores = measure(args)
    known = runs["slow"][0]["evaluations"][-1]
    metric = args.metric or next((name for name in METRICS if name in known), None)
    if metric is None or metric not in known:
        raise SystemExit(
            f"Which metric? --metric is one of {', '.join(k for k in known if k not in ('at_s', 'step'))}."
        )
    higher = METRICS.get(metric, (False, 0.0))[0]
    found = verdict(metric, args.margin, runs, scores)
    curves = {
        preset: [[(e["at_s"], e[metric]) for e in run["evaluations"] if metric in e] for run in runs[preset]]
        for preset in PRESETS
    }
    sooner = time_to_quality(curves["slow"], curves["fast"], higher)
    slow_s, fast_s = (statistics.median(run["wall_s"] for run in runs[preset]) for preset in PRESETS)
    final = {preset: [run["evaluations"][-1][metric] for run in runs[preset]] for preset in PRESETS}
    document = {
        "data": args.data.name if args.data else "self-made data", "metric": metric, "higher_is_better": higher,
        "final": final, "verdict": asdict(found), "time_to_quality": sooner, "wall_factor": slow_s / fast_s,
        "runs": runs, "heavy": args.heavy, "epochs": args.epochs, "steps": args.steps, "set": without_folders(args.set),
    }  # fmt: skip
    if args.save:
        save(f"quality_{args.workload}", document)
    for preset in PRESETS:
        values = final[preset]
        print(f"{preset}: {metric} {statistics.fmean(values):.4f} [{min(values):.4f}, {max(values):.4f}] over "
              f"{len(values)} seeds, {runs[preset][0]['samples']} samples each")  # fmt: skip
    bounds = "" if found.upper is None else f" [{found.lower:+.4f}, {found.upper:+.4f}]"
    print(f"fast is worse by {found.worse:+.4f}{bounds}, margin {found.margin:g}: {found.verdict} ({found.how})")
    factor = "not reached by every fast run" if sooner["factor"] is None else f"reached {sooner['factor']:.2f}x sooner"
    print(f"wall time {slow_s / fast_s:.2f}x; slow's final quality {factor}")


if __name__ == "__main__":
    main()
