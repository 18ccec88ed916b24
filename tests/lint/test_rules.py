"""Each rule once loud and once silent."""

from __future__ import annotations

import textwrap

import pytest

from hotlap.lint.lint import all_rules, lint_text
from hotlap.records.causes import CAUSES

HEAD = """\
import gc
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler
from torchvision import datasets
device = torch.device("cuda")
"""

LOOP = """\
def main(model, optimizer, data):
    loader = DataLoader(data, 8, num_workers=2, pin_memory=True, persistent_workers=True)
    total, losses = 0.0, []
    for epoch in range(9):
        for step, (x, y) in enumerate(loader):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x.to(device)), y.to(device))
            loss.backward()
            optimizer.step()
            {}
"""


def causes(source: str) -> list[str]:
    return [p.cause for p in lint_text("s.py", HEAD + textwrap.dedent(source))]


def in_loop(line: str) -> list[str]:
    return causes(LOOP.format(line))


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("total += loss.item()", "sync"),
        ("acc = (model(x).argmax(1) == y).sum(); print(f'{loss}')", "sync"),
        ("losses.append(loss.detach().cpu())", "sync"),
        ("total += loss", "memory-leak"),
        ("torch.cuda.empty_cache()", "empty-cache"),
        ("gc.collect()", "gc-collect"),
        ("torch.save(model.state_dict(), 'x.pt')", "checkpoint-blocking"),
        ("optimizer.zero_grad(set_to_none=False)", "zero-grad"),
    ],
)
def test_each_step(line: str, cause: str) -> None:
    assert in_loop(line) == [cause]


@pytest.mark.parametrize(
    "line",
    [
        "pass",
        "if step % 100 == 0: print(loss.item())",
        "if step % 100 == 0: torch.save(model, 'x.pt')",
        "total += loss.detach()",
        "total += loss; total.backward()",
        "print(step, x.shape, len(losses))",
        "total += loss.item()  # hotlap: ignore[sync]",
        "total += loss.item()  # hotlap: ignore",
        "if step % 9: continue\n            total += loss.item()",
    ],
)
def test_each_step_silent(line: str) -> None:
    assert in_loop(line) == []


def test_a_form_feed_ends_no_line() -> None:
    assert [p.text for p in lint_text("s.py", "\x0c\n" + HEAD + LOOP.format("gc.collect()"))] == ["gc.collect()"]


def test_zeros_are_left_to_who_knows_whether_all_parameters_get_a_gradient() -> None:
    (problem,) = lint_text("s.py", HEAD + LOOP.format("optimizer.zero_grad(set_to_none=False)"))
    assert not problem.edits and "its momentum and weight decay" in problem.advice


def test_another_cause_is_not_ignored() -> None:
    assert in_loop("total += loss.item()  # hotlap: ignore[gc-collect]") == ["sync"]


def loader(call: str, data: str = "datasets.ImageFolder('x')", before: str = "") -> list[str]:
    return causes(f"""
    def main(model, workers=3):
        data = {data}
        {"" if before else "loader = " + call}
        for epoch in range(9):
            {before}
            for x, y in loader:
                F.cross_entropy(model(x.to(device)), y).backward()
    """)


def test_loaders() -> None:
    whole = "num_workers=2, pin_memory=True, persistent_workers=True"
    assert loader(f"DataLoader(data, 8, {whole})") == []
    assert loader("DataLoader(data, 8, pin_memory=True)") == ["too-few-workers"]
    assert loader("DataLoader(data, 8, num_workers=2, pin_memory=True)") == ["workers-respawned"]
    assert loader("DataLoader(data, 8, num_workers=2, persistent_workers=True)") == ["h2d-copy"]
    assert loader("", before=f"loader = DataLoader(data, 8, {whole})") == ["loader-rebuilt"]
    assert loader("", before=f"loader = DataLoader(part(data, epoch), 8, {whole})") == []
    assert loader("DataLoader(data, 8, **options)") == []
    assert loader("DataLoader(data, 8)", data="TensorDataset(a, b)") == []
    assert loader("DataLoader(data, 8, pin_memory=True)", data="unknown()") == []
    assert loader("DataLoader(data, 8, num_workers=workers, pin_memory=True)") == []


def test_workers_that_see_each_epoch_s_data_are_let_start_anew() -> None:
    source = """
    def main(model, data):
        loader = DataLoader(data, 8, num_workers=2, pin_memory=True)
        for epoch in range(9):
            {}
            for x, y in loader:
                F.cross_entropy(model(x.to(device)), y).backward()
    """
    assert causes(source.format("pass")) == ["workers-respawned"]
    assert causes(source.format("data.set_epoch(epoch)")) == [] == causes(source.format("loader.dataset.low = epoch"))


POINTS = """
class Points:
    def __init__(self, x, device=None):
        self.x = x{}
    def __getitem__(self, i):
        return self.x[i]
def collate(batch):
    return torch.stack(batch){}
x = torch.randn(9, 3){}
points, others = Points(x{}), []
def main(model, data):
    loader = DataLoader(data, 8, num_workers=2, persistent_workers=True, collate_fn=collate)
    for epoch in range(9):
        for x in loader:
            model(x.to(device)).backward()
main(model, points)
"""


