"""The proof of a lap: the unmodified script against the plan, launched several times, the roof, and the losses."""

from __future__ import annotations

from dataclasses import replace

from hotlap.diagnose.notes import CAME_ONCE
from hotlap.diagnose.roofline import with_roof
from hotlap.lap.baseline import Baseline, rediagnose
from hotlap.lap.caches import REPLAY_BATCHES, holds_cache, warm_steps
from hotlap.lap.incumbent import Search
from hotlap.lap.launches import Launches
from hotlap.lap.measure import Question, measure
from hotlap.lap.repeats import Repeats
from hotlap.lap.roof import measure_roof
from hotlap.lap.session import Session
from hotlap.proof.curves import numbers
from hotlap.proof.equal_samples import Equal, at_equal_samples
from hotlap.proof.same import first_difference
from hotlap.proof.verdict import prove, strictness
from hotlap.records.findings import Finding, Findings, Roof
from hotlap.records.proof import Proof, Quality
from hotlap.records.trials import Interval, Trial
from hotlap.trial.arm import Arm
from hotlap.trial.budget import Budget

__all__ = ["final_proof", "nothing_changed"]

FIRST_S = 9.0
"""Measuring time of the first pair of launches; the others share what the budget leaves."""
LAUNCHES_UNTIL = 0.99
"""Share of the budget by which all launches must be done."""
WORSE_IN = 2
"""Seeds that must have been seen before a plan is given up for its losses."""


def final_proof(session: Session, baseline: Baseline, state: Search) -> tuple[Proof, Trial, Findings]:
    """Measure the whole plan against the unmodified script and its roof, and judge quality over paired seeds.

    Also gives the findings of the unmodified script over all that it has run by now, the roof included.
    """
    session.stage = f"proof: launch 1 of {session.options.seeds}"
    _replay_for_caches_alone(session, state)
    knobs = any(move.is_knob for move in state.moves)
    warm = 0 if state.replayed else warm_steps(state.moves, state.findings)
    question = Question("proof", FIRST_S, whole=True, warm_steps=warm, per_sample=knobs)
    launches = Launches(measure(session, baseline.arm, state.incumbent, question), per_sample=knobs, warm_steps=warm)
    roof = _roof_again(session, baseline, state, launches)
    session.discard(state.incumbent)
    first = rediagnose(session, baseline.arm)
    session.discard(baseline.arm)
    repeats = Repeats()
    _launch_again(session, state, launches, repeats)
    trial = launches.trial()
    session.folder.write("trials/proof.json", trial)
    ratio = trial.interval.ratio if trial.interval is not None else state.cumulative
    findings = _over_all(baseline.findings, first, roof, ratio)
    now = findings.throughput.samples_per_s
    per_s, share = None if now is None else now * ratio, _share_of_roof(baseline.findings.roof, roof, ratio)
    proof = replace(_judged(session, state, launches, repeats, trial), samples_per_s=per_s, roof_share=share)
    if knobs:
        proof = _told_in_samples(proof, _compared(state, launches))
    return proof, trial, findings


def _judged(session: Session, state: Search, launches: Launches, repeats: Repeats, trial: Trial | None = None) -> Proof:
    """The proof so far. Bits that differ count only where the unmodified script repeats its own."""
    curves = _compared(state, launches).curves
    base, plan, margin = curves["baseline"], curves["candidate"], session.options.margin
    proof = prove(trial, state.moves, base, plan, margin)
    if proof.quality.kind != "bits" or proof.quality.verdict != "refuted":
        return proof
    seeds = [seed for seed, _ in _told(state, launches)]
    found = zip(seeds, base, map(first_difference, base, plan), strict=True)
    seed, curve, at = next((seed, curve, at) for seed, curve, at in found if at is not None)

    def again() -> Arm:
        session.stage = "control: the unmodified script again"
        return session.arm("control", seed_offset=seed, replay_batches=_replay(state))

    repeats.differs(session, seed, curve[: at + 1], again, Budget(first_step_s=session.options.first_step_s))
    proof = prove(trial, state.moves, base, plan, margin, repeats.known, repeats.uncertain)
    return replace(proof, notes=[*proof.notes, repeats.note] if repeats.note else proof.notes)


def _replay_for_caches_alone(session: Session, state: Search) -> None:
    """Start the plan on whole epochs where the cache that its batches were repeated for was not kept."""
    if state.replayed and not holds_cache(state.moves):
        session.discard(state.incumbent)
        state.incumbent, state.replayed = session.arm("plan", moves=state.moves), False


def _replay(state: Search) -> int:
    """How many batches both arms repeat: where the plan's cache was warmed on replayed ones, so that losses compare."""
    return REPLAY_BATCHES if state.replayed else 0


