"""ddp-find-unused: DDP looks for unused parameters in every step, and there are none."""

from __future__ import annotations

from hotlap.diagnose.view import View
from hotlap.records.findings import Finding
from hotlap.records.timeline import Timeline

CAUSE = "ddp-find-unused"
LEAST_LOOKS = 2


def find(view: View) -> Finding | None:
    """find_unused_parameters=True, and each rank's own backward reached every parameter whenever it was looked at.

    What ranks whose timelines are elsewhere (on other machines) leave out is not known: then nothing is said.
    """
    ranks = [view.timeline, *view.timeline.ranks]
    rows = [row for row in view.setting_rows("ddp") if row.value.get("find_unused")]
    looks = min(map(_looks, ranks))
    if len(ranks) < view.timeline.header.world or looks < LEAST_LOOKS:
        return None
    prior = view.policy.unused_search_prior
    where = view.setting_where(rows[-1])
    at = f" at {where[0].file}:{where[0].line}" if where else ""
    evidence = {
        "looks": looks, "parameters": rows[-1].value.get("parameters"), "compute_s": view.compute_s,
        "basis": "prior", "prior": prior,
    }  # fmt: skip
    return view.finding(
        CAUSE, view.compute_s * prior, f"Drop find_unused_parameters=True{at}, if no step leaves a parameter out on "
        f"any rank: none did in the {looks} steps looked at. One that does makes DDP raise an error.", where,
        detail="none is unused", phase="backward", evidence=evidence,
    )  # fmt: skip


def _looks(rank: Timeline) -> int:
    """Steps of a rank that were looked at; none where one of them left a parameter out, or the graph is static."""
    values = [row.value for row in rank.setting if row.name == "ddp" and row.value.get("find_unused")]
    if any(value.get("unreached") or value.get("static_graph") for value in values):
        return 0
    return sum(value.get("unreached") is not None for value in values)
