"""A kept run's documents, read back into a report."""

from __future__ import annotations

from hotlap.records.check import Check
from hotlap.records.errors import RecordError
from hotlap.records.findings import Findings
from hotlap.records.guard import GuardRecord
from hotlap.records.machine import Machine
from hotlap.records.plan import Plan
from hotlap.records.proof import Proof
from hotlap.records.run import RunRecord
from hotlap.records.run_folder import RunFolder
from hotlap.records.seed_proof import SeedProof
from hotlap.records.trials import LeverResult, Trial
from hotlap.report.guard_words import alarm_note, summary
from hotlap.report.view import Report

__all__ = ["CHECK", "JUDGED", "SEEDS", "load_report"]

CHECK = "check"
"""Kind of the runs that compared two revisions."""
SEEDS = "prove"
"""Kind of the runs whose proof is one over seeds."""
JUDGED = (SEEDS, CHECK)
"""Kinds of runs that are comparisons themselves: there is nothing to set beside others."""


def load_report(folder: RunFolder) -> Report:
    """The report of a run, as far as the run got. Raises RecordError for a document that is not what it should be."""
    run = folder.read("run.json", RunRecord)
    if run is None:
        raise RecordError(f"{folder.path} has no run.json.", "Is it a run's folder?")
    levers = folder.read("levers.json", list[LeverResult]) or []
    trials = [t for p in sorted(folder.path.glob("trials/*.json")) if (t := folder.read(f"trials/{p.name}", Trial))]
    guarded = folder.read("guard.json", GuardRecord)
    plan_file = folder.path / "plan.yaml"
    seeds = run.kind == SEEDS
    return Report(
        machine=folder.read("machine.json", Machine),
        findings=folder.read("findings.json", Findings),
        levers=levers,
        proof=None if seeds else folder.read("proof.json", Proof),
        plan=folder.read("plan.json", Plan),
        plan_path=run.plan_path,
        command=run.command,
        run_path=str(folder.path),
        wall_s=run.wall_s,
        verdict=summary(guarded) if guarded is not None else "",
        notes=[*run.notes, *([*map(alarm_note, guarded.alarms), *guarded.notes] if guarded is not None else [])],
        refused=[(pair[0], pair[1]) for pair in run.refused if len(pair) == 2],
        status=run.status,
        kind=run.kind,
        trials=trials,
        plan_text=plan_file.read_text(encoding="utf-8") if plan_file.is_file() else "",
        check=folder.read("check.json", Check) if run.kind == CHECK else None,
        seed_proof=folder.read("proof.json", SeedProof) if seeds else None,
    )
