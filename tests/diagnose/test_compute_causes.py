"""Causes of how compute is written and set up: each loud, and each silent beside a near miss."""

from __future__ import annotations

from typing import Any

import pytest
from diagnose_scripts import COMPUTE, causes, healthy, judge

from hotlap.records.findings import Finding
from hotlap.testing.timelines import TimelineBuilder, cpu_machine

BF16 = cpu_machine(flags=("avx2", "avx512_bf16"))
TORCH = "/v/lib/python3.11/site-packages/torch"
CALL = ("train.py", 33, "forward", "wanted = self.teacher(x)")


def test_denormals_by_where_they_are() -> None:
    weights = causes(healthy().setting("denormals", weights=0.02, gradients=None, state=0.0))["denormals"]
    assert weights.seconds_per_step == pytest.approx(0.02 * (1 - 1 / 1.98) + 0.0004 * (1 - 1 / 1.12), rel=0.01)
    slow = TimelineBuilder().steps(60, **{**COMPUTE, "optimizer": 0.01})
    assert causes(slow.setting("denormals", weights=0.0, gradients=0.0, state=0.5))["denormals"].phase == "optimizer"
    assert "denormals" not in causes(healthy().setting("denormals", weights=0.0, gradients=0.0001, state=0.0))
    inputs = causes(healthy().setting("inputs", calls=3, shapes=1, denormal_frac=0.4))["denormals"]
    assert inputs.phase == "forward" and "inputs" in inputs.detail and inputs.share > 0.1
    assert "denormals" not in causes(healthy().setting("inputs", calls=3, shapes=1))
    on_device = TimelineBuilder("NVIDIA H200").steps(60, **COMPUTE).setting("denormals", weights=0.5)
    assert "denormals" not in causes(on_device)


def in_16_bits(flags: tuple[str, ...] = ("avx2",), device: str = "cpu", **model: Any) -> dict[str, Finding]:
    """Causes of a training whose model has these facts, on a machine with these units."""
    built = TimelineBuilder(device).steps(60, **{**COMPUTE, "forward": 0.03})
    facts = {"class": "Net", "parameters": 1000, "modules": 3, "dtype": "float32", "autocast": "bf16", **model}
    return causes(built.setting("model", ("train.py", 9, "main", "with autocast:"), **facts), cpu_machine(flags=flags))


def test_a_type_that_the_machine_has_no_units_for() -> None:
    found = in_16_bits()["emulated-dtype"]
    assert found.detail.startswith("bf16") and "enabled=False" in found.advice
    assert [w.line for w in found.where][:1] == [9]
    assert "emulated-dtype" not in in_16_bits(("avx2", "avx512_bf16"))
    assert "emulated-dtype" in in_16_bits(("avx2", "avx512_bf16"), autocast="fp16")
    assert "emulated-dtype" not in in_16_bits((), autocast="bf16"), "of other processors nothing is known"
    assert "emulated-dtype" not in in_16_bits(autocast=None)
    weights = in_16_bits(autocast=None, dtype="bfloat16")["emulated-dtype"]
    assert "convert the model in float32" in weights.advice


def teacher(**value: Any) -> TimelineBuilder:
    usual = {
        "class": "IResNet", "parameters": 1000, "dtype": "float32", "device": "cpu", "conv_layers": 5, "conv_frac": 0.9,
        "calls": 1, "s": 0.004, "training": False, "recorded": False, "asked": False, "frozen": True,
        "autocast": False, "channels_last": False,
    }  # fmt: skip
    return healthy().setting("frozen", CALL, **{**usual, **value})


