"""Causes on the host's side: the collector, forced and heavy logging, syncs, each beside a near miss."""

from __future__ import annotations

import pytest
from diagnose_scripts import COMPUTE, causes, healthy, judge

from hotlap.testing.timelines import TimelineBuilder, UserLine

GPU = "NVIDIA H200"
TORCH = "/v/lib/python3.11/site-packages/torch"
STEP: UserLine = ("train.py", 95, "main", "loss = lossf(model(x), y)")
UPDATE: UserLine = ("train.py", 99, "main", "average.update()")


def test_gc_collect_names_its_line_and_leaves_the_rest_to_gc() -> None:
    line = ("train.py", 70, "main", "gc.collect()")
    other = ("train.py", 64, "main", "rows = [dict(r) for r in rows]")

    def collected(by_hand: float, total: float) -> TimelineBuilder:
        builder = TimelineBuilder().steps(60, gc=total, **COMPUTE)
        builder.site("gc", "full", other, 6, (total - by_hand) * 60)
        return builder.site("gc", "collect", line, 60, by_hand * 60) if by_hand else builder

    found = causes(collected(0.010, 0.010))
    assert found["gc-collect"].where[0].line == 70 and "gc" not in found
    assert found["gc-collect"].seconds_per_step == pytest.approx(0.010, rel=0.05)
    both = causes(collected(0.004, 0.010))
    assert both["gc"].seconds_per_step == pytest.approx(0.006, rel=0.05) and both["gc"].where[0].line == 64
    assert both["gc"].evidence["full_each_s"] == pytest.approx(0.06, rel=0.05)
    alone = causes(collected(0.0, 0.010))
    assert "gc-collect" not in alone and "gc" in alone
    assert not {"gc", "gc-collect"} & set(causes(collected(0.0002, 0.0002)))


def test_empty_cache_on_a_device_only() -> None:
    line = ("train.py", 71, "main", "torch.cuda.empty_cache()")
    for device, seconds, expected in ((GPU, 0.3, True), (GPU, 0.002, False), ("cpu", 0.3, False)):
        builder = TimelineBuilder(device).steps(60, residual=0.005, **COMPUTE)
        found = causes(builder.site("memory", "empty_cache", line, 60, seconds))
        assert ("empty-cache" in found) is expected
    assert "logging-blocking" not in found, "a timed call of another kind is no logging"


def logged(*sites: tuple[str, str, float]) -> TimelineBuilder:
    builder = TimelineBuilder().steps(60, logging=sum(s for _, _, s in sites), **COMPUTE)
    for i, (op, text, seconds) in enumerate(sites):
        builder.site("logging", op, ("train.py", 100 + i, "main", text), 60, seconds * 60)
    return builder


def test_logging_is_told_apart() -> None:
    found = causes(
        logged(
            ("fsync", "os.fsync(log.fileno())", 0.006),
            ("SummaryWriter.add_histogram", "writer.add_histogram(name, p)", 0.004),
            ("print", "print(step, loss)", 0.002),
        )
    )
    assert found["logging-forced"].where[0].line == 100 and "fsync" in found["logging-forced"].detail
    assert found["logging-forced"].seconds_per_step == pytest.approx(0.006, rel=0.05)
    assert found["logging-histogram"].where[0].line == 101
    assert found["logging-histogram"].evidence["each_s"] == pytest.approx(0.004, rel=0.05)
    assert found["logging-blocking"].seconds_per_step == pytest.approx(0.002, rel=0.05)
    assert set(causes(logged(("print", "print(step, loss)", 0.002)))) == {"logging-blocking"}
    assert set(causes(logged(("print", "print(step, loss, flush=True)", 0.002)))) == {"logging-forced"}


@pytest.mark.parametrize(
    "text",
    ["log.flush()", "with open('log.csv', 'a') as log:", "os.fsync(fd)",
     'log = open(path, "w", buffering=1)'],
)  # fmt: skip
def test_forced_writes_in_the_residual(text: str) -> None:
    line = ("train.py", 120, "main", text)
    builder = TimelineBuilder().steps(60, residual=0.01, **COMPUTE).stack("residual", 50, line)
    found = causes(builder)
    assert found["logging-forced"].where[0].line == 120 and "logging-blocking" not in found


