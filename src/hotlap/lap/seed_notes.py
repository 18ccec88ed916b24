"""What the runs of a seed say besides their numbers: that they failed, that a lever did nothing, what was printed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from hotlap.records.errors import HotlapError, NotAttached
from hotlap.records.plan import Plan
from hotlap.records.seed_proof import ArmRun, SeedRuns, Stop
from hotlap.records.timeline import attach_errors
from hotlap.trial.arm import Arm
from hotlap.trial.arm_run import last_match, printed
from hotlap.trial.marks import last_words
from hotlap.trial.reasons import tail_of
from hotlap.trial.stopping import epochs_begun

__all__ = ["end_notes", "failed", "neighbours_note", "past_notes", "plan_notes", "unmatched"]

OURS = ("no sandbox", "scratch full", "the disk of the run folder")
"""Beginnings of reasons that lie neither in the script nor in the plan."""
LAST_LINES = 5
"""Of the output, shown where the metric was not in it."""
FAR_PAST = 0.1
"""Steps beyond the stop, as a share of those before it, from which they are told where a metric was asked for."""
WORTH_TELLING = 0.1
"""Share of turns with neighbours from which on it is told."""


def failed(arms: Mapping[str, Arm], runs: Mapping[str, ArmRun], *, first: bool) -> None:
    """Raises HotlapError where there is nothing to compare: no sandbox, no step, a script that fails without a plan."""
    for label, run in runs.items():
        if run.status == "failed" and run.reason.startswith(OURS):
            raise HotlapError(f"The runs could not be made: {run.reason}.")
        if label == "candidate" and run.status == "failed":
            continue
        if run.steps == 0 and run.reason != "decided":
            errors = attach_errors(arms[label].spec.timeline_dir)
            if errors and not run.exit_code:  # else its own crash comes first
                raise NotAttached(errors[0])
            raise HotlapError(
                f"Nothing to prove: the {_name(label)} made no optimiser step ({run.reason}).",
                f"Its output is in {arms[label].spec.output}. Does the command work without Hotlap?",
            )
    baseline, candidate = runs["baseline"], runs["candidate"]
    own_end = baseline.own_end and candidate.own_end and candidate.exit_code == baseline.exit_code
    if first and baseline.status == "failed" and not own_end:
        raise HotlapError(
            f"Nothing to prove: the unmodified script failed after {baseline.steps} steps ({baseline.reason}).",
            f"Its output, traceback included, is in {arms['baseline'].spec.output}.",
        )


def _name(label: str) -> str:
    return "unmodified script" if label == "baseline" else "script under the plan"


def plan_notes(plan: Plan, candidate: Arm, runs: SeedRuns) -> list[str]:
    """One line per lever of the plan that did not do what the plan says."""
    words = last_words(candidate)
    lines = []
    for move in plan.moves:
        if move.is_knob:
            continue
        said = words.get(move.lever, [])
        failures = [mark for mark in said if mark.state == "failed"]
        if not failures and any(mark.state == "applied" for mark in said):
            continue
        if not said:
            if runs.candidate.status == "finished":
                lines.append(f"{move.lever}: no effect (it found nothing to change in this run).")
            continue
        mark = failures[0] if failures else said[-1]
        state = "no effect" if mark.state == "no-effect" else mark.state
        lines.append(f"{move.lever}: {state} ({mark.why or 'it found nothing to change'}).")
    return lines


def unmatched(pattern: re.Pattern[str], arms: Mapping[str, Arm], runs: SeedRuns) -> list[str]:
    """Where the metric was not printed: say so, with the last lines that were. Where the pattern takes only the
    beginning of a number: say that, since 4.2 of 4.2e-1 is another number."""
    for label, run in (("baseline", runs.baseline), ("candidate", runs.candidate)):
        if run.metric is not None or run.status == "failed":
            continue
        asked, output = f"--metric {shlex.quote(pattern.pattern)}", arms[label].spec.output
        _, cut = last_match(pattern, printed(arms[label]))
        if cut:
            return [
                f"{asked} takes only the beginning of {cut}, which does not count: "
                r"write ([-+\d.eE]+) for the number."
            ]
        last = [line for line in tail_of(output).splitlines() if line.strip()][-LAST_LINES:]
        head = f"{asked} matched no number in what the {_name(label)} printed ({output})."
        return [f"{head} Its last lines:" if last else f"{head} It printed nothing.", *(f"| {line}" for line in last)]
    return []


def end_notes(stop: Stop, arms: Mapping[str, Arm], runs: SeedRuns) -> list[str]:
    """What is to be known of runs that came to an end of their own: that nothing stopped them, their exit code."""
    one, other = runs.baseline, runs.candidate
    if not runs.usable or "stopped" in (one.status, other.status):
        return []
    told = []
    if one.own_end and other.own_end:
        told.append(f"Both runs end with exit code {one.exit_code} and print no error: taken for the script's own end.")
    if stop.steps is not None and max(one.steps, other.steps) < stop.steps:
        told.append(f"--steps {stop.steps} stopped no run: the script ended by itself after {one.steps} steps.")
    if stop.epochs is not None:
        trainer = arms["baseline"].poll()
        begun = 0 if trainer is None else epochs_begun(trainer.events)
        if begun < stop.epochs:
            told.append(
                f"--epochs {stop.epochs} stopped no run: the script ended by itself after {one.steps} steps, and "
                f"{begun or 'no'} epoch{'' if begun == 1 else 's'} of a DataLoader began in it. --steps needs none."
            )
    return told


def past_notes(runs: SeedRuns) -> list[str]:
    """Where an arm went on well beyond its stop: what it printed last may be of a later moment than the other's."""
    told = []
    for label, run in (("baseline", runs.baseline), ("candidate", runs.candidate)):
        if run.past_steps > FAR_PAST * run.steps:
            told.append(
                f"Seed {runs.seed}: the {_name(label)} made {run.past_steps} steps beyond the {run.steps} before it "
                "could be stopped: its metric may be of a later moment. Longer runs are stopped more exactly."
            )
    return told


def neighbours_note(seeds: Sequence[SeedRuns]) -> list[str]:
    """How often others took cores while an arm ran. Whole runs count all the same: both arms met it."""
    turns = [w for runs in seeds for w in runs.windows]
    busy = sum(w.dropped is not None and w.dropped.startswith("neighbour") for w in turns)
    if not turns or busy < WORTH_TELLING * len(turns):
        return []
    return [f"Others used this machine's cores in {busy} of {len(turns)} turns: the interval is wider for it."]
