"""Readers against damaged input, guided by coverage (atheris): does any of them break, hang, or eat the memory?

Each reader of fuzz_targets.py is fuzzed in a process of its own, from valid documents, for its part of the time given.
What libFuzzer calls a crash, a hang (one input takes longer than ``HANG_S``) or too much memory (``MOST_MIB``) ends the
process; the input is kept beside the log, the reader counts as broken, and its fuzzing goes on until the time is up.
``--log FILE`` adds up the minutes of several calls. An input that was kept is given again by
``--again READER FILE``.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fuzz_targets import SEEDS, TARGETS
from results import save

HANG_S = 10
MOST_MIB = 2048
LARGEST = 1 << 14
"""Bytes of an input."""
MISSING = "atheris is not installed (pip install atheris): nothing was fuzzed."
_WORDS = (
    "schema", "hotlap.plan/1", "hotlap.timeline/1", "moves", "lever", "setting", "preserves", "bits", "knob:", '"k":',
    "header", "step", "hits", "event", "null", "1e999", "NaN", "!!int", "!!float", "&a", "*a", "<<:", "\\ud800",
    "columns", "parts", "chunks", "metadata", "left_out", "size_bytes", "{1,2}", "99999999999999999999",
)  # fmt: skip


def in_this_process(name: str, corpus: Path, seconds: int, kept: Path) -> None:
    """Fuzz one reader until the time is up or it breaks; libFuzzer ends the process."""
    import atheris

    with atheris.instrument_imports(include=["hotlap", "yaml", "json"]):
        for module in [m for m in sys.modules if m.partition(".")[0] in ("hotlap", "yaml", "json", "fuzz_targets")]:
            del sys.modules[module]
        import fuzz_targets

    words = corpus.parent / "words"
    lines = ["".join(rf"\x{byte:02x}" for byte in word.encode()) for word in _WORDS]
    words.write_text("".join(f'"{line}"\n' for line in lines))
    options = [
        f"-max_total_time={seconds}", f"-timeout={HANG_S}", f"-rss_limit_mb={MOST_MIB}", f"-max_len={LARGEST}",
        f"-artifact_prefix={kept}/{name}-", f"-dict={words}", "-print_final_stats=1", "-verbosity=1",
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *options, str(corpus)], fuzz_targets.TARGETS[name])
    atheris.Fuzz()


def fuzz(name: str, seconds: float, corpora: Path, kept: Path) -> dict[str, Any]:
    """One reader for so long: what ran, and what broke it."""
    corpus = corpora / name
    corpus.mkdir(parents=True, exist_ok=True)
    kept.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(SEEDS[name]):
        (corpus / f"seed-{number}").write_bytes(seed)
    began, runs, broken = time.monotonic(), 0, []
    while (left := int(seconds - (time.monotonic() - began))) >= 1:
        command = [sys.executable, __file__, "--one", name, str(corpus), str(left), str(kept)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        found = re.search(r"stat::number_of_executed_units:\s*(\d+)", done.stderr)
        runs += int(found[1]) if found else 0
        if done.returncode == 0:
            break
        told = done.stderr[-3000:]
        if (at := done.stderr.find("=== Uncaught Python exception")) >= 0:
            told = done.stderr[at : at + 3000]
        broken.append(told)
        if found is None and "Test unit written" not in done.stderr:
            raise RuntimeError(f"fuzzing {name} could not run: {told}")
    return {"reader": name, "seconds": time.monotonic() - began, "runs": runs, "broken": broken}


def summed(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Minutes, inputs and failures by reader."""
    out: dict[str, Any] = {"minutes": sum(row["seconds"] for row in rows) / 60, "by_reader": {}}
    for name in TARGETS:
        mine = [row for row in rows if row["reader"] == name]
        out["by_reader"][name] = {
            "minutes": sum(row["seconds"] for row in mine) / 60, "inputs": sum(row["runs"] for row in mine),
            "broken": sum(len(row["broken"]) for row in mine),
        }  # fmt: skip
    out["broken"] = sum(row["broken"] for row in out["by_reader"].values())
    return out


def main() -> int:
    """Fuzz all, print the figures last; 1 when a reader broke, 2 where nothing can be fuzzed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="for all readers together (default: %(default)s)")
    parser.add_argument("--only", choices=list(TARGETS), action="append", help="this reader (repeatable)")
    parser.add_argument("--corpus", type=Path, help="keep and go on with what was found to reach new code")
    parser.add_argument("--kept", type=Path, default=Path(tempfile.gettempdir()) / "hotlap-fuzz-broken",
                        help="where inputs that broke a reader are kept (default: %(default)s)")  # fmt: skip
    parser.add_argument("--log", type=Path, help="keep a line for each part, and add to what stands there")
    parser.add_argument("--again", nargs=2, metavar=("READER", "FILE"), help="give one input again, and do no more")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--save", action="store_true", help="write bench/results/fuzz.json")
    args = parser.parse_args()
    if args.again:
        TARGETS[args.again[0]](Path(args.again[1]).read_bytes())
        return 0
    if importlib.util.find_spec("atheris") is None:
        print(MISSING)
        return 2
    if args.one:
        in_this_process(args.one[0], Path(args.one[1]), int(args.one[2]), Path(args.one[3]))
        return 0
    rows = [json.loads(line) for line in args.log.read_text().splitlines()] if args.log and args.log.exists() else []
    names = args.only or list(TARGETS)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            row = fuzz(name, 60 * args.minutes / len(names), args.corpus or Path(folder), args.kept)
            rows.append(row)
            if args.log:
                with open(args.log, "a") as log:
                    log.write(json.dumps(row) + "\n")
            for text in row["broken"]:
                print(f"{name} broke:\n{text}", flush=True)
    figures = summed(rows)
    if args.save:
        save("fuzz", figures)
    for name, row in figures["by_reader"].items():
        print(f"{name}: {row['inputs']} inputs in {row['minutes']:.1f} min, broken {row['broken']} times")
    print(f"{figures['minutes']:.0f} minutes in all, {figures['broken']} breaks")
    return int(figures["broken"] > 0)


if __name__ == "__main__":
    sys.exit(main())