def test_frozen_subnetwork() -> None:
    found = causes(teacher(), BF16)["frozen-subnetwork"]
    assert found.where[0].line == 33 and found.seconds_per_step == pytest.approx(0.45 * 0.004)
    assert "frozen-subnetwork" not in causes(teacher(s=0.0004), BF16), "too small to matter"
    layout = causes(teacher())["frozen-subnetwork"]
    assert "channels_last" in layout.advice and layout.seconds_per_step == pytest.approx(0.15 * 0.004)
    assert "frozen-subnetwork" not in causes(teacher(conv_frac=0.0)), "no faster type here, and no convolutions"
    assert "frozen-subnetwork" not in causes(teacher(conv2d_layers=0, conv2d_frac=0.0)), "only of one dimension"
    assert causes(teacher(conv2d_layers=0, conv2d_frac=0.0), BF16)["frozen-subnetwork"].evidence["conv_layers"] == 0
    assert "frozen-subnetwork" not in causes(teacher(autocast=True, channels_last=True), BF16)
    recorded = causes(teacher(recorded=True, frozen=False), BF16)["frozen-subnetwork"]
    assert recorded.seconds_per_step == pytest.approx(0.45 * 0.004 + 0.01 * 0.4)
    assert "requires_grad_(False)" in recorded.advice


def test_a_small_frozen_network_is_dispatch_that_no_type_makes_shorter() -> None:
    assert "frozen-subnetwork" not in causes(teacher(modules=60), BF16), "0.07 ms a module"
    assert "frozen-subnetwork" not in causes(teacher(modules=60)), "nor a layout"
    between = causes(teacher(modules=10), BF16)["frozen-subnetwork"]
    assert between.seconds_per_step == pytest.approx(0.45 * 0.004 * (0.0004 - 0.0001) / (0.0017 / 3))
    assert "frozen-subnetwork" not in causes(teacher(modules=10, calls=6), BF16), "six calls took these 4 ms"
    graph = causes(teacher(modules=60, recorded=True, frozen=False), BF16)["frozen-subnetwork"]
    assert graph.seconds_per_step == pytest.approx(0.01 * 0.4) and "autocast" not in graph.advice


def test_the_time_of_a_network_is_the_median_of_its_steps() -> None:
    builder = teacher(s=0.004)
    for seconds in (0.004, 0.1):
        builder.setting("frozen", CALL, **{**builder.build().setting[-1].value, "s": seconds})
    assert causes(builder, BF16)["frozen-subnetwork"].evidence["network_s"] == 0.004


def shaped(kind: str, phase: str = "forward", device: str = "cpu", **more: float) -> TimelineBuilder:
    """Half of a phase's samples on line 21, which the shape at line 20 covers; the others on line 50."""
    at = ("model.py", 20, "forward", "attn = scores.softmax(-1)")
    on, off = ("model.py", 21, "forward", "x = attn @ v"), ("model.py", 50, "forward", "x = self.mlp(x)")
    builder = TimelineBuilder(device).steps(60, **{**COMPUTE, **more}).shape(kind, at, 19, 20, 21, detail="x")
    return builder.stack(phase, 50, on).stack(phase, 50, off)


def test_attention_by_hand() -> None:
    on_cpu = causes(shaped("attention-by-hand"))["attention-by-hand"]
    assert on_cpu.seconds_per_step == pytest.approx(0.2 * 0.01) and on_cpu.where[0].line == 20
    on_gpu = causes(shaped("attention-by-hand", device="NVIDIA H200"))["attention-by-hand"]
    assert on_gpu.seconds_per_step == pytest.approx(0.5 * 0.01) and "CPU" not in on_gpu.advice
    bf16 = shaped("attention-by-hand").setting("model", parameters=1, dtype="float32", autocast="bf16")
    assert "attention-by-hand" not in causes(bf16), "the written-out form is faster there"
    elsewhere = shaped("attention-by-hand", phase="residual", residual=0.001)
    assert "attention-by-hand" not in causes(elsewhere)


