"""The sentences about a proof over seeds that terminal, HTML and progress lines share."""

from __future__ import annotations

from hotlap.records.seed_proof import ArmRun, MetricQuality, SeedProof, SeedRuns, TimeToQuality
from hotlap.records.trials import Interval
from hotlap.report import units

__all__ = ["headline", "proof_lines", "seed_cells", "seed_line", "setup_line"]


def headline(proof: SeedProof) -> str:
    """The verdict, what is open or refuted, and the ratio that it is about."""
    return " · ".join([_verdict(proof), _ratio(proof)])


def _verdict(proof: SeedProof) -> str:
    if proof.verdict == "proved":
        return "proved"
    sooner, metric = proof.time_to_quality, proof.metric
    parts = {"speed": proof.speed_verdict if sooner is None else sooner.verdict}
    if metric is None or proof.quality.kind == "bits":
        parts["quality"] = proof.quality.verdict
    if metric is not None and (proof.quality.kind != "bits" or metric.delta_frac is None):
        parts["metric"] = metric.verdict
    names = [name for name, word in parts.items() if word == proof.verdict]
    return f"{proof.verdict} ({', '.join(names)})" if names else f"{proof.verdict} (the plan breaks the script)"


def _ratio(proof: SeedProof) -> str:
    if proof.time_to_quality is not None:
        return _sooner(proof.time_to_quality)
    if proof.speedup is None:
        return "no speedup measured"
    n = proof.speedup.launches
    of = f"{proof.speedup_of}{'s' if proof.speedup_of == 'whole run' else ''}"
    return f"{_faster(proof.speedup)} ({of}, {n} seed{'' if n == 1 else 's'})"


def _faster(found: Interval) -> str:
    text = units.ratio_interval(found.ratio, found.low, found.high)
    value, _, bounds = text.partition(" ")
    if found.low > 1:
        return f"{value} faster {bounds}"
    return f"{text}, slower" if found.high < 1 else f"no speedup claimed, {text}"


def _sooner(found: TimeToQuality) -> str:
    if found.interval is None:
        there = sum(value is not None for value in found.candidate_s)
        return f"{found.target} was reached in {there} of {len(found.loss)} runs with the plan"
    text = units.ratio_interval(found.interval.ratio, found.interval.low, found.interval.high)
    value, _, bounds = text.partition(" ")
    if found.interval.low > 1:
        return f"{found.target} {value} sooner {bounds}"
    return f"{found.target} {'later' if found.interval.high < 1 else 'no sooner beyond doubt'}, {text}"


def proof_lines(proof: SeedProof) -> list[str]:
    """Verdict, speed, quality, metric; one short text each."""
    lines = [headline(proof)]
    if proof.time_to_quality is not None and proof.speedup is not None:
        lines.append(f"{proof.speedup_of}: {_faster(proof.speedup)}")
    steady = proof.steady
    if steady is not None:
        lines.append(f"steps alone {units.ratio_interval(steady.ratio, steady.low, steady.high)}")
    if proof.quality.seeds or proof.verdict != "refuted":
        lines.append(_quality(proof))
    if proof.metric is not None:
        lines.append(_metric(proof.metric, proof.quality.kind == "bits"))
    return lines


def _quality(proof: SeedProof) -> str:
    quality = proof.quality
    if quality.delta_frac is None or quality.kind != "non-inferior":
        told = quality.summary.rstrip(".")
        over = f" in {quality.seeds} seed{'' if quality.seeds == 1 else 's'}"
        return told + (over if quality.kind == "bits" and quality.verdict == "proved" else "")
    told = f"loss {units.signed_share(quality.delta_frac)}"
    told += _bounds(quality.upper_frac, quality.margin_frac)
    told += f" over {quality.seeds} seed{'' if quality.seeds == 1 else 's'} of {units.count(quality.steps)} steps"
    return f"quality {quality.verdict}: {told}" + (
        "" if quality.verdict == "proved" else f". {quality.summary.rstrip('.')}"
    )


