"""Variables of the script that keep more tensors with every step, from the probe's looks at its frames."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from hotlap.diagnose.view import View
from hotlap.records.findings import Where

__all__ = ["Kept", "kept"]


@dataclass(frozen=True)
class Kept:
    """One variable."""

    name: str
    kind: str
    """``graph`` (tensors with their graphs in a collection), ``sum`` (a running sum of such), ``tensor``."""
    length: int
    """When last looked at."""
    per_step: float
    where: Where


def kept(view: View) -> list[Kept]:
    """Those that grew at every look, by at least the policy's rate; graphs first."""
    looks: dict[tuple[str, str, str], list[tuple[int, int, int]]] = {}
    for row in view.setting_rows("retained"):
        frame = view.timeline.frame.get(row.frame or 0)
        for name, kind, length in row.value.get("found") or []:
            if frame is not None:
                looks.setdefault((frame.file, str(name), str(kind)), []).append(
                    (int(row.value.get("step") or 0), int(length), frame.id)
                )
    found = []
    for (file, name, kind), seen in looks.items():
        first, last = seen[0], seen[-1]
        steps = last[0] - first[0]
        grows = all(b[1] > a[1] for a, b in pairwise(seen))
        if len(seen) < 2 or steps <= 0 or not grows:
            continue
        per_step = (last[1] - first[1]) / steps
        if per_step < view.policy.kept_per_step:
            continue
        frame = view.timeline.frame[last[2]]
        line = view.timeline.kept.get(f"{file}:{name}", frame.line)
        text = view.timeline.source.get(f"{file}:{line}", "").strip()
        found.append(Kept(name, kind, last[1], per_step, Where(file, line, frame.func, text)))
    return sorted(found, key=lambda k: (("graph", "sum", "tensor").index(k.kind), -k.per_step))
