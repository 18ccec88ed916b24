"""What is to be patched: the run behind a plan, its places, and the record that makes a second patch a quiet one."""

from __future__ import annotations

import hashlib
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from hotlap.cli.saved import find_run
from hotlap.patch.patch import ByHand, Patched, Wanted, patch_file
from hotlap.plan.edits import edits_of
from hotlap.plan.file import load_plan, load_valid_plan
from hotlap.records.edits import Edit
from hotlap.records.errors import EXIT_USAGE, HotlapError
from hotlap.records.findings import Findings
from hotlap.records.machine import Machine
from hotlap.records.plan import Move, Plan
from hotlap.records.run import RunRecord
from hotlap.records.run_folder import RunFolder, list_runs

__all__ = [
    "RECORD",
    "PatchRecord",
    "apply",
    "digest",
    "is_patched",
    "own_script",
    "plan_and_run",
    "recorded",
    "script_path",
    "shown_name",
    "wanted_edits",
]

RECORD = "patch.json"
NAME_ONE = "Name the plan (`hotlap patch fast.yaml`) or a run of `hotlap speedup`: `hotlap runs` lists them."
BY_HAND = (
    '`--attach` needs a command that names a .py file: put `import hotlap; hotlap.attach("fast.yaml")` in by hand.'
)


@dataclass(frozen=True)
class PatchRecord:
    """What a patch made of each file: path to the digest of its text before and after."""

    moves: list[Move]
    files: dict[str, list[str]] = field(default_factory=dict)


def digest(data: bytes) -> str:
    """SHA-256 of a file's bytes."""
    return hashlib.sha256(data).hexdigest()


def plan_and_run(name: str | None, root: Path | None) -> tuple[Plan, RunFolder]:
    """The plan called ``name`` (a plan file, a run, or None for the newest run) and the run that found it."""
    path = Path(name) if name is not None else None
    if path is not None and path.suffix in (".yaml", ".yml") and not path.exists():
        hint = "`hotlap speedup` writes one where a lever paid; its last lines say where, or why there is none."
        raise HotlapError(f"There is no plan {name}.", hint, EXIT_USAGE)
    if path is None or not path.is_file():
        folder = find_run(name, root) if name is not None else _newest_with_plan(root)
        plan = folder.read("plan.json", Plan)
        if plan is None or not plan.moves:
            raise HotlapError(f"The run {folder.path.name} kept no move, so there is nothing to patch.", NAME_ONE)
        return plan, folder
    plan = load_plan(path)
    run = _run_of(plan, path, [r for r in reversed(list_runs(root)) if (r.path / "findings.json").is_file()])
    machine = run.read("machine.json", Machine)
    return plan if machine is None else load_valid_plan(path, machine), run


def _run_of(plan: Plan, path: Path, runs: Sequence[RunFolder]) -> RunFolder:
    """The newest of ``runs`` that the plan is of: the one that made it; else one of the same command; else one of a
    script of that name, where there is one such script."""
    for run in runs:
        if run.read("plan.json", Plan) == plan:
            return run
    for run in runs:
        if " ".join(_command(run)) == plan.script != "":
            return run
    words = {Path(word).name for word in plan.script.split()}  # the command, or the script alone
    named = [run for run in runs if _script(run) in words or (not words and _moves(run) == plan.moves)]
    commands = {tuple(_command(run)) for run in named}
    if len(commands) > 1:
        told = ", ".join(sorted({" ".join(command) for command in commands}))
        what = f"{path} may be of several scripts: {told}."
        raise HotlapError(what, "Pass the folder of the run that is meant (`hotlap runs`).", EXIT_USAGE)
    if not named:
        raise HotlapError(
            f"No run says where the moves of {path} belong in {plan.script or 'the script'}.",
            "Run `hotlap diagnose -- python train.py` here, or pass the run's folder.", EXIT_USAGE,
        )  # fmt: skip
    return named[0]


def _command(run: RunFolder) -> list[str]:
    record = run.read("run.json", RunRecord)
    return record.command if record is not None else []


def _moves(run: RunFolder) -> list[Move]:
    kept = run.read("plan.json", Plan)
    return kept.moves if kept is not None else []


