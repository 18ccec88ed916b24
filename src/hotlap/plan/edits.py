"""A plan's moves as source edits, at the places that the run's findings name."""

from __future__ import annotations

from dataclasses import replace

from hotlap.lever.registry import lever
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.plan import KNOB, Move

__all__ = ["edits_of"]

_OF_THE_LOADER = ("DataLoader", "loop")
_OF_THE_MODEL = ("forwards", "model")
"""The model that is trained, and all its calls. ``forward`` is the one call on the finding's own line: a teacher's."""


def edits_of(move: Move, findings: Findings) -> list[tuple[Edit, str]]:
    """(edit, what its line was when the run saw it). One piece of advice where no finding tells where to edit."""
    if move.is_knob:
        why = f"{move.lever.removeprefix(KNOB)} is a setting of the script's own: give it the value {move.setting}."
        return [(Edit("advice", findings.script.name, 0, advice=why), "")]
    found = lever(move.lever)
    finding = found.evidence(findings) or found.evidence(replace(findings, findings=findings.laid_bare))
    if finding is None or not finding.where:
        why = f"The run has no finding that says where {move.lever} belongs; `hotlap levers {move.lever}` describes it."
        told = [Edit("advice", findings.script.name, 0, advice=why)]
        told += [Edit("advice", findings.script.name, 0, advice=f"Start the script with {name}={value}.")
                 for name, value in found.environment(move.setting).items()]  # fmt: skip
        return [(edit, "") for edit in told]
    return [_placed(edit, finding, findings) for edit in found.edits(finding, move.setting)]


def _placed(edit: Edit, finding: Finding, findings: Findings) -> tuple[Edit, str]:
    """The edit where its target stands. A lever's finding may be elsewhere: workers treat decoding, too."""
    own = (place for place in finding.where if (place.file, place.line) == (edit.file, edit.line))
    where, script = next(own, finding.where[0]), findings.script
    if edit.kind == "wrap_dataset" and script.loader is not None:
        edit = replace(edit, keywords={"num_workers": script.loader.num_workers})
    if edit.target in _OF_THE_LOADER and script.loader is not None and script.loader.where is not None:
        where = script.loader.where
    elif edit.target.partition(":")[0] in _OF_THE_MODEL:
        where = script.forward or where
        if where.function == "forward":  # of a part of the model: which name the whole has is not known
            return replace(edit, file="", line=0), ""
    return replace(edit, file=where.file, line=where.line), where.text