def test_work_in_the_arguments_of_a_forced_print_is_no_logging() -> None:
    printed = ("train.py", 70, "run", 'print(f"step {step} EER {self.equal_error():.3f}", flush=True)')
    inside = ("train.py", 55, "equal_error", "order = scores.argsort(descending=True)")
    found = causes(healthy(residual=0.004).stack("residual", 40, printed, inside))
    assert found["host-work"].where[0].line == 55
    assert not {"logging-forced", "logging-blocking"} & set(found)


def test_reading_a_file_is_no_forced_write() -> None:
    line = ("train.py", 120, "main", "text = open('notes.txt', 'r').read()")
    builder = TimelineBuilder().steps(60, residual=0.01, **COMPUTE).stack("residual", 50, line)
    assert not {"logging-forced", "logging-blocking"} & set(causes(builder))


@pytest.mark.parametrize(
    ("op", "text", "words"),
    [
        ("item", "bar.set_postfix(loss=loss.item())", "progress bar"),
        ("item", "total += loss.item()", ".item()"),
        ("bool", "if loss < best:", "condition"),
        ("cpu", "predictions.append(out.cpu())", ".cpu()"),
        ("numpy", "scores = out.detach().numpy()", ".numpy()"),
        ("tolist", "names = ids.tolist()", ".tolist()"),
        ("synchronize", "torch.cuda.synchronize()", "synchronize"),
    ],
)
def test_sync_says_what_waits(op: str, text: str, words: str) -> None:
    line = ("train.py", 101, "main", text)
    sync = causes(TimelineBuilder(GPU).steps(60, sync=0.01, **COMPUTE).site("sync", op, line, 60, 0.6))["sync"]
    assert words in sync.detail and sync.where[0].line == 101


def test_syncs_on_a_cpu_are_a_note() -> None:
    line = ("train.py", 101, "main", "total += loss.item()")
    notes = judge(healthy().site("sync", "item", line, 240, 0.0001)).notes
    assert any("train.py:101" in n and "free here, on a GPU" in n for n in notes)
    assert not any("free here" in n for n in judge(healthy().site("sync", "item", line, 4, 0.0001)).notes)


def in_torch(file: str, function: str) -> UserLine:
    return (f"{TORCH}/{file}", 1, function, "")


def test_tensors_one_by_one_are_host_work() -> None:
    header = ("train.py", 31, "update", "for name, value in self.teacher.state_dict().items():")
    copy = ("train.py", 32, "update", "averaged[name] = self.decay * value + (1 - self.decay) * student[name]")
    back = ("train.py", 33, "update", "self.teacher.load_state_dict(averaged)")
    builder = TimelineBuilder().steps(60, residual=0.01, **COMPUTE).loop("train.py", 32, header[3])
    builder.stack("forward", 20, STEP).stack("residual", 40, UPDATE, copy)
    builder.stack("residual", 30, UPDATE, back, in_torch("nn/modules/module.py", "_load_from_state_dict"))
    builder.stack("residual", 30, UPDATE, header, in_torch("nn/modules/module.py", "state_dict"))
    found = causes(builder)
    assert "slow-iterator" not in found, "the loop is not the step's"
    assert found["host-work"].seconds_per_step == pytest.approx(0.01, rel=0.02), "a module's own Python is no compute"
    assert found["host-work"].where[0].line == 32
    assert "one by one" in found["host-work"].detail and "_foreach_" in found["host-work"].advice
    loss = TimelineBuilder().steps(60, residual=0.01, **COMPUTE)
    loss.stack("residual", 50, STEP, in_torch("nn/functional.py", "cross_entropy"))
    assert "host-work" not in causes(loss), "a loss called as a function"


COPY = ("/usr/lib/python3.11/copy.py", 211, "_deepcopy_dict", "")


