"""recompilation: torch.compile compiles the same code again and again."""

from __future__ import annotations

from typing import Any

from hotlap.diagnose.view import View
from hotlap.records.findings import Finding, Where

CAUSE = "recompilation"


def find(view: View) -> Finding | None:
    """Functions that were compiled again between the first look and the last, with the guard that failed."""
    by_place: dict[tuple[str, int, str], list[dict[str, Any]]] = {}
    for row in view.setting_rows("recompiles"):
        value = row.value
        by_place.setdefault((value["file"], value["first_line"], value["function"]), []).append(value)
    last = max((int(rows[-1]["step"]) for rows in by_place.values()), default=0)
    first = min((int(rows[0]["step"]) for rows in by_place.values()), default=0)
    if last <= first:
        return None
    storms = []
    for place, rows in by_place.items():
        begun = rows[0] if int(rows[0]["step"]) == first else {"n": 0, "s": 0.0}
        times, seconds = int(rows[-1]["n"]) - int(begun["n"]), float(rows[-1]["s"]) - float(begun["s"])
        if times >= view.policy.min_recompiles:
            storms.append((seconds, times, place, str(rows[-1].get("reason") or "")))
    if not storms:
        return None
    storms.sort(key=lambda storm: (-storm[0], storm[2]))
    _, times, (file, line, function), reason = storms[0]
    where = [Where(f, n, name, view.timeline.source.get(f"{f}:{n}", "")) for _, _, (f, n, name), _ in storms]
    each_step = sum(seconds for seconds, *_ in storms) / (last - first)
    evidence = {"recompiles": sum(n for _, n, *_ in storms), "steps": last - first, "reason": reason}
    sized = "size" in reason or "shape" in reason or "stride" in reason
    advice = "compile with dynamic=True, or pad to a few sizes" if sized else "keep what it asks for constant"
    return view.finding(
        CAUSE, each_step, f"{function} at {file}:{line} was compiled {times} times again because `{reason}` no longer "
        f"held: {advice}.", where[: view.policy.max_where], detail=f"{times} times again, {reason}"[:80],
        phase="forward", evidence=evidence,
    )  # fmt: skip