def test_attention_takes_the_faults_of_its_lines_along() -> None:
    def run(on: int, faults: int) -> list[Finding]:
        """A step of 20 ms; ``on`` of 100 forward samples lie on the attention's lines."""
        builder = TimelineBuilder().steps(1, **COMPUTE).ticks(1, minor_faults=0)
        builder.steps(150, **COMPUTE).ticks(1, minor_faults=150 * faults)
        builder.shape("attention-by-hand", ("model.py", 20, "forward", "attn = scores.softmax(-1)"), 20, 21)
        builder.stack("forward", on, ("model.py", 21, "forward", "x = attn @ v"))
        builder.stack("forward", 100 - on, ("model.py", 50, "forward", "x = self.mlp(x)"))
        return judge(builder).findings

    first, second = run(on=90, faults=6000)[:2]
    faults_s = 6000 * 1.4e-6
    assert (first.cause, second.cause) == ("attention-by-hand", "page-faults")
    assert first.evidence["page_faults_s"] == pytest.approx(0.9 * faults_s, rel=0.02)
    assert first.seconds_per_step == pytest.approx(0.9 * (faults_s + 0.6 * (0.020 - faults_s)), rel=0.02)
    small = run(on=90, faults=1000)[0]
    assert small.seconds_per_step == pytest.approx(0.9 * (0.0014 + 0.2 * (0.020 - 0.0014)), rel=0.02)
    assert run(on=30, faults=6000)[0].cause == "page-faults", "most of the memory is faulted in elsewhere"


def test_samples_loop_is_told_once() -> None:
    found = causes(shaped("samples-loop"))["samples-loop"]
    assert found.seconds_per_step == pytest.approx(0.7 * 0.01) and "vmap" in found.advice
    header = "for i in range(B):"
    line = ("train.py", 25, "forward", "h = self.cell(x[i], h)")
    both = TimelineBuilder().steps(60, forward=0.01, backward=0.01).loop("train.py", 25, header)
    both.stack("forward", 50, line).setting("step_calls", lines=[[both.frame(line), 100]])
    assert set(causes(both)) == {"python-loop"}
    both.shape("samples-loop", ("train.py", 24, "forward", header), 25)
    assert set(causes(both)) == {"samples-loop"}


def test_a_comprehension_over_samples_is_no_other_loop() -> None:
    text = "return torch.stack([self.net(x[i]) for i in range(len(x))])"
    line = ("train.py", 25, "forward", text)
    both = TimelineBuilder().steps(60, forward=0.01, backward=0.01).loop("train.py", 25, "for i in range(len(x))")
    both.stack("forward", 50, line).setting("step_calls", lines=[[both.frame(line), 100, 100.0]])
    both.shape("samples-loop", line, 25, detail="range(len(x))")
    assert set(causes(both)) == {"samples-loop"}


def test_few_rounds_are_no_samples() -> None:
    def pyramid(rounds: float) -> TimelineBuilder:
        line = ("train.py", 25, "loss", "total += self.one(outs[i], y)")
        builder = TimelineBuilder().steps(60, forward=0.01, backward=0.01).stack("forward", 50, line)
        builder.setting("step_calls", lines=[[builder.frame(line), 8 * rounds, rounds]])
        return builder.shape("samples-loop", ("train.py", 24, "loss", "for i in range(len(outs)):"), 25)

    assert "samples-loop" not in causes(pyramid(3)) and "samples-loop" in causes(pyramid(8))


def test_repeated_cat() -> None:
    found = causes(shaped("repeated-cat", phase="residual", residual=0.004))["repeated-cat"]
    assert found.seconds_per_step == pytest.approx(0.8 * 0.002) and found.phase == "residual"
    assert "repeated-cat" not in causes(shaped("repeated-cat", phase="residual", residual=0.0004))
    on, layer = ("model.py", 21, "forward", "x = attn @ v"), (f"{TORCH}/nn/modules/conv.py", 9, "forward", "")
    called = shaped("repeated-cat").stack("forward", 100, on, layer)
    assert causes(called)["repeated-cat"].seconds_per_step == pytest.approx(0.8 * 0.01 * 50 / 200), (
        "no layers on its line"
    )


