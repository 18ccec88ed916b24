"""kill -9 of Hotlap at random moments, again and again: is anything of the user's changed, lost or left running?

Each kill starts speedup, run, pack or prove in a folder of its own, waits for a random part of what the command takes
when it is left alone, and kills it. Afterwards the user's files are byte-identical, nothing lies beside them that the
command does not make, no process is left (frozen arms too), every document is read by the product's own readers, and
the next command in that folder works. One that comes after the command has ended is looked at too, but is no kill.
``--log FILE`` keeps a line for each and goes on where an earlier call stopped: a thousand kills take hours.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from kill_records import MARK, alive, contents, strays, unreadable
from kill_victims import VICTIMS, Victim, furnish
from results import save

from hotlap.records.run_folder import ROOT

CHECKS = ("files the same", "nothing stray", "no process left", "records readable", "next command works", "no scratch")
PATIENCE_S = 60.0
"""Longest that the kernel and loader workers may take to end what a kill left."""
LIMIT_S = 500.0


def _start(victim: Victim, folder: Path, mark: str) -> subprocess.Popen[bytes]:
    out = open(folder.parent / "out.txt", "ab")  # noqa: SIM115 - the child's
    env = {**os.environ, MARK: mark, "OMP_NUM_THREADS": "1"}
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "hotlap", *victim.arguments], cwd=folder, env=env, stdin=subprocess.DEVNULL,
            stdout=out, stderr=out, start_new_session=True,
        )  # fmt: skip
    finally:
        out.close()


def _orphans() -> set[str]:
    """Folders in memory whose owner is gone: nobody holds their lock any more."""
    found = set()
    for path in Path("/dev/shm").glob("hotlap-*/owner"):
        try:
            with open(path, "rb") as owner:
                fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue  # somebody's, or gone meanwhile
        found.add(path.parent.name)
    return found


def undisturbed(victim: Victim, array: Path) -> float:
    """Seconds that the command takes when nobody kills it; RuntimeError when it fails by itself."""
    with tempfile.TemporaryDirectory() as base:
        folder = Path(base) / "user"
        folder.mkdir()
        furnish(folder, array)
        began = time.monotonic()
        process = _start(victim, folder, "undisturbed")
        code = process.wait(LIMIT_S)
        took_s = time.monotonic() - began
        # one seed proves nothing, and prove says so by its exit code
        not_proved = victim.name == "prove" and code == 1 and any((folder / ROOT).glob("*/proof.json"))
        if code != 0 and not not_proved:
            raise RuntimeError(f"{victim.name} fails by itself: {(Path(base) / 'out.txt').read_text()[-2000:]}")
        return took_s


def kill_once(victim: Victim, takes_s: float, array: Path, go_on: bool) -> dict[str, Any]:
    """One kill, at a random moment of ``takes_s``, and what it left. ``go_on``: the next command is really run."""
    after_s = random.uniform(0.0, takes_s)
    with tempfile.TemporaryDirectory() as base:
        folder, mark = Path(base) / "user", uuid.uuid4().hex
        folder.mkdir()
        users = furnish(folder, array)
        before = contents(folder, users)
        process = _start(victim, folder, mark)
        time.sleep(after_s)
        ended = process.poll() is not None
        process.kill()
        process.wait()
        until = time.monotonic() + PATIENCE_S
        while (left := alive(mark)) and time.monotonic() < until:
            time.sleep(0.05)
        left_in_memory = _orphans()
        wrong = {
            "files the same": [n for n, digest in contents(folder, users).items() if before[n] != digest],
            "nothing stray": strays(folder, {*users, *victim.makes}),
            "no process left": left,
            "records readable": unreadable(folder),
            "next command works": _next(victim, folder) if go_on else [],
        }
        clears = go_on and victim.name != "pack"  # which has no scratch, and leaves alone what another kill left
        wrong["no scratch"] = sorted(left_in_memory & _orphans()) if clears else []
        for line in left:
            os.kill(int(line.split()[0]), 9)
    return {"command": victim.name, "after_s": after_s, "takes_s": takes_s, "ended": ended, "went_on": go_on,
            "wrong": {check: found for check, found in wrong.items() if found}}  # fmt: skip


def _next(victim: Victim, folder: Path) -> list[str]:
    """The same packing goes on to its end and verifies; after the others a short run, and the list of runs."""
    commands: Sequence[tuple[str, ...]] = (("run", "--", sys.executable, "-c", "pass"), ("runs",))
    if victim.name == "pack":
        whole = (folder / "rows.pack" / "pack.json").exists()
        commands = (*(() if whole else (victim.arguments,)), ("pack", "verify", "rows.pack"))
    wrong = []
    for command in commands:
        done = subprocess.run([sys.executable, "-m", "hotlap", *command], cwd=folder, capture_output=True, text=True,
                              timeout=LIMIT_S, check=False)  # fmt: skip
        if done.returncode != 0:
            wrong.append(f"{command[0]}: {done.returncode}: {done.stderr[-300:]}")
    return wrong


def _keep(row: dict[str, Any], rows: list[dict[str, Any]], log: Path | None) -> None:
    rows.append(row)
    if log:
        with open(log, "a") as out:
            out.write(json.dumps(row) + "\n")
    if row["wrong"]:
        print(f"  {row['command']} after {row['after_s']:.2f} s: {row['wrong']}", flush=True)


def summed(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Figures of all kills, and of those moments at which the command had ended."""
    kills = [row for row in rows if not row["ended"]]
    out: dict[str, Any] = {"kills": len(kills), "had_ended": len(rows) - len(kills), "by_command": {}}
    for victim in VICTIMS:
        mine = [row for row in kills if row["command"] == victim.name]
        failed = {check: sum(check in row["wrong"] for row in mine) for check in CHECKS}
        out["by_command"][victim.name] = {"kills": len(mine), "went_on": sum(r["went_on"] for r in mine), **failed}
    out["clean"] = sum(not row["wrong"] for row in kills)
    out["ended_clean"] = sum(not row["wrong"] for row in rows) - out["clean"]
    return out


