"""linear-search: each sample is found by walking through all of them."""

from __future__ import annotations

import re

from hotlap.diagnose.kinds import loader_blame
from hotlap.diagnose.reading import loader_book
from hotlap.diagnose.stacks import Sampled
from hotlap.diagnose.view import View
from hotlap.diagnose.waiting import waits
from hotlap.records.findings import Finding

CAUSE = "linear-search"

_SEARCH = re.compile(
    r"\w\.index\("
    r"|^(?!.*\bfor\b).*\b(?:if|while|and|or|assert|return)\b.*\bin self\.\w+"
    r"|\b(?:next|any|all)\(.*\bfor\b.*(?:==|\bin self\.)"
    r"|\[.*\bfor\b.*\bin self\.\w+.*\bif\b.*==.*\]"
    r"|(\b\w+(?:\.\w+)*)\[\(?\1(?:\[|\.\w+).*(?:==|\.isin\(|\.eq\()"
    r"|\.query\(|\bnp\.(?:where|nonzero|flatnonzero|argwhere)\(.*=="
)
"""``list.index``, ``x in self.names``, ``next(r for r in rows if r.id == i)``, ``df[df.id == i]``: a dictionary lookup
may look alike, but never takes a visible share of the loading."""


def find(view: View) -> Finding | None:
    """Loader samples whose blamed line is a search."""
    if not waits(view):
        return None
    book = loader_book(view)
    total = book.total()

    def searches(sample: Sampled) -> bool:
        frame = loader_blame(sample)
        return frame is not None and _SEARCH.search(book.text(frame)) is not None

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
