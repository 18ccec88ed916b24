"""``hotlap prove``: whole runs of the unmodified script and of the plan, a seed for each pair, until it is decided."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from hotlap import __version__
from hotlap.lap.in_flight import InFlight
from hotlap.lap.one_at_a_time import RANKS, several_devices
from hotlap.lap.options import Listener, Options
from hotlap.lap.repeats import Repeats
from hotlap.lap.seed_notes import end_notes, failed, neighbours_note, past_notes, plan_notes, unmatched
from hotlap.lap.session import Session
from hotlap.proof.curves import Curve
from hotlap.proof.verdict import strictness
from hotlap.proof.what_more import what_more
from hotlap.proof.whole_runs import Asked, Verdicts, conclude, diverged, hopeless
from hotlap.records.machine import Machine
from hotlap.records.origin import Origin
from hotlap.records.plan import Plan
from hotlap.records.run_folder import RunFolder
from hotlap.records.seed_proof import SeedProof, SeedRuns, Stop
from hotlap.records.trials import OUT_OF_MEMORY
from hotlap.trial.abreast import Ends, run_abreast
from hotlap.trial.arm import Arm
from hotlap.trial.arm_run import arm_run, windows
from hotlap.trial.budget import Budget

__all__ = ["SEED", "Request", "prove_seeds", "seeded", "takes_seed"]

SEED = "{seed}"
"""What stands for the seed in the user's command."""
BUDGET = Budget(seconds=0.0, first_step_s=600.0, hang_s=600.0)
"""A whole run ends with what no step shows (a last validation, an upload): it is waited for."""


@dataclass(frozen=True)
class Request:
    """What the user asked ``hotlap prove``."""

    options: Options
    plan: Plan
    stop: Stop = field(default_factory=Stop)
    first_seed: int = 1
    metric: re.Pattern[str] | None = None
    lower_is_better: bool = False
    one_at_a_time: bool = False
    origin: Origin | None = None
    """The code that is run, for the record."""

    @property
    def by_command(self) -> bool:
        """Whether the command takes the seed."""
        return takes_seed(self.options.command)


def takes_seed(command: list[str]) -> bool:
    """Whether the seed has a place in the command."""
    return any(SEED in word for word in command)


def seeded(command: list[str], seed: int) -> list[str]:
    """The command with the seed in it."""
    return [word.replace(SEED, str(seed)) for word in command]


def prove_seeds(
    request: Request,
    machine: Machine,
    folder: RunFolder,
    listener: Listener,
    told: Callable[[SeedProof], str],
) -> SeedProof:
    """Run the seeds one after the other and write ``proof.json`` after each. ``told``: a line about the last seed.

    Raises HotlapError where the unmodified script itself does not run.
    """
    prover = _Prover(request, machine, folder, listener)
    proof: SeedProof | None = None
    for number in range(request.options.seeds):
        runs = prover.seed(number)
        prover.seeds.append(runs)
        found = conclude(prover.seeds, prover.asked())
        stop_now = prover.enough(runs, found)
        proof = prover.proof(found)
        folder.write("proof.json", proof)
        listener.line(told(proof))
        if stop_now:
            break
    assert proof is not None
    return proof


