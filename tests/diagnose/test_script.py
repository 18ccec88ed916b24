"""What a script set up, read off its timeline."""

from __future__ import annotations

from diagnose_scripts import healthy, judge

LOOP = ("train.py", 57, "main", "loss = criterion(model(x), y)")
INSIDE = ("model.py", 30, "forward", "features = self.backbone(x)")


def test_the_line_that_calls_the_model() -> None:
    seen = healthy().stack("forward", 50, LOOP, INSIDE).stack("backward", 50, ("train.py", 58, "main", "x.backward()"))
    where = judge(seen).script.forward
    assert where is not None and (where.file, where.line, where.text) == LOOP[:2] + LOOP[3:]
    assert judge(healthy()).script.forward is None, "no stacks were sampled"
