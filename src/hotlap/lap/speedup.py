"""``hotlap speedup``: diagnose, confirm, find the roof, search, prove; each document written as soon as it exists."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from hotlap.diagnose.roofline import with_roof
from hotlap.lap.baseline import Baseline, Unmeasurable, check_baseline, cut_off, run_baseline
from hotlap.lap.best_guess import put_back
from hotlap.lap.confirm import confirm
from hotlap.lap.fall_back import fall_back
from hotlap.lap.incumbent import Search
from hotlap.lap.no_plan import why_no_plan
from hotlap.lap.options import Listener, Options
from hotlap.lap.prove import final_proof, nothing_changed
from hotlap.lap.roof import measure_roof
from hotlap.lap.search import search
from hotlap.lap.session import Session
from hotlap.lap.slow_steps import make_room_for_roof
from hotlap.plan.file import dump_plan
from hotlap.plan.knobs import by_hand
from hotlap.records.findings import Findings, Roof
from hotlap.records.machine import Machine
from hotlap.records.plan import Move, Plan
from hotlap.records.proof import Proof
from hotlap.records.run_folder import RunFolder, write_atomic
from hotlap.records.trials import Interval, LeverResult, Trial

__all__ = ["Outcome", "diagnose_in_trial", "speedup"]


@dataclass
class Outcome:
    """What came of a lap, as far as it went."""

    findings: Findings | None = None
    levers: list[LeverResult] = field(default_factory=list)
    proof: Proof | None = None
    plan: Plan | None = None
    plan_text: str = ""
    plan_path: str | None = None
    refused: list[tuple[str, str]] = field(default_factory=list)
    trials: list[Trial] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def diagnose_in_trial(
    options: Options, machine: Machine, folder: RunFolder, listener: Listener, outcome: Outcome
) -> None:
    """Diagnose the script in a sandboxed run: causes, confirmed by taking them away, and the roof.

    Where ``outcome`` already has findings (of the user's own full run), these are confirmed.
    """
    with Session(options, machine, folder, listener) as session:
        try:
            _examine(session, outcome)
        except Unmeasurable as err:
            outcome.notes.append(f"Causes are observed, not confirmed. {err.what}")


def speedup(options: Options, machine: Machine, folder: RunFolder, listener: Listener, outcome: Outcome) -> None:
    """The whole lap. ``outcome`` is filled as the lap goes, so that an interrupted one still has something to show."""
    with Session(options, machine, folder, listener) as session:
        baseline = _examine(session, outcome)
        state = Search(baseline.arm, baseline.findings)
        try:
            _search(session, baseline, state, outcome)
            if state.moves:
                _conclude(session, baseline, state, outcome)
                folder.write("levers.json", outcome.levers)
            else:
                outcome.proof = nothing_changed()
                folder.write("proof.json", outcome.proof)
        except KeyboardInterrupt:
            outcome.notes += _to_go_on(state.moves) if outcome.proof is None else []
            raise


def _search(session: Session, baseline: Baseline, state: Search, outcome: Outcome) -> None:
    """Fill ``state``, and the outcome with what was tried, whatever ends it."""
    try:
        search(session, baseline, state, baseline.findings.roof)
    finally:
        outcome.levers, outcome.refused = state.results, state.refused
        outcome.trials += state.trials
        outcome.notes += state.notes
        session.folder.write("levers.json", outcome.levers)


def _examine(session: Session, outcome: Outcome) -> Baseline:
    arm = session.arm("baseline")
    try:
        baseline = run_baseline(session, arm)
    except KeyboardInterrupt:
        outcome.findings = outcome.findings or cut_off(session, arm)
        if outcome.findings is not None:
            session.folder.write("findings.json", outcome.findings)
        raise
    if outcome.findings is not None:
        baseline.findings = outcome.findings
    outcome.findings = baseline.findings
    session.folder.write("findings.json", baseline.findings)
    if session.options.confirm:
        roof, measured = _roof(session, baseline, outcome)
        findings, trials = confirm(session, baseline)
        outcome.trials += trials
        if roof is not None:
            findings = with_roof(findings, roof, measured=measured)
        baseline.findings = findings
        outcome.findings = findings
        session.folder.write("findings.json", findings)
    return baseline


def _roof(session: Session, baseline: Baseline, outcome: Outcome) -> tuple[Roof | None, Interval | None]:
    """The roof and how it was measured; or a note that says why there is none."""
    why = make_room_for_roof(session, baseline)
    if why is not None:
        outcome.notes.append(f"The roof could not be measured: {why}")
        return None, None
    roof, trial = measure_roof(session, baseline.arm, baseline.findings)
    outcome.trials.append(trial)
    check_baseline(trial)
    if roof is None:
        outcome.notes.append(f"The roof could not be measured: {trial.reason}")
    return roof, trial.interval


def _conclude(session: Session, baseline: Baseline, state: Search, outcome: Outcome) -> None:
    begun = time.monotonic()
    proof, trial, findings = final_proof(session, baseline, state)
    if proof.quality.verdict == "refuted":
        move = fall_back(session, baseline, state)
        if move is not None:
            outcome.trials.append(trial)
            outcome.notes.append(_why_again(move, proof, state))
            begun = time.monotonic()
            if state.moves:
                proof, trial, findings = final_proof(session, baseline, state)
            else:
                proof = nothing_changed()
    outcome.proof, outcome.findings = proof, findings
    session.folder.write("findings.json", findings)
    outcome.trials.append(trial)
    session.folder.write("proof.json", proof)
    if not state.moves:
        return
    if not proof.claimed or proof.quality.verdict == "refuted":
        outcome.notes.append(why_no_plan(proof, state.moves, session.budget_s, time.monotonic() - begun))
        put_back(state)
        return
    interval = proof.speedup
    plan = Plan(
        moves=state.moves,
        script=" ".join(session.options.command),
        machine=_machine_name(session.machine),
        torch=session.machine.torch or "",
        speedup=interval.ratio if interval else None,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        created=time.strftime("%Y-%m-%d %H:%M:%S"),
    )
    outcome.plan, outcome.plan_text = plan, dump_plan(plan)
    outcome.notes += [f"{line}." for line in by_hand(plan.moves, session.options.command)]
    session.folder.write("plan.json", plan)
    write_atomic(session.folder.path / "plan.yaml", outcome.plan_text)
    if state.replayed:
        outcome.notes.append(
            "The speedup holds from the second epoch on: the trial repeated the first batches of the epoch, so that "
            "the cache was warm."
        )


def _to_go_on(moves: list[Move]) -> list[str]:
    """What to write to prove what an interrupted lap had kept."""
    names = dict.fromkeys(move.lever for move in moves if not move.is_knob)
    only = " ".join(f"--only {name}" for name in names)
    then = f"the same command with {only} tries just that, and proves it."
    return [f"What was kept by then is not proven: {then}"] if names else []


def _why_again(move: Move, proof: Proof, state: Search) -> str:
    """What became of a plan that made the loss worse."""
    what = proof.quality.summary.rstrip(".")
    rest = ", and a proof made of what is left" if state.moves else "; nothing is left of the plan"
    return f"With {move.lever} in the plan: {what[:1].lower()}{what[1:]}. It was put back{rest}."


def _machine_name(machine: Machine) -> str:
    return machine.accelerators[0].name if machine.accelerators else f"{machine.cpu}, {machine.cores} cores"
