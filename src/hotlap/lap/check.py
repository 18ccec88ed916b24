"""``hotlap check``: the working tree against a revision of it, launched several times, both arms taking turns."""

from __future__ import annotations

import time
from dataclasses import replace

from hotlap.lap.launches import Launches, MakeArm
from hotlap.lap.measure import Question, measure
from hotlap.lap.options import Listener, Options
from hotlap.lap.own_cadences import cadence_notes, samples_per_step
from hotlap.lap.prove_seeds import seeded, takes_seed
from hotlap.lap.revision import Against, at_revision
from hotlap.lap.session import Session
from hotlap.proof.gate import gate, seen_from
from hotlap.records.check import Check
from hotlap.records.errors import HotlapError, NotAttached
from hotlap.records.machine import Machine
from hotlap.records.run_folder import RunFolder
from hotlap.records.trials import NO_FIRST_STEP, NO_STEP, OF_BASELINE, TOO_FEW, Trial
from hotlap.trial.arm import Arm
from hotlap.trial.pauses import Cycle, find_cycle

__all__ = ["check"]

FIRST_FRAC = 0.5
"""Share of a launch's part of the budget in which the first one measures; starting takes the rest."""
LEAST_S = 6.0
SAME_BATCH = 0.01
"""Steps whose samples differ by less than this share are the same work."""


def check(
    options: Options, against: Against, max_slowdown_frac: float, machine: Machine, folder: RunFolder,
    listener: Listener,
) -> Check:  # fmt: skip
    """Compare, and write ``check.json``. Each pair of launches has a seed of its own.

    Raises HotlapError where the arms could not be compared.
    """
    revision = against.revision
    by_command = takes_seed(options.command)
    with Session(options, machine, folder, listener) as session:

        def arm(label: str, launch: int) -> Arm:
            moves = [] if against.plan is None else against.plan.moves
            made = session.arm(f"check{launch}-{label}", moves, seed_offset=0 if by_command else launch)
            made.spec = replace(made.spec, command=seeded(made.spec.command, launch + 1))
            if label == "baseline":
                made.spec = replace(made.spec, command=at_revision(made.spec.command, revision))
            return made

        trial = _measured(session, arm)
    interval = trial.interval
    if trial.status != "measured" or interval is None:
        unseen = NO_FIRST_STEP in trial.reason or NO_STEP in trial.reason
        if unseen and session.not_watched.reasons:
            raise NotAttached(session.not_watched.reasons[0])
        quieter = "Try a quieter machine, a larger --budget or a longer script. " if TOO_FEW in trial.reason else ""
        who = f"at {revision.name}, " if trial.reason.startswith(OF_BASELINE) else "in the working tree, "
        raise HotlapError(
            f"The two could not be compared: {who}{trial.reason.removeprefix(OF_BASELINE) or trial.status}.",
            f"{quieter}The output of both is under {folder.path / 'timelines'}.",
        )
    where = {"baseline": f"at {revision.name}", "candidate": "in the working tree"}
    notes = [*trial.notes, *cadence_notes(trial, where), *against.notes]
    if revision.changed == 0:
        notes.append(f"No tracked file differs from {revision.name}: this compares the script with itself.")
    found = Check(
        verdict=gate(interval, max_slowdown_frac),
        max_slowdown_frac=max_slowdown_frac,
        seen_from_frac=seen_from(interval, max_slowdown_frac),
        against=revision.name,
        commit=revision.commit,
        changed=revision.changed,
        command=options.command,
        trial=trial,
        machine=machine,
        notes=notes,
        created=time.strftime("%Y-%m-%d %H:%M:%S"),
        plan=against.plan,
    )
    folder.write("check.json", found)
    return found


def _measured(session: Session, make: MakeArm) -> Trial:
    """All launches as one trial; in samples per second where the steps of the two hold different ones."""
    pairs = session.options.seeds
    session.stage = f"check: launch 1 of {pairs}"
    first = _first(session, make)
    if first.status == "measured" and session.cycle.steps > 1:  # its windows met the script's own pauses by chance
        again = _first(session, make)
        if again.status == "measured":
            first = again
        else:  # too short a run for windows of whole cycles
            session.cycle = Cycle()
    launches = Launches(first, per_sample=_other_batch(first), own_cadences=True, name="check")
    if first.status == "measured" or TOO_FEW in first.reason:  # then later launches may make up for it
        launches.go_on(session, make, pairs, 0.97)
    return launches.trial()


def _first(session: Session, make: MakeArm) -> Trial:
    """The first launch; where none is known yet, the cycle of the pauses that its baseline had."""
    arms = {label: make(label, 0) for label in ("baseline", "candidate")}
    seconds = max(LEAST_S, FIRST_FRAC * session.options.budget_s / session.options.seeds)
    first = measure(session, arms["baseline"], arms["candidate"], Question("check", seconds, whole=True))
    trainer = arms["baseline"].poll()
    if session.cycle.steps == 1 and trainer is not None:
        session.cycle = find_cycle(trainer.steps)
    for done in arms.values():
        session.discard(done)
    return first


def _other_batch(trial: Trial) -> bool:
    """Whether a step of the one holds other samples than a step of the other; unknown ones are taken for the same."""
    per_step = samples_per_step(trial).values()
    return min(per_step) > 0 and max(per_step) > (1 + SAME_BATCH) * min(per_step)
