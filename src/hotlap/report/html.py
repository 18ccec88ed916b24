"""One self-contained HTML file: opens offline, asks nobody for anything, escapes every word of the user's."""

from __future__ import annotations

from typing import Any

from hotlap import __version__
from hotlap.records.causes import CAUSES
from hotlap.records.findings import Finding
from hotlap.report import chart_ladder, chart_phases, chart_proof, keep, units, words
from hotlap.report.page import environment
from hotlap.report.view import Report

__all__ = ["render"]

MOST_STACKS = 8
MOST_PLACES = 6


def render(report: Report) -> str:
    """The whole page. Sections whose documents are missing are left out, and named at the top."""
    return (
        environment()
        .get_template("report.html")
        .render(
            report=report,
            version=__version__,
            units=units,
            words=words,
            hero=_hero(report),
            segments=chart_phases.segments(report.findings) if report.findings else [],
            over_time=chart_phases.over_time(report.findings) if report.findings else None,
            over_time_rows=chart_phases.over_time_rows(report.findings) if report.findings else ([], []),
            causes=[_cause(report, f) for f in report.findings.findings] if report.findings else [],
            rungs=chart_ladder.rungs(report) if report.levers else [],
            roof_at=chart_ladder.roof_position(report),
            proof=_proof(report),
            machine=_machine(report),
            setup=_setup(report),
            missing=words.missing(report),
            plan_text=report.plan_text or (keep.plan_yaml(report.plan) if report.plan and report.plan.moves else ""),
            keep=keep.keep_commands(report),
            notes=report.all_notes,
        )
    )


def _hero(report: Report) -> dict[str, Any]:
    """Headline numbers: what was, what is, how sure."""
    found, speedup = report.findings, report.speedup
    throughput = found.throughput if found is not None else None
    roof = found.roof if found is not None else None
    unit = "samples/s"
    before = throughput.samples_per_s if throughput is not None else None
    after, top = report.after, report.roof_samples_per_s
    if throughput is not None and before is None:
        unit, before = "steps/s", throughput.steps_per_s
        after = before * speedup.ratio if speedup is not None and report.kept else None
        top = 1 / roof.step_s if roof is not None and roof.step_s > 0 else None
    proof = report.proof
    after_share = report.roof_share_after if roof is not None and report.kept else None
    claimed = proof is not None and proof.claimed and speedup is not None
    return {
        "unit": unit,
        "before": units.per_s(before),
        "after": units.per_s(after) if report.kept else None,
        "after_is": "with the plan" if proof or report.seed_proof else "with what was kept, not proven",
        "roof": units.per_s(top) if roof is not None else None,
        "roof_how": roof.how if roof is not None else "",
        "share_before": units.share(roof.share) if roof is not None else None,
        "share_after": units.share(after_share) if after_share is not None else None,
        "bar_before": _percent(roof.share) if roof is not None else None,
        "bar_after": _percent(after_share) if after_share is not None else None,
        "level": units.share(speedup.level if speedup is not None else None),
        "claimed": claimed,
        "ratio": units.ratio_interval(speedup.ratio, speedup.low, speedup.high) if speedup else None,
        "quality": proof.quality.verdict if proof is not None and proof.quality.kind != "none" else None,
        "quality_css": proof.quality.verdict.replace(" ", "-") if proof is not None else "",
        "verdict": proof.quality.summary
        if claimed and proof is not None and not report.verdict
        else words.verdict(report),
    }


def _percent(value: float | None) -> float:
    """A share as a bar's width, kept within the bar."""
    return round(100 * min(1.0, max(0.0, value)), 2) if value is not None and value == value else 0.0


def _cause(report: Report, finding: Finding) -> dict[str, Any]:
    raw = finding.evidence.get("stacks")
    stacks = [s for s in raw if isinstance(s, dict)] if isinstance(raw, list) else []
    evidence = {k: v for k, v in finding.evidence.items() if k != "stacks" and not isinstance(v, list | dict)}
    healthy = finding.cause == "nothing-to-gain"
    return {
        "finding": finding,
        "healthy": healthy,
        "advice": report.brief(finding.advice),
        "detail": report.brief(finding.detail),
        "bar": _percent(finding.share),
        "share": units.share(finding.share),
        "cost": units.seconds(finding.seconds_per_step),
        "certainty": words.certainty(finding),
        "meaning": CAUSES.get(finding.cause, ""),
        "phase": words.phase_name(finding.phase) if finding.phase else "",
        "phase_css": chart_phases.colour(finding.phase) if finding.phase else "p-residual",
        "where": [
            {
                "place": report.brief(words.place(w)),
                "function": w.function,
                "text": w.text.strip(),
                "share": units.share(w.share) if w.share is not None else "",
            }
            for w in finding.where[:MOST_PLACES]
            if w.file
        ],
        "stacks": [
            {"share": units.share(s.get("share")), "frames": [report.brief(str(f)) for f in s.get("frames", [])]}
            for s in stacks[:MOST_STACKS]
        ],
        "evidence": [words.quantity(k, v) for k, v in evidence.items()],
    }


