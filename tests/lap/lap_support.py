"""What stands where a session stands, in tests of a search."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hotlap.lap import session
from hotlap.testing.lever_kit import machine_of
from hotlap.trial.pauses import Cycle


class Session:
    """A budget of 100 s; whoever stands for a trial adds to ``spent_s``. A search is lent nothing, a proof 200 s."""

    grow, lend = session.Session.grow, session.Session.lend

    def __init__(self) -> None:
        self.options = SimpleNamespace(budget_s=100.0, budget_asked=True, allow=(), only=(), skip=(), knobs=())
        self.budget_s, self.extra_s, self.lent_s = 100.0, 0.0, dict.fromkeys(session.MOST_LENT, 0.0)
        self.may_lend = {"search": 0.0, "start": 0.0, "proof": 200.0}
        self.machine, self.stage, self.spent_s = machine_of(), "", 0.0
        self.lines: list[str] = []
        self.cycle, self.one_at_a_time, self.step_s = Cycle(), False, 0.0
        self.listener = SimpleNamespace(line=self.lines.append)

    @property
    def elapsed_s(self) -> float:
        return self.spent_s

    def left_s(self, share: float = 1.0) -> float:
        return max(0.0, self.budget_s * share + self.extra_s - self.spent_s)

    def lendable_s(self, to: str = "proof") -> float:
        return self.may_lend[to] - self.lent_s[to]

    def arm(self, name: str, **_: Any) -> str:
        return name

    def discard(self, arm: str) -> None:
        pass