class _Prover:
    def __init__(self, request: Request, machine: Machine, folder: RunFolder, listener: Listener) -> None:
        self.request = request
        self.machine = machine
        self.folder = folder
        self.listener = listener
        self.preserves = strictness(request.plan.moves)
        self.repeats = Repeats()
        self.seeds: list[SeedRuns] = []
        self.notes: list[str] = []
        self.one_at_a_time = request.one_at_a_time
        self.began = time.monotonic()

    def asked(self) -> Asked:
        request = self.request
        return Asked(
            self.preserves, request.stop, request.options.margin,
            pattern="" if request.metric is None else request.metric.pattern, lower_is_better=request.lower_is_better,
            repeats=self.repeats.known, uncertain=self.repeats.uncertain, seeds=request.options.seeds,
        )  # fmt: skip

    def seed(self, number: int) -> SeedRuns:
        """Both arms with the next seed; one after the other from then on where they cannot take turns."""
        runs = self.attempt(number)
        if isinstance(runs, str):
            self.one_at_a_time = True
            self.note(f"{runs}, so they ran one after the other: noise is not shared.")
            runs = self.attempt(number)
        assert not isinstance(runs, str), "one at a time, whatever ends a run is a failure like others"
        return runs

    def attempt(self, number: int) -> SeedRuns | str:
        """Both arms once; or why they cannot take turns."""
        request, seed = self.request, self.request.first_seed + number
        command = seeded(request.options.command, seed)
        with Session(replace(request.options, command=command), self.machine, self.folder, self.listener) as session:
            session.started = self.began
            session.stage = f"seed {number + 1} of {request.options.seeds}"

            def arm(label: str) -> Arm:
                moves = request.plan.moves if label == "candidate" else []
                alone = "-alone" if self.one_at_a_time else ""  # not where a try of both together has left its timeline
                made = session.arm(f"seed{seed}-{label}{alone}", moves, seed_offset=0 if request.by_command else seed)
                if request.metric is not None and request.stop.early:  # what a stopped run holds back is lost
                    made.spec.env["PYTHONUNBUFFERED"] = "1"
                return made

            order = ("baseline", "candidate") if number % 2 == 0 else ("candidate", "baseline")
            arms = {label: arm(label) for label in order}
            bits = self.preserves == "bits"

            def differs(curve: Curve) -> bool:
                return self.repeats.differs(session, seed, curve, lambda: arm("control"), BUDGET)

            def cannot_take_turns() -> bool:
                return not self.one_at_a_time and any(map(several_devices, arms.values()))

            look = InFlight(bits, self.repeats, differs)
            ends = run_abreast(
                arms, request.stop, BUDGET, session.on_progress, lambda rows: cannot_take_turns() or look.decided(rows),
                one_at_a_time=self.one_at_a_time,
            )  # fmt: skip
            if cannot_take_turns():
                return RANKS
            if not self.one_at_a_time and any(OUT_OF_MEMORY in end.reason for end in ends.ends.values()):
                return "Both arms together ran out of memory"
            return self.collect(seed, command, arms, ends, session)

    def collect(self, seed: int, command: list[str], arms: dict[str, Arm], ends: Ends, session: Session) -> SeedRuns:
        """Both runs as records, and what they say besides."""
        request = self.request
        runs = {label: arm_run(arms[label], ends.ends[label], request.stop, request.metric) for label in arms}
        failed(arms, runs, first=not self.seeds)
        found = SeedRuns(
            seed=seed,
            command=command,
            first="baseline" if next(iter(arms)) == "baseline" else "candidate",
            side_by_side=not self.one_at_a_time,
            baseline=runs["baseline"],
            candidate=runs["candidate"],
            windows=windows(arms, ends.turns, ends.cycle.steps),
        )
        for line in [*plan_notes(request.plan, arms["candidate"], found), *end_notes(request.stop, arms, found)]:
            self.note(line)
        if request.metric is not None:
            for line in [*past_notes(found), *unmatched(request.metric, arms, found)]:
                self.note(line)
        if self.repeats.note:
            self.note(self.repeats.note)
        return found

    def enough(self, last: SeedRuns, found: Verdicts) -> bool:
        """Whether further seeds would change nothing."""
        n, planned = len(self.seeds), self.request.options.seeds
        if not last.usable:
            broken = last.candidate.status == "failed"
            run = last.candidate if broken else last.baseline
            who = "the plan's run" if broken else "the unmodified script"
            self.note(f"Seed {last.seed}: {who} failed after {run.steps} steps ({run.reason}).")
        if n >= planned:
            return False
        why = ""
        if last.candidate.status == "failed" and not last.usable:
            why = "the plan breaks the script"
        elif diverged(last):
            why = "the plan's loss is no number any more"
        elif hopeless(found):
            why = "more of them would not prove the quality"
        elif self.repeats.uncertain:
            why = "bits could not be compared"
        elif not found.seeds_differ and self.preserves != "bits":
            why = "the seed changes nothing"
        elif self.request.metric is not None and last.baseline.metric is None:
            why = "the metric was not found"
        elif found.speed_verdict == "refuted" and found.time_to_quality is None:
            why = "the plan is slower"
        elif found.time_to_quality is not None and found.time_to_quality.verdict == "refuted":
            why = "the plan does not get there sooner"
        if why:
            self.note(f"Stopped after {n} of {planned} seeds: {why}.")
        return bool(why)

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def proof(self, found: Verdicts) -> SeedProof:
        """The document as it stands."""
        request = self.request
        by: str = "command" if request.by_command else "offset"
        return SeedProof(
            verdict=found.verdict,
            speedup=found.speedup,
            speedup_of="whole run" if found.whole else "after the first step",
            steady=found.steady,
            speed_verdict=found.speed_verdict,
            quality=found.quality,
            metric=found.metric,
            time_to_quality=found.time_to_quality,
            more=what_more(self.seeds, found, self.asked()),
            command=request.options.command,
            seeded_by=by,  # type: ignore[arg-type]
            plan=request.plan,
            preserves=self.preserves,
            machine=self.machine,
            asked_seeds=request.options.seeds,
            stop=request.stop,
            seeds=list(self.seeds),
            notes=[*self.notes, *neighbours_note(self.seeds)],
            created=time.strftime("%Y-%m-%d %H:%M:%S"),
            hotlap=__version__,
            commit=None if request.origin is None else request.origin.commit,
            changed=[] if request.origin is None else request.origin.changed or [],
        )
