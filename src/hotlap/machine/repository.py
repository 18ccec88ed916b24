"""The state of a git repository, read without harm: no lock is taken, no index written, and nobody waits long.

``git`` tells it where it is installed, trusts the folder and answers in time; else the commit is read from ``.git`` by
hand, and which files were changed stays unknown.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Repository", "find_repository", "read_repository"]

TIMEOUT_S = 1.0
"""git answers within 20 ms in most repositories; in one with a million files it would look at each of them."""
MOST_BYTES = 32 * 2**20
"""A larger list of packed references (some 400,000) is not read by hand."""
_STATUS = ("status", "--porcelain=v2", "--branch", "-z", "--untracked-files=no", "--ignore-submodules=dirty")
_QUIET = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
"""The index is not refreshed on disk, nobody is asked for a password, nothing is fetched."""
_ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX")
"""Inside a hook of git's these name the repository that the hook runs for."""


@dataclass(frozen=True)
class Repository:
    """What was found. None: not known; ``note`` says why."""

    top: Path
    commit: str | None = None
    branch: str | None = None
    changed: list[str] | None = None
    """Tracked files that differ from the commit, by their path below ``top``."""
    tracked: bool | None = None
    """Whether git tracks the file that was asked about."""
    note: str = ""


@dataclass
class _Status:
    commit: str | None = None
    branch: str | None = None
    changed: list[str] = field(default_factory=list)


def find_repository(folder: Path) -> Path | None:
    """The nearest folder from here upwards that holds ``.git`` (a folder, or the file of a worktree or submodule)."""
    return next((top for top in (folder, *folder.parents) if (top / ".git").exists()), None)


def read_repository(folder: Path, file: Path | None = None, timeout_s: float = TIMEOUT_S) -> Repository | None:
    """The repository around ``folder``, which ``file`` is in; None without one. Never raises for what git or its files
    say."""
    top = find_repository(folder)
    if top is None:
        return None
    try:
        text, note = _ask(top, _STATUS, timeout_s)
        if not note:
            told = _status(text)
            tracked = _tracks(top, file, timeout_s) if file is not None else None
            return Repository(top, told.commit, told.branch, told.changed, tracked)
    except (OSError, UnicodeDecodeError) as err:
        note = f"git could not be asked ({err})"
    note = f"Which files were changed is not known: {note}."
    try:
        commit, branch = _by_hand(top)
    except (OSError, UnicodeDecodeError) as err:
        return Repository(top, note=f"{note} The commit could not be read: {err}.")
    return Repository(top, commit, branch, note=note)


def _tracks(top: Path, file: Path, timeout_s: float) -> bool | None:
    """A script that git does not know (in a folder that it ignores, say) is as it was committed in no commit."""
    if not file.is_relative_to(top):
        return False
    name = file.relative_to(top).as_posix()
    text, note = _ask(top, ("--literal-pathspecs", "ls-files", "-z", "--", name), timeout_s)
    return None if note else bool(text)


def _ask(top: Path, words: Sequence[str], timeout_s: float) -> tuple[str, str]:
    """What git prints, and why it did not (empty: it did). It and its children are ended when the time is up."""
    environment = {k: v for k, v in os.environ.items() if k not in _ELSEWHERE} | _QUIET
    command = ["git", "-c", "core.fsmonitor=false", "-C", str(top), *words]
    try:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip
    except FileNotFoundError:
        return "", "git is not installed"
    with process:
        try:
            out, err = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            _end(process)
            return "", f"git took more than {timeout_s:g} s"
        except BaseException:
            _end(process)
            raise
    if process.returncode != 0:
        first = (err.decode("utf-8", "replace").strip().splitlines() or [f"it ended with {process.returncode}"])[0]
        return "", f"git says {first.removesuffix('.')!r}"
    return out.decode("utf-8", "replace"), ""


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill git with whatever it has started (a filter that reads large files): its pipes would stay open else."""
    if hasattr(os, "killpg"):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            process.kill()
    else:
        process.kill()


def _status(text: str) -> _Status:
    """``git status --porcelain=v2 --branch -z``: see git-status(1)."""
    found = _Status()
    rows = iter(text.split("\0"))
    for row in rows:
        kind, _, rest = row.partition(" ")
        if row.startswith("# branch.oid "):
            commit = row.removeprefix("# branch.oid ")
            found.commit = None if commit == "(initial)" else commit
        elif row.startswith("# branch.head "):
            branch = row.removeprefix("# branch.head ")
            found.branch = None if branch == "(detached)" else branch
        elif kind == "1":
            found.changed.append(rest.split(" ", 7)[-1])
        elif kind == "2":  # a renamed file, whose old name is a row of its own
            found.changed.append(rest.split(" ", 8)[-1])
            next(rows, None)
        elif kind == "u":
            found.changed.append(rest.split(" ", 9)[-1])
    return found


def _by_hand(top: Path) -> tuple[str | None, str | None]:
    """Commit and branch from the files: ``HEAD``, the reference that it names, the packed references."""
    folder = top / ".git"
    if folder.is_file():
        folder = (top / folder.read_text(encoding="utf-8").strip().removeprefix("gitdir: ")).resolve()
    shared = folder / "commondir"
    common = (folder / shared.read_text(encoding="utf-8").strip()).resolve() if shared.is_file() else folder
    head = (folder / "HEAD").read_text(encoding="utf-8").strip()
    if not head.startswith("ref: "):
        return head or None, None
    name = head.removeprefix("ref: ")
    branch = name.removeprefix("refs/heads/")
    for place in (folder, common):
        if (place / name).is_file():
            return (place / name).read_text(encoding="utf-8").strip() or None, branch
    packed = common / "packed-refs"
    if packed.is_file() and packed.stat().st_size <= MOST_BYTES:
        for line in packed.read_text(encoding="utf-8").splitlines():
            commit, _, reference = line.partition(" ")
            if reference == name:
                return commit, branch
    return None, branch
