"""Whole runs of both arms over paired seeds to a verdict: the speedup, the quality, and what more would decide it.

The verdict is ``proved`` when the quality that the plan owes is proved and the plan is faster beyond doubt; ``refuted``
when either is refuted: worse beyond the margin, other bits than promised, slower, or a crash that the unmodified script
does not have. Where a loss was to be reached, or the plan changes the goal, faster means: sooner at that loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hotlap.proof.curves import at_equal_steps, broken_at, per_step, samples_per_step
from hotlap.proof.equal_samples import at_equal_samples
from hotlap.proof.metric import judge_metric
from hotlap.proof.noninferior import LEVEL, judge
from hotlap.proof.over_seeds import over_seeds
from hotlap.proof.sooner import time_to_quality
from hotlap.proof.speedup import MIN_LAUNCHES, UNKNOWN_LAUNCH_FRAC, ratio_interval
from hotlap.proof.student_t import t_quantile
from hotlap.proof.verdict import same_bits
from hotlap.records.proof import Quality
from hotlap.records.seed_proof import MetricQuality, SeedRuns, Stop, TimeToQuality, Word
from hotlap.records.trials import Interval

__all__ = ["Asked", "Verdicts", "conclude", "diverged", "hopeless", "metric_counts", "ratios"]

SAME_WORK_FRAC = 0.01
"""Runs that differ by less did the same work: a last batch more or less."""
EARLY_LEVEL = 0.99
"""One-sided confidence for giving up before all seeds were run: looks before the last one can only refute."""


@dataclass(frozen=True)
class Asked:
    """What is owed, and how it is judged."""

    preserves: str
    stop: Stop = field(default_factory=Stop)
    margin_frac: float | None = None
    pattern: str = ""
    """Of the metric; empty: none."""
    lower_is_better: bool = False
    repeats: bool = True
    """Whether two runs of the unmodified script with one seed give the same bits, as far as that is known."""
    uncertain: str = ""
    """Why bits could not be compared, although they differ."""
    seeds: int = 0
    """How many were to be run; 0: not known."""

    @property
    def paired(self) -> bool:
        """Whether a seed draws the same random numbers in both arms."""
        return self.preserves in ("bits", "maths")

    @property
    def sooner(self) -> bool:
        """Whether time to a quality is what counts."""
        return self.stop.loss is not None or self.preserves == "goal"


@dataclass(frozen=True)
class Verdicts:
    """The verdicts of :class:`hotlap.records.seed_proof.SeedProof`."""

    verdict: Word
    speedup: Interval | None
    whole: bool
    steady: Interval | None
    speed_verdict: Word
    quality: Quality
    metric: MetricQuality | None
    time_to_quality: TimeToQuality | None
    seeds_differ: bool = True
    """Whether another seed gave the unmodified script another run."""


def diverged(runs: SeedRuns) -> bool:
    """Whether the candidate's loss alone became no number: refuted, whatever a metric of other seeds says."""
    return broken_at(runs.baseline.loss, runs.candidate.loss) is not None


def conclude(seeds: Sequence[SeedRuns], asked: Asked) -> Verdicts:
    """The verdicts on the seeds that were run."""
    used = [runs for runs in seeds if runs.usable]
    whole = all("stopped" not in (runs.baseline.status, runs.candidate.status) for runs in used)
    speedup = over_seeds(ratios(used, whole))
    speed: Word = "not proved"
    if speedup is not None and len(used) >= MIN_LAUNCHES:  # fewer do not show what the machine did meanwhile
        speed = "proved" if speedup.low > 1 else "refuted" if speedup.high < 1 else "not proved"
    windows = [replace(w, launch=k) for k, runs in enumerate(used) if runs.side_by_side for w in runs.windows]
    steady = ratio_interval(windows, launch_frac=UNKNOWN_LAUNCH_FRAC)
    differ = _seeds_differ(used)
    quality = _quality(used, asked)
    if other := _other_work(used, asked):
        speed = "not proved"
        if quality.verdict == "proved":
            quality = replace(quality, verdict="refuted" if asked.preserves == "bits" else "not proved", summary=other)
    metric = _metric(used, asked) if asked.pattern else None
    if not differ:
        quality, metric = _without_spread(quality, metric)
    sooner = time_to_quality(used, asked.stop) if asked.sooner else None
    crashed = any(runs.candidate.status == "failed" and not runs.usable and runs.baseline.status != "failed"
                  for runs in seeds)  # fmt: skip
    owed: list[Word] = [speed if sooner is None else sooner.verdict]
    if metric is None or quality.kind == "bits":
        owed.append(quality.verdict)
    if metric is not None and metric_counts(quality, metric):
        owed.append(metric.verdict)
    word: Word = "proved" if all(w == "proved" for w in owed) else "not proved"
    if crashed or any(map(diverged, used)) or "refuted" in owed:
        word = "refuted"
    return Verdicts(word, speedup, whole, steady, speed, quality, metric, sooner, differ)


def metric_counts(quality: Quality, metric: MetricQuality) -> bool:
    """Equal bits prove more than a metric does, which they leave to say that it is worse, or was not found."""
    return quality.kind != "bits" or metric.verdict == "refuted" or metric.delta_frac is None


def _seeds_differ(used: Sequence[SeedRuns]) -> bool:
    if len(used) < 2:
        return True
    curves = [runs.baseline.loss for runs in used]
    if any(curves):
        return any(curve != curves[0] for curve in curves[1:])
    metrics = [runs.baseline.metric for runs in used]
    return None in metrics or len(set(metrics)) > 1