def test_host_tensors_only_on_a_device() -> None:
    assert "host-tensors" not in causes(shaped("host-tensors"))
    found = causes(shaped("host-tensors", device="NVIDIA H200"))["host-tensors"]
    assert found.seconds_per_step == pytest.approx(0.8 * 0.005) and "device=" in found.advice


def padded(share: float | None, common: float | None = 0.3) -> TimelineBuilder:
    given = {"padding_frac": share, "common_frac": common}
    return healthy().setting("inputs", calls=4, shapes=2, usual=[[32, 100], [32]], **given)


def test_padding() -> None:
    found = causes(padded(0.5))["padding"]
    assert found.seconds_per_step == pytest.approx(0.5 * 0.8 * 0.02) and "one size" in found.detail
    assert found.where[0].line == 80, "the loader's line"
    loop = ("train.py", 80, "main", "for x in loader:")
    pads = ("train.py", 41, "collate", "ids[i, :n] = x")
    seen = padded(0.5).loads(100, 0.0001, collate=0.0001).stack("data_wait", 9, loop, pads)
    assert causes(seen)["padding"].where[0].line == 41, "the line that pads"
    fills = ("train.py", 33, "__getitem__", "row = ids + [PAD] * (MAX - len(ids))")
    calls = ("train.py", 30, "__getitem__", "wave = F.pad(wave, (0, n))")
    conv = ("model.py", 9, "same", "x = F.pad(x, (1, 1))")
    named = padded(0.5).shape("padding", conv, 9).shape("padding", calls, 30).shape("padding", fills, 33)
    named.stack("forward", 9, ("model.py", 5, "forward", "x = same(x)"), conv)
    assert [w.line for w in causes(named)["padding"].where] == [33, 30, 80]
    border = ("train.py", 20, "sharpened", 'x = np.pad(x, 2, mode="reflect")')
    assert [w.line for w in causes(named.shape("padding", border, 20))["padding"].where] == [33, 30, 80]
    named.loads(100, 0.0001, collate=0.0001).stack("data_wait", 9, loop, (*calls[:2], "fetch_clip", calls[3]))
    named.shape("padding", (*calls[:2], "fetch_clip", calls[3]), 30)
    assert causes(named)["padding"].where[0].function == "fetch_clip", "where samples are loaded"
    for common in (0.04, None):
        assert "longest" in causes(padded(0.5, common))["padding"].detail, "one size for inputs of many shapes"
    assert "padding" not in causes(padded(0.1)) and "padding" not in causes(padded(None))


def checkpointed(memory: int, backward: str = "forward") -> TimelineBuilder:
    call = ("model.py", 8, "forward", "x = checkpoint(self.block, x, use_reentrant=False)")
    block = ("model.py", 30, backward, "x = self.norm(self.linear(x))")
    builder = healthy().stack("forward", 50, call, block).stack("backward", 30, call, block)
    return builder.stack("backward", 70, ("train.py", 9, "main", "loss.backward()")).ticks(2, rss=memory)


def test_activation_checkpointing_by_a_library() -> None:
    fit = ("train.py", 9, "main", "trainer.train()")
    library = ("/e/site-packages/torch/utils/checkpoint.py", 500, "checkpoint", "")
    linear = ("/e/site-packages/torch/nn/modules/linear.py", 130, "forward", "")
    nested = ("/e/site-packages/torch/autograd/__init__.py", 360, "backward", "")
    seen = healthy().stack("forward", 50, fit, library, linear).ticks(2, rss=2**30)
    module = ("/e/site-packages/torch/nn/modules/module.py", 1800, "_call_impl", "")
    seen.stack("backward", 30, fit, library, module, module, linear).stack("backward", 10, fit, library, nested)
    fetches = (*library[:2], "unpack_hook", "")
    seen.stack("backward", 20, fit, nested).stack("backward", 40, fit, nested, fetches)
    assert causes(seen)["activation-checkpointing"].where[0].line == 9, "the line that runs the trainer"
    seen.shape("activation-checkpointing", ("train.py", 4, "main", "gradient_checkpointing=True,"), 4)
    found = causes(seen)["activation-checkpointing"]
    assert found.where[0].line == 4 and "Switch gradient checkpointing off at train.py:4" in found.advice
    assert found.seconds_per_step == pytest.approx(0.3 * 0.01), "the backward's own kernels are none of it"