def main() -> int:
    """Kill, look, print the figures last; 1 when something was not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=1000, help="kills in all, those of the log included")
    parser.add_argument("--only", choices=[v.name for v in VICTIMS], action="append", help="this command (repeatable)")
    parser.add_argument("--log", type=Path, help="keep a line for each kill, and go on where it ends")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so long, for the log to go on later")
    parser.add_argument("--jobs", type=int, default=1, help="kills at the same time (default: %(default)s)")
    parser.add_argument("--next-every", type=int, default=5, help="after every so many kills, run the next command")
    parser.add_argument("--save", action="store_true", help="write bench/results/kill.json")
    args = parser.parse_args()
    rows = [json.loads(line) for line in args.log.read_text().splitlines()] if args.log and args.log.exists() else []
    chosen = [victim for victim in VICTIMS if not args.only or victim.name in args.only]
    until = time.monotonic() + args.seconds
    with tempfile.TemporaryDirectory() as folder:
        array = Path(folder) / "rows.npy"
        needed = chosen if summed(rows)["kills"] < args.n else []
        takes = {victim.name: undisturbed(victim, array) for victim in needed}
        print("undisturbed: " + ", ".join(f"{name} {s:.1f} s" for name, s in takes.items()), flush=True)

        def one(number: int) -> dict[str, Any] | None:
            victim = chosen[number % len(chosen)]
            if time.monotonic() > until:
                return None
            row = kill_once(victim, takes[victim.name], array, number // len(chosen) % args.next_every == 0)
            if row["ended"]:  # it takes less, on a machine that is quiet again or with its files in memory
                takes[victim.name] = min(takes[victim.name], row["after_s"])
            return row

        with ThreadPoolExecutor(args.jobs) as pool:
            while time.monotonic() < until and (more := args.n - summed(rows)["kills"]) > 0:
                for row in pool.map(one, range(len(rows), len(rows) + more)):
                    if row is not None:
                        _keep(row, rows, args.log)
    figures = summed(rows)
    if args.save:
        save("kill", figures)
    for name, counts in figures["by_command"].items():
        print(f"{name}: " + ", ".join(f"{check} {count}" for check, count in counts.items()))
    print(f"{figures['clean']} of {figures['kills']} kills left everything as it was, and {figures['ended_clean']} of "
          f"{figures['had_ended']} that came after the end")  # fmt: skip
    return int(any(row["wrong"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