def _newest_with_plan(root: Path | None) -> RunFolder:
    """The newest run that made a plan; one of `hotlap run` or `hotlap diagnose` after it made none."""
    newest = find_run(None, root)
    for run in reversed(list_runs(root)):
        if (run.path / "plan.json").is_file():
            return run
    raise HotlapError(f"No run under {newest.path.parent} made a plan, so there is nothing to patch.", NAME_ONE)


def _script(run: RunFolder) -> str:
    findings = run.read("findings.json", Findings)
    return Path(findings.script.name).name if findings is not None else ""


def own_script(folder: RunFolder) -> Path | None:
    """The script of a run, or the file of the module that it ran; None where its command names none that is here."""
    run = folder.read("run.json", RunRecord)
    command = run.command if run is not None else []
    paths = [Path(word) for word in command if word.endswith(".py")]
    for word, after in pairwise(command):
        module = Path(*after.split(".")) if word == "-m" else None
        paths += [module.with_suffix(".py"), module / "__main__.py"] if module is not None else []
    return next((path for path in paths if path.is_file()), None)


def script_path(folder: RunFolder) -> Path:
    """The script of a run, as its command names it."""
    run = folder.read("run.json", RunRecord)
    scripts = [Path(word) for word in (run.command if run is not None else []) if word.endswith(".py")]
    if not scripts or not scripts[0].is_file():
        hint = "Go to the script's folder." if scripts else BY_HAND
        raise HotlapError(f"The run {folder.path.name} names no script that is here.", hint)
    return scripts[0]


def wanted_edits(plan: Plan, folder: RunFolder) -> list[Wanted]:
    """The edits of all moves."""
    findings = folder.read("findings.json", Findings)
    if findings is None:
        what = f"The run {folder.path.name} has no findings, so no place is known."
        raise HotlapError(what, "Run `hotlap diagnose -- ...` again, then patch.", EXIT_USAGE)
    return [Wanted(edit, m.lever, text, n) for n, m in enumerate(plan.moves) for edit, text in edits_of(m, findings)]


def apply(
    wanted: Sequence[Wanted], skip: Sequence[Path] = (), script: Path | None = None
) -> tuple[dict[Path, Patched], list[ByHand]]:
    """Patch each file that the edits name. Places in installed packages become advice.

    What the other files and the run's ``script`` do may make a change a wrong one: they are read, too.
    """
    by_file: dict[Path, list[Wanted]] = defaultdict(list)
    by_hand: list[ByHand] = []
    for want in wanted:
        path = Path(want.edit.file)
        if want.edit.kind == "advice" or not want.edit.file:
            by_hand.append(ByHand(want.by, want.edit.file, want.edit.line, want.edit.advice or _no_place(want.edit)))
        elif {"site-packages", "dist-packages"} & set(path.parts):
            by_hand.append(ByHand(want.by, want.edit.file, want.edit.line, "The place is in an installed package."))
        else:
            by_file[path].append(want)
    patched = {}
    held = {path: _read(path) for path in dict.fromkeys([*by_file, *([script] if script is not None else [])])}
    for path, edits in by_file.items():
        if path in skip:
            continue
        beside = {str(p): data for p, data in held.items() if p.resolve() != path.resolve()}
        patched[path] = patch_file(str(path), held[path], edits, beside)
        by_hand += patched[path].by_hand
    return patched, by_hand


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as err:
        raise HotlapError(f"Cannot read {path}: {err.strerror}.", "Has the script moved since the run?") from err


def _no_place(edit: Edit) -> str:
    return f"No line is known for {edit.code or edit.target or ', '.join(edit.keywords)}."


def recorded(folder: RunFolder, plan: Plan) -> dict[str, list[str]]:
    """What earlier patches of this plan made of its files."""
    record = folder.read(RECORD, PatchRecord)
    return dict(record.files) if record is not None and record.moves == plan.moves else {}


def is_patched(folder: RunFolder, plan: Plan, path: Path) -> bool:
    """Whether the file is as this plan's patch leaves it."""
    before, after = recorded(folder, plan).get(str(path), ["", ""])
    return before != after and path.is_file() and digest(path.read_bytes()) == after


def shown_name(path: Path) -> str:
    """The path from the top of its git repository, else from here: what a diff calls the file."""
    command = ["git", "-C", str(path.parent), "rev-parse", "--show-prefix"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout.strip() + path.name
    except FileNotFoundError:
        pass  # without git the name is that from here
    full = path.resolve()
    return str(full.relative_to(Path.cwd())) if full.is_relative_to(Path.cwd()) else path.name