def _roof_again(session: Session, baseline: Baseline, state: Search, launches: Launches) -> Roof | None:
    """The roof beside the plan; None where it was measured beside the script, and now the launches need the time."""
    needed_s = launches.first.wall_s + launches.missing_s(session)
    if baseline.findings.roof is not None and session.left_s(LAUNCHES_UNTIL) < needed_s:
        return None
    roof, trial = measure_roof(session, state.incumbent, state.findings, state.moves)
    state.trials.append(trial)
    return roof


def _share_of_roof(first: Roof | None, again: Roof | None, ratio: float) -> float | None:
    """The plan's share of the roof that was measured beside it, or else beside the unmodified script."""
    if again is not None:
        return again.share
    return None if first is None else min(1.0, first.share * ratio)


def _told_in_samples(proof: Proof, equal: Equal) -> Proof:
    """The proof of a plan with knobs says how losses were compared, or why they were not."""
    if equal.problem:
        text = f"Quality not proved: {equal.problem}."
        return replace(proof, quality=Quality("not proved", "non-inferior", text))
    if not equal.width:
        return proof
    text = f"{proof.quality.summary} Losses were compared at equal samples: a step stands for {equal.width} of them."
    return replace(proof, quality=replace(proof.quality, summary=text))


def nothing_changed() -> Proof:
    """The proof of an empty plan: the training is what it was."""
    quality = Quality("proved", "bits", "No lever was kept: the training is as it was.")
    return Proof(Interval(1.0, 1.0, 1.0, 1.0), quality, claimed=False)


def _launch_again(session: Session, state: Search, launches: Launches, repeats: Repeats) -> None:
    """More pairs of launches, a seed for each."""

    def arm(label: str, seed: int) -> Arm:
        moves = state.moves if label == "candidate" else []
        return session.arm(f"proof{seed}-{label}", moves=moves, seed_offset=seed, replay_batches=_replay(state))

    def worse() -> bool:
        """The time that is left is better spent on proving what remains without the lever at fault."""
        if len(_told(state, launches)) < WORSE_IN or strictness(state.moves) == "goal":
            return False
        return _judged(session, state, launches, repeats).quality.verdict == "refuted"

    launches.go_on(session, arm, session.options.seeds, LAUNCHES_UNTIL, worse)
    launches.decide(session, arm, LAUNCHES_UNTIL, worse)


def _compared(state: Search, launches: Launches) -> Equal:
    """The losses so far; at equal samples where a knob gives the arms' steps different ones."""
    told = [trial for _, trial in _told(state, launches)]
    curves = {label: [numbers(trial.losses[label]) for trial in told] for label in ("baseline", "candidate")}
    if any(move.is_knob for move in state.moves):
        samples = {label: [trial.loss_samples[label] for trial in told] for label in ("baseline", "candidate")}
        return at_equal_samples(curves, samples)
    return Equal(curves)


def _told(state: Search, launches: Launches) -> list[tuple[int, Trial]]:
    """The seeds of the pairs of launches whose losses were seen in both arms, and these. The first pair tells nothing
    when only its candidate replayed."""
    told = [(seed, pair) for seed, pair in launches.pairs if all(map(pair.losses.get, ("baseline", "candidate")))]
    return [(seed, pair) for seed, pair in told if seed or not state.replayed]


def _over_all(first: Findings, fresh: Findings | None, roof: Roof | None, ratio: float) -> Findings:
    """The baseline's findings over its whole run: by now it may have met what its first part had not (validation).

    What was confirmed stays confirmed; the roof becomes the higher of the two that were measured, and no lower than
    what the plan reaches.
    """
    findings = first
    if fresh is not None:
        known = {f.cause for f in first.findings}
        late = [f for f in fresh.findings if f.cause not in known and f.cause not in ("drift", "nothing-to-gain")]
        notes = [note for note in first.notes if CAME_ONCE not in note]
        notes += [note for note in fresh.notes if CAME_ONCE in note]
        findings = replace(_merged(first, late), notes=notes)
    if roof is None and (first.roof is None or first.roof.share * ratio <= 1.0):
        return findings
    if roof is None:  # a numeric lever that the roof did not have took the plan above it
        roof = Roof(None, 0.0, 1.0, "the plan's own speed, above what was measured as the roof")
    now = first.throughput
    share = roof.share / ratio
    if first.roof is not None and first.roof.share <= share:
        return findings
    per_s = None if now.samples_per_s is None else now.samples_per_s / share
    return with_roof(findings, Roof(per_s, now.step_s * share, min(1.0, share), roof.how))


def _merged(first: Findings, late: list[Finding]) -> Findings:
    found = sorted([*first.findings, *late], key=lambda f: -f.share)
    return replace(first, findings=found)
