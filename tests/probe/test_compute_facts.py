"""Facts about the compute: denormal numbers, networks that are not trained. Real scripts, through to the finding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from hotlap.diagnose.diagnose import diagnose
from hotlap.probe.denormals import share_of_denormals
from hotlap.records.findings import Finding
from hotlap.records.timeline import Timeline
from hotlap.testing.timelines import cpu_machine
from hotlap.trial.collect import annotate

BF16 = cpu_machine(flags=("avx2", "avx512_bf16"))


def causes(timeline: Timeline) -> dict[str, Finding]:
    found = diagnose(annotate(timeline), BF16, "script.py").findings
    return {finding.cause: finding for finding in found}


def line(finding: Finding) -> str:
    text = Path(finding.where[0].file).read_text().splitlines()[finding.where[0].line - 1]
    assert text.strip() == finding.where[0].text
    return finding.where[0].text


def test_bits_tell_denormals() -> None:
    values = torch.ones(1000)
    assert share_of_denormals(torch, [values]) == 0.0
    values[:] = 1e-40
    assert share_of_denormals(torch, [values, torch.zeros(1000)]) == 0.5
    assert share_of_denormals(torch, [torch.full((3,), -1e-40), None]) == 1.0
    assert share_of_denormals(torch, [values.double(), values[::2], values.to_sparse()]) is None


SMALL = """
    model = nn.Sequential(nn.Linear(256, 256, bias=False), nn.Linear(256, 2))
    with torch.no_grad():
        model[0].weight.fill_({value})
    opt = torch.optim.SGD(model.parameters(), lr=0.0)
    x, y = torch.randn(64, 256), torch.randint(0, 2, (64,))
    for step in range(30):
        opt.zero_grad(); nn.functional.cross_entropy(model(x), y).backward(); opt.step()
"""


def test_denormals_in_a_real_training(watched: Any) -> None:
    timeline, _ = watched(SMALL.format(value=1e-40))
    finding = causes(timeline)["denormals"]
    assert finding.evidence["weights_frac"] > 0.3 and finding.share > 0.2


def test_small_numbers_are_no_denormals(watched: Any) -> None:
    timeline, _ = watched(SMALL.format(value=1e-4))
    assert "denormals" not in causes(timeline)
    assert not [row for row in timeline.setting if row.name == "denormals"]


DISTILL = """
    class Student(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))
            self.teacher = nn.Sequential(*[nn.Linear(64, 64) for _ in range(6)], nn.Linear(64, 8)).eval()
            {freeze}
        def forward(self, x):
            wanted = self.teacher(x){detach}
            return nn.functional.mse_loss(self.net(x), wanted)
    model = Student()
    opt = torch.optim.SGD(model.net.parameters(), lr=0.1)
    x = torch.randn(256, 64)
    for step in range(30):
        opt.zero_grad(); model(x).backward(); opt.step()
    import sys
    hooks = sys.modules["torch.nn.modules.module"]
    assert not hooks._global_forward_hooks and not hooks._global_forward_pre_hooks
"""


def test_a_teacher_in_full_precision_has_its_line(watched: Any) -> None:
    timeline, _ = watched(DISTILL.format(freeze="self.teacher.requires_grad_(False)", detach=""))
    finding = causes(timeline)["frozen-subnetwork"]
    assert line(finding) == "wanted = self.teacher(x)"
    assert finding.evidence["network"] == "Sequential" and finding.evidence["frozen"]
    assert "bf16" in finding.advice and "no_grad" not in finding.advice
    assert 0 < finding.evidence["network_s"] < finding.evidence["network_s"] / finding.share


def test_a_teacher_that_records_a_graph_is_told_so(watched: Any) -> None:
    timeline, _ = watched(DISTILL.format(freeze="", detach=".detach()"))
    finding = causes(timeline)["frozen-subnetwork"]
    assert "no_grad" in finding.advice and finding.evidence["frozen"] is False


def test_a_loop_without_a_teacher_has_none(watched: Any) -> None:
    timeline, _ = watched("""
    model = net()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(30):
        opt.zero_grad(); nn.functional.cross_entropy(model(torch.randn(8, 4)), torch.zeros(8).long()).backward(); opt.step()
    """)
    assert not [row for row in timeline.setting if row.name == "frozen"]


def test_attention_and_a_growing_tensor_have_their_lines(watched: Any) -> None:
    timeline, _ = watched("""
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(32, 96)
        def forward(self, x):
            q, k, v = self.qkv(x).chunk(3, -1)
            scores = q @ k.transpose(-2, -1)
            attn = scores.softmax(-1)
            return attn @ v
    model = Attention()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    x, seen = torch.randn(4, 256, 32), torch.zeros(0, 256, 32)
    for step in range(150):
        opt.zero_grad(); out = model(x); out.square().mean().backward(); opt.step()
        seen = torch.cat([seen, out.detach()])
    """)
    found = causes(timeline)
    assert line(found["attention-by-hand"]) == "attn = scores.softmax(-1)"
    assert line(found["repeated-cat"]) == "seen = torch.cat([seen, out.detach()])"
    assert found["repeated-cat"].phase == "residual"
