"""Facts about the compute: denormal numbers, networks that are not trained. Real scripts, through to the finding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from hotlap.diagnose.diagnose import diagnose
from hotlap.probe.denormals import share_of_denormals
from hotlap.probe.inputs import paddings
from hotlap.records.findings import Finding
from hotlap.records.timeline import Timeline
from hotlap.testing.timelines import cpu_machine
from hotlap.trial.collect import annotate

pytestmark = pytest.mark.flaky(reruns=2)
# Shares of the time of a real training: on a shared machine one of three runs may tell.

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


def test_denormal_inputs_in_a_real_training(watched: Any) -> None:
    given = SMALL.format(value=0.01).replace("x, y = torch.randn(64, 256)", "x, y = torch.full((64, 256), 1e-40)")
    timeline, _ = watched(given)
    assert "inputs" in causes(timeline)["denormals"].detail
    assert {r.value["denormal_frac"] for r in timeline.setting if r.name == "inputs"} == {1.0}


def test_small_numbers_are_no_denormals(watched: Any) -> None:
    timeline, _ = watched(SMALL.format(value=1e-4))
    assert "denormals" not in causes(timeline)
    assert not [row for row in timeline.setting if row.name == "denormals"]


LOW = """
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 2))
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.randn(64, 256), torch.randint(0, 2, (64,))
    region = torch.autocast("cpu", dtype=torch.float16, enabled={enabled})
    for step in range(30):
        with region:
            loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad(); loss.backward(); opt.step()
"""


def test_autocast_to_a_type_without_units(watched: Any) -> None:
    timeline, _ = watched(LOW.format(enabled=True))
    finding = causes(timeline)["emulated-dtype"]
    assert finding.evidence["dtype"] == "fp16" and line(finding) == "with region:"


def test_autocast_that_is_off(watched: Any) -> None:
    timeline, _ = watched(LOW.format(enabled=False))
    assert "emulated-dtype" not in causes(timeline)


DISTILL = """
    class Student(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))
            wide = [nn.Linear(64, {width}), *[nn.Linear({width}, {width}) for _ in range(5)]]
            self.teacher = nn.Sequential(*wide, nn.Linear({width}, 8)).eval()
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
    frozen = "self.teacher.requires_grad_(False)"
    timeline, _ = watched(DISTILL.format(freeze=frozen, detach="", width=1024))
    finding = causes(timeline)["frozen-subnetwork"]
    assert line(finding) == "wanted = self.teacher(x)"
    assert finding.evidence["network"] == "Sequential" and finding.evidence["frozen"]
    assert "bf16" in finding.advice and "no_grad" not in finding.advice
    assert 0 < finding.evidence["network_s"] < finding.evidence["network_s"] / finding.share
    assert finding.evidence["network_s"] > 0.001, "enough arithmetic for a type to matter"
    assert {row.value["modules"] for row in timeline.setting if row.name == "frozen"} == {8}


def test_a_teacher_that_records_a_graph_is_told_so(watched: Any) -> None:
    timeline, _ = watched(DISTILL.format(freeze="", detach=".detach()", width=64))
    finding = causes(timeline)["frozen-subnetwork"]
    assert "no_grad" in finding.advice and finding.evidence["frozen"] is False


def test_a_loop_without_a_teacher_has_none(watched: Any) -> None:
    timeline, _ = watched("""
    model = net()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(30):
        opt.zero_grad(); model(torch.randn(8, 4)).square().mean().backward(); opt.step()
    """)
    assert not [row for row in timeline.setting if row.name == "frozen"]


