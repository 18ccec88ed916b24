"""The stable schema of ``--json FILE``: ``hotlap.diagnose/1`` and ``hotlap.speedup/1`` (docs/reference/json.md)."""

from __future__ import annotations

import math
from typing import Any

from hotlap import __version__
from hotlap.records.codec import encode
from hotlap.records.findings import Finding, Where
from hotlap.records.trials import Interval, LeverResult
from hotlap.report.view import Report
from hotlap.report.words import verdict

__all__ = ["DIAGNOSE", "SPEEDUP", "finite_only", "to_json"]

DIAGNOSE = "hotlap.diagnose/1"
SPEEDUP = "hotlap.speedup/1"


def to_json(report: Report) -> dict[str, Any]:
    """Plain JSON values: every key always there, None where nothing was measured, numbers unrounded and finite."""
    out = _diagnosis(report)
    if report.is_speedup:
        out |= _speedup(report)
    cleaned: dict[str, Any] = finite_only(encode(out))
    return cleaned


def finite_only(value: Any) -> Any:
    """NaN and infinity are no JSON: a number that is none becomes None."""
    if isinstance(value, dict):
        return {key: finite_only(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [finite_only(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, str | bool | int | float) else str(value)


def _diagnosis(report: Report) -> dict[str, Any]:
    found = report.findings
    return {
        "schema": SPEEDUP if report.is_speedup else DIAGNOSE,
        "hotlap": __version__,
        "status": report.status,
        "command": report.command,
        "run": report.run_path or None,
        "wall_s": report.wall_s,
        "verdict": verdict(report),
        "script": found.script if found is not None else None,
        "machine": report.machine,
        "throughput": found.throughput if found is not None else None,
        "roof": found.roof if found is not None else None,
        "phases": found.phases if found is not None else {},
        "findings": [_finding(finding) for finding in found.findings] if found is not None else [],
        "drift": found.drift if found is not None else None,
        "notes": report.all_notes,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "cause": finding.cause,
        "share": finding.share,
        "seconds_per_step": finding.seconds_per_step,
        "confirmed": finding.confirmed,
        "where": [_where(where) for where in finding.where],
        "advice": finding.advice,
        "detail": finding.detail,
        "phase": finding.phase,
        "without": finding.without,
        "evidence": finding.evidence,
    }


def _where(where: Where) -> dict[str, Any]:
    return {
        "file": where.file,
        "line": where.line,
        "function": where.function,
        "text": where.text,
        "share": where.share,
    }


def _speedup(report: Report) -> dict[str, Any]:
    proof = report.proof
    quality = None
    if proof is not None:
        quality = encode(proof.quality)
        quality.pop("raw")  # loss curves stay in the run folder's proof.json
    return {
        "levers": [_lever(lever) for lever in report.levers],
        "refused": [{"id": lever, "reason": reason} for lever, reason in report.refused],
        "speedup": _interval(report.speedup),
        "claimed": proof.claimed if proof is not None else None,
        "samples_per_s": report.after,
        "roof_share": report.roof_share_after,
        "quality": quality,
        "plan": report.plan,
        "plan_path": report.plan_path,
    }


def _lever(lever: LeverResult) -> dict[str, Any]:
    return {
        "id": lever.id,
        "setting": lever.setting,
        "preserves": lever.preserves,
        "predicted": lever.predicted,
        "measured": _interval(lever.measured),
        "kept": lever.kept,
        "reason": lever.reason,
        "samples_per_s": lever.samples_per_s,
        "cumulative": lever.cumulative,
    }


def _interval(interval: Interval | None) -> dict[str, float] | None:
    if interval is None:
        return None
    return {"ratio": interval.ratio, "low": interval.low, "high": interval.high, "level": interval.level,
            "launches": interval.launches}  # fmt: skip
