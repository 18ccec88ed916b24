"""repeated-cat: a tensor grows by concatenation in a loop, or with each call of a method."""

from __future__ import annotations

from dataclasses import replace

from hotlap.diagnose.shapes import OnLines, costly
from hotlap.diagnose.stacks import Sampled
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "repeated-cat"


def _copying(on: OnLines) -> OnLines:
    """Without what the line calls beside: a model whose outputs are put together, say."""

    def copies(sample: Sampled) -> bool:
        blamed = sample.blamed
        inside = any("/torch/nn/modules/" in f.file.replace("\\", "/") for f in sample.frames if not f.user)
        return blamed is not None and not inside and (blamed.file, blamed.line) in lines

    lines = {(on.shape.file, line) for line in on.shape.lines}
    book = on.book.where(copies)
    return replace(on, seconds=on.seconds * book.total() / max(1, on.book.total()), book=book)


def find(view: View) -> Finding | None:
    """Samples on ``x = torch.cat([x, ...])`` inside a loop, or on such a line of an attribute, in whatever phase of the
    training process."""
    phases = [p for p in view.phases if p not in ("data_wait", "h2d")]
    found = sorted((_copying(on) for on in costly(view, CAUSE, phases)), key=lambda on: -on.seconds)
    if not found:
        return None
    prior = view.policy.cat_prior
    where = [on.where() for on in found[: view.policy.max_where]]
    name = found[0].shape.detail
    evidence = {"on_line_s": sum(on.seconds for on in found), "grows": name, "basis": "prior", "prior": prior}
    evidence |= view.stack_evidence(found[0].book)
    advice = (
        "Append to a list and concatenate once after the loop, or write into a tensor of fixed size that holds what is "
        f"read: {name} is copied whole at {where[0].file}:{where[0].line} each time."
    )
    return view.finding(
        CAUSE, sum(on.seconds for on in found) * prior, advice, where, detail=f"{name} is copied whole each time",
        phase=max(phases, key=lambda p: found[0].book.phase(p).total()), evidence=evidence,
    )  # fmt: skip
