"""Both arms launched again and again, a seed for each pair: how launches differ, and how seeds do."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from hotlap.lap.measure import Question, measure, windows_of
from hotlap.lap.one_at_a_time import launches_per_trial
from hotlap.lap.own_cadences import hull, readings
from hotlap.lap.session import Session
from hotlap.proof.per_sample import per_sample
from hotlap.proof.speedup import MIN_LAUNCHES, UNKNOWN_LAUNCH_FRAC, ratio_interval
from hotlap.records.trials import TOO_FEW, Interval, Trial, Window
from hotlap.trial.arm import Arm
from hotlap.trial.design import mean_turn_s

__all__ = ["Launches", "MakeArm"]

MakeArm = Callable[[str, int], Arm]
"""Makes the arm ``baseline`` or ``candidate`` of a seed, not yet started."""


def _never() -> bool:
    return False


LEAST_S = 4.0
"""Shortest measuring time of a pair of launches, both arms together: fewer windows say nothing."""
NEARLY = 0.1
"""Part of a launch's time that may lack."""
MOST_S = 60.0
"""Longest: the verdict on quality profits from steps for long, the speed does not."""
WARM_UP_S = 1.5
"""Warm-up of one arm, as a rule."""
START_S = 4.5
"""Launch to first step, where it was not measured."""
MOST_PAIRS = 18
"""Pairs of launches in all, where the planned ones leave open what is faster (bench/power.py: what they see)."""
ONE_LOOK_LEVEL = 0.985
"""Two-sided: equals are called "faster" in three proofs of four hundred at most, where launches differ normally. It
leaves room for those that do not: at 0.98, launches of two modes 28 % apart did it more often than the one time in a
hundred that is wanted (bench/power.py counts it)."""
FIRST_LEVEL, HALF_LEVEL, LAST_LEVEL = 0.9965, 0.996, 0.9925
"""Where there are three looks, after the planned pairs, half way and after all, they share what one look allows."""
MORE_TIME = 2.0
"""A pair of launches in which too few windows counted is followed by one of so many times the length."""
WORTH_LAUNCHING = 2
"""Fewer pairs more would decide little."""


