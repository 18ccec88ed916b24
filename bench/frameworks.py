"""Which lever works under which framework? Each is run alone by `hotlap run --plan`, beside the bare run.

    python bench/frameworks.py [--only FRAMEWORK] [--lever ID] [--save]

bench/frameworks holds one training, written for each framework, in which every lever finds something to change. A lever
*works* when the run's records say that it changed something, the exit code is the bare run's and the losses differ by
no more than it may change them. ``--save`` puts the cells into bench/results/frameworks.json (those of other frameworks
and levers stay), of which tools/reference_docs.py makes docs/reference/levers-by-framework.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from framework_runs import FRAMEWORKS, SCRIPTS, Cell, Framework, judge
from results import FOLDER, save

from hotlap.lever.registry import lever, levers
from hotlap.machine.facts import read_machine

NAME = "frameworks"


def keep(framework: Framework, id: str, cell: Cell) -> None:
    """Put one cell beside those that were saved before; levers that are no more go."""
    path = FOLDER / f"{NAME}.json"
    figures: dict[str, Any] = json.loads(path.read_text())["figures"] if path.exists() else {}
    rows = {known: dict(figures.get("levers", {}).get(known, {})) for known in levers()}
    rows[id][framework.name] = asdict(cell) | {"version": f"{framework.package} {version(framework.package)}"}
    versions = figures.get("versions", {}) | {framework.name: told_versions(figures, rows, framework.name)}
    order = [f.name for f in FRAMEWORKS]
    save(
        NAME,
        {
            "versions": {name: versions[name] for name in order if name in versions},
            "levers": {known: {n: row[n] for n in order if n in row} for known, row in rows.items() if row},
        },
    )


def told_versions(figures: dict[str, Any], rows: dict[str, dict[str, Any]], name: str) -> str:
    """All versions that a framework's cells are of: one lever alone may have been run anew."""
    before = figures.get("versions", {}).get(name, "")
    found = [row[name].get("version", before) for row in rows.values() if name in row]
    return ", ".join(dict.fromkeys(one for said in found for one in said.split(", ") if one))


def told(framework: Framework, id: str, cell: Cell, seconds: float) -> str:
    """One line on one cell."""
    equal = {True: "losses equal", False: f"mean loss {cell.loss_difference} off", None: ""}[cell.losses_equal]
    words = [cell.state, f"{cell.changes} changes" if cell.changes else "", equal, cell.why]
    return f"{framework.name:14s} {id:26s} {' · '.join(w for w in words if w)}  ({seconds:.1f} s)"


def main() -> None:
    """Run, print, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [f.name for f in FRAMEWORKS]
    parser.add_argument("--only", action="append", choices=names, help="only this framework (repeatable)")
    parser.add_argument("--lever", action="append", metavar="ID", help="only this lever (repeatable)")
    parser.add_argument("--save", action="store_true", help=f"write bench/results/{NAME}.json")
    args = parser.parse_args()
    chosen = [lever(id) for id in args.lever] if args.lever else list(levers().values())
    os.environ["PYTHONPATH"] = os.pathsep.join([str(SCRIPTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    machine = read_machine()
    states = []
    with tempfile.TemporaryDirectory(prefix="frameworks-") as folder:
        home = Path(folder)
        subprocess.run([sys.executable, str(SCRIPTS / "task.py"), str(home / "data")], check=True)
        for framework in FRAMEWORKS:
            if args.only and framework.name not in args.only:
                continue
            if find_spec(framework.package) is None:
                print(f"{framework.name:14s} skipped: {framework.package} not installed")
                continue
            for one in chosen:
                began = time.monotonic()
                cell = judge(one, framework, machine, home)
                states.append(cell.state)
                print(told(framework, one.ID, cell, time.monotonic() - began), flush=True)
                if args.save:
                    keep(framework, one.ID, cell)
    print(", ".join(f"{states.count(s)} {s}" for s in ("works", "no effect", "refused", "fails")))


if __name__ == "__main__":
    sys.exit(main())
