"""A plan's moves as source edits, at the places that the run's findings name."""

from __future__ import annotations

from hotlap.lever.registry import lever
from hotlap.records.edits import Edit
from hotlap.records.findings import Findings
from hotlap.records.plan import Move

__all__ = ["edits_of"]


def edits_of(move: Move, findings: Findings) -> list[tuple[Edit, str]]:
    """(edit, what its line was when the run saw it). One piece of advice where no finding tells where to edit."""
    found = lever(move.lever)
    finding = found.evidence(findings)
    if finding is None or not finding.where:
        why = f"The run has no finding that says where {move.lever} belongs; `hotlap levers {move.lever}` describes it."
        told = [Edit("advice", findings.script.name, 0, advice=why)]
        told += [Edit("advice", findings.script.name, 0, advice=f"Start the script with {name}={value}.")
                 for name, value in found.environment(move.setting).items()]  # fmt: skip
        return [(edit, "") for edit in told]
    texts = {(where.file, where.line): where.text for where in finding.where}
    return [(edit, texts.get((edit.file, edit.line), "")) for edit in found.edits(finding, move.setting)]