def test_attention_has_its_line(watched: Any) -> None:
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
    x = torch.randn(4, 256, 32)
    for step in range(200):
        opt.zero_grad(); model(x).square().mean().backward(); opt.step()
    """)
    assert line(causes(timeline)["attention-by-hand"]) == "attn = scores.softmax(-1)"


def test_a_growing_tensor_has_its_line(watched: Any) -> None:
    timeline, _ = watched("""
    model = nn.Linear(32, 32)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    x, seen = torch.randn(4, 256, 32), torch.zeros(0, 256, 32)
    for step in range(150):
        opt.zero_grad(); out = model(x); out.square().mean().backward(); opt.step()
        seen = torch.cat([seen, out.detach()])
    """)
    finding = causes(timeline)["repeated-cat"]
    assert line(finding) == "seen = torch.cat([seen, out.detach()])"
    assert finding.phase == "residual"


def test_padding_is_counted(watched: Any) -> None:
    timeline, _ = watched("""
    model = nn.Sequential(nn.Embedding(50, 16), nn.Flatten(), nn.Linear(16 * 64, 2))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    lossf = nn.CrossEntropyLoss()
    x = torch.randint(1, 50, (16, 64))
    x[:, 16:] = 0
    for step in range(40):
        opt.zero_grad(); lossf(model(x), torch.zeros(16).long()).backward(); opt.step()
    """)
    (found,) = {s.value["padding_frac"] for s in timeline.setting if s.name == "inputs"}
    assert found == 0.75
    assert {s.value["shapes"] for s in timeline.setting if s.name == "inputs"} == {1}
    assert "padding" in causes(timeline)


@pytest.mark.parametrize(
    "call",
    [
        "model(ids=x)",
        "model({'ids': x})",
        "model(mask, attention_mask=x)",
        "model([{'ids': full, 'attention_mask': x}, {'ids': full, 'attention_mask': full}])",
    ],
)
def test_padding_is_counted_however_the_batch_is_given(watched: Any, call: str) -> None:
    timeline, _ = watched(f"""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(50, 4)
        def forward(self, batch=None, ids=None, attention_mask=None):
            return self.table(torch.arange(8)).mean()
    model = Net()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randint(1, 50, (16, 64))
    full = x.clone()
    x[:, 16:] = 0
    mask = torch.randn(16, 64)
    for step in range(40):
        opt.zero_grad(); {call}.backward(); opt.step()
    """)
    (found,) = {s.value["padding_frac"] for s in timeline.setting if s.name == "inputs"}
    assert found == 0.75


def padding_frac(tensor: torch.Tensor) -> float | None:
    found = paddings(torch, tensor)
    return None if found is None else found[0]


def test_padding_that_all_samples_have_in_common() -> None:
    tokens = torch.randint(1, 50, (4, 20))
    tokens[:, 12:], tokens[:2, 6:] = 0, 0
    assert paddings(torch, tokens) == pytest.approx((1.0 - (6 + 6 + 12 + 12) / 80, 0.4))
    images = torch.zeros(2, 3, 8, 8)
    images[0, :, :4, :6], images[1, :, :6, :4] = 1.0, 1.0
    assert paddings(torch, images) == pytest.approx((1.0 - 24 / 64, 1.0 - 36 / 64))


def test_padding_of_tokens_is_what_most_samples_end_with() -> None:
    tokens = torch.randint(0, 50, (4, 20))
    tokens[:3, 5:] = 50256
    tokens[:, 4] = 7
    assert padding_frac(tokens) == pytest.approx(1.0 - (3 * 5 / 20 + 1.0) / 4)


def test_padding_of_images_and_of_nothing() -> None:
    images = torch.zeros(2, 3, 8, 8)
    images[0, :, :4, :4] = 1.0
    images[1] = 1.0
    assert padding_frac(images) == 1.0 - (0.25 + 1.0) / 2
    assert padding_frac(torch.ones(4, 9)) == 0.0
    assert padding_frac(torch.zeros(4, 9)) is None and padding_frac(torch.ones(4)) is None
    digits = torch.zeros(4, 1, 28, 28)
    digits[..., 4:24, 6:20] = 1.0
    assert padding_frac(digits) == 0.0 == padding_frac(digits[:, 0]), "in the middle of its frame"
    words = torch.zeros(4, 1000)
    words[:, :600:40] = 1.0
    assert padding_frac(words) == 0.0, "a bag of words ends where its last word stands"


def test_padding_of_sequences_whatever_stands_first() -> None:
    waves = torch.randn(3, 1, 100)
    waves[:2, :, 40:] = 0
    assert padding_frac(waves) == pytest.approx(0.4)
    mels = torch.randn(3, 20, 50)
    mels[:, :, 25:] = 0
    assert padding_frac(mels) == pytest.approx(0.5) == padding_frac(mels.mT.contiguous())
    tall = torch.ones(3, 40, 30)
    tall[:, :, 20:] = 0
    assert padding_frac(tall) == 0.0, "features that end in zeros, of a longer sequence"
    letters = torch.nn.functional.one_hot(torch.randint(0, 4, (3, 30)) * 5, 40).float()
    assert padding_frac(letters) == 0.0, "a class that no sample has is no padding"


def test_activations_computed_twice(watched: Any) -> None:
    timeline, _ = watched("""
    from torch.utils.checkpoint import checkpoint
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(*[nn.Linear(128, 128) for _ in range(6)])
        def forward(self, x):
            return self.layers(x).tanh()
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.block = Block()
        def forward(self, x):
            return checkpoint(self.block, x, use_reentrant=False)
    model = Model()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(512, 128)
    for step in range(400):
        opt.zero_grad(); model(x).square().mean().backward(); opt.step()
    """)
    finding = causes(timeline)["activation-checkpointing"]
    assert line(finding) == "return checkpoint(self.block, x, use_reentrant=False)"
    assert 0.1 < finding.share < 0.6


def test_recompilation_names_the_guard(watched: Any) -> None:
    timeline, _ = watched("""
    model = net()
    def run(x, n):
        return model(x) * n
    fast = torch.compile(run, backend="eager", dynamic=False)
    torch._dynamo.config.recompile_limit = 100
    opt = torch.optim.SGD(model.parameters(), lr=0.0)
    for step in range(40):
        opt.zero_grad(); fast(torch.randn(8, 4), step + 1).square().mean().backward(); opt.step()
    """)
    finding = causes(timeline)["recompilation"]
    assert finding.where[0].function == "run" and finding.evidence["reason"].startswith("n == ")
    assert finding.evidence["recompiles"] >= 10


def test_gradients_zeroed_in_place_are_seen(watched: Any) -> None:
    timeline, _ = watched("""
    model = net()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(30):
        opt.zero_grad(set_to_none=False); model(torch.randn(8, 4)).square().mean().backward(); opt.step()
    """)
    assert [s.value["gradients_kept"] for s in timeline.setting if s.name == "backends"] == [None, True]


def test_gradients_that_are_let_go(watched: Any) -> None:
    timeline, _ = watched("""
    model = net()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(30):
        opt.zero_grad()
        for _ in range(3):
            model(torch.randn(8, 4)).square().mean().backward()
        opt.step()
    """)
    assert [s.value["gradients_kept"] for s in timeline.setting if s.name == "backends"] == [None, False]
