"""A git revision of the folder that the user works in, run in its place: same paths, same data, other tracked files.

A second worktree elsewhere would lack whatever git does not hold (data, built extensions), and an editable installation
would still lead to the first one. So the revision is checked out where the working tree is, inside the sandbox of one
arm: an overlay that is thrown away with it. The real files, index and branch stay as they are.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field

from hotlap.records.errors import EXIT_USAGE, HotlapError
from hotlap.records.plan import Plan

__all__ = ["Against", "Revision", "at_revision", "find_revision"]

CHECKOUT = (
    'git -c core.hooksPath=/dev/null -c advice.detachedHead=false checkout --quiet --force --detach "$0" || '
    '{ echo "hotlap: git could not check out $0 in the sandbox" >&2; exit 1; }; exec "$@"'
)
"""The command follows as ``$@``: it becomes the process that the shell was."""


@dataclass(frozen=True)
class Revision:
    """A commit, and how far the working tree is from it."""

    name: str
    commit: str
    changed: int | None
    """Tracked files that differ; None: git would not say."""


@dataclass(frozen=True)
class Against:
    """What the working tree is compared with."""

    revision: Revision
    plan: Plan | None = None
    """With which both run."""
    notes: list[str] = field(default_factory=list)


def find_revision(name: str) -> Revision:
    """The commit that ``name`` stands for here. Raises HotlapError where there is no repository or no such commit."""
    commit = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if commit is None:
        inside, refusal = _asked("rev-parse", "--show-toplevel")
        if inside is None:
            why = refusal if "not a git repository" not in refusal else "it is in no git repository"
            what = f"git cannot be asked in this folder: {why}."
            raise HotlapError(what, "A check compares with a git revision.", EXIT_USAGE)
        hint = "In CI, fetch it first: a shallow clone holds one commit only (actions/checkout: `fetch-depth: 0`)."
        raise HotlapError(f"There is no commit {name!r} in {inside}.", hint, EXIT_USAGE)
    changed = _git("diff", "--name-only", "--no-ext-diff", commit)
    return Revision(name, commit, None if changed is None else len(changed.splitlines()))


def at_revision(command: list[str], revision: Revision) -> list[str]:
    """The command, after the revision was checked out; for an arm in a sandbox alone."""
    return ["sh", "-c", CHECKOUT, revision.commit, *command]


def _git(*arguments: str) -> str | None:
    return _asked(*arguments)[0]


def _asked(*arguments: str) -> tuple[str | None, str]:
    """What git printed, None if it refused; and the first line that it said besides."""
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        raise HotlapError("git is not here.", "A check compares with a git revision.", EXIT_USAGE) from None
    said = (done.stderr.strip().splitlines() or ["it did not say why"])[0].removeprefix("fatal: ").rstrip(".")
    return (done.stdout.strip() if done.returncode == 0 else None), said
