"""Two arms against each other, on this machine, in one go: one runs while the other is frozen."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from hotlap.records.rows import Step
from hotlap.records.trials import OF_BASELINE, Interval, Trial, Window
from hotlap.trial import design, marks
from hotlap.trial.arm import Arm
from hotlap.trial.budget import Budget
from hotlap.trial.periodic import PeriodicStats, gather
from hotlap.trial.progress import OnProgress, nowhere
from hotlap.trial.runner import ArmEnded, Runner
from hotlap.trial.windows import Turn, openings, to_window

__all__ = ["Budget", "MakeInterval", "compare"]

STARTS_AGAIN = 3.0
"""Times the measuring time that starting arms again may take besides it."""
MakeInterval = Callable[[list[Window], PeriodicStats], Interval | None]


def compare(
    incumbent: Arm,
    candidate: Arm,
    budget: Budget,
    interval: MakeInterval,
    on_progress: OnProgress = nowhere,
    rates: Mapping[str, float] | None = None,
) -> Trial:
    """Measure the candidate's throughput over the incumbent's.

    Either arm is started if need be; both are left frozen (or ended, where their script ended), for the caller to stop.
    ``interval`` turns windows and periodic work into a ratio with its interval; ``rates`` are events per step of
    ``validation``, ``checkpoint`` and ``epoch_start`` from a longer run, where known. Trial.id and .setting are the
    caller's to fill in. On any exception, KeyboardInterrupt too, both arms are ended before it goes on.
    """
    comparison = _Comparison(incumbent, candidate, budget, interval, Runner(budget, on_progress), rates)
    try:
        return comparison.run()
    except BaseException:
        candidate.stop()
        incumbent.stop()
        raise


class _Comparison:
    def __init__(
        self, incumbent: Arm, candidate: Arm, budget: Budget, interval: MakeInterval, runner: Runner,
        rates: Mapping[str, float] | None,
    ) -> None:  # fmt: skip
        self.arms = {"baseline": incumbent, "candidate": candidate}
        self.budget = budget
        self.interval = interval
        self.runner = runner
        self.rates = rates
        self.began = time.monotonic()
        self.turns: list[Turn] = []
        self.notes: list[str] = []
        self.startup_s: dict[str, float] = {}
        self.restarts = dict.fromkeys(self.arms, budget.restarts)
        self.neighbour_cores = budget.neighbour_cores
        self.last: Interval | None = None

    def run(self) -> Trial:
        """The whole comparison."""
        try:
            for number in (0,) if self.budget.one_at_a_time else (0, 1):
                self.make_ready(design.order(number, self.budget.candidate_first))
            self.alternate()
        except ArmEnded as ended:
            if not ended.finished or not self.has_pairs():
                return self.trial("failed", self.why(ended))
            self.notes.append(f"{ended.arm.spec.name}: {ended.reason}")
        finally:
            self.freeze_all()
        verdict = self.verdict()
        if verdict is not None:
            return self.trial(*verdict)
        self.has_pairs()
        if self.neighbour_cores > self.budget.neighbour_cores:
            self.notes.append(f"others took up to {self.neighbour_cores:.1f} cores in windows that had to count")
        result = self.interval(self.windows(), self.periodic())
        if result is None:
            return self.trial("failed", f"{design.words_on_counted(self.windows())}; give it a larger --budget")
        return self.trial("measured", "", result)

    def verdict(self) -> tuple[marks.Verdict, str] | None:
        """What the candidate's levers say about themselves."""
        return marks.verdict(self.arms["candidate"], self.arms["baseline"])

    def given_up(self) -> bool:
        """Whether the candidate's levers have said why they change nothing: after a first step it stays so."""
        verdict = self.verdict()
        return verdict is not None and verdict[1] != marks.NOTHING_YET

    def make_ready(self, label: str) -> None:
        """Bring an arm to a steady state while the other one is frozen."""
        arm = self.arms[label]
        self.freeze_other(label)
        if not arm.alive or arm.steps_done() == 0:
            took = self.runner.to_first_step(arm)
            if took is not None:
                self.startup_s.setdefault(label, took)
        if label == "candidate":
            note = self.runner.to_warm(arm, self.budget.candidate_warmup_steps, self.given_up)
        else:
            note = self.runner.to_warm(arm)
        if note is not None:
            self.notes.append(note)

    def alternate(self) -> None:
        """Turns in the order A B B A (or B A A B) until the matter is settled or the budget is spent."""
        until = time.monotonic() + self.budget.seconds
        latest = until + self.budget.patience * self.budget.seconds
        spare = STARTS_AGAIN * self.budget.seconds
        self.runner.began = time.monotonic()
        number = 0
        while number < 2 * self.budget.max_pairs and self.verdict() is None:
            label = design.order(number, self.budget.candidate_first)
            try:
                self.freeze_other(label)
                if self.budget.one_at_a_time and not self.arms[label].alive:
                    paused = time.monotonic()
                    self.make_ready(label)
                    until, latest = (at + time.monotonic() - paused for at in (until, latest))
                self.turns.append(self.runner.turn(self.arms[label], label, latest, self.note()))
            except ArmEnded as ended:
                if not ended.finished or not self.restarts[label] or time.monotonic() > until:
                    raise
                self.restarts[label] -= 1
                self.notes.append(f"{ended.arm.spec.name}: started again, its {ended.reason}")
                paused = time.monotonic()
                self.make_ready(label)
                lost = min(time.monotonic() - paused, spare)  # start-up comes on top of the measuring time
                until, latest, spare = until + lost, latest + lost, spare - lost
                continue
            number += 1
            if number % 2 == 0 and self.settled(latest):
                return
            now = time.monotonic()
            if now > latest or (now > until and self.told_enough()):
                return

    def settled(self, latest: float) -> bool:
        """Look at the interval after each pair of turns."""
        windows = self.windows()
        pairs = design.counted_pairs(windows)
        if pairs < self.budget.min_pairs and latest - time.monotonic() < 0.25 * self.budget.seconds:
            self.let_neighbours_pass()
            windows = self.windows()
            pairs = design.counted_pairs(windows)
        if pairs < self.budget.min_pairs:
            return False
        before, self.last = self.last, self.interval(windows, self.periodic())
        return design.enough(self.last, before, pairs, self.budget)

    def told_enough(self) -> bool:
        """Whether the comparison may end when its time is up."""
        if design.counted_pairs(self.windows()) < self.budget.min_pairs:
            return False
        return not design.worth_more_time(self.last, self.budget)

    def has_pairs(self) -> bool:
        """Whether enough windows count, if need be those that neighbours had a part in."""
        if design.counted_pairs(self.windows()) < self.budget.min_pairs:
            self.let_neighbours_pass()
        return design.counted_pairs(self.windows()) >= self.budget.min_pairs

    def let_neighbours_pass(self) -> None:
        """On a machine that is never quiet a wide interval is better than none: the quietest windows count."""
        loads = [(turn.arm, turn.neighbours or 0.0) for turn in self.turns]
        bearable = design.bearable_load(loads, self.budget.min_pairs)
        if bearable is not None:
            self.neighbour_cores = max(self.neighbour_cores, bearable)

    def freeze_other(self, label: str) -> None:
        other = self.arms["candidate" if label == "baseline" else "baseline"]
        if self.budget.one_at_a_time:
            other.stop()
        else:
            other.freeze()

    def freeze_all(self) -> None:
        for arm in self.arms.values():
            arm.freeze()

    def steps(self, label: str) -> list[Step]:
        return [row for run in self.arms[label].trainers() for row in run.steps]

    def windows(self) -> list[Window]:
        """All turns so far, as windows; made anew each time, since rows are written late."""
        steps = {label: self.steps(label) for label in self.arms}
        opening = {label: {row.t for row in openings(rows)} for label, rows in steps.items()}
        budget, load = self.budget, self.neighbour_cores
        drop, least, cycle = budget.drop_steps, budget.window_steps, budget.cycle_steps
        return [to_window(t, steps[t.arm], drop, least, load, cycle, opening[t.arm]) for t in self.turns]

    def periodic(self) -> PeriodicStats:
        events = {label: [e for run in arm.trainers() for e in run.events] for label, arm in self.arms.items()}
        steps = {label: self.steps(label) for label in self.arms}
        live = {label: arm.thaws for label, arm in self.arms.items()}
        return gather(events, steps, live, self.rates)

    def note(self) -> str:
        if self.last is None:
            return ""
        return f"{self.last.ratio:.2f}x [{self.last.low:.2f}, {self.last.high:.2f}]"

    def why(self, ended: ArmEnded) -> str:
        """The reason of a failed trial."""
        reason = ended.reason
        windows = self.windows()
        loaded = sum((w.dropped or "").startswith("neighbour load") for w in windows)
        if ended.finished and loaded:
            reason += f"; {loaded} of {len(windows)} windows were dropped: neighbour load,"
            reason += f" so {design.words_on_counted(windows)}"
        elif ended.finished:
            turn_steps = self.budget.window_steps + self.budget.drop_steps + 2
            least_s = self.budget.warmup_least_s + self.budget.min_pairs * self.budget.window_s
            reason += f"; a comparison needs at least {self.budget.warmup_steps + self.budget.min_pairs * turn_steps}"
            reason += f" steps, and {least_s:.0f} s of training"
        return reason if ended.arm is self.arms["candidate"] else f"{OF_BASELINE}{reason}"

    def trial(self, status: str, reason: str, result: Interval | None = None) -> Trial:
        """Everything that was seen, as a record."""
        stats = self.periodic()
        losses, loss_samples = marks.common_losses(self.arms)
        return Trial(
            id=self.arms["candidate"].spec.name,
            setting={},
            status=status,  # type: ignore[arg-type]
            reason=reason,
            interval=result,
            windows=self.windows(),
            periodic=stats.flat(),
            losses=losses,
            loss_samples=loss_samples,
            startup_s=self.startup_s,
            wall_s=time.monotonic() - self.began,
            changes=marks.changes(self.arms["candidate"], self.arms["baseline"]),
            notes=[*dict.fromkeys(self.notes), *stats.notes],
        )
