"""How long until `hotlap ui` shows the list of 200 runs, and the page of a run of a million steps, in a real Chromium?

    python bench/ui.py [--rounds 5] [--save]

Every round starts a new `hotlap ui` (it remembers nothing), and counts from asking for the address until the browser
has the last row of the list, and the chart of the run, on its page. The runs are made, not trained: their documents and
the rows of the long timeline are of the shape that Hotlap writes. Prints the figures last. Exit code: 1 when one is
not below a second.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from results import save

from hotlap.records.run import RunRecord
from hotlap.testing.run_folders import made_findings, made_run, made_timeline

RUNS = 200
STEPS = 1_000_000
WANTED_S = 1.0
LONG = "20260401-000000-long"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip


def made(root: Path) -> int:
    """The folder of runs; returns the size of the long timeline in bytes."""
    for n in range(RUNS - 1):
        started = f"2026-03-01 00:{n // 60:02}:{n % 60:02}"
        run = RunRecord(("diagnose", "speedup")[n % 2], ["python", "train.py"], started, status="finished")
        made_run(root, f"20260301-{n:06d}-train", run, made_findings(step_s=0.1 + n / 1000))
    long = made_run(root, LONG, RunRecord("run", ["python", "long.py"], "2026-04-01 00:00:00"))
    return made_timeline(long, STEPS).stat().st_size


def round_s(browser: Any, root: Path) -> tuple[float, float]:
    """Seconds until the list is there, and until the page of the long run is."""
    command = [sys.executable, "-m", "hotlap", "ui", "--runs", str(root), "--no-browser"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        try:
            assert server.stdout is not None
            address = re.search(r"http://\S+", server.stdout.readline())
            assert address is not None, "hotlap ui printed no address"
            page = browser.new_context().new_page()
            began = time.perf_counter()
            page.goto(address[0], wait_until="commit")
            page.locator(".runs tbody tr").nth(RUNS - 1).wait_for()
            list_s = time.perf_counter() - began
            began = time.perf_counter()
            page.goto(f"{address[0].partition('?')[0]}run/{LONG}", wait_until="commit")
            page.locator("#chart polyline").wait_for()
            run_s = time.perf_counter() - began
            page.context.close()
            return list_s, run_s
        finally:
            server.terminate()


def main() -> int:
    """Measure, print; 1 when it takes too long."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--save", action="store_true", help="write bench/results/ui.json")
    options = parser.parse_args()
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        sys.exit("This needs Playwright: pip install -e '.[browser]', and a Chromium on PATH.")
    if found is None:
        sys.exit("No Chromium found on PATH. On Debian: apt-get install chromium")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        size = made(Path(name))
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        version = browser.version
        rounds = [round_s(browser, Path(name)) for _ in range(options.rounds)]
        browser.close()
    figures: dict[str, Any] = {"runs": RUNS, "steps": STEPS, "timeline_bytes": size, "chromium": version}
    slowest = 0.0
    for at, label in enumerate(("list_s", "long_run_s")):
        seconds = [one[at] for one in rounds]
        figures[label] = seconds
        slowest = max(slowest, *seconds)
        verdict = "below" if max(seconds) < WANTED_S else "ABOVE"
        told = f"{statistics.median(seconds):.2f} s [{min(seconds):.2f}, {max(seconds):.2f}]"
        print(f"{label}: {told} over {len(seconds)} rounds ({verdict} {WANTED_S:.0f} s)")
    if options.save:
        save("ui", {**figures, "asked": {"list_s": WANTED_S, "long_run_s": WANTED_S}})
    return int(slowest >= WANTED_S)


if __name__ == "__main__":
    sys.exit(main())
