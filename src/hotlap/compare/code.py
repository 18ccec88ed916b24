"""What changed in the code and the packages, as far as both runs recorded it."""

from __future__ import annotations

import shlex

from hotlap.records.comparison import Change
from hotlap.records.origin import Origin

__all__ = ["code_changes", "code_notes", "package_changes", "variable_changes"]

FIRST_PACKAGES = ("torch", "torchvision", "torchaudio", "torchcodec", "triton", "numpy")
"""These come first: they decide the most about a step's time."""


def code_changes(a: Origin, b: Origin) -> list[Change]:
    """Script, commit, branch, and the files whose texts differ."""
    pairs = [("script", _script(a), _script(b)), ("commit", a.commit, b.commit), ("branch", a.branch, b.branch)]
    found = [Change("code", what, old, new) for what, old, new in pairs if old != new]
    names = dict.fromkeys([*a.texts, *b.texts, *(a.changed or []), *(b.changed or [])])
    return found + [change for name in names if (change := _file(a, b, name)) is not None]


def _script(origin: Origin) -> str | None:
    """The script's path, named from the top of its repository so that two clones of it agree."""
    if origin.script is None or origin.repository is None:
        return origin.script
    return origin.script.removeprefix(origin.repository + "/")


def _file(a: Origin, b: Origin, name: str) -> Change | None:
    """One file: by its texts where both are known, else by whether it was as committed."""
    texts = a.texts.get(name), b.texts.get(name)
    if None not in texts and texts[0] == texts[1]:
        return None
    old, new = _state(a, name), _state(b, name)
    return Change("code", name, old, new) if old is not None and new is not None and old != new else None


def _state(origin: Origin, name: str) -> str | None:
    """``as committed``, ``not committed 1f3a…`` (its text's digest), ``text 1f3a…``, ``not there``. None: not known."""
    text = origin.texts.get(name)
    if origin.repository is None:
        return f"text {text}" if text is not None else "not there" if origin.texts else None
    if origin.changed is None:
        return f"text {text}" if text is not None else None
    if name in origin.changed:
        return f"not committed {text}" if text is not None else "not committed"
    if text is None:
        return "as committed"
    return f"as committed {text}" if origin.tracked and name == _script(origin) else f"text {text}"


def code_notes(a: Origin | None, b: Origin | None) -> list[str]:
    """What is not known of code and packages, and how to see what changed between two commits."""
    if a is None or b is None:
        which = "A and B" if a is None and b is None else "A" if a is None else "B"
        return [f"What changed in code and packages is not known: {which} recorded none of it (an older Hotlap)."]
    notes = [f"{label}: {note}" for label, origin in (("A", a), ("B", b)) for note in origin.notes]
    if a.repository is None and b.repository is None:
        notes.append("No git repository was found: of the code, only the Python files beside the script are compared.")
    for label, origin in (("A", a), ("B", b)):
        if origin.packages is None:
            notes.append(f"{label}: the packages of its Python were not found, so they are not compared.")
    if a.commit and b.commit and a.commit != b.commit:
        where = shlex.quote(b.repository or ".")
        notes.append(f"What was committed in between:  git -C {where} diff {a.commit[:10]} {b.commit[:10]}")
    return notes


def package_changes(a: Origin, b: Origin) -> list[Change]:
    """Packages whose versions differ; None: not installed. Empty where one of the runs did not find its packages."""
    if a.packages is None or b.packages is None:
        return []
    names = sorted(a.packages.keys() | b.packages.keys())
    first = [name for name in FIRST_PACKAGES if name in names]
    pairs = [(name, a.packages.get(name), b.packages.get(name)) for name in dict.fromkeys([*first, *names])]
    return [Change("packages", name, old, new) for name, old, new in pairs if old != new]


def variable_changes(a: Origin, b: Origin) -> list[Change]:
    """Environment variables that are known to matter and are not set alike."""
    pairs = [(n, a.variables.get(n), b.variables.get(n)) for n in sorted(a.variables.keys() | b.variables.keys())]
    return [Change("variables", name, old, new) for name, old, new in pairs if old != new]
