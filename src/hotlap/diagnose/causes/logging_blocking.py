"""logging-blocking: logging holds the step."""

from __future__ import annotations

import re
import sys

from hotlap.diagnose.log_kinds import logged
from hotlap.diagnose.stacks import merge
from hotlap.diagnose.trainers import RUNS_TEXT
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding, Where

CAUSE = "logging-blocking"


def _every(where: Where) -> int:
    """The steps between two logs that a line asks for: the fewest are first."""
    return min((int(number) for number in re.findall(r"_steps\s*=\s*(\d+)", where.text)), default=sys.maxsize)


def find(view: View) -> Finding | None:
    """The logging phase, and writes that the stacks show in the residual; forced and heavy writes are told apart."""
    found = logged(view, "plain")
    where = found.where
    if where and RUNS_TEXT.search(where[0].text):  # a library's trainer writes, as often as it was told to
        where = [*sorted(view.option_where(CAUSE), key=_every), *where][: view.policy.max_where]
    at = f" at {where[0].file}:{where[0].line}" if where else ""
    both = merge([view.stacks.phase("logging"), found.book], view.timeline.source, view.timeline.loops)
    evidence = {"logging_s": found.phase_s, "residual_s": found.residual_s, **view.stack_evidence(both)}
    return view.finding(
        CAUSE, found.seconds, f"Log less often, or write from a background thread{at}.", where,
        detail="writing logs", phase=found.phase, evidence=evidence, ablation="logging",
    )  # fmt: skip