def test_activation_checkpointing_where_memory_is_free() -> None:
    found = causes(checkpointed(2**30))["activation-checkpointing"]
    assert found.seconds_per_step == pytest.approx(0.3 * 0.01) and found.where[0].line == 8
    assert "activation-checkpointing" not in causes(checkpointed(2**34)), "memory is full"
    plain = healthy().stack("forward", 50, ("model.py", 8, "forward", "x = self.block(x)")).ticks(2)
    assert "activation-checkpointing" not in causes(plain)
    saving = ("train.py", 8, "main", "torch.save(checkpoint(model), path)")
    assert "activation-checkpointing" not in causes(healthy().stack("forward", 5, saving).ticks(2))


def recompiled(*rows: tuple[int, int, float], reason: str = "tensor 'x' size mismatch at index 0") -> TimelineBuilder:
    builder = healthy()
    for step, n, seconds in rows:
        builder.setting("recompiles", step=step, file="m.py", first_line=4, function="f", n=n, s=seconds, reason=reason)
    return builder


def test_recompilation_storms() -> None:
    found = causes(recompiled((2, 1, 0.1), (6, 3, 0.3), (20, 10, 1.0)))["recompilation"]
    assert found.seconds_per_step == pytest.approx(0.0207, rel=0.01), "0.9 s in 18 steps is more than the step"
    assert found.where[0].file == "m.py" and "dynamic=True" in found.advice and "size mismatch" in found.advice
    assert "dynamic" not in causes(recompiled((2, 0, 0.0), (20, 9, 1.0), reason="n == 3"))["recompilation"].advice
    assert "recompilation" not in causes(recompiled((2, 2, 1.0), (20, 2, 1.0))), "only at the start"
    assert "recompilation" not in causes(recompiled((2, 9, 1.0)))


def test_zero_grad() -> None:
    def zeroing(kept: bool, seconds: float = 0.002) -> TimelineBuilder:
        return TimelineBuilder().steps(60, **{**COMPUTE, "zero_grad": seconds}).setting("backends", gradients_kept=kept)

    assert causes(zeroing(True))["zero-grad"].seconds_per_step == pytest.approx(0.002)
    assert "zero-grad" not in causes(zeroing(False)) and "zero-grad" not in causes(zeroing(True, 0.0001))


def on_gpu(shapes: int = 1, device: str = "NVIDIA H200", **value: Any) -> dict[str, Any]:
    builder = TimelineBuilder(device).steps(60, **COMPUTE).setting("model", parameters=9, conv_layers=9, conv_frac=0.9,
                                                                   channels_last=True)  # fmt: skip
    builder.setting("inputs", calls=4, shapes=shapes, usual=[[8, 3, 64, 64]], padding_frac=None)
    usual = {"cudnn_benchmark": False, "cudnn_deterministic": False, "deterministic": False, "gradients_kept": None}
    return causes(builder.setting("backends", **{**usual, **value}))


def test_cudnn() -> None:
    assert on_gpu()["cudnn-benchmark"].seconds_per_step == pytest.approx(0.1 * 0.9 * 0.02)
    assert "cudnn-benchmark" not in on_gpu(shapes=3)
    assert "cudnn-benchmark" not in on_gpu(cudnn_benchmark=True) and "cudnn-benchmark" not in on_gpu(device="cpu")
    strict = on_gpu(cudnn_deterministic=True)
    assert "cudnn-deterministic" in strict and "cudnn-benchmark" not in strict
    assert "cudnn-deterministic" not in on_gpu(device="cpu", deterministic=True)
    assert "use_deterministic" in on_gpu(deterministic=True)["cudnn-deterministic"].advice