@dataclass
class Launches:
    """One trial over several pairs of launches. The first pair has been measured already, for its periodic work too.

    Launches differ for their whole life, and seeds differ in their losses: one set of processes shows both.
    """

    first: Trial
    windows: list[Window] = field(init=False)
    pairs: list[tuple[int, Trial]] = field(init=False)
    """The seed of each pair of launches that could be measured, and what it told; the first pair always."""
    notes: list[str] = field(default_factory=list)
    begun: int = 1
    per_sample: bool = False
    """Compare samples per second: a knob gives the arms' steps different samples."""
    own_cadences: bool = False
    """The arms' scripts may differ: charge each for periodic work as often as it was seen to do it."""
    warm_steps: int = 0
    """Steps after which the candidate's caches are warm."""
    name: str = "proof"
    """What the user is told that they are for."""
    level: float = ONE_LOOK_LEVEL
    """Of the interval over all launches."""
    _late_s: float = field(init=False, default=0.0)
    """By how much a pair of launches took longer than was thought, at most: loaders that are made anew, pauses."""
    _longer: float = field(init=False, default=1.0)
    """How much more measuring time than was thought the windows that count need."""

    def __post_init__(self) -> None:
        self.windows = list(self.first.windows)
        self.pairs = [(0, self.first)]

    def ready_s(self, session: Session) -> float:
        """From the launch of a pair until both arms are warm; as often as that takes launches."""
        caches_s = max(0.0, self.warm_steps * self._step_s("candidate") - WARM_UP_S)
        pair_s = 2 * (max([START_S, *self.first.startup_s.values()]) + WARM_UP_S) + caches_s
        return launches_per_trial(session) * pair_s

    def _step_s(self, arm: str) -> float:
        return statistics.median([w.steady_s for w in self.first.windows if w.arm == arm and w.steps] or [0.0])

    def least_s(self, session: Session) -> float:
        """Measuring time that a pair of launches needs at least, for the pairs of windows that count."""
        windows = windows_of(session, whole=True)
        pair_s = sum(mean_turn_s(self._step_s(arm), windows) for arm in ("baseline", "candidate"))
        return self._longer * max(LEAST_S, windows.min_pairs * pair_s)

    def pair_s(self, session: Session) -> float:
        """What a pair of launches takes at least, with what earlier ones took beyond that."""
        return self.ready_s(session) + self.least_s(session) + self._late_s

    def missing_s(self, session: Session) -> float:
        """Seconds that the launches take which are still needed, before how launches differ can be told."""
        return max(0, MIN_LAUNCHES - len(self.pairs)) * self.pair_s(session)

    def go_on(
        self, session: Session, make: MakeArm, pairs: int, share: float, hopeless: Callable[[], bool] = _never
    ) -> None:
        """Launch both arms again until there are ``pairs`` pairs, or ``share`` of the session's budget is spent.

        ``hopeless``, asked after each pair: whether nothing more is to be learned. A search whose result cannot be
        claimed was in vain: what slow steps leave too little time for is lent, as far as a claim needs it.
        """
        while self.begun < pairs and not hopeless():
            session.lend(self.missing_s(session), share)
            affordable = int(session.left_s(share) / self.pair_s(session) + NEARLY)
            more = min(pairs - self.begun, affordable)
            if more == 0:
                self.notes.append(f"{self.begun} of {pairs} pairs of launches: the budget had no time for more")
                return
            seconds = min(MOST_S, session.left_s(share) / more - self.ready_s(session) - self._late_s)
            session.stage = f"{self.name}: launch {self.begun + 1} of {pairs}"
            arms = {label: make(label, self.begun) for label in ("baseline", "candidate")}
            question = Question(
                f"{self.name}-{self.begun}", seconds, whole=True, warm_steps=self.warm_steps,
                per_sample=self.per_sample, candidate_first=self.begun % 2 == 1,
            )  # fmt: skip
            try:
                trial = measure(session, arms["baseline"], arms["candidate"], question)
                self._late_s = max(self._late_s, trial.wall_s - seconds - self.ready_s(session))
                self.add(trial)
            finally:
                for arm in arms.values():
                    session.discard(arm)

    def decide(self, session: Session, make: MakeArm, share: float, hopeless: Callable[[], bool] = _never) -> None:
        """Launch on where the planned pairs leave open whether the candidate is faster, if the session lends the time.

        Time alone says, before anything is looked at, whether there can be further looks. Then each look has a level of
        its own, so that all together are wrong as rarely as one. A look half way spares what a plain answer needs not.
        """
        more = min(MOST_PAIRS - self.begun, int((session.left_s(share) + session.lendable_s()) / self.pair_s(session)))
        if more < WORTH_LAUNCHING or hopeless() or not self._open(FIRST_LEVEL):
            return
        self.notes.append(f"{self.begun} pairs of launches left open whether the plan is faster: up to {more} more")
        half, last = self.begun + (more + 1) // 2, self.begun + more
        for pairs, level in ((half, HALF_LEVEL), (last, LAST_LEVEL)):
            wanted_s = (pairs - self.begun) * self.pair_s(session)
            session.lend(min(wanted_s, session.left_s(share) + session.lendable_s()), share)
            self.go_on(session, make, pairs, share, hopeless)
            self.level = level
            if not self._open(level):
                return

    def _open(self, level: float) -> bool:
        """Whether the pairs so far promise that the candidate is faster, and do not show it."""
        found = self._interval(level)
        return found is not None and found.launches >= MIN_LAUNCHES and found.low <= 1.0 < found.ratio

    def add(self, trial: Trial) -> None:
        """Take in one more pair of launches."""
        launch, self.begun = self.begun, self.begun + 1
        if trial.status != "measured":
            self.notes.append(f"launch {launch + 1}: {trial.reason or trial.status}")
            self._longer *= MORE_TIME if TOO_FEW in trial.reason else 1.0
            return
        self.windows += [replace(window, launch=launch) for window in trial.windows]
        self.pairs.append((launch, trial))

    def trial(self) -> Trial:
        """Everything as one trial. Periodic work is taken from the first pair of launches, which ran longest.

        A first pair that was too short for slow steps counts by what it has, where later ones were measured.
        """
        short = self.first.status == "failed" and TOO_FEW in self.first.reason and len(self.pairs) > 1
        if self.first.status != "measured" and not short:
            return self.first
        interval = self._interval(self.level)
        if interval is None:
            return self.first
        notes = [*self.first.notes, *self.notes]
        return replace(self.first, status="measured", reason="", windows=self.windows, interval=interval, notes=notes)

    def _interval(self, level: float) -> Interval | None:
        windows = (per_sample(self.windows) if self.per_sample else self.windows) or []
        return hull(
            [
                ratio_interval(windows, row["baseline"], row["candidate"], level, launch_frac=UNKNOWN_LAUNCH_FRAC)
                for row in self._overheads_s()
            ]
        )

    def _overheads_s(self) -> list[dict[str, float]]:
        if self.own_cadences:
            return readings(self.first, per_sample=self.per_sample)
        unit = "sample" if self.per_sample else "step"
        return [{arm: _periodic_s(self.first, arm, unit) for arm in ("baseline", "candidate")}]


def _periodic_s(trial: Trial, arm: str, unit: str) -> float:
    """Seconds that periodic work adds, per ``step`` (at the baseline's cadence) or per ``sample`` (at the arm's)."""
    row = trial.periodic.get(arm, {})
    rates = {key.removesuffix(f"_per_{unit}"): rate for key, rate in row.items() if key.endswith(f"_per_{unit}")}
    return sum(row[f"{kind}_s"] * rate for kind, rate in rates.items())