def _bounds(upper: float | None, margin: float | None) -> str:
    most = f", at most {units.signed_share(upper)}" if upper is not None else ""
    return most + (f" (margin {units.share(margin)})" if margin is not None else "")


def _metric(metric: MetricQuality, equal_bits: bool) -> str:
    if metric.delta_frac is None:
        return f"metric {metric.verdict}: {metric.summary.rstrip('.')}"
    pairs = zip(metric.baseline, metric.candidate, strict=True)
    known = [(b, c) for b, c in pairs if b is not None and c is not None]
    base, cand = (sum(values) / len(known) for values in zip(*known, strict=True))
    told = f"{units.plain(base)} → {units.plain(cand)}"
    if equal_bits and metric.verdict != "refuted":
        return f"metric {told}"
    told += f", {units.signed_share(metric.delta_frac)} worse" if metric.delta_frac > 0 else ", no worse"
    return f"metric {metric.verdict}: {told}{_bounds(metric.upper_frac, metric.margin_frac)}"


def setup_line(proof: SeedProof) -> str:
    """How it was done."""
    n, asked = len(proof.seeds), proof.asked_seeds
    seeds = f"{n} of {asked} seeds" if n != asked else f"{n} seed{'' if n == 1 else 's'}"
    how = "both arms side by side" if all(r.side_by_side for r in proof.seeds) else "one arm after the other"
    stop, parts = proof.stop, []
    if stop.steps is not None:
        parts.append(f"{units.count(stop.steps)} steps")
    if stop.epochs is not None:
        parts.append(f"{units.count(stop.epochs)} epoch{'' if stop.epochs == 1 else 's'}")
    if stop.loss is not None:
        parts.append(f"until loss {units.plain(stop.loss)}")
    seconds = [] if proof.speedup_of == "whole run" else ["seconds after the first step"]
    return " · ".join([seeds, how, ", ".join(parts) or "whole runs", *seconds])


def seed_cells(proof: SeedProof, runs: SeedRuns) -> list[str]:
    """Seed, seconds of both arms (of stopped runs: after the first step), their ratio, steps, what became of the metric
    (or of the loss)."""
    one, other = runs.baseline, runs.candidate
    whole = proof.speedup_of == "whole run"
    before_s, after_s = runs.compared_s(whole)
    ratio = before_s / after_s if _comparable(runs) and after_s > 0 else None
    return [
        str(runs.seed),
        _seconds(one, whole, runs.usable),
        _seconds(other, whole, runs.usable),
        units.ratio(ratio),
        units.count(one.steps)
        if one.steps == other.steps
        else f"{units.count(one.steps)} / {units.count(other.steps)}",
        _ends(proof, runs),
    ]


def _comparable(runs: SeedRuns) -> bool:
    return runs.usable and "decided" not in (runs.baseline.reason, runs.candidate.reason)


def _seconds(run: ArmRun, whole: bool, usable: bool) -> str:
    if run.status == "failed" and not usable:
        return "failed"
    return units.seconds(run.run_s if whole else run.after_first_s)


def _ends(proof: SeedProof, runs: SeedRuns) -> str:
    if proof.metric is not None:
        return f"metric {units.plain(runs.baseline.metric)} → {units.plain(runs.candidate.metric)}"
    if proof.stop.loss is not None:
        return f"reached in {units.seconds(runs.baseline.reached_s)} → {units.seconds(runs.candidate.reached_s)}"
    if not runs.baseline.loss or not runs.candidate.loss:
        return "losses not seen"
    if proof.quality.kind == "bits" and runs.baseline.loss == runs.candidate.loss:
        return "equal bits"
    ends = [units.plain(run.loss[-1]) for run in (runs.baseline, runs.candidate)]
    return f"last loss {ends[0]} → {ends[1]}"


def seed_line(proof: SeedProof) -> str:
    """The last seed, as soon as it is known."""
    seed, one, other, ratio, steps, ends = seed_cells(proof, proof.seeds[-1])
    return f"  seed {seed}: {one} → {other}, {ratio} · {steps} steps · {ends}"