def test_requests_to_the_devices_driver() -> None:
    def asked(*counts: int, retries: int = 0, expandable: bool = False) -> dict[str, Any]:
        builder = TimelineBuilder("NVIDIA H200").steps(200, **COMPUTE)
        for step, count in zip((2, 4, 100), counts, strict=False):
            late = retries if step == 100 else 0
            builder.setting("device_memory", step=step, driver_allocs=count, retries=late, expandable=expandable)
        return causes(builder)

    found = asked(10, 40, 232)["device-allocations"]
    assert found.evidence["allocs_per_step"] == pytest.approx(2.0) and found.evidence["expandable"] is False
    assert found.seconds_per_step == pytest.approx(2.0 * 0.0005) and "expandable_segments:True" in found.advice
    retried = asked(10, 40, 232, retries=96)["device-allocations"]
    assert retried.seconds_per_step == pytest.approx(2.0 * 0.0005 + 0.01)
    assert "device-allocations" not in asked(10, 40, 41), "what is asked for once is start-up"
    assert "device-allocations" not in asked(10, 400) and "device-allocations" not in asked()


def small(batch: int = 8, device: str = "cpu", waits: Any = None, **facts: Any) -> TimelineBuilder:
    """A step of 1 ms: 0.8 ms of compute in 20 modules."""
    builder = TimelineBuilder(device, batch=batch)
    times = {"forward": 0.0003, "backward": 0.0005, "optimizer": 0.0001, "zero_grad": 0.00002, "residual": 0.00008}
    builder.steps(200, **times, **(waits or {}))
    return builder.setting("model", **{"class": "Net", "modules": 20, "compiled": False, "dtype": "float32", **facts})


def test_tiny_batch() -> None:
    found = causes(small())["tiny-batch"]
    assert found.seconds_per_step == pytest.approx(0.5 * (20 * 20e-6 + 0.00012), rel=0.01)
    assert "--knob 'batch=--batch-size {16,32}'" in found.advice and "--allow goal" in found.advice
    assert "tiny-batch" not in causes(small(modules=10)), "the modules compute for most of that time"
    convolutions = causes(small(modules=10, conv_layers=3))["tiny-batch"]
    assert convolutions.evidence["calls_s"] == pytest.approx(6 * 65e-6 + 4 * 20e-6)
    assert "tiny-batch" not in causes(small(modules=5, conv_layers=2))
    assert "tiny-batch" not in causes(small(compiled=True)), "their calls are compiled away"
    assert "tiny-batch" not in causes(small(batch=0)), "samples that are not counted cannot be compared"
    assert "tiny-batch" in causes(small(device="NVIDIA A100"))
    for phase in ("sync", "h2d"):
        waits = causes(small(device="NVIDIA A100", waits={phase: 0.0005}))
        assert "tiny-batch" not in waits, "the host waits: the device is busy"
    busy = small(device="NVIDIA A100", waits={"h2d": 0.009}).event("device_step", 0.01, h2d=1e4, forward=4e5)
    assert "tiny-batch" not in causes(busy), "a copy that takes no time waits for the device, too"


def test_a_few_rounds_in_each_of_many_layers_are_a_loop() -> None:
    def heads(layers: int) -> TimelineBuilder:
        line = ("train.py", 25, "forward", "outs.append(self.one(x, h))")
        builder = TimelineBuilder().steps(60, forward=0.01, backward=0.01).stack("forward", 50, line)
        builder.loop("train.py", 25, "for h in range(8):")
        return builder.setting("step_calls", lines=[[builder.frame(line), 8 * layers, 8.0]])

    assert "python-loop" in causes(heads(4)) and "python-loop" not in causes(heads(1))