@pytest.mark.parametrize(
    "below",
    [(COPY, in_torch("_tensor.py", "__deepcopy__")), (COPY, in_torch("storage.py", "clone")),
     (in_torch("_tensor_str.py", "_str_intern"), in_torch("_tensor.py", "item"))],
)  # fmt: skip
def test_tensors_copied_or_written_out_are_host_work(below: tuple[UserLine, ...]) -> None:
    best = ("train.py", 97, "main", "best = copy.deepcopy(model.state_dict())")
    found = causes(TimelineBuilder().steps(60, residual=0.01, **COMPUTE).stack("residual", 50, best, *below))
    assert (
        found["host-work"].seconds_per_step == pytest.approx(0.01, rel=0.02) and found["host-work"].where[0].line == 97
    )


@pytest.mark.parametrize(
    ("header", "function", "work"),
    [("for one, goal in zip(out, wanted):", "main", True), ("for p in model.parameters():", "norms", True),
     ("for x, y in loader:", "main", False), ("for head in (0, 1, 2):", "main", False), ("", "<listcomp>", True),
     ("for scale in range(4):", "main", False), ("", "norms", False)],
)  # fmt: skip
def test_torch_called_in_a_loop_of_its_own_is_host_work(header: str, function: str, work: bool) -> None:
    line = ("train.py", 60, function, "total = total + F.kl_div(one, goal)")
    builder = TimelineBuilder().steps(60, residual=0.01, **COMPUTE).stack("forward", 20, STEP)
    builder.loop("train.py", STEP[1], "for x, y in loader:").loop("train.py", 60, header)
    builder.stack("residual", 50, line, in_torch("nn/functional.py", "kl_div"))
    assert ("host-work" in causes(builder)) is work


@pytest.mark.parametrize(("line", "cause"), [(91, "slow-iterator"), (98, "host-work")])
def test_the_steps_own_loop_waits_for_an_iterator(line: int, cause: str) -> None:
    asked = ("train.py", line, "main", "for x, y in pairs(model):")
    builder = TimelineBuilder().steps(60, residual=0.01, **COMPUTE).stack("forward", 20, STEP)
    builder.stack("backward", 20, ("train.py", 96, "main", "loss.backward()")).stack("residual", 50, asked)
    found = causes(builder)
    assert found[cause].where[0].line == line
    assert len({"slow-iterator", "host-work"} & set(found)) == 1


def test_a_trace_that_is_written_is_the_profilers() -> None:
    made = ("train.py", 69, "tracing", "profiler = profile(schedule=rare, on_trace_ready=save)")
    call = ("train.py", 91, "main", "profiler.step()")
    save = ("train.py", 67, "save", "f.write(prof.key_averages().table())")
    table = in_torch("autograd/profiler_util.py", "_build_table")

    def traced(**debug: object) -> TimelineBuilder:
        builder = TimelineBuilder().steps(60, residual=0.010, **COMPUTE).stack("forward", 20, STEP)
        builder.stack("residual", 60, call, save, table)
        builder.stack("residual", 40, call, in_torch("profiler/profiler.py", "stop_trace"))
        return builder.setting("debug", made, **{"anomaly": False, **debug}) if debug else builder

    found = causes(traced(profiler=True, profiler_frac=0.25))
    assert not {"logging-blocking", "logging-forced", "host-work"} & set(found)
    profiler = found["autograd-debug"]
    assert [w.line for w in profiler.where[:2]] == [69, 67] and profiler.phase == "residual"
    assert profiler.seconds_per_step == pytest.approx(0.010 + 0.25 * 0.2 * 0.020, rel=0.02)
    rested = causes(traced())["autograd-debug"]
    assert rested.seconds_per_step == pytest.approx(0.010, rel=0.02) and rested.where[0].line == 67
    collecting = TimelineBuilder().steps(60, residual=0.010, gc=0.008, **COMPUTE)
    collecting.stack("residual", 60, call, save, table).site("gc", "full", save, 3, 0.36)
    both = causes(collecting.site("gc", "full", STEP, 1, 0.12))
    assert both["autograd-debug"].evidence["collected_s"] == pytest.approx(0.006, rel=0.02)
    assert both["gc"].seconds_per_step == pytest.approx(0.002, rel=0.02), "collections on the lines that gather"
    assert [w.line for w in both["gc"].where] == [STEP[1]]
    stopped = traced(profiler=True, profiler_frac=0.5).setting("debug", anomaly=False, profiler=False)
    assert "autograd-debug" not in causes(stopped), "a few steps were traced, and no more"
    marks = TimelineBuilder().steps(60, residual=0.010, **COMPUTE)
    marks.stack("residual", 60, ("train.py", 94, "main", "with record_function('step'):"),
                in_torch("autograd/profiler.py", "__enter__"))  # fmt: skip
    assert "autograd-debug" not in causes(marks), "a mark in the source is no profiler"


