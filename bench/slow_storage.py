"""The drop from 930 to 190 samples/s: does the tool name the storage, and what do the callbacks cost that were blamed?

    python bench/slow_storage.py [--steps 120] [--save]

`hotlap diagnose` watches `face_distill --preset slow_storage` on the set that it makes itself: its photos come from the
page cache at first, and past it from then on. What the training's own lines say of samples/s before and after stands
beside what the tool names. Folklore blamed the calling of the callbacks at each step: what the loop does between two
steps when nothing is due (show, track, evaluate, save, clean up, stop) is timed on the same training.

``--save`` writes bench/results/slow_storage.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from fault_runs import environment
from results import save

from hotlap.report import units
from hotlap_workloads.engine.journal import Journal
from hotlap_workloads.engine.loop import Trainer
from hotlap_workloads.face_distill.slow_storage import SlowPhotos
from hotlap_workloads.session import Request, opened, settings_of

__all__ = ["before_and_after", "main"]

TRUE_CAUSES = ("page-cache-exhausted", "storage-read")
PRESET = ("face_distill", "slow_storage")
CALLS = 20_000


def watched(steps: int, folder: Path) -> tuple[dict[int, float], dict[str, Any]]:
    """Samples/s by step, as the training wrote them, and the findings."""
    out, findings = folder / "run", folder / "findings.json"
    train = [sys.executable, "-m", "hotlap_workloads.train", PRESET[0], "--preset", PRESET[1], "--out", str(out)]
    train += ["--set", "trackers="]  # whatever is installed here
    watch = ["diagnose", "--no-confirm", "--no-sandbox", "--json", str(findings), "--"]
    command = [sys.executable, "-m", "hotlap", *watch, *train, "--set", "print_every_steps=5"]
    command += ["--set", f"max_steps={steps}"]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"hotlap diagnose ended with {done.returncode}:\n{done.stderr[-3000:]}")
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return {row["step"]: row["samples_per_s"] for row in rows if "samples_per_s" in row}, json.loads(
        findings.read_text()
    )


def before_and_after(rates: dict[int, float], step: int, ahead: int) -> tuple[float, float]:
    """Median samples/s until ``step``, and from there on once the batches fetched ``ahead`` were used."""
    before, after = [r for s, r in rates.items() if s <= step], [r for s, r in rates.items() if s > step + ahead]
    if len(before) < 3 or len(after) < 3:
        raise SystemExit(f"{len(before)} lines before step {step}, {len(after)} after it: give it more --steps")
    return statistics.median(before), statistics.median(after)


def used_up(trainer: Trainer) -> int:
    """The step at which the page cache has given all it holds."""
    photos: SlowPhotos = trainer.task.train_set.squares.photos  # type: ignore[attr-defined]
    size = statistics.fmean(len(photos.read(row)[0]) for row in range(0, len(photos), 10))
    return int(trainer.settings.page_cache_mb * 1e6 / size / trainer.batch_size)  # type: ignore[attr-defined]


def between_s(trainer: Trainer) -> float:
    """Seconds of all that is asked between two steps, when nothing is due."""
    trainer._journal = Journal(trainer.context.out, "face_distill", trainer.settings, True, lambda line: None)
    trainer.position.step = 1
    begun = time.perf_counter()
    for _ in range(CALLS):
        trainer._between_steps()
    return (time.perf_counter() - begun) / CALLS


def main() -> None:
    """Watch, time, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=120, help="steps to train")
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="slow-storage-") as name:
        folder = Path(name)
        request = Request(PRESET[0], folder / "asked", PRESET[1])
        settings = settings_of(request)
        with opened(request, settings, lambda line: None) as trainer:
            step, callbacks_s = used_up(trainer), between_s(trainer)
        rates, found = watched(args.steps, folder)
    print(f"photos from the page cache until step {step}; samples/s by step: {rates}", file=sys.stderr)
    before, after = before_and_after(rates, step, settings.workers * settings.prefetch_factor)
    causes = [(f["cause"], f["share"], f["detail"]) for f in found["findings"]]
    added_s = settings.batch_size / after - settings.batch_size / before
    print(f"samples/s: {units.per_s(before)} until step {step}, {units.per_s(after)} from there on "
          f"({units.ratio(before / after)} slower: {units.seconds(added_s)} more a step)")  # fmt: skip
    drift, named = found["drift"], next((c for c in causes if c[0] != "drift"), ("nothing", 0.0, ""))
    right = named[0] in TRUE_CAUSES and drift is not None and drift["phase"] == "data_wait"
    when = f"slower from step {drift['at_step']} on, by its {drift['phase'].replace('_', ' ')}" if drift else "no drift"
    print(f"the tool: {when}; first cause {named[0]} ({units.share(named[1])} of the step, {named[2]})"
          f"{'' if right else '  NOT THE TRUE CAUSE'}")  # fmt: skip
    print(f"calling the callbacks at a step where none is due: {units.seconds(callbacks_s)}, "
          f"{units.share(callbacks_s / added_s)} of what was lost")  # fmt: skip
    if args.save:
        figures = {"step": step, "before_samples_per_s": before, "after_samples_per_s": after, "samples_per_s": rates,
                   "lost_s_per_step": added_s, "callbacks_s_per_step": callbacks_s, "causes": causes,
                   "drift": drift, "right": right}  # fmt: skip
        print(save("slow_storage", figures))


if __name__ == "__main__":
    main()
