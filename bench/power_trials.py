"""Comparisons as `hotlap speedup` makes them, on simulated windows: the search's trial, then the proof's launches.

What decides is the product's own code: whose turn it is, how long it lasts, when it is enough (trial/design with the
budget of lap/measure), whether a lever is kept (plan/choose), how the budget is spread over launches and what they say
together (lap/launches). Simulated are the windows, and the clock that they move.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from power_noise import Noise

from hotlap.lap import launches as lap_launches
from hotlap.lap.best_guess import is_worth_a_proof
from hotlap.lap.incumbent import SEARCH_UNTIL
from hotlap.lap.launches import Launches
from hotlap.lap.measure import Question, windows_of
from hotlap.lap.options import Options
from hotlap.lap.prove import FIRST_S, LAUNCHES_UNTIL
from hotlap.lap.search import MEASURE_S
from hotlap.lap.session import MOST_LENT
from hotlap.plan.choose import choose
from hotlap.proof.speedup import LEVEL, STEERING_LEVEL, ratio_interval
from hotlap.records.machine import Machine
from hotlap.records.trials import Interval, Trial, Window
from hotlap.testing.timelines import cpu_machine
from hotlap.trial import design
from hotlap.trial.pauses import Cycle

__all__ = ["Outcome", "Setup", "Simulated", "enough_budget_s", "one_lap"]

STEP_S = 0.05
START_S = 12.0
"""Start and warm-up of a pair of launches."""
ROOF_S = 10.0
"""The roof is measured between the first pair of launches of the proof and the others."""


@dataclass(frozen=True)
class Setup:
    """What is compared, where, and under which allowances."""

    noise: Noise
    truth: float
    """Ratio of throughputs, candidate over baseline."""
    pairs: int = Options([]).seeds
    budget_s: float = Options([]).budget_s
    budget_asked: bool = False
    """Whether the budget is the user's: then nothing is lent."""


@dataclass(frozen=True)
class Outcome:
    """What one lap said."""

    kept: bool
    """By the search: the trial's interval lies above 1, and its middle above 1 + MIN_GAIN."""
    guessed: bool
    """The search was not certain, and the trial promised enough to be put to the proof all the same."""
    claimed: bool
    """By the proof, had the lever been kept: its interval lies above 1."""
    launches: int
    searched: Interval | None
    proved: Interval | None


@dataclass
class Simulated:
    """Stands where the session stands: a clock, and arms that are only names."""

    setup: Setup
    g: np.random.Generator
    clock_s: float = 0.0
    stage: str = ""
    cycle: Cycle = field(default_factory=Cycle)
    luck: dict[str, float] = field(default_factory=dict)
    lent_s: float = 0.0
    step_s: float = STEP_S
    one_at_a_time: bool = False
    machine: Machine = field(default_factory=cpu_machine)

    def left_s(self, share: float = 1.0) -> float:
        """As in Session."""
        return max(0.0, self.setup.budget_s * share + self.lent_s - self.clock_s)

    def lendable_s(self) -> float:
        """As in Session."""
        return 0.0 if self.setup.budget_asked else MOST_LENT["proof"] * self.setup.budget_s - self.lent_s

    def lend(self, seconds: float, share: float = 1.0) -> None:
        """As in Session."""
        lacking_s = seconds - self.left_s(share)
        if 0 < lacking_s <= self.lendable_s():
            self.lent_s += lacking_s

    def discard(self, arm: str) -> None:
        """Nothing runs."""

    def launch(self) -> None:
        """Both arms are started: each is faster or slower than the last time, for good."""
        self.luck = {arm: self.setup.noise.launch(self.g) for arm in ("baseline", "candidate")}
        self.clock_s += START_S

    def compare(self, seconds: float, stop_early: bool, candidate_first: bool = False) -> Trial:
        """The turns of one pair of launches, as trial/compare takes them."""
        wanted = windows_of(self, whole=not stop_early)  # type: ignore[arg-type]
        budget = replace(wanted, seconds=seconds, stop_early=stop_early, precision=Question("", 0.0).precision)
        level = STEERING_LEVEL if stop_early else LEVEL
        turn = design.turn_s(STEP_S, budget.drop_steps, budget)
        latest_s = seconds * (1 + budget.patience)
        shape = self.setup.noise.windows(self.g, 2 * budget.max_pairs)
        windows: list[Window] = []
        before: Interval | None = None
        last: Interval | None = None
        spent = 0.0
        while len(windows) < 2 * budget.max_pairs:
            windows.append(self._window(shape, len(windows), candidate_first))
            spent += turn
            if len(windows) % 2 == 0 and design.counted_pairs(windows) >= budget.min_pairs:
                before, last = last, ratio_interval(windows, level=level)
                if design.enough(last, before, design.counted_pairs(windows), budget):
                    break
            told = design.counted_pairs(windows) >= budget.min_pairs and not design.worth_more_time(last, budget)
            if spent > latest_s or (spent > seconds and told):
                break
        self.clock_s += spent
        found = ratio_interval(windows, level=level)
        return Trial("simulated", {}, "failed" if found is None else "measured", interval=found, windows=windows)

    def _window(self, shape: np.ndarray, number: int, candidate_first: bool) -> Window:
        arm = design.order(number, candidate_first)
        step_s = STEP_S * math.exp(self.luck[arm] + float(shape[number]))
        lost = "neighbour load" if self.g.random() < self.setup.noise.lost_frac else None
        at = int((self.clock_s + number) * 1e9)
        return Window(arm, at, 12, 384, step_s / (self.setup.truth if arm == "candidate" else 1.0), lost)


def enough_budget_s(pairs: int) -> float:
    """The least budget, and never less than the default, whose share for the proof holds so many pairs of launches."""
    proof_s = FIRST_S + ROOF_S + (pairs - 1) * (START_S + 10.0)
    return max(Options([]).budget_s, proof_s / (LAUNCHES_UNTIL - SEARCH_UNTIL))


def _measure(session: Simulated, one: str, other: str, question: Question) -> Trial:
    """In the place of lap/measure: both arms launched afresh."""
    session.launch()
    return session.compare(question.seconds, not question.whole, question.candidate_first)


def one_lap(setup: Setup, g: np.random.Generator) -> Outcome:
    """A lever's trial in the search, and the proof of a plan of this lever, begun as late as the search may end."""
    session = Simulated(setup, g)
    session.launch()
    trial = session.compare(MEASURE_S, True)
    kept = choose(trial).kept
    guessed = not kept and is_worth_a_proof(trial)
    if guessed:  # the search has stopped the candidate: it is launched once more
        session.luck["candidate"] = setup.noise.launch(g)
    session.clock_s = SEARCH_UNTIL * setup.budget_s
    launches = Launches(session.compare(FIRST_S, False))  # what was kept: in the processes that the search found good
    session.clock_s += ROOF_S
    real, lap_launches.measure = lap_launches.measure, _measure  # type: ignore[assignment]
    try:
        launches.go_on(session, lambda label, _: label, setup.pairs, LAUNCHES_UNTIL)  # type: ignore[arg-type, return-value]
        launches.decide(session, lambda label, _: label, LAUNCHES_UNTIL)  # type: ignore[arg-type, return-value]
    finally:
        lap_launches.measure = real
    proof = launches.trial().interval
    return Outcome(
        kept, guessed, proof is not None and proof.low > 1.0, 0 if proof is None else proof.launches,
        trial.interval, proof,
    )  # fmt: skip
