"""Everything that only a machine with a GPU can answer, in two commands, each under ten minutes.

    python bench/gpu/run.py [--save] [--budget-s 570] [--only PART ...] [--list]              how fast it is
    python bench/gpu/run.py --behaviour [--save] [--budget-s 570] [--only PART ...] [--list]  whether it is right

overhead   what watching costs a loop of short steps on the device
phases     what the timeline says of forward, backward, optimizer and copies on the device, beside the training's own
           CUDA events
copies     samples/s onto the device: the packed-data loader, DataLoaders, and the bus alone
ladder     the five reference trainings, slow against fast, and the roof

commands   hotlap's commands on trainings that are awkward on a GPU
tests      the tests marked gpu

Each part has its share of the time and is cut off at it; what one does not need, the later ones get. A part that fails
is told and does not take the others with it. Nothing is downloaded. ``--save`` writes bench/results/gpu.json (or
gpu_behaviour.json) with the machine's facts; with ``--only``, the other parts stay as they were measured before, where
that was on such a machine. Exit code: 0 when all parts were done, 1 when not, 2 without a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
BENCH, ROOT = HERE.parent, HERE.parents[1]
sys.path[:0] = [str(HERE), str(BENCH)]

from gpu_budget import FIGURES, LIMIT, Part, play_all, shown  # noqa: E402
from results import FOLDER, save  # noqa: E402

__all__ = ["behaviour", "main", "parts", "together"]

BUDGET_S = 570.0
NO_GPU = 2
TOGETHER = 6
"""Tests at a time, at most."""


def parts() -> list[Part]:
    """How fast: in the order of what is missed most when the time runs out."""
    return [
        Part("phases", _script("phases"), 65),
        Part("overhead", _script("overhead"), 85),
        Part("copies", _script("copies"), 35),
        Part("ladder", _script("ladder"), 385),
    ]


def behaviour() -> list[Part]:
    """Whether it is right: the tests have what the commands leave, and at least half of the time.

    They run side by side where pytest-xdist is: most of what they take is starting processes.
    """
    pytest = (sys.executable, "-m", "pytest", "-v", "-m", "gpu", "-p", "no:cacheprovider", "--junitxml", FIGURES)
    if find_spec("xdist"):
        pytest += ("-n", str(min(TOGETHER, max(1, (os.cpu_count() or 1) // 2))))
    return [
        Part("commands", _script("commands"), 285),
        Part("tests", (*pytest, *marked(ROOT / "tests")), 285, junit),
    ]


def known(args: argparse.Namespace) -> list[Part]:
    """The parts of the command that was given."""
    return behaviour() if args.behaviour else parts()


def _script(name: str) -> tuple[str, ...]:
    return (sys.executable, str(HERE / f"gpu_{name}.py"), "--limit-s", LIMIT, "--json", FIGURES)


def marked(folder: Path) -> list[str]:
    """Test files with tests marked gpu: the others may want packages that are not here. SystemExit when there are none:
    without a file pytest would take them all."""
    found = [str(p) for p in sorted(folder.rglob("test_*.py")) if "pytest.mark.gpu" in p.read_text(encoding="utf-8")]
    if not found:
        raise SystemExit(f"bench/gpu: no test below {folder} is marked gpu.")
    return found


def junit(path: Path) -> dict[str, Any]:
    """Counts and the names of what failed, of pytest's JUnit file."""
    try:
        suites = list(ElementTree.parse(path).getroot().iter("testsuite"))
    except ElementTree.ParseError as err:
        raise ValueError(str(err)) from err
    counts = {k: sum(int(s.get(k, 0)) for s in suites) for k in ("tests", "failures", "errors", "skipped")}
    cases = [case for suite in suites for case in suite.iter("testcase")]
    bad = [str(c.get("name")) for c in cases if c.find("failure") is not None or c.find("error") is not None]
    return {**counts, "failed": bad}


