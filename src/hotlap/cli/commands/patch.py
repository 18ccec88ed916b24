"""Write a plan into the script's own source: plain PyTorch, no import of Hotlap.

The diff goes to stdout and into the run's folder; what a person has to do goes to stderr. Nothing is changed without
--write.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from hotlap.cli.patching import (
    RECORD,
    PatchRecord,
    apply,
    digest,
    is_patched,
    own_script,
    plan_and_run,
    recorded,
    script_path,
    shown_name,
    wanted_edits,
)
from hotlap.patch.attach import attach_file
from hotlap.patch.diff import unified
from hotlap.patch.patch import ByHand, Patched
from hotlap.patch.write import check_clean, write_all
from hotlap.records.errors import HotlapError
from hotlap.records.run_folder import RunFolder

NAME = "patch"
HELP = "write a plan into the script's source"
ORDER = 4
TAKES_COMMAND = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``hotlap patch``."""
    words = "a plan file, or a run (default: the newest run that made a plan)"
    parser.add_argument("plan", metavar="PLAN|RUN", nargs="?", help=words)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--diff", action="store_true", help="print the diff and change nothing (default)")
    what.add_argument("--write", action="store_true", help="change the files: all of them or none")
    parser.add_argument("--force", action="store_true", help="write even where git could not bring the old text back")
    parser.add_argument("--attach", action="store_true", help="only add the line that attaches the plan file")
    parser.add_argument("--runs", metavar="DIR", type=Path, help="where runs are kept (default: .hotlap)")


def execute(args: argparse.Namespace) -> int:
    """Print or write the patch; 0 also when there is nothing left to do."""
    plan, folder = plan_and_run(args.plan, args.runs)
    record = None
    if args.attach:
        script = script_path(folder)
        name = args.plan if args.plan is not None and Path(args.plan).is_file() else str(folder.path / "plan.yaml")
        patched: Mapping[Path, Patched] = {script: attach_file(str(script), script.read_bytes(), name)}
        by_hand: Sequence[ByHand] = []
    else:
        wanted = wanted_edits(plan, folder)
        files = {Path(w.edit.file) for w in wanted if w.edit.kind != "advice" and w.edit.file}
        done = [path for path in files if is_patched(folder, plan, path)]
        for path in done:
            _say(f"{path} has this patch already.")
        patched, by_hand = apply(wanted, done, own_script(folder))
        held = {str(p): [digest(f.before), digest(f.after)] for p, f in patched.items()}
        if held:
            record = PatchRecord(list(plan.moves), recorded(folder, plan) | held)
    changed = {path: file for path, file in patched.items() if file.before != file.after}
    diff = b"".join(unified(shown_name(path), file.before, file.after) for path, file in changed.items())
    _keep(folder, record, diff)
    if args.write:
        if not args.force:
            for path in changed:
                check_clean(path)
        write_all({path: (file.before, file.after) for path, file in changed.items()})
        for path, file in changed.items():
            _say(f"{path} changed: {', '.join(file.written)}.")
    else:
        sys.stdout.buffer.write(diff)
        sys.stdout.buffer.flush()
    if not changed:
        _say("There is nothing to change in the source.")
    _tell(by_hand)
    return 0


def _keep(folder: RunFolder, record: PatchRecord | None, diff: bytes) -> None:
    """Keep what was patched in the run's folder. A folder that cannot be written (another user's) is told, no more."""
    try:
        if record is not None:
            folder.write(RECORD, record)
        if diff:
            (folder.path / "patch.diff").write_bytes(diff)
    except (OSError, HotlapError) as err:
        why = err.what if isinstance(err, HotlapError) else f"Cannot write {err.filename}: {err.strerror}."
        _say(f"the run's folder keeps no copy of this patch: {why}")


def _tell(by_hand: Sequence[ByHand]) -> None:
    if by_hand:
        _say("To do by hand:")
    for told in by_hand:
        place = f"{told.file}:{told.line}" if told.file and told.line else told.file
        print(f"  {told.by}  {place}  {told.text}", file=sys.stderr)


def _say(text: str) -> None:
    print(f"hotlap: {text}", file=sys.stderr)
