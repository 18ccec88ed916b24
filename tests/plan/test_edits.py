"""A move's edits stand at the line that they are about."""

from __future__ import annotations

import dataclasses

from hotlap.plan.edits import edits_of
from hotlap.records.findings import Findings, Where
from hotlap.records.plan import Move
from hotlap.testing.lever_kit import findings_of

MODEL = Where("train.py", 57, "main", "loss = criterion(model(x), y)")
TEACHER = Where("train.py", 30, "forward", "features = self.backbone(x)")
LOOP = Where("train.py", 40, "forward", "for t in range(n): h = self.cell(x[t], h)")


def found(forward: Where | None = MODEL, **places: Where) -> Findings:
    """Findings by cause (with ``_`` for ``-``), each at its place. ``forward``: the line that calls the model."""
    findings = findings_of(*(cause.replace("_", "-") for cause in places))
    at = [dataclasses.replace(f, where=[w]) for f, w in zip(findings.findings, places.values(), strict=True)]
    return dataclasses.replace(findings, findings=at, script=dataclasses.replace(findings.script, forward=forward))


def lines(lever: str, setting: dict[str, object], findings: Findings) -> set[int]:
    return {edit.line for edit, _ in edits_of(Move(lever, setting, "maths"), findings)}


def test_a_network_that_is_not_trained_is_edited_where_it_is_called() -> None:
    findings = found(frozen_subnetwork=TEACHER, precision=MODEL, memory_format=MODEL)
    assert lines("teacher-inference", {"dtype": "bf16", "channels_last": True}, findings) == {30}
    assert lines("autocast", {"dtype": "bf16"}, findings) == {57}


def test_a_knob_is_set_by_hand() -> None:
    ((edit, text),) = edits_of(Move("knob:batch", 32, "goal"), findings_of("decode"))  # type: ignore[arg-type]
    assert edit.kind == "advice" and text == "" and "batch is a setting of the script's own" in edit.advice
    assert "32" in edit.advice


def test_a_model_of_torchs_own_class_is_advice() -> None:
    findings = found(python_loop=LOOP)
    findings = dataclasses.replace(
        findings, script=dataclasses.replace(findings.script, model={"class_of_torch": True})
    )
    ((edit, _),) = edits_of(Move("compile-model", {}, "maths"), findings)
    assert edit.kind == "advice" and "nn.Sequential" in edit.advice


def test_a_model_is_compiled_where_the_training_calls_it() -> None:
    assert lines("compile-model", {}, found(python_loop=LOOP)) == {57}
    assert lines("compile-model", {}, found(forward=None, precision=MODEL)) == {57}
    assert lines("compile-model", {}, found(forward=None, python_loop=LOOP)) == {0}, "self.cell is not the model"


def test_what_showed_once_others_were_away_has_its_line_too() -> None:
    first, later = found(padding=LOOP), found(optimizer_loop=Where("train.py", 70, "main", "optimizer.step()"))
    assert lines("optimizer-fused", {"impl": "fused"}, first) == {0}
    first = dataclasses.replace(first, laid_bare=later.findings)
    assert 70 in lines("optimizer-fused", {"impl": "fused"}, first)


def test_each_of_several_places_has_its_own_edit() -> None:
    at = [Where("gan.py", 132, "<module>", "G = Adam(g)"), Where("gan.py", 133, "<module>", "D = Adam(d)")]
    findings = found(optimizer_loop=MODEL)
    findings = dataclasses.replace(findings, findings=[dataclasses.replace(findings.findings[0], where=at)])
    edits = edits_of(Move("optimizer-fused", {"impl": "fused"}, "maths"), findings)
    assert [(edit.line, text) for edit, text in edits] == [(132, "G = Adam(g)"), (133, "D = Adam(d)")]