def device_facts() -> dict[str, Any]:
    """What the machine's facts do not hold: torch's build, the driver, each GPU's limits."""
    import torch

    query = ["nvidia-smi", "--query-gpu=name,driver_version,clocks.max.sm,power.limit",
             "--format=csv,noheader"]  # fmt: skip
    try:
        asked = subprocess.run(query, capture_output=True, text=True, timeout=20)
        driver = asked.stdout.strip().splitlines() if asked.returncode == 0 else [asked.stderr.strip()]
    except (OSError, subprocess.TimeoutExpired) as err:
        driver = [f"nvidia-smi: {err}"]
    return {"cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(), "driver": driver,
            "devices": [torch.cuda.get_device_name(k) for k in range(torch.cuda.device_count())]}  # fmt: skip


def together(before: dict[str, Any], now: dict[str, Any], known: Sequence[str]) -> dict[str, Any]:
    """``now`` with the parts that it did not play from ``before``, if GPU, driver and torch's CUDA are the same; a part
    that neither played is told as not measured."""
    same = ("cuda", "cudnn", "devices", "driver")
    old = before.get("parts", {}) if all(before.get("device", {}).get(k) == now["device"][k] for k in same) else {}
    parts = {**old, **now["parts"]}
    return {**now, "parts": {name: parts.get(name, {"status": "not measured"}) for name in known}}


def no_gpu() -> str | None:
    """Why there is nothing to measure here."""
    import torch

    if torch.cuda.is_available():
        return None
    built = torch.version.cuda or torch.version.hip
    why = f"torch {torch.__version__} sees none" if built else f"torch {torch.__version__} is built for the CPU alone"
    return f"bench/gpu needs a GPU: {why}. Nothing was measured."


def arguments() -> argparse.Namespace:
    """Of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget-s", type=float, default=BUDGET_S, help="time for all parts (default: %(default)s)")
    parser.add_argument("--only", nargs="+", metavar="PART", help="these parts")
    parser.add_argument("--behaviour", action="store_true", help="the tests and commands, in place of the measurements")
    parser.add_argument("--list", action="store_true", help="say which parts there are, with their shares")
    parser.add_argument("--save", action="store_true", help="write bench/results/gpu.json, or gpu_behaviour.json")
    args = parser.parse_args()
    if args.budget_s <= 0:
        parser.error("--budget-s: more than nothing")
    names = [part.name for part in known(args)]
    if not set(args.only or []) <= set(names):
        parser.error(f"--only: there are {', '.join(names)}")
    return args


def main() -> int:
    """Run, tell, save."""
    begun = time.monotonic()
    args = arguments()
    wanted = [part for part in known(args) if args.only is None or part.name in args.only]
    if args.list:
        whole = sum(part.share for part in wanted)
        print("\n".join(f"{part.name:24} {args.budget_s * part.share / whole:4.0f} s" for part in wanted))
        return 0
    missing = no_gpu()
    if missing is not None:
        print(missing, file=sys.stderr)
        return NO_GPU
    path = [str(ROOT / "src"), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))}
    facts = device_facts()
    left = args.budget_s - (time.monotonic() - begun)
    results = play_all(wanted, left, env, ROOT, lambda line: print(line, flush=True))
    for name, result in results.items():
        print(f"\n== {shown(name, result)}")
        print("\n".join(result.get("told", [])))
    if args.save:
        name = f"gpu{'_behaviour' if args.behaviour else ''}"
        file, today = FOLDER / f"{name}.json", time.strftime("%Y-%m-%d")
        before = json.loads(file.read_text(encoding="utf-8"))["figures"] if file.exists() else {}
        played = {part: {**result, "date": today} for part, result in results.items()}
        figures = {"device": facts, "budget_s": args.budget_s, "parts": played}
        print(save(name, together(before, figures, [part.name for part in known(args)])))
    return 0 if all(result["status"] == "done" for result in results.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
