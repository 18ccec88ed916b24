"""padding: a large part of each batch is padding that is computed like content."""

from __future__ import annotations

import re
from statistics import median

from hotlap.diagnose.kinds import asks
from hotlap.diagnose.reading import loader_book
from hotlap.diagnose.view import View
from hotlap.diagnose.waiting import wait_where
from hotlap.records.findings import Finding, Where

CAUSE = "padding"


_FILLS = re.compile(r"\bpad\w*\(")
"""Calls by name: a model's own functions pad too, for its convolutions."""
_REPEATS = re.compile(r"""["'](reflect|symmetric|replicate|edge|circular|wrap)["']""")
"""Modes of numpy's and torch's ``pad`` that repeat the content (a filter's border): what is padded here are zeros."""


def _lines(view: View) -> list[Where]:
    """The lines whose source fills samples up: those in functions that were seen loading first, and none of a model."""
    book = loader_book(view)
    loading = {(f.file, f.func) for sample in book.samples for f in sample.user if not asks(book.text(f))}
    model = {(f.file, f.func) for sample in view.stacks.phase("forward").samples for f in sample.user} - loading
    named = [w for w in view.option_where(CAUSE) if not _REPEATS.search(w.text)]
    found = [w for w in named if (w.file, w.function) not in model or not _FILLS.search(w.text)]
    return sorted(found, key=lambda w: ((w.file, w.function) not in loading, _FILLS.search(w.text) is not None))


def find(view: View) -> Finding | None:
    """Zeros behind the content of each sample, in the batches of the steps that were watched (CPU tensors only)."""
    rows = [r.value for r in view.setting_rows("inputs") if r.value.get("padding_frac") is not None]
    if not rows:
        return None
    padding = median(float(value["padding_frac"]) for value in rows)
    if padding < view.policy.padding_min_frac:
        return None
    common, prior = median(float(value.get("common_frac") or 0.0) for value in rows), view.policy.padding_prior
    filled = [*_lines(view), *wait_where(view, "collate")]
    where = (filled or view.forward_where())[: view.policy.max_where]
    at = f" at {where[0].file}:{where[0].line}" if where else ""
    one_size = common >= view.policy.common_padding_frac
    to = "one size for all batches" if one_size else "the longest sample of each batch"
    evidence = {"padding_frac": padding, "common_frac": common, "one_size": one_size, "usual": rows[-1].get("usual")}
    evidence |= {"basis": "prior", "prior": prior}
    return view.finding(
        CAUSE, view.compute_s * padding * prior, f"Put samples of like length into one batch (a batch sampler with "
        f"buckets of length){at}, and pad to the longest of each: padding is to {to} now.", where,
        detail=f"padded to {to}", phase="forward", evidence=evidence,
    )  # fmt: skip
