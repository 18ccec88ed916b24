"""The page of a proof over seeds: one self-contained HTML file, like the report of a lap."""

from __future__ import annotations

from typing import Any

from hotlap import __version__
from hotlap.records.proof import Quality
from hotlap.records.seed_proof import SeedProof
from hotlap.records.trials import Trial
from hotlap.report import chart_proof, keep, seed_words, units, words
from hotlap.report.page import environment
from hotlap.report.view import Report

__all__ = ["render"]


def render(report: Report) -> str:
    """The whole page of ``report.seed_proof``; without one it says how far the run got."""
    proof = report.seed_proof
    return (
        environment()
        .get_template("seeds.html")
        .render(
            report=report,
            proof=proof,
            version=__version__,
            units=units,
            words=words,
            lines=seed_words.proof_lines(proof) if proof is not None else [],
            setup=seed_words.setup_line(proof) if proof is not None else "",
            rows=[seed_words.seed_cells(proof, runs) for runs in proof.seeds] if proof is not None else [],
            interval=chart_proof.interval(_shown(proof)) if proof is not None else None,
            windows=chart_proof.windows([_trial(proof)]) if proof is not None else None,
            losses=chart_proof.losses(_curves(proof)) if proof is not None else None,
            loss_rows=chart_proof.loss_rows(_curves(proof)) if proof is not None else [],
            setup_facts=_facts(report, proof) if proof is not None else [],
            plan_text=keep.plan_yaml(proof.plan) if proof is not None else "",
        )
    )


def _shown(proof: SeedProof) -> Any:
    sooner = proof.time_to_quality
    return proof.speedup if sooner is None else sooner.interval


def _trial(proof: SeedProof) -> Trial:
    """All turns as one trial, for the chart of windows."""
    windows = [w for runs in proof.seeds for w in runs.windows]
    return Trial("proof", {}, "measured", windows=windows)


def _curves(proof: SeedProof) -> Quality:
    """The quality with the curves of all seeds in it, for the chart of losses."""
    raw = {
        "baseline": [list(runs.baseline.loss) for runs in proof.seeds],
        "candidate": [list(runs.candidate.loss) for runs in proof.seeds],
    }
    return Quality(proof.quality.verdict, proof.quality.kind, proof.quality.summary, raw=raw)


def _facts(report: Report, proof: SeedProof) -> list[tuple[str, str]]:
    quality, metric = proof.quality, proof.metric
    command = "by {seed} in the command" if proof.seeded_by == "command" else "by Hotlap, added to those that it sets"
    rows = [
        ("Command", keep.command_text(proof.command)),
        ("Seeds", command),
        ("Plan preserves", words.PRESERVES_WORDS[proof.preserves]),
        ("Quality", quality.verdict if quality.kind != "none" else None),
        ("Loss difference", units.signed_share(quality.delta_frac) if quality.delta_frac is not None else None),
        ("Upper bound", units.signed_share(quality.upper_frac) if quality.upper_frac is not None else None),
        ("Margin", units.share(quality.margin_frac) if quality.margin_frac is not None else None),
        ("Steps compared", units.count(quality.steps) if quality.steps else None),
        (
            "Metric",
            f"{metric.pattern} ({'lower' if metric.lower_is_better else 'higher'} is better)" if metric else None,
        ),
        ("System", proof.machine.system),
        ("CPU", f"{proof.machine.cpu}, {units.count(proof.machine.cores)} cores"),
        *(("Accelerator", a.name) for a in proof.machine.accelerators),
        ("Python, torch", f"{proof.machine.python}, {proof.machine.torch or 'no torch'}"),
        ("Made", proof.created),
        ("Run folder", report.run_path),
    ]
    return [(name, value) for name, value in rows if value]