def _proof(report: Report) -> dict[str, Any] | None:
    proof = report.proof
    if proof is None:
        return None
    quality = proof.quality
    facts = [
        ("Launches of each arm", units.count(proof.speedup.launches) if proof.speedup is not None else None),
        ("Quality", quality.verdict if quality.kind != "none" else "nothing to prove"),
        (
            "Kind",
            {"bits": "losses equal bit for bit", "non-inferior": "non-inferior loss over paired seeds"}.get(
                quality.kind
            ),
        ),
        ("Loss difference", units.signed_share(quality.delta_frac) if quality.delta_frac is not None else None),
        ("Upper bound", units.signed_share(quality.upper_frac) if quality.upper_frac is not None else None),
        ("Margin", units.share(quality.margin_frac) if quality.margin_frac is not None else None),
        ("Seeds", units.count(quality.seeds) if quality.seeds else None),
        ("Steps compared", units.count(quality.steps) if quality.steps else None),
        (
            "Losses differ from step",
            units.count(quality.first_difference) if quality.first_difference is not None else None,
        ),
        (
            "Same loss reached",
            f"in 1/{units.factor(quality.time_to_loss)} of the time" if quality.time_to_loss else None,
        ),
    ]
    return {
        "lines": words.proof_lines(report),
        "facts": [(k, v) for k, v in facts if v],
        "notes": proof.notes,
        "interval": chart_proof.interval(proof.speedup),
        "windows": chart_proof.windows(report.trials),
        "losses": chart_proof.losses(quality),
        "loss_rows": chart_proof.loss_rows(quality),
    }


def _machine(report: Report) -> list[tuple[str, str]]:
    machine = report.machine
    if machine is None:
        return []
    rows = [("System", machine.system), ("CPU", machine.cpu), ("Cores usable", units.count(machine.cores))]
    rows += [("Accelerator", f"{a.name}, {units.bytes_(a.memory_bytes)}") for a in machine.accelerators]
    rows += [
        (
            "Memory",
            f"{units.bytes_(machine.memory_bytes)} ({units.bytes_(machine.memory_available_bytes)} free at the start)",
        ),
        ("Number types", ", ".join(machine.cpu_flags) or units.NONE),
        ("Python, torch", f"{machine.python}, {machine.torch or 'no torch'}"),
        ("Compiler", machine.compiler or "none found"),
        ("Sandbox", machine.sandbox),
    ]
    return [(name, value) for name, value in rows if value]


def _setup(report: Report) -> list[tuple[str, str]]:
    found = report.findings
    if found is None:
        return []
    script, throughput = found.script, found.throughput
    rows = [
        ("Script", script.name),
        ("Command", keep.command_text(report.command)),
        ("Framework, device", f"{script.framework}, {script.device}"),
        ("Step", f"{units.seconds(throughput.step_s)} ({units.seconds(throughput.steady_s)} without periodic work)"),
        ("Batch", units.count(throughput.batch)),
        (
            "Steps seen",
            f"{units.count(throughput.steps_seen)}, of which {units.count(throughput.warmup_steps)} warm-up",
        ),
    ]
    if script.model.get("class"):
        parameters = script.model.get("parameters")
        known = f", {units.count(parameters)} parameters" if isinstance(parameters, int) else ""
        rows.append(("Model", f"{script.model['class']}{known}"))
    if script.loader is not None:
        loader = script.loader
        rows.append(("Loader", f"{loader.dataset}, batch {loader.batch_size}, {loader.num_workers} workers"))
    if report.run_path:
        rows.append(("Run folder", report.run_path))
    if report.wall_s is not None:
        rows.append(("Hotlap took", units.seconds(report.wall_s)))
    return [(name, value) for name, value in rows if value]
