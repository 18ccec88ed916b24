"""linear-search: each sample is found by walking through all of them."""

from __future__ import annotations

import re

from hotlap.diagnose.kinds import loader_blame
from hotlap.diagnose.reading import loader_book
from hotlap.diagnose.stacks import Sampled, StackBook
from hotlap.diagnose.view import View
from hotlap.diagnose.waiting import waits
from hotlap.records.findings import Finding

CAUSE = "linear-search"

_SEARCH = re.compile(
    r"\w\.index\("
    r"|^(?!.*\bfor\b).*\b(?:if|while|and|or|assert|return)\b.*\bin self\.\w+"
    r"|\b(?:next|any|all)\(.*\bfor\b.*(?:==|\bin self\.)"
    r"|\[.*\bfor\b.*\bin (?:(?:enumerate|zip|reversed|range|len)\()*self\.\w+.*\bif\b.*(?:==|!=|\bin\b).*\]"
    r"|(\bself(?:\.\w+)+?|\b[A-Z][A-Z_0-9]+)(?:\.loc)?\[\(*\1(?:\[|\.\w+).*(?:==|\.isin\(|\.eq\()"
    r"|(\b\w+(?:\.\w+)*?)(?:\.loc)?\[\(*\2(?:\[[\"']|\.[A-Za-z_]\w*\b(?!\()).*(?:==|\.isin\(|\.eq\()"
    r"|\.query\(\s*[fr]?[\"'@]"
)
"""``list.index``, ``x in self.names``, ``next(r for r in rows if r.id == i)``, ``df[df.id == i]``: a dictionary lookup
may look alike, but never takes a visible share of the loading. ``boxes[boxes[:, 4] == k]`` may be of one sample."""
_ALL = r"(?:self|[A-Z][A-Z_0-9]+|\w*(?:df|table)\w*)(?:\.\w+(?:\(\))?|\[[\"'][^\]]*\])*(?:\s*==|\.isin\(|\.eq\()"
"""What all samples share, compared: an attribute, a constant or a table, or a column of it by name. With an index in
brackets it is one sample's."""
_MASK = re.compile(
    rf"\b(?:np|numpy|torch)\.(?:where|nonzero|flatnonzero|argwhere)\(\s*\(*{_ALL}|^(?P<name>\w+)\s*=\s*\(*{_ALL}"
    rf"|\(\s*{_ALL}[^=]*\)\.(?:nonzero|any|argmax|sum)\("
)
"""``np.where(self.ids == i)``, ``mask = self.df.user == user``."""


_WALKS = re.compile(r"^for\b.*\bin\s+(?:(?:enumerate|zip|reversed|range|len)\()*self\.\w+")
_EQUALS = re.compile(r"^(?:el)?if\b.*(?:==|!=)")
"""``for j, (name, label) in enumerate(self.items):`` and ``if name == key:``."""
Loop = tuple[str, str, str]


def _walks(book: StackBook) -> set[Loop]:
    """File, function and header of the loops over what all samples share that compare each."""
    frames = {frame for sample in book.samples if (frame := loader_blame(sample)) is not None}
    compared = {frame for frame in frames if _EQUALS.search(book.text(frame))}
    return {(f.file, f.func, header) for f in compared if _WALKS.search(header := book.loop(f))}


def _masks(book: StackBook) -> set[tuple[str, str, str]]:
    """File, function and name of the comparisons with all samples: to look up by one walks through them once more."""
    frames = {frame for sample in book.samples if (frame := loader_blame(sample)) is not None}
    found = ((frame, _MASK.search(book.text(frame))) for frame in frames)
    return {(frame.file, frame.func, match["name"]) for frame, match in found if match and match["name"]}


def find(view: View) -> Finding | None:
    """Loader samples whose blamed line is a search."""
    if not waits(view):
        return None
    book = loader_book(view)
    total = book.total()

    masks, walks = _masks(book), _walks(book)

    def searches(sample: Sampled) -> bool:
        frame = loader_blame(sample)
        text = book.text(frame) if frame is not None else ""
        if frame is None or _SEARCH.search(text) or _MASK.search(text):
            return frame is not None
        if {(frame.file, frame.func, header) for header in (text, book.loop(frame))} & walks:
            return True
        return any(
            f"[{name}]" in text for file, function, name in masks if (file, function) == (frame.file, frame.func)
        )

    found = book.where(searches)
    if not total or found.total() < view.policy.search_samples:
        return None
    where = found.lines(view.policy.max_where, loader_blame)
    length = view.loader.dataset_len if view.loader else None
    many = f" (the data set has {length} samples)" if length else ""
    evidence = {
        "dataset_len": length, **view.stack_evidence(found),
    }  # fmt: skip
    return view.finding(
        CAUSE, view.times.wait_s * found.total() / total,
        f"Build a dictionary from key to place once, in __init__, and look it up at "
        f"{where[0].file}:{where[0].line}{many}.",
        where, detail="a search through all samples, for each sample", phase="data_wait", evidence=evidence,
        ablation="data",
    )  # fmt: skip
