"""The commands on trainings that are awkward on a GPU (gpu_awkward.py): do they come to the right end?

    python bench/gpu/gpu_commands.py --limit-s 280 --json FILE

late     under ``hotlap run`` a script that sets CUDA_VISIBLE_DEVICES after importing torch sees the devices that it
         sees alone
itself   a training that never waits for the device, measured against itself: it must not be told faster
large    ``hotlap speedup`` of a training of which two do not fit onto the card ends with an outcome
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

from honesty import against_itself, claimed  # noqa: E402

from hotlap.trial.sandbox import available  # noqa: E402

__all__ = ["checks", "itself", "large", "late", "main", "outcome", "play"]

SCRIPT = [sys.executable, str(HERE / "gpu_awkward.py")]
HOTLAP = [sys.executable, "-m", "hotlap"]
ITSELF_S = 24.0
LEAST_BUDGET_S, REPORT_S = 60.0, 30.0
"""What ``hotlap speedup`` is given at least, and what it may take beyond that."""


def late(folder: Path) -> dict[str, Any]:
    """No device, and the first one: said alone and watched."""
    said = {}
    for value in ("", "0"):
        command = [*SCRIPT, "late", value]
        runs = (command, [*HOTLAP, "run", "--runs", str(folder / "runs"), "--", *command])
        done = [subprocess.run(words, cwd=folder, capture_output=True, text=True) for words in runs]
        said[value] = [f"{d.stdout.strip()} ({d.returncode})" for d in done]
        if done[0].returncode or done[1].returncode:
            return {"ok": False, "why": (done[0].stderr + done[1].stderr)[-2000:], "said": said}
    wrong = [value for value, (alone, watched) in said.items() if alone != watched]
    return {"ok": not wrong, "why": f"not the same for {wrong}" if wrong else "", "said": said}


def itself(device: str, sandbox: bool, seconds: float) -> dict[str, Any]:
    """One trial, in pairs of launches as a proof has them."""
    (trial,) = against_itself([*SCRIPT, "free", device], 1, seconds, sandbox)
    if trial.interval is None:
        return {"ok": False, "why": f"{trial.status}: {trial.reason}", "interval": None}
    why = "told another speed than its own" if claimed(trial) else ""
    return {"ok": not why, "why": why, "interval": asdict(trial.interval)}


def large(device: str, sandbox: bool, limit_s: float, folder: Path) -> dict[str, Any]:
    """What the command made of it."""
    file, budget_s = folder / "speedup.json", max(LEAST_BUDGET_S, limit_s - REPORT_S)
    options = ["--json", str(file), "--budget", f"{budget_s:.0f}s", *([] if sandbox else ["--no-sandbox"])]
    command = [*HOTLAP, "speedup", *options, "--", *SCRIPT, "large", device]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    print(done.stdout, done.stderr, sep="\n", flush=True)
    return outcome(done.returncode, done.stderr, json.loads(file.read_text()) if file.exists() else None)


def outcome(code: int, errors: str, told: dict[str, Any] | None) -> dict[str, Any]:
    """Clear is: it ended by itself with a verdict, and each lever that could not be measured says why."""
    if told is None:
        return {"ok": False, "why": f"no outcome, exit code {code}: {errors[-2000:]}"}
    levers = [{key: lever[key] for key in ("id", "kept", "measured", "reason")} for lever in told["levers"]]
    mute = [lever["id"] for lever in levers if lever["measured"] is None and not (lever["kept"] or lever["reason"])]
    wrong = [
        *([f"exit code {code}"] if code else []),
        *([f"it {told['status']}"] if told["status"] != "finished" else []),
        *(["no verdict"] if not told["verdict"] else []),
        *([f"not measured without a reason: {mute}"] if mute else []),
        *(["a traceback"] if "Traceback (most recent call last)" in errors else []),
    ]
    more = {"verdict": told["verdict"], "notes": told["notes"], "levers": levers}
    return {"ok": not wrong, "why": ", ".join(wrong), **more}


def checks(device: str, end: float, folder: Path) -> dict[str, Callable[[], dict[str, Any]]]:
    """In the order in which they are played; the last one has the time that is left."""
    sandbox = available() != "none"
    return {
        "late": partial(late, folder),
        "itself": partial(itself, device, sandbox, ITSELF_S),
        "large": lambda: large(device, sandbox, end - time.monotonic(), folder),
    }


def play(wanted: dict[str, Callable[[], dict[str, Any]]], file: Path) -> bool:
    """All of them, whatever happens to one; whether they all came to the right end."""
    found: dict[str, dict[str, Any]] = {}
    for name, check in wanted.items():
        begun = time.monotonic()
        try:
            found[name] = check()
        except Exception as err:
            found[name] = {"ok": False, "why": f"{type(err).__name__}: {err}"}
        found[name]["seconds"] = time.monotonic() - begun
        file.write_text(json.dumps(found))
        print(f"{name}: {'as it should' if found[name]['ok'] else found[name]['why']}", flush=True)
    return all(result["ok"] for result in found.values())


def main() -> int:
    """Play, tell, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit-s", type=float, default=280.0)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"), help="cpu: to try the bench out")
    parser.add_argument("--only", nargs="+", choices=("late", "itself", "large"), help="these checks")
    args = parser.parse_args()
    end = time.monotonic() + args.limit_s
    with tempfile.TemporaryDirectory() as folder:
        wanted = checks(args.device, end, Path(folder))
        good = play({name: check for name, check in wanted.items() if name in (args.only or wanted)}, args.json)
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
