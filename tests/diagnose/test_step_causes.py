"""Causes on the rest of the step's path: each loud, and each silent beside a near miss."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from diagnose_scripts import COMPUTE, LOADER, causes, healthy

from hotlap.diagnose.diagnose import diagnose
from hotlap.diagnose.notes import make_notes
from hotlap.diagnose.policy import DEFAULT
from hotlap.diagnose.surroundings import Around
from hotlap.diagnose.view import look
from hotlap.lever.catalog import threads
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Accelerator
from hotlap.records.rows import Tick
from hotlap.testing.lever_kit import findings_of
from hotlap.testing.timelines import TimelineBuilder, UserLine, cpu_machine

MAIN = ("train.py", 95, "main", "evaluate(model)")
EVALUATE = ("train.py", 131, "evaluate", "model.eval()")
MODULE = ("/v/site-packages/torch/nn/modules/module.py", 1, "_call_impl", "")
BF16 = cpu_machine(flags=("avx2", "avx512_bf16"))


def validated(seconds: float, **numbers: float) -> TimelineBuilder:
    builder = TimelineBuilder()
    for _ in range(3):
        builder.steps(50, **COMPUTE).event("validation", seconds, MAIN, EVALUATE, **numbers)
    return builder


def test_validation_at_its_own_cadence() -> None:
    finding = causes(validated(0.5))["validation-cadence"]
    assert finding.evidence["every_steps"] == 50
    assert finding.seconds_per_step == pytest.approx(0.01, rel=0.02)
    assert [w.line for w in finding.where] == [131, 95]
    assert "validation-cadence" not in causes(validated(0.01))


def test_a_sanity_validation_before_the_first_step_does_not_count() -> None:
    builder = TimelineBuilder().steps(1, **COMPUTE).event("validation", 5.0, EVALUATE, at=0).steps(100, **COMPUTE)
    assert "validation-cadence" not in causes(builder)


def test_validation_grad() -> None:
    assert "validation-grad" in causes(validated(0.5, grad_mode=1.0))
    assert "validation-grad" not in causes(validated(0.5, grad_mode=0.0))


def test_checkpoint_blocking() -> None:
    save = ("train.py", 140, "save", "torch.save(state, path)")

    def saved(seconds: float) -> TimelineBuilder:
        builder = TimelineBuilder()
        for _ in range(3):
            builder.steps(20, **COMPUTE).event("checkpoint", seconds, save)
        return builder

    assert causes(saved(0.1))["checkpoint-blocking"].where[0].line == 140
    assert "checkpoint-blocking" not in causes(saved(0.002))


def test_logging_in_the_residual_by_the_text_of_the_line() -> None:
    def residual(text: str) -> TimelineBuilder:
        line = ("train.py", 120, "main", text)
        return TimelineBuilder().steps(60, residual=0.01, **COMPUTE).stack("residual", 50, line)

    kinds = {
        "writer.add_scalar('loss', x)": "logging-blocking",
        "json.dump(history, f)": "logging-blocking",
        "log.flush()": "logging-forced",
        "plt.savefig(path)": "logging-histogram",
    }
    for text, cause in kinds.items():
        assert causes(residual(text))[cause].where[0].line == 120, text
    quiet = causes(residual("x = torch.log(x)"))
    assert "logging-blocking" not in quiet and "host-work" in quiet
    printed = causes(residual('print(f"EER {self.equal_error():.3f}")'))
    assert "logging-blocking" not in printed and "host-work" in printed  # the clock knows what print itself took
    assert "logging-blocking" in causes(TimelineBuilder().steps(60, logging=0.01, **COMPUTE))


def test_sync_only_on_a_device() -> None:
    line = ("train.py", 101, "main", "total += loss.item()")
    for device, expected in (("cpu", False), ("NVIDIA H200", True)):
        found = causes(TimelineBuilder(device).steps(60, sync=0.01, **COMPUTE).site("sync", "item", line, 60, 0.6))
        assert ("sync" in found) is expected
    assert found["sync"].where[0].line == 101
    busy = TimelineBuilder("NVIDIA H200").steps(60, sync=0.01, **COMPUTE).ticks(2, device_busy_frac=1.0)
    assert "sync" not in causes(busy)


def test_a_host_that_mostly_waits_keeps_the_device_busy() -> None:
    mostly = causes(TimelineBuilder("NVIDIA H200").steps(60, forward=0.001, backward=0.001, sync=0.018))["sync"]
    assert mostly.seconds_per_step == pytest.approx(0.002), "the device works while the host waits for it"
    hardly = causes(TimelineBuilder("NVIDIA H200").steps(60, forward=0.009, backward=0.009, sync=0.002))["sync"]
    assert hardly.seconds_per_step == pytest.approx(0.002)


def test_on_a_device_compute_is_what_the_device_took() -> None:
    taken = {"forward": 6e6, "backward": 10e6, "optimizer": 1e6}
    builder = TimelineBuilder("NVIDIA H200").steps(60, forward=0.001, backward=0.001, sync=0.018)
    for _ in range(3):
        builder.event("device_step", 0.02, **taken)
    view = look(builder.build(), cpu_machine(), DEFAULT)
    assert view.compute_s == pytest.approx(0.016) and view.device_s["optimizer"] == pytest.approx(0.001)
    (note,) = [note for note in make_notes(view) if "device" in note]
    assert "Of a step's 0.02 s the device took 0.01 s backward, 0.006 s forward, 0.001 s optimizer: " in note
    assert note.endswith("no wait of the host costs more than the 0.003 s left.")
    assert not any("ahead of the device" in n for n in make_notes(look(healthy().build(), cpu_machine(), DEFAULT)))


def test_autograd_debug() -> None:
    line = ("train.py", 5, "main", "torch.autograd.set_detect_anomaly(True)")
    found = causes(healthy().setting("debug", line, anomaly=True, profiler=False))
    assert found["autograd-debug"].where[0].line == 5
    assert found["autograd-debug"].evidence["basis"] == "prior"
    assert "autograd-debug" not in causes(healthy().setting("debug", anomaly=False, deterministic=True))


def test_precision_needs_a_faster_type() -> None:
    call = ("train.py", 99, "main", "loss = model(x)")
    plain = healthy().setting("model", dtype="float32", autocast=None, parameters=10)
    found = causes(plain.stack("forward", 9, call, ("train.py", 20, "forward", "return x"), MODULE), BF16)
    assert found["precision"].where[0].line == 99 and not found["precision"].confirmed
    assert "precision" not in causes(plain, cpu_machine())
    assert "precision" not in causes(healthy().setting("model", dtype="float32", autocast="bf16"), BF16)
    assert "precision" not in causes(healthy().setting("model", dtype="float32", stepwise_frac=0.97), BF16)
    assert "precision" not in causes(healthy().setting("model", dtype="float32", modules=100), BF16), "dispatch"


@pytest.mark.parametrize(("fast", "scaled"), [("fp16", True), ("bf16", False), ("tf32", False)])
def test_only_fp16_asks_for_a_scaled_loss(fast: str, scaled: bool) -> None:
    types = {"bf16": False, "fp16": False, "tf32": False, fast: True}
    card = Accelerator("Card", 16 * 2**30, "7.5", triton=True, **types)
    on_card = TimelineBuilder("Card").steps(60, **COMPUTE).setting("model", dtype="float32")
    advice = causes(on_card, cpu_machine(accelerators=[card]))["precision"].advice
    assert ("GradScaler" in advice) is scaled


def test_double_precision_is_told_on_any_machine() -> None:
    double = causes(healthy().setting("model", dtype="torch.float64"), cpu_machine())["precision"]
    single = causes(healthy().setting("model", dtype="float32"), BF16)["precision"]
    assert "float32" in double.advice and "fp64" in double.detail and double.share > single.share


def test_memory_format() -> None:
    def model(**value: object) -> TimelineBuilder:
        return healthy().setting("model", **{"conv_layers": 20, "conv_frac": 0.9, "channels_last": False, **value})

    assert "memory-format" in causes(model())
    assert "memory-format" not in causes(model(channels_last=True))
    assert "memory-format" not in causes(model(conv_layers=1, conv_frac=0.01))
    assert "memory-format" not in causes(model(conv2d_layers=0, conv2d_frac=0.0)), "a layout of 4-d tensors alone"


def test_unfused() -> None:
    def model(**value: object) -> TimelineBuilder:
        return healthy().setting("model", **{"norm_layers": 40, "modules": 8, **value})

    large, small = causes(model()), causes(model(modules=400))
    assert "40 norms" in large["unfused"].detail and "model.compile()" in large["unfused"].advice
    own = causes(model(class_of_torch=True))["unfused"].advice
    assert "a class of yours" in own, "model.compile() compiles nothing of torch's own"
    assert small["unfused"].share > 2 * large["unfused"].share, "more where dispatch bounds the step"
    assert "unfused" not in causes(model(compiled=True)) and "unfused" not in causes(model(norm_layers=5))


def test_optimizer_loop() -> None:
    def adam(seconds: float, **value: object) -> TimelineBuilder:
        builder = TimelineBuilder().steps(60, **{**COMPUTE, "optimizer": seconds})
        return builder.setting(
            "optimizer", **{"class": "AdamW", "tensors": 60, "foreach": None, "fused": None, **value}
        )

    assert "optimizer-loop" in causes(adam(0.005))
    assert "optimizer-loop" not in causes(adam(0.005, fused=True))
    assert "optimizer-loop" not in causes(adam(0.0003))
    assert "optimizer-loop" not in causes(adam(0.005, tensors=2))
    tables = causes(adam(0.005, tensors=2, parameters=9_600_000))["optimizer-loop"]
    assert "9,600,000 parameters" in tables.detail and "fused=True" in tables.advice and "foreach" not in tables.advice
    assert "Pass foreach=True to RMSprop" in causes(adam(0.005, **{"class": "RMSprop"}))["optimizer-loop"].advice
    assert "optimizer-loop" not in causes(adam(0.005, **{"class": "Lion"})), "nobody knows what it takes"


def test_the_lines_of_an_optimizer_loop_are_those_that_made_the_optimizers() -> None:
    builder = TimelineBuilder().steps(60, **{**COMPUTE, "optimizer": 0.005})
    small, large = ("gan.py", 7, "<module>", ""), ("models.py", 20, "optimizer", "")
    usual = {"class": "AdamW", "tensors": 60, "foreach": None, "fused": None}
    builder.setting("optimizer", small, **usual, parameters=1000).setting("optimizer", large, **usual, parameters=2000)
    found = causes(builder)["optimizer-loop"]
    assert [(w.file.rpartition("/")[2], w.line) for w in found.where] == [("models.py", 20), ("gan.py", 7)]
    assert "models.py:20" in found.advice
    for line, value in ((8, {"parameters": 1000}), (9, {"tensors": 2}), (10, {"fused": True}), (11, {"class": "Lion"})):
        builder.setting("optimizer", ("gan.py", line, "<module>", ""), **{**usual, **value})
    lines = [where.line for where in causes(builder)["optimizer-loop"].where]
    assert lines == [20, 7, 8, 9], "twins and small ones take it too, and are switched by the lever"


def test_a_phase_is_shared_out_by_what_its_optimizers_update() -> None:
    def phase_of(**other: object) -> float:
        builder = TimelineBuilder().steps(60, **{**COMPUTE, "optimizer": 0.005})
        for value in (
            {"class": "Adam", "tensors": 20, "parameters": 900_000},
            {"class": "Adam", "foreach": True, **other},
        ):
            builder.setting("optimizer", **value)
        return causes(builder)["optimizer-loop"].seconds_per_step / (DEFAULT.optimizer_prior * 0.005)

    assert phase_of(tensors=2, parameters=100_000) == pytest.approx(0.9)
    assert phase_of(tensors=20) == pytest.approx(0.5), "its parameters are not known"


def looping(header: str, calls: float, forward: float = 0.01) -> TimelineBuilder:
    line = ("train.py", 25, "forward", "h = self.cell(x[:, t], h)")
    builder = TimelineBuilder().steps(60, forward=forward, backward=0.01).loop("train.py", 25, header)
    return builder.stack("forward", 50, line).setting("step_calls", lines=[[builder.frame(line), calls]])


def test_python_loop() -> None:
    found = causes(looping("for t in range(T):", 100))
    assert found["python-loop"].where[0].line == 25
    assert "python-loop" not in causes(looping("for t in range(T):", 4))
    assert "python-loop" not in causes(looping("for layer in self.layers:", 40))
    assert "python-loop" not in causes(looping("for t in range(T):", 40, forward=0.5)), "heavy calls are no small loop"
    assert "python-loop" in causes(looping("for k in range(16)", 16, forward=0.005)), (
        "a comprehension's header, of few rounds"
    )


def cell_in_a_loop(rounds: float, forward: float = 0.01) -> TimelineBuilder:
    """A loop around a cell that is a module of its own, in a training step that runs once per batch."""
    step: UserLine = ("train.py", 80, "main", "loss = lossf(model(x), y)")
    loop: UserLine = ("train.py", 25, "forward", "h = self.cell(x[:, t], h)")
    gates: UserLine = ("train.py", 9, "forward", "g = self.wx(x) + self.wh(h)")
    state: UserLine = ("train.py", 10, "forward", "h = torch.tanh(g)")
    builder = TimelineBuilder().steps(60, forward=forward, backward=0.01)
    builder.loop("train.py", 80, "for x, y in loader:").loop("train.py", 25, "for t in range(T):")
    builder.stack("forward", 30, step, loop, gates).stack("forward", 20, step, loop, state)
    lines = [[step, 1.0, 1.0], [loop, rounds, rounds], [gates, 2 * rounds, 2.0], [state, rounds, 1.0]]
    return builder.setting("step_calls", lines=[[builder.frame(line), *counts] for line, *counts in lines])


def test_python_loop_around_a_module_of_its_own() -> None:
    found = causes(cell_in_a_loop(24))["python-loop"]
    assert [w.line for w in found.where] == [25] and found.evidence["loop"] == "for t in range(T):"
    assert found.evidence["forward_share"] == 1.0 and "24 rounds" in found.detail
    assert "python-loop" not in causes(cell_in_a_loop(6))
    assert "python-loop" not in causes(cell_in_a_loop(24, forward=0.06)), "rounds of 2.5 ms are no small work"


def test_python_loop_around_forwards() -> None:
    line: UserLine = ("train.py", 40, "step", "out, h = decoder(token, h)")
    inner: UserLine = ("train.py", 12, "forward", "return self.out(x), h")
    builder = TimelineBuilder().steps(60, forward=0.01, backward=0.01).loop("train.py", 40, "for t in range(20):")
    builder.stack("forward", 50, line, inner)
    builder.setting("step_calls", lines=[[builder.frame(line), 20, 20.0], [builder.frame(inner), 20, 1.0]])
    assert [w.line for w in causes(builder)["python-loop"].where] == [40]


def test_the_line_of_the_loop_has_the_rounds_of_its_body() -> None:
    header: UserLine = ("train.py", 11, "forward", "for p, t in zip(ps, ts):")
    line: UserLine = ("train.py", 12, "forward", "counts[t][p] += 1")
    builder = TimelineBuilder().steps(60, forward=0.01, backward=0.01)
    builder.loop("train.py", 11, header[3]).loop("train.py", 12, header[3])
    builder.stack("forward", 10, header).stack("forward", 40, line)
    builder.setting("step_calls", lines=[[builder.frame(header), 1, 1.0], [builder.frame(line), 900, 900.0]])
    found = causes(builder)["python-loop"]
    assert [w.line for w in found.where] == [12, 11] and found.evidence["forward_share"] == 1.0


def test_rounds_are_those_of_one_run_of_the_function() -> None:
    line: UserLine = ("train.py", 12, "forward", "outs.append(F.avg_pool1d(x, k))")
    builder = TimelineBuilder().steps(60, forward=0.01, backward=0.01).loop("train.py", 12, "for k in (3, 5, 7):")
    builder.stack("forward", 50, line).setting("step_calls", lines=[[builder.frame(line), 24, 3.0]])
    assert "python-loop" not in causes(builder), "three scales in each of eight blocks"


def test_the_operations_of_a_loop_are_too_small_for_bf16() -> None:
    mixed = looping("for t in range(T):", 100).setting("model", dtype="float32")
    plain = TimelineBuilder().steps(60, forward=0.01, backward=0.01).setting("model", dtype="float32")
    assert "precision" not in causes(mixed, BF16) and "precision" in causes(plain, BF16)
    other = ("train.py", 30, "forward", "return self.head(h)")
    half = mixed.stack("forward", 50, other)
    saved = causes(half, BF16)["precision"].seconds_per_step / causes(plain, BF16)["precision"].seconds_per_step
    assert saved == pytest.approx(0.5)


def test_host_work_and_gc() -> None:
    line = ("train.py", 60, "main", "weights = rebuild(weights)")
    found = causes(TimelineBuilder().steps(60, residual=0.01, **COMPUTE).stack("residual", 50, line))
    assert found["host-work"].where[0].line == 60
    assert "host-work" not in causes(TimelineBuilder().steps(60, residual=0.0008, **COMPUTE))
    assert "gc" in causes(TimelineBuilder().steps(60, gc=0.002, **COMPUTE))
    assert "gc" not in causes(TimelineBuilder().steps(60, gc=0.0001, **COMPUTE))


def test_thread_contention() -> None:
    assert "thread-contention" in causes(healthy().setting("threads", torch=8, cores=2), cpu_machine(2))
    assert "thread-contention" not in causes(healthy().setting("threads", torch=2, cores=2), cpu_machine(2))
    line: UserLine = ("train.py", 9, "setup", "torch.set_num_threads(8)")
    set_there = healthy().setting("threads", line, torch=8, cores=2)
    assert [w.line for w in causes(set_there, cpu_machine(2))["thread-contention"].where] == [9]

    def fought(cpu: float, each: float = 0.02, **more: float) -> TimelineBuilder:
        builder = healthy(**more).setting("threads", torch=2).loader(LOADER, num_workers=2, persistent_workers=True)
        return builder.worker(120, each, cpu=cpu).worker(120, each, cpu=cpu)

    found = causes(fought(0.01), cpu_machine(2))["thread-contention"]
    assert [w.line for w in found.where] == [LOADER[1]], "the number of workers is set there"
    assert "thread-contention" not in causes(fought(0.02), cpu_machine(2))
    assert "thread-contention" not in causes(fought(0.002, 0.004), cpu_machine(2)), "two threads are what it has"
    assert "thread-contention" not in causes(fought(0.004, 0.008), cpu_machine(2)), "one thread would be no faster"
    waited = causes(fought(0.01, data_wait=0.012), cpu_machine(2))
    assert "thread-contention" not in waited and "augment" in waited, "it is loading that takes the cores"


def _threads_to_try(finding: Finding, cores: int) -> list[dict[str, Any]]:
    findings = findings_of("thread-contention")
    findings = replace(findings, step_model=replace(findings.step_model, torch_threads=8, workers=0, cores=cores))
    found = threads.settings(finding, findings, cpu_machine(cores))
    assert isinstance(found, list)
    return found


def test_processes_that_train_together_have_threads_together() -> None:
    def beside(processes: int, threads: int, cores: int) -> Finding | None:
        builder = healthy().setting("threads", torch=threads, cores=cores)
        builder.build().beside = processes - 1
        return causes(builder, cpu_machine(cores)).get("thread-contention")

    found = beside(2, 2, 2)
    assert found is not None and found.detail == "4.0 busy threads on 2 cores" and found.evidence["processes"] == 2
    assert found.advice.startswith("Call torch.set_num_threads(1): 2 processes that train, each of 2 torch threads")
    assert [setting["torch_threads"] for setting in _threads_to_try(found, 2)] == [1, 1]
    assert beside(2, 1, 2) is None and beside(2, 4, 8) is None and beside(1, 2, 2) is None
    found = beside(4, 8, 8)
    assert found is not None and "set_num_threads(2)" in found.advice
    assert _threads_to_try(found, 8)[0] == {"torch_threads": 2, "passive": False}


def test_growing_step_names_phase_and_line() -> None:
    builder = TimelineBuilder()
    keep = ("train.py", 110, "main", "history.append(loss)")
    for i in range(100):
        builder.steps(1, **{**COMPUTE, "backward": 0.01 * (1 + i / 100)}).stack("backward", 1 + i // 10, keep)
    finding = causes(builder.ticks(3, rss_growth=2**28))["growing-step"]
    assert finding.phase == "backward" and finding.where[0].line == 110
    assert "graph is retained" in finding.advice
    assert "drift" not in causes(builder)
    slight = TimelineBuilder()
    for i in range(100):
        slight.steps(1, **{**COMPUTE, "backward": 0.01 * (1 + i / 1000)})
    assert "growing-step" not in causes(slight)


def test_drift_is_a_change_point() -> None:
    page_cache = TimelineBuilder().steps(60, data_wait=0.001, **COMPUTE).steps(60, data_wait=0.03, **COMPUTE)
    finding = causes(page_cache)["drift"]
    assert finding.phase == "data_wait" and abs(finding.evidence["at_step"] - 60) <= 3
    faster = TimelineBuilder().steps(60, data_wait=0.03, **COMPUTE).steps(60, data_wait=0.001, **COMPUTE)
    assert "drift" not in causes(faster)
    assert not causes(healthy())


def test_a_change_that_came_with_a_neighbour_is_the_neighbours() -> None:
    def run(before: float, after: float) -> Findings:
        builder = TimelineBuilder().steps(100, **COMPUTE).steps(100, **{**COMPUTE, "backward": 0.03})
        timeline = builder.build()
        first, split, last = timeline.step[0].t, timeline.step[100].t, timeline.step[-1].t
        around = [
            Around(t, others_cores=before if t <= split else after)
            for t in range(first + 1, last, (last - first) // 10)
        ]
        return diagnose(timeline, cpu_machine(), "train.py", around=around)

    quiet, busy = run(0.1, 0.1), run(0.1, 0.9)
    assert "drift" in {f.cause for f in quiet.findings} and not [n for n in quiet.notes if "took" in n]
    assert "drift" not in {f.cause for f in busy.findings}
    assert [n for n in busy.notes if "other processes took 0.9 of 2 cores (0.1 before)" in n]


@pytest.mark.parametrize("jump", [False, True], ids=["growth", "change"])
@pytest.mark.parametrize("phases", [("forward", "backward", "optimizer"), ("forward", "backward")], ids=len)
def test_a_processor_that_gives_less_is_no_cause_of_the_scripts(phases: tuple[str, ...], jump: bool) -> None:
    builder = TimelineBuilder()
    for i in range(120):
        more = 1 + (0.4 * (i >= 60) if jump else i / 300)
        builder.steps(1, **{name: s * more if name in phases else s for name, s in COMPUTE.items()})
    report = diagnose(builder.build(), cpu_machine(2), "train.py")
    alike = len(phases) == 3
    assert ({"drift", "growing-step"} & {f.cause for f in report.findings} == set()) == alike
    told = [n for n in report.notes if "forward, backward and update alike" in n]
    assert len(told) == alike and all(("from step 6" if jump else "over the run") in n for n in told)


def test_looks_that_come_rarer_as_a_run_grows_old_are_no_standstill() -> None:
    timeline = healthy().build()
    at_s = [0.0]
    while at_s[-1] < 24 * 3600:
        at_s.append(at_s[-1] + max(1.0, 0.0005 * at_s[-1]))
    first = timeline.step[0].t
    timeline.tick += [Tick(first + int(s * 1e9), 2**30, 0) for s in at_s]
    told = lambda: [n for n in make_notes(look(timeline, cpu_machine(), DEFAULT)) if "stood still" in n]  # noqa: E731
    assert told() == []
    del timeline.tick[len(at_s) // 2 : len(at_s) // 2 + 30]
    assert len(told()) == 1 and "1 times" in told()[0]


def test_what_follows_the_last_step_is_in_no_row() -> None:
    builder = TimelineBuilder()
    for epoch in range(2):
        builder.steps(50, **COMPUTE)
        if epoch == 0:
            builder.event("validation", 0.5, MAIN, EVALUATE)
    timeline = builder.build()
    last = replace(timeline.event[-1], i=timeline.step[-1].i + timeline.step[-1].n)  # of the second, and no row came
    timeline.event.append(last)
    found = look(timeline, cpu_machine(), DEFAULT).times.validation
    assert found.each_s == pytest.approx(0.5) and found.count == 2


def test_a_growth_with_a_jump_of_noise_in_it_is_a_growth() -> None:
    def run(slope: float) -> dict[str, Finding]:
        builder = TimelineBuilder()
        for i in range(240):
            busy = 0.02 if i >= 120 else 0.0
            builder.steps(1, **{**COMPUTE, "residual": 0.004 + slope * i + busy})
        return causes(builder)

    assert "growing-step" in run(0.00008) and "drift" not in run(0.00008)
    assert "drift" in run(0.0) and "growing-step" not in run(0.0)


def faulting(each_step: int, system_s: float | None = None) -> TimelineBuilder:
    """150 steps of 20 ms between two ticks, three seconds apart."""
    builder = TimelineBuilder().steps(1, **COMPUTE)
    for at in (0, 150):
        if at:
            builder.steps(at, **COMPUTE)
        kernel = None if system_s is None else round(at * system_s * 1e9)
        builder.ticks(1, minor_faults=at * each_step, system_cpu=kernel)
    return builder


def test_page_faults_cost_no_more_than_the_kernel_took() -> None:
    found = causes(faulting(3000))["page-faults"]
    assert found.seconds_per_step == pytest.approx(3000 * 1.4e-6, rel=0.02)
    assert found.seconds_per_step >= 0.0037, "3,000 faults cost 3.7 to 4.3 ms where they were measured"
    shared = causes(faulting(2450, system_s=0.0041))["page-faults"].seconds_per_step
    assert 0.0032 <= shared <= 0.0040, "2,450 faults, shared by two threads, cost 3.2 ms where they were measured"
    cheap = causes(faulting(3000, system_s=0.001))["page-faults"]
    assert cheap.seconds_per_step == pytest.approx(0.0013, rel=0.02)
    assert "page-faults" not in causes(faulting(3000, system_s=0.0002))
    assert "page-faults" not in causes(faulting(100))


def test_page_faults_are_no_shorter_in_another_type() -> None:
    plain, faults = (causes(faulting(each).setting("model", dtype="float32"), BF16) for each in (0, 3000))
    saved = plain["precision"].seconds_per_step - faults["precision"].seconds_per_step
    assert saved == pytest.approx(plain["precision"].evidence["prior"] * faults["page-faults"].seconds_per_step)


def test_pictures_by_what_the_line_calls() -> None:
    line = ("train.py", 120, "main", "grid.save(path)")
    pil = ("/v/site-packages/PIL/Image.py", 2600, "save", "")
    figure = ("/v/site-packages/matplotlib/figure.py", 800, "add_subplot", "")
    for below in (pil, figure):
        drawn = TimelineBuilder().steps(60, residual=0.01, **COMPUTE).stack("residual", 50, line, below)
        assert next(iter(causes(drawn))) == "logging-histogram"
    committed = ("train.py", 121, "main", "db.commit()")
    built = TimelineBuilder().steps(60, residual=0.01, **COMPUTE).stack("residual", 50, committed)
    assert next(iter(causes(built))) == "logging-forced"


def test_an_average_of_weights_that_torch_keeps_is_host_work() -> None:
    line = ("train.py", 120, "main", "average.update_parameters(model)")
    swa = ("/v/site-packages/torch/optim/swa_utils.py", 200, "update_parameters", "")
    built = TimelineBuilder().steps(60, residual=0.01, **COMPUTE).stack("residual", 50, line, swa)
    assert causes(built)["host-work"].where[0].line == 120


def test_lines_of_switches_that_leave_no_frame() -> None:
    threads = ("train.py", 3, "<module>", 'os.environ["OMP_NUM_THREADS"] = "16"')
    many = healthy().setting("threads", torch=16, cores=2).shape("thread-contention", threads, 3)
    assert causes(many, cpu_machine(2))["thread-contention"].where[0].line == 3
    lowered = ("train.py", 4, "<module>", "gc.set_threshold(10, 2, 2)")
    paused = TimelineBuilder().steps(60, gc=0.004, **COMPUTE).shape("gc", lowered, 4)
    assert [w.line for w in causes(paused)["gc"].where] == []
    assert causes(paused.setting("collector", enabled=True, thresholds=[10, 2, 2], frozen=0))["gc"].where[0].line == 4
