"""What went wrong once, kept from going wrong again."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from hotlap.lever.catalog import (
    autocast,
    channels_last,
    checkpoint_async,
    compile_model,
    debug_off,
    loader_workers,
    optimizer_fused,
    threads,
    validation_no_grad,
)
from hotlap.lever.contract import Refusal
from hotlap.lever.loss_scale import LossScale
from hotlap.testing.lever_kit import findings_of, machine_of
from hotlap.testing.lever_target import LocalTarget


@pytest.fixture
def target(tmp_path: Path) -> Iterator[LocalTarget]:
    with LocalTarget(str(tmp_path)) as target:
        yield target
    assert target.problems == []


def conv_net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))


def step(model: nn.Module, optimizer: Any, x: torch.Tensor) -> float:
    loss: Any = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return float(loss.item())


def is_last(model: nn.Sequential) -> bool:
    weight: Any = model[0].weight
    return bool(weight.is_contiguous(memory_format=torch.channels_last))


def test_layout_changes_before_the_first_step_only(target: LocalTarget) -> None:
    model = conv_net()
    optimizer = torch.optim.Adam(model.parameters())
    optimizer.load_state_dict(resumed(model))
    channels_last.apply(target, {})
    step(model, optimizer, torch.randn(2, 3, 8, 8))
    assert not is_last(model) and target.changes == 0


def resumed(model: nn.Sequential) -> Any:
    twin = torch.optim.Adam(model.parameters())
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    twin.step()
    return twin.state_dict()


def test_layout_is_put_back_with_the_trained_weights(tmp_path: Path) -> None:
    model = conv_net()
    optimizer = torch.optim.Adam(model.parameters())
    with LocalTarget(str(tmp_path)) as target:
        channels_last.apply(target, {})
        step(model, optimizer, torch.randn(2, 3, 8, 8))
        assert is_last(model)
        weight: Any = model[0].weight
        trained = weight.detach().clone()
    assert not is_last(model) and torch.equal(weight, trained)


def test_fused_on_a_cpu_and_channels_last_exclude_each_other(target: LocalTarget) -> None:
    model = conv_net()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    channels_last.apply(target, {})
    step(model, optimizer, torch.randn(2, 3, 8, 8))
    assert not is_last(model)
    assert "optimizer-fused" in channels_last.CONFLICTS and "channels-last" in optimizer_fused.CONFLICTS


@pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.SGD, torch.optim.Adagrad])
def test_fused_needs_matching_layout_and_no_state(target: LocalTarget, kind: Any) -> None:
    model = conv_net().to(memory_format=torch.channels_last)
    optimizer_fused.apply(target, {"impl": "fused"})
    optimizer = kind(model.parameters(), lr=0.1)
    step(model, optimizer, torch.randn(2, 3, 8, 8))
    assert not optimizer.param_groups[0]["fused"] and target.changes == 0


@pytest.mark.parametrize(("kind", "impl", "switched"), [
    (torch.optim.Adam, "foreach", False), (torch.optim.AdamW, "foreach", False), (torch.optim.AdamW, "fused", True),
    (torch.optim.SGD, "foreach", True),
])  # fmt: skip
def test_a_learning_rate_that_is_a_tensor(target: LocalTarget, kind: Any, impl: str, switched: bool) -> None:
    model = conv_net()
    optimizer_fused.apply(target, {"impl": impl})
    optimizer = kind(model.parameters(), lr=torch.tensor(0.1))
    step(model, optimizer, torch.randn(2, 3, 8, 8))
    assert bool(optimizer.param_groups[0][impl]) == switched


def test_a_model_with_convolutions_of_both_kinds_is_laid_out_as_far_as_it_goes(tmp_path: Path) -> None:
    model = nn.Sequential(*conv_net()[:2], nn.Unflatten(1, (2, 2)), nn.Conv3d(2, 2, 2), nn.Flatten(2), nn.Linear(25, 1))
    optimizer = torch.optim.Adam(model.parameters())
    with LocalTarget(str(tmp_path)) as target:
        channels_last.apply(target, {})
        step(model, optimizer, torch.randn(2, 3, 8, 8))
        assert is_last(model) and target.changes
    assert target.problems == [] and not is_last(model)


def test_what_validation_leaves_behind_may_be_used_in_a_later_backward(target: LocalTarget) -> None:
    class Remembers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Linear(3, 3)
            self.tables: dict[int, torch.Tensor] = {}

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if len(x) not in self.tables:
                self.tables[len(x)] = torch.ones(3) * 2
            out: torch.Tensor = self.body(x) * self.tables[len(x)]
            return out

    model = Remembers()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    validation_no_grad.apply(target, {})
    step(model, optimizer, torch.randn(2, 3))
    model.eval()
    teacher = model(torch.randn(5, 3))
    model.train()
    assert target.changes == 1 and not teacher.requires_grad and not teacher.is_inference()
    loss: Any = nn.functional.mse_loss(model(torch.randn(5, 3)), teacher)
    loss.backward()
    with torch.no_grad():
        model.eval()
        assert not model(torch.randn(6, 3)).is_inference()


def test_iterable_data_sets_are_left_alone(target: LocalTarget) -> None:
    class Stream(IterableDataset[int]):
        def __iter__(self) -> Iterator[int]:
            return iter(range(6))

    loader = DataLoader(Stream(), batch_size=2)
    loader_workers.apply(target, {"workers": 2, "prefetch": 2, "torch_threads": 1})
    assert len(list(loader)) == 3 and loader.num_workers == 0 and target.changes == 0
    offered = loader_workers.settings(
        findings_of("decode").findings[0], findings_of("decode", iterable=True), machine_of()
    )
    assert isinstance(offered, Refusal) and "IterableDataset" in offered.reason


def test_workers_that_are_there_are_made_persistent(target: LocalTarget) -> None:
    findings = findings_of("workers-respawned", num_workers=1, prefetch_factor=2)
    offered = loader_workers.settings(findings.findings[0], findings, machine_of())
    assert isinstance(offered, list) and {"workers": 1, "prefetch": 2, "torch_threads": None} in offered
    loader = DataLoader(TensorDataset(torch.arange(6)), batch_size=2, num_workers=1)
    loader_workers.apply(target, {"workers": 1, "prefetch": None, "torch_threads": None})
    first = [b[0].tolist() for b in loader]
    assert loader.persistent_workers and target.changes == 2
    assert [b[0].tolist() for b in loader] == first == [[0, 1], [2, 3], [4, 5]]
    iterator: Any = loader._iterator
    iterator._shutdown_workers()


def test_compiling_keeps_the_names_of_a_checkpoint(target: LocalTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    model = conv_net()
    names = list(model.state_dict())
    compile_model.apply(target, {})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.eval()
    model(torch.randn(2, 3, 8, 8))
    assert target.changes == 0, "a sanity validation comes before the first training forward"
    model.train()
    step(model, optimizer, torch.randn(2, 3, 8, 8))
    step(model, optimizer, torch.randn(2, 3, 8, 8))
    assert target.changes == 1 and list(model.state_dict()) == names


def test_a_model_of_torchs_own_classes_is_compiled_too(target: LocalTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    graphs: list[Any] = []

    def keeping(graph: Any, _: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=keeping))
    model = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 1))
    compile_model.apply(target, {})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        step(model, optimizer, torch.randn(2, 8))
    assert target.changes == 1 and len(graphs) == 1, "one graph, not none as by module.compile()"


def test_a_compiler_that_compiles_nothing_is_no_effect(target: LocalTarget) -> None:
    model = conv_net()
    compile_model.apply(target, {})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    with torch.compiler.set_stance("force_eager"):
        losses = [step(model, optimizer, torch.randn(2, 3, 8, 8)) for _ in range(3)]
    assert len(losses) == 3 and target.changes == 0
    assert target.reasons[-1] == "torch.compile compiles nothing of Sequential."


def test_a_failing_compiler_is_no_effect(target: LocalTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._dynamo.exc import Unsupported

    def broken(*args: Any) -> Any:
        raise Unsupported("no", case_name="x")  # type: ignore[call-arg,unused-ignore]

    monkeypatch.setattr(torch, "compile", lambda call: broken)
    model = conv_net()
    compile_model.apply(target, {})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step(model, optimizer, torch.randn(2, 3, 8, 8))
    assert step(model, optimizer, torch.randn(2, 3, 8, 8)) > 0
    assert target.changes == 0 and "Sequential: no" in target.reasons[-1]


def test_autocast_gives_fp32_back_and_skips_what_has_no_parameters(target: LocalTarget) -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(8, 8)

        def forward(self, x: torch.Tensor) -> dict[str, Any]:
            out = self.a(x)
            seen.append(out.dtype)
            return {"out": out, "parts": [out, (out,)], "n": 1}

    seen: list[torch.dtype] = []
    model = Two()
    autocast.apply(target, {"dtype": "bf16"})
    out = model(torch.randn(2, 8))
    assert seen == [torch.bfloat16] and target.changes == 1
    assert out["out"].dtype == out["parts"][1][0].dtype == torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert model(torch.randn(2, 8))["out"].dtype == torch.bfloat16, "the script's own autocast stays its own"
    nn.MSELoss()(out["out"], torch.zeros(2, 8))
    assert target.changes == 1


def test_autocast_leaves_a_margin_head_in_fp32(target: LocalTarget) -> None:
    class Head(nn.Module):
        def __init__(self, scalar: bool) -> None:
            super().__init__()
            self.weight, self.scalar = nn.Parameter(torch.randn(5, 8)), scalar

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
            scores = nn.functional.linear(nn.functional.normalize(x), nn.functional.normalize(self.weight))
            seen.append(scores.dtype)
            return (nn.functional.cross_entropy(scores, y), y) if self.scalar else scores

    autocast.apply(target, {"dtype": "bf16"})
    body, y = nn.Linear(8, 8), torch.tensor([1, 2])
    for scalar, later in ((True, torch.float32), (False, torch.bfloat16)):
        seen: list[torch.dtype] = []
        head = Head(scalar)
        for _ in range(3):
            head(body(torch.randn(2, 8)), y)
        assert seen == [torch.float32, later, later], "the first call tells whether it is a loss"
    seen = []
    Head(True)(torch.randn(2, 8), y)  # a model that gives its own loss is fed with data: it is the compute
    assert seen == [torch.bfloat16]


def test_loss_scale_shows_true_gradients_and_skips_overflow(target: LocalTarget) -> None:
    model = nn.Linear(3, 1)
    scale = LossScale(target, scale=1024.0)
    scale.watch(model)
    target.around_backward(scale.backward)
    target.around_step(scale.step)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(4, 3)
    for _ in range(2):  # two micro-batches accumulate
        loss: Any = model(x).mean()
        loss.backward()
    assert model.weight.grad is not None
    assert torch.allclose(model.weight.grad, 2 * x.mean(0, keepdim=True))
    before = model.weight.detach().clone()
    model.weight.grad.fill_(float("inf"))
    optimizer.step()
    assert torch.equal(model.weight, before) and scale.scale == 512.0
    model.weight.grad.fill_(1.0)
    optimizer.step()
    assert not torch.equal(model.weight, before)


def test_hooks_of_the_loss_scale_come_off(tmp_path: Path) -> None:
    model = nn.Linear(3, 1)
    with LocalTarget(str(tmp_path)) as target:
        LossScale(target).watch(model)
        assert model.weight._backward_hooks
    assert not model.weight._backward_hooks


def test_profilers_that_are_left_on_do_nothing(target: LocalTarget) -> None:
    debug_off.apply(target, {"anomaly": True, "profiler": True})
    with torch.profiler.profile() as profiler:
        torch.ones(3).sum()
        profiler.step()
    assert target.changes == 1 and profiler.key_averages().table() is not None
    with torch.autograd.detect_anomaly(check_nan=False):
        assert not torch.is_anomaly_enabled()
    assert target.changes == 2


def test_refusals_say_why() -> None:
    def refused(lever: Any, findings: Any, **machine: Any) -> str:
        offered = lever.settings(findings.findings[0], findings, machine_of(**machine))
        assert isinstance(offered, Refusal), offered
        return offered.reason

    assert "bf16" in refused(autocast, findings_of("precision"), cpu_flags=["avx2"])
    assert "compiler" in refused(compile_model, findings_of("python-loop"), compiler=None)
    assert "core" in refused(loader_workers, findings_of("decode"), cores=1)
    assert autocast.check({"dtype": "fp16"}, machine_of()) and autocast.check({"dtype": "bf16"}, machine_of()) is None
    assert threads.check({"torch_threads": 64, "passive": False}, machine_of())
    assert checkpoint_async.check({"pending": True}, machine_of())
