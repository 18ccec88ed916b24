"""Does watching or trying change anything? The zoo bare and watched, sandboxed vandals, and kill -9 of each process."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import harmless_sandbox
from harmless_sandbox import Check
from results import save
from tests.zoo.catalogue import ANIMALS
from tests.zoo.harness import compare, diagnose_command, missing

from hotlap.records.rows import Step
from hotlap.records.timeline import read_timeline

VICTIM = """
import os, pathlib, torch
from torch.utils.data import DataLoader, TensorDataset
if __name__ == "__main__":
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loader = DataLoader(TensorDataset(torch.randn(4096, 64)), batch_size=16, num_workers=2, persistent_workers=True)
    pathlib.Path("pid").write_text(str(os.getpid()))
    while True:
        for (x,) in loader:
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
"""


def zoo(only: list[str]) -> tuple[int, int, list[str]]:
    """Animals that are the same, animals run, and what differed."""
    same, run, notes = 0, 0, []
    for animal in ANIMALS:
        lacking = missing(animal)
        if (only and animal.name not in only) or lacking is not None:
            notes += [f"{animal.name}: skipped, {lacking} is not installed"] if lacking else []
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = compare(animal, Path(folder))
            except (AssertionError, subprocess.TimeoutExpired) as err:
                found = [str(err)]
        run, same = run + 1, same + (not found)
        notes += [f"{animal.name}: {text}" for text in found]
        print(f"  {'same' if not found else 'DIFFERS':8s}{animal.name}", flush=True)
    return same, run, notes


def _script(host: psutil.Process, folder: Path) -> psutil.Process:
    return psutil.Process(int((folder / "pid").read_text()))


def _host(host: psutil.Process, folder: Path) -> psutil.Process:
    return host


def _worker(host: psutil.Process, folder: Path) -> psutil.Process:
    return _script(host, folder).children()[-1]


def kill_nine(name: str, choose: Callable[[psutil.Process, Path], psutil.Process]) -> list[Check]:
    """Kill -9 one process of a watched run after a few seconds; its timeline, and what is left running."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "victim.py").write_text(VICTIM)
        command = diagnose_command(folder / "runs", (sys.executable, "victim.py"))
        with open(folder / "out.txt", "w") as out:
            host = subprocess.Popen(command, cwd=folder, stdout=out, stderr=out, start_new_session=True)
        _until(lambda: (folder / "pid").exists(), 40)
        time.sleep(6)
        watched = psutil.Process(host.pid)
        family = [watched, *watched.children(recursive=True)]
        choose(watched, folder).send_signal(signal.SIGKILL)
        killed_ns = time.time_ns()
        gone = _until(lambda: not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in family), 30)
        for process in family:
            if not gone and process.is_running():
                process.kill()
        steps, last_ns = _read(folder / "runs")
        late_s = (killed_ns - last_ns) / 1e9
    return [
        Check(f"kill -9 of {name}: readable timeline", steps > 0, f"{steps} steps"),
        Check(f"kill -9 of {name}: up to the last second", late_s <= 1.5, f"last row {late_s:.2f} s before"),
        Check(f"kill -9 of {name}: no stray process", gone),
    ]


def _read(runs: Path) -> tuple[int, int]:
    """Steps in the longest timeline, and the wall clock of its last write."""
    best = (0, 0)
    for path in runs.rglob("*.jsonl"):
        rows: list[Step] = read_timeline(path).step
        best = max(best, (len(rows), path.stat().st_mtime_ns))
    return best


def _until(test: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if test():
            return True
        time.sleep(0.05)
    return test()


def main() -> int:
    """Run all, print the figures last; 1 when something differed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--animal", action="append", default=[], help="only this animal (repeatable)")
    parser.add_argument("--skip-zoo", action="store_true")
    parser.add_argument("--save", action="store_true", help="write bench/results/harmless.json")
    args = parser.parse_args()
    os.chdir(tempfile.gettempdir())
    same, run, notes = (0, 0, []) if args.skip_zoo else zoo(args.animal)
    results = harmless_sandbox.checks()
    for name, choose in (("the script", _script), ("Hotlap", _host), ("a worker", _worker)):
        results += kill_nine(name, choose)
    for text in notes:
        print(f"  {text}")
    for result in results:
        print(f"  {'ok  ' if result.held else 'FAIL'} {result.name} {result.detail}")
    held = sum(result.held for result in results)
    if args.save:
        checks = {result.name: result.held for result in results}
        save("harmless", {"zoo_same": same, "zoo_run": run, "differences": notes, "checks": checks})
    print(f"zoo: {same} of {run} the same · checks: {held} of {len(results)} held")
    return int(same != run or held != len(results))


if __name__ == "__main__":
    sys.exit(main())
