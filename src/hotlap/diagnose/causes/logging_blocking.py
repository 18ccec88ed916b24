"""logging-blocking: logging holds the step."""

from __future__ import annotations

from hotlap.diagnose.host import residual_seconds
from hotlap.diagnose.stacks import merge, user_where
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding, Where

CAUSE = "logging-blocking"


def _sites(view: View) -> list[Where]:
    """Lines of the calls that the probes timed (print, trackers), most time first."""
    cost: dict[int, int] = {}
    for site in view.timeline.site:
        if site.kind != "sync" and site.t >= view.start_ns:
            cost[site.frame] = cost.get(site.frame, 0) + site.w
    total = max(1, sum(cost.values()))
    places = []
    for frame, ns in sorted(cost.items(), key=lambda pair: -pair[1])[: view.policy.max_where]:
        where = user_where(view.timeline, frame_id=frame)
        if where is not None and ns > 0:
            places.append(Where(where.file, where.line, where.function, where.text, ns / total))
    return places


def find(view: View) -> Finding | None:
    """The logging phase, and writes that the stacks show in the residual, whichever is larger names the line."""
    measured = view.seconds("logging")
    other_s, book = residual_seconds(view, "logging")
    in_phase = view.stacks.phase("logging")
    stacked = book.lines(view.policy.max_where)
    timed = in_phase.lines(view.policy.max_where) or view.event_where("logging") or _sites(view)
    where = stacked + timed if other_s > measured else timed + stacked
    where = where[: view.policy.max_where]
    at = f" at {where[0].file}:{where[0].line}" if where else ""
    both = merge([in_phase, book], view.timeline.source, view.timeline.loops)
    evidence = {"logging_s": measured, "residual_s": other_s, **view.stack_evidence(both)}
    return view.finding(
        CAUSE, measured + other_s, f"Log less often, or write from a background thread{at}.", where,
        detail="writing logs", phase="logging" if measured >= other_s else "residual", evidence=evidence,
        ablation="logging",
    )  # fmt: skip