def test_batches_that_are_on_the_device_already_are_not_pinned() -> None:
    assert causes(POINTS.format("", "", "", "")) == ["h2d-copy"]
    assert causes(POINTS.format(".to(torch.float32)", ".to('cpu')", ".to(y.dtype)", ", device='cpu'")) == ["h2d-copy"]
    for place in range(4):
        code = ", device=device" if place == 3 else ".to(device)"
        assert causes(POINTS.format(*(code if k == place else "" for k in range(4)))) == []
    assert causes(POINTS.format(".cuda()", "", "", "")) == []
    assert causes("torch.set_default_device('cuda')\n" + POINTS.format("", "", "", "")) == []


def test_the_number_of_workers_may_be_an_argument() -> None:
    source = """
    import argparse
    parser = argparse.ArgumentParser()
    parser.add_argument("--num-workers", type=int, default=4)
    args = parser.parse_args()
    loader = DataLoader(datasets.CIFAR10("x"), 8, num_workers=args.num_workers, pin_memory=True)
    def train(model, loader):
        for x, y in loader:
            model(x, y).backward()
    for epoch in range(9):
        train(model, loader)
    """
    (problem,) = lint_text("s.py", HEAD + textwrap.dedent(source))
    assert problem.cause == "workers-respawned"
    assert problem.edits[0].keywords == {"persistent_workers": "args.num_workers > 0"}


VALIDATE = """
def evaluate(model, loader):
    model.eval()
    {}
    for x, y in loader:
        out = model(x)
def train(loss):
    loss.backward()
"""


def test_validation() -> None:
    assert causes(VALIDATE.format("right = 0")) == ["validation-grad"]
    assert causes(VALIDATE.format("torch.set_grad_enabled(False)")) == []
    assert causes(VALIDATE.replace("def evaluate", "@torch.no_grad()\ndef evaluate").format("pass")) == []
    assert causes(VALIDATE.format("pass") + "with torch.no_grad():\n    evaluate(model, loader)\n") == []
    assert causes(VALIDATE.replace("out =", "x.requires_grad_(); out =").format("pass")) == []
    attacked = "from attacks import pgd\n" + VALIDATE.replace("out =", "x = {}; out =")
    assert causes(attacked.format("pass", "pgd(x, 0.1)")) == ["validation-grad"]
    assert causes(attacked.format("pass", "pgd(model, x)")) == [], "it may want gradients of the model"


def test_debugging() -> None:
    assert causes("torch.autograd.set_detect_anomaly(True)") == ["autograd-debug"]
    assert causes("if args.debug:\n    torch.autograd.set_detect_anomaly(True)") == []
    assert causes("torch.autograd.set_detect_anomaly(args.debug)") == []
    assert causes("torch.backends.cudnn.benchmark = False") == ["cudnn-benchmark"]
    both = "torch.backends.cudnn.benchmark = False\ntorch.backends.cudnn.deterministic = True"
    assert causes(both) == []


def test_growing_tensors() -> None:
    assert causes("for x in loader:\n    seen = torch.cat([seen, model(x)])") == ["repeated-cat"]
    assert causes("for x in loader:\n    seen = torch.cat([seen, model(seen)])") == []
    assert causes("for x in loader:\n    seen = torch.cat([seen, x], dim=1)") == []
    assert causes("for k in range(3):\n    seen = torch.cat([seen, x])") == []


def test_samplers() -> None:
    source = """
    sampler = DistributedSampler(data)
    for epoch in range(9):
        {}
        for x in loader:
            model(x).backward()
    """
    assert causes(source.format("pass")) == ["sampler-set-epoch"]
    assert causes(source.format("sampler.set_epoch(epoch)")) == []
    assert causes(source.replace("(data)", "(data, shuffle=False)").format("pass")) == []


ATTENTION = """
class Attention:
    def forward(self, q, k, v, mask):
        scores = torch.matmul(q, k.transpose(-2, -1)) / self.scale
        scores = scores.masked_fill(mask == 0, -1e9)
        weights = F.softmax(scores, dim=-1)
        weights = self.dropout(weights)
        out = torch.matmul(weights, v)
        return {}
"""


def test_attention() -> None:
    assert causes(ATTENTION.format("out")) == ["attention-by-hand"]
    assert causes(ATTENTION.format("out, weights")) == []
    assert causes(ATTENTION.replace("scores.masked_fill", "talking_heads(scores).masked_fill").format("out")) == []
    same = ATTENTION.replace("scores", "weights")
    assert causes(same.format("out")) == ["attention-by-hand"]


def test_places() -> None:
    source = HEAD + LOOP.format("é = 1; total += loss.item()")
    (problem,) = lint_text("s.py", source)
    line = source.splitlines()[problem.line - 1]
    assert line[problem.col - 1 :].startswith("loss.item()") and problem.text == line.strip()


def test_causes_are_known_and_a_rule_names_no_others() -> None:
    for rule in all_rules():
        assert set(rule.CAUSES) <= set(CAUSES), rule.__name__
    assert {c for rule in all_rules() for c in rule.CAUSES} >= set(in_loop("gc.collect()"))


def test_files_without_torch_are_not_read_closely() -> None:
    assert lint_text("s.py", "def (:") == []