def test_a_profiler_that_records_few_steps_costs_few() -> None:
    def on(frac: float) -> TimelineBuilder:
        return TimelineBuilder().steps(60, **COMPUTE).setting("debug", STEP, profiler=True, profiler_frac=frac)

    assert causes(on(1.0))["autograd-debug"].seconds_per_step == pytest.approx(0.2 * 0.020, rel=0.02)
    assert "autograd-debug" not in causes(on(0.05))


def test_the_profilers_work_is_told_once() -> None:
    def with_stack(gathered: int) -> TimelineBuilder:
        builder = TimelineBuilder().steps(60, residual=0.010, **COMPUTE).setting("debug", profiler=True)
        builder.setting("tracing", profile="torch.profiler with_stack")
        builder.stack("residual", gathered, STEP, in_torch("profiler/profiler.py", "step"))
        return builder.stack("residual", 100 - gathered, STEP)

    before, after = (causes(with_stack(n))["profiler-left-on"].evidence["python_s"] for n in (0, 80))
    assert before - after == pytest.approx(0.008, rel=0.02)


def test_hooks_within_the_phases() -> None:
    module = (f"{TORCH}/nn/modules/module.py", 1800, "inner", "")
    linear = (f"{TORCH}/nn/modules/linear.py", 130, "forward", "")
    graph = (f"{TORCH}/autograd/graph.py", 860, "_engine_run_backward", "")
    hook: UserLine = ("watch.py", 12, "record", "self.stats[name] = torch.quantile(output, 0.9).item()")
    grad_hook: UserLine = ("watch.py", 30, "seen", "norms.append(grad.norm().item())")
    builder = healthy().stack("forward", 30, STEP, module, hook).stack("forward", 70, STEP, module, linear)
    builder.stack("backward", 20, ("train.py", 96, "main", "loss.backward()"), graph, grad_hook)
    builder.stack("backward", 80, ("train.py", 96, "main", "loss.backward()"), graph)
    assert "host-work" not in causes(builder), "no hook is registered: a forward that was replaced"
    builder.shape("hook", ("watch.py", 8, "watch", "module.register_forward_hook(record)"), 8)
    found = causes(builder)["host-work"]
    assert found.seconds_per_step == pytest.approx(0.3 * 0.01 + 0.2 * 0.01, rel=0.05)
    assert [w.line for w in found.where] == [12, 30] and "hook" in found.detail
    assert "every so many steps" in found.advice


def test_a_forward_that_is_wrapped_or_replaced_is_no_hook() -> None:
    module = (f"{TORCH}/nn/modules/module.py", 1800, "_call_impl", "")
    wrapper: UserLine = ("net.py", 5, "timed", "return forward(*args)")
    forward: UserLine = ("net.py", 12, "forward", "return self.head(x)")
    for inside in ([forward], [module]):
        builder = healthy().stack("forward", 90, STEP, module, wrapper, *inside)
        builder.shape("hook", ("cam.py", 8, "watch", "module.register_forward_hook(record)"), 8)
        assert "host-work" not in causes(builder)
