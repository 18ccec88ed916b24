"""What would decide what is not decided yet, in sentences that say what to type."""

from __future__ import annotations

from collections.abc import Sequence

from hotlap.proof.noninferior import MIN_STEPS
from hotlap.proof.over_seeds import seeds_for_margin, seeds_for_ratio
from hotlap.proof.speedup import MIN_LAUNCHES
from hotlap.proof.whole_runs import Asked, Verdicts, metric_counts, ratios
from hotlap.records.seed_proof import SeedRuns

__all__ = ["what_more"]


def what_more(seeds: Sequence[SeedRuns], found: Verdicts, asked: Asked) -> list[str]:
    """One sentence for each thing that is open; none when all is decided."""
    used = [runs for runs in seeds if runs.usable]
    if found.verdict == "refuted":
        return []
    if not used:
        return ["No seed came through in both arms: nothing was compared."]
    told = []
    if not found.seeds_differ and found.quality.kind != "bits":
        told.append("Let the seed reach the script: write `{seed}` in the command where it takes its seed.")
    speed = found.speed_verdict if found.time_to_quality is None else found.time_to_quality.verdict
    if speed == "not proved":
        told.append(_speed(used, found, asked))
    if not found.seeds_differ:
        return told
    if found.metric is None or found.quality.kind == "bits":
        told += _quality(len(used), found, asked)
    metric = found.metric
    if metric is not None and metric.verdict == "not proved" and metric_counts(found.quality, metric):
        told.append(_metric(len(used), found, asked))
    return list(dict.fromkeys(told))


def _few(n: int, asked: Asked) -> str:
    seeds = f"{n} seed{'' if n == 1 else 's'}"
    if asked.seeds >= MIN_LAUNCHES:
        return f"{seeds} of {asked.seeds} cannot show how runs differ: the notes say what became of the others."
    return f"{seeds} cannot show how runs differ: `--seeds {MIN_LAUNCHES}` or more."


def _speed(used: Sequence[SeedRuns], found: Verdicts, asked: Asked) -> str:
    sooner = found.time_to_quality
    if sooner is not None and sooner.interval is None:
        missing = sum(value is None for value in [*sooner.baseline_s, *sooner.candidate_s])
        if not sooner.loss:
            return "The losses of the script were not seen, so there is no time to one: judge it by `--metric`."
        return f"{missing} of {2 * len(sooner.loss)} runs never came to the loss: let them run longer, or ask for less."
    n, values = len(used), ratios(used, found.whole)
    if sooner is not None:
        values = [b / c for b, c in zip(sooner.baseline_s, sooner.candidate_s, strict=True) if b and c]
        n = len(values)
    if n < MIN_LAUNCHES:
        return _few(n, asked)
    needed = seeds_for_ratio(values)
    if needed is None:
        return "The plan's gain is too small to be told from how runs differ here."
    return f"About {needed} seeds would tell whether it is faster, if the others come out as these: `--seeds {needed}`."


def _quality(n: int, found: Verdicts, asked: Asked) -> list[str]:
    quality = found.quality
    if quality.verdict != "not proved":
        return []
    if quality.kind == "bits":
        return [] if asked.uncertain else ["The losses of the script were not seen: judge it by `--metric`."]
    if quality.kind == "target":
        return [_few(n, asked)] if n < 2 else ["Let the runs go on for longer, or ask for a loss that both arms reach."]
    if quality.delta_frac is None:
        if quality.steps >= MIN_STEPS:
            return []
        return [f"Losses of {MIN_STEPS} steps in both arms are the least: let it run longer, or pass `--metric`."]
    return [_margin(n, quality.delta_frac, quality.upper_frac, quality.margin_frac, asked)]


def _metric(n: int, found: Verdicts, asked: Asked) -> str:
    metric = found.metric
    assert metric is not None
    if metric.delta_frac is None:
        return "Check the pattern of `--metric` against what the script prints."
    return _margin(n, metric.delta_frac, metric.upper_frac, metric.margin_frac, asked)


def _margin(n: int, delta: float, upper: float | None, margin: float | None, asked: Asked) -> str:
    if upper is None or margin is None or n < 2:
        return _few(n, asked)
    if delta >= margin:
        return "The difference itself is beyond the margin: more seeds would rather refute it than prove it."
    needed = seeds_for_margin(delta, upper, margin, n, asked.paired)
    if needed is None:
        return "Seeds differ too much for this margin: state the one that matters to you, `--margin SHARE`."
    return f"About {needed} seeds would decide on quality, if the others come out as these: `--seeds {needed}`."
