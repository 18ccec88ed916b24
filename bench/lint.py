"""How often `hotlap lint` is right on public training code, and how fast it is.

FOLDER holds checkouts of public repositories, one folder each, named as in bench/lint_judged.json (their code is not
kept here; the file names the commits). Each judged finding was read by hand in its context and called right when the
sentence that lint prints is true there and its advice would help; a finding that is intended (a benchmark that waits
for the device on purpose) counts as wrong. `--sample N` prints findings that nobody has judged yet, drawn at random
within each cause. `--save` writes bench/results/lint.json.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from results import save

from hotlap.lint.lint import Result, lint_paths

JUDGED = Path(__file__).parent / "lint_judged.json"


def key(folder: Path, file: str, line: int, cause: str) -> tuple[str, str, int]:
    """Cause, path below the folder, line."""
    return cause, Path(file).relative_to(folder).as_posix(), line


def figures(folder: Path, result: Result, wall_s: float, judged: list[list[Any]]) -> dict[str, Any]:
    """Counts, and of the judged findings that are still reported how many are right, per cause."""
    keys = [key(folder, p.file, p.line, p.cause) for p in result.problems]
    verdicts = {(cause, file, line): right for cause, file, line, right in judged}
    right: dict[str, list[bool]] = defaultdict(list)
    for found in keys:
        if found in verdicts:
            right[found[0]].append(verdicts[found])
    training = sum("backward(" in p.read_text(errors="replace") for p in folder.rglob("*.py") if p.is_file())
    counts = Counter(cause for cause, _, _ in keys)
    every = [r for group in right.values() for r in group]
    return {
        "repositories": sum(1 for p in folder.iterdir() if p.is_dir()),
        "files": result.files,
        "files_that_go_backward": training,
        "files_unread": len(result.unread),
        "wall_s": wall_s,
        "findings": len(keys),
        "judged": len(every),
        "right": sum(every),
        "by_cause": {
            c: {"findings": n, "judged": len(right[c]), "right": sum(right[c])} for c, n in counts.most_common()
        },
    }


def main() -> int:
    """Lint the folder, print what was judged."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sample", type=int, metavar="N", help="print N findings of each cause that wait for a judge")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    book = json.loads(JUDGED.read_text())
    began = time.perf_counter()
    result = lint_paths([args.folder])
    wall_s = time.perf_counter() - began
    if args.sample:
        done = {(cause, file, line) for cause, file, line, _ in book["judged"]}
        waiting = defaultdict(list)
        for p in result.problems:
            if key(args.folder, p.file, p.line, p.cause) not in done:
                waiting[p.cause].append(p)
        for group in waiting.values():
            for p in random.Random(args.seed).sample(group, min(args.sample, len(group))):
                print(f"{p.file}:{p.line}: {p.cause}: {p.message}\n    {p.text}")
        return 0
    found = figures(args.folder, result, wall_s, book["judged"])
    if args.save:
        save("lint", {**found, "commits": book["commits"], "notes": book["notes"]})
    for cause, row in found["by_cause"].items():
        print(f"  {cause:22s}{row['findings']:5d} found   {row['right']:3d} of {row['judged']:3d} judged are right")
    print(
        f"lint: {found['findings']} findings in {found['files']} files ({found['wall_s']:.1f} s) · "
        f"{found['right']} of {found['judged']} judged are right"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
