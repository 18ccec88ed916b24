"""Keeping a plan: the commands to type, and the plan as YAML."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from hotlap.records.plan import Plan
from hotlap.records.run_folder import ROOT
from hotlap.report.view import Report

__all__ = ["command_text", "keep_commands", "plan_yaml", "run_command"]


def command_text(command: list[str]) -> str:
    """The command as one could type it."""
    return shlex.join(command)


def run_command(plan_path: str, command: list[str]) -> str:
    """What runs a script with the plan."""
    return f"hotlap run --plan {shlex.quote(plan_path)} -- {command_text(command)}".rstrip()


def keep_commands(report: Report) -> list[str]:
    """What to type to keep the plan; empty without a plan of at least one move."""
    if report.plan is None or not report.plan.moves or not report.plan_path:
        return []
    path = shlex.quote(report.plan_path)
    attach = f"import hotlap; hotlap.attach({json.dumps(report.plan_path, ensure_ascii=False)})"
    return [run_command(report.plan_path, report.command), f"hotlap patch {path}{_runs(report.run_path)}", attach]


def _runs(run_path: str) -> str:
    """The option that leads a patch to the run, whose findings say where to edit; none where runs are kept anyway."""
    root = Path(run_path).parent
    return "" if not run_path or root in (Path(ROOT), Path.cwd() / ROOT) else f" --runs {shlex.quote(str(root))}"


def plan_yaml(plan: Plan) -> str:
    """The plan as YAML (scalars in JSON notation, which is YAML)."""
    out = [f"schema: {plan.schema}"]
    for key in ("script", "machine", "torch", "created", "speedup", "low", "high"):
        value = getattr(plan, key)
        if value not in ("", None):
            out.append(f"{key}: {json.dumps(value, ensure_ascii=False)}")
    out.append("moves:" if plan.moves else "moves: []")
    for move in plan.moves:
        out.append(f"  - lever: {move.lever}")
        out.append(f"    setting: {json.dumps(move.setting, ensure_ascii=False, default=str)}")
        out.append(f"    preserves: {move.preserves}")
        for key in ("gain", "low", "high"):
            if getattr(move, key) is not None:
                out.append(f"    {key}: {json.dumps(getattr(move, key))}")
    return "\n".join(out) + "\n"