def _without_spread(quality: Quality, metric: MetricQuality | None) -> tuple[Quality, MetricQuality | None]:
    """Seeds that change nothing have no spread, so they prove nothing about quality; equal bits stay equal."""
    why = "The seed changes nothing in the unmodified script, so its seeds show no spread."
    if quality.kind != "bits" and quality.verdict == "proved":
        quality = replace(quality, verdict="not proved", summary=why)
    if metric is not None and metric.verdict == "proved":
        metric = replace(metric, verdict="not proved", summary=why)
    return quality, metric


def ratios(used: Sequence[SeedRuns], whole: bool) -> list[float]:
    """Per seed: the baseline's seconds over the candidate's, for the same work."""
    found = []
    for runs in used:
        one, other = runs.compared_s(whole)
        if one > 0 and other > 0:
            found.append(one / other)
    return found


def _other_work(used: Sequence[SeedRuns], asked: Asked) -> str:
    """That runs which came to their own end were not the same work, if they were not: a plan that makes the training
    end early is no faster. Empty where all is well, and where another training was asked for."""
    if asked.preserves == "goal" or asked.stop.loss is not None:
        return ""
    for runs in used:
        if {runs.baseline.status, runs.candidate.status} != {"finished"}:
            continue
        one, other = (sum(run.samples) if _in_samples(runs) else run.steps for run in (runs.baseline, runs.candidate))
        if abs(one - other) > SAME_WORK_FRAC * max(one, other):
            unit = "samples" if _in_samples(runs) else "steps"
            return f"With the plan the training ended after {other:,} {unit}, without it after {one:,}: no equal work."
    return ""


def _in_samples(runs: SeedRuns) -> bool:
    return all(run.samples and all(run.samples) for run in (runs.baseline, runs.candidate))


def _quality(used: Sequence[SeedRuns], asked: Asked) -> Quality:
    if asked.preserves == "bits" and asked.repeats:
        pairs = [at_equal_steps(runs.baseline, runs.candidate) for runs in used]
        whole = all(map(_all_told, used))
        return replace(same_bits([a for a, _ in pairs], [b for _, b in pairs], asked.uncertain, whole), raw={})
    if asked.preserves == "goal" and asked.stop.loss is not None:
        return _target(used)
    if used and all(r.baseline.loss and r.baseline.loss == r.candidate.loss and asked.repeats for r in used):
        base, plan = [per_step(r.baseline) for r in used], [per_step(r.candidate) for r in used]
        return replace(same_bits(base, plan, whole=all(map(_all_told, used))), raw={})
    curves = {"baseline": [per_step(r.baseline) for r in used], "candidate": [per_step(r.candidate) for r in used]}
    if asked.preserves == "goal":
        samples = {"baseline": [samples_per_step(r.baseline) for r in used],
                   "candidate": [samples_per_step(r.candidate) for r in used]}  # fmt: skip
        equal = at_equal_samples(curves, samples)
        if equal.problem:
            return Quality("not proved", "non-inferior", f"Quality not proved: {equal.problem}.", seeds=len(used))
        curves = equal.curves
    seeds = [runs.seed for runs in used]
    return replace(judge(curves["baseline"], curves["candidate"], asked.margin_frac, asked.paired, seeds), raw={})


def _all_told(runs: SeedRuns) -> bool:
    """Whether both runs came to their end, with a loss of every step."""
    arms = (runs.baseline, runs.candidate)
    return all(run.status == "finished" and len(run.loss) == len(run.step) for run in arms)


def _target(used: Sequence[SeedRuns]) -> Quality:
    """Whether the loss that was asked for was reached."""
    there = {label: sum(getattr(r, label).reached_s is not None for r in used) for label in ("baseline", "candidate")}
    n = len(used)
    told = f"It was reached in {there['candidate']} of {n} seeds, by the unmodified script in {there['baseline']}."
    word: Word = "not proved"
    if n > 1 and there["candidate"] == n:
        word = "proved"
    elif n > 1 and there["candidate"] == 0 and there["baseline"] == n:
        word = "refuted"
    return Quality(word, "target", told, seeds=n)


def _metric(used: Sequence[SeedRuns], asked: Asked) -> MetricQuality:
    return judge_metric(
        [runs.baseline.metric for runs in used],
        [runs.candidate.metric for runs in used],
        asked.pattern,
        asked.lower_is_better,
        asked.margin_frac,
        paired=asked.paired,
    )


def hopeless(found: Verdicts) -> bool:
    """Whether to give up before the last seed: worse beyond the margin by a stricter test, or refuted by no spread.

    Giving up early can only turn what might still have been proved into refuted, at 1 % a look.
    """
    metric = found.metric
    judged = metric if metric is not None and metric_counts(found.quality, metric) else found.quality
    if judged.verdict != "refuted":
        return False
    if judged.delta_frac is None or judged.upper_frac is None or judged.margin_frac is None:
        return True  # other bits, a NaN, far worse in the one seed
    n = found.quality.seeds
    half = judged.upper_frac - judged.delta_frac
    stricter = t_quantile(n - 1, EARLY_LEVEL) / t_quantile(n - 1, LEVEL) if n > 1 else 1.0
    return judged.delta_frac - half * stricter > judged.margin_frac
