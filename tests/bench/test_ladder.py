"""The order of a ladder, its figures, and the simulated accelerator."""

from __future__ import annotations

import dataclasses
import json
import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ladder_turn
import pytest
import torch
from ladder import arms, keep
from ladder_chart import chart
from ladder_figures import completed, figures, whole_step_s
from ladder_keep import place, remember
from ladder_rungs import TIERS, ladder
from ladder_turn import Target, plain
from ladder_watch import Repeated, ShortEpochs, Watched, end_of, steady
from simulated import Device, Gpu, late
from simulated_task import SimulatedTask, count
from torch._subclasses.fake_tensor import FakeTensor

from hotlap_workloads.catalogue import NAMES, find_workload
from hotlap_workloads.engine.machine import Machine, check_machine
from hotlap_workloads.engine.order import Draw, Shuffled
from hotlap_workloads.engine.overrides import override
from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.engine.task import Context
from hotlap_workloads.errors import SettingsError
from hotlap_workloads.measured import Measured, measured

MACHINES = [Machine(2), Machine(16, (6, 0), "P100"), Machine(16, (9, 0), "H200")]


class Time:
    """A clock that only sleeping moves, and that sleeps a little too short."""

    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += max(seconds * 0.9, min(seconds, 1e-9))


def device(flops_per_s: float = 100.0) -> tuple[Device, Time]:
    moment = Time()
    return Device(flops_per_s, lambda: moment.now, moment.sleep), moment


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("machine", MACHINES, ids=lambda m: m.name)
@pytest.mark.parametrize("on", ["cpu", "cuda", "simulated"])
def test_a_ladder_goes_from_slow_to_fast_by_steps_that_each_make_sense(name: str, machine: Machine, on: Any) -> None:
    presets = find_workload(name).presets
    slow, fast = presets["slow"].make(machine), presets["fast"].make(machine)

    def check(settings: EngineSettings) -> None:
        settings.check()
        check_machine(settings, machine)

    rungs = ladder(slow, fast, check, on)
    assert rungs[0].settings == slow and rungs[-1].settings == fast and len({r.name for r in rungs}) == len(rungs) > 3
    for before, rung in pairwise(rungs):
        check(rung.settings)
        assert rung.changes and replace(before.settings, **rung.changes) == rung.settings
    tiers = [TIERS.index(rung.tier) for rung in rungs[1:]]
    assert tiers == sorted(tiers)


@dataclasses.dataclass(frozen=True)
class Extra(EngineSettings):
    own: str = "a"

    def check(self) -> None:
        super().check()
        if self.own == "b" and not self.pin_memory:
            raise SettingsError("own=b", "needs pin_memory")


def test_quick_wins_come_first_and_what_no_rung_names_last() -> None:
    fast = Extra(workers=2, read_loss_every_step=True, own="c", compile=True, pin_memory=True, channels_last=True)
    rungs = ladder(Extra(), fast, lambda settings: settings.check())
    assert [list(rung.changes) for rung in rungs] == [
        [], ["read_loss_every_step"], ["workers"], ["pin_memory"], ["channels_last"], ["compile"], ["own"],
    ]  # fmt: skip


def test_a_change_that_makes_no_sense_alone_shares_the_next_rung() -> None:
    rungs = ladder(Extra(own="b", pin_memory=True, compile=True), Extra(batch_size=7), lambda s: s.check())
    assert [list(rung.changes) for rung in rungs] == [[], ["pin_memory", "batch_size", "compile", "own"]]
    assert rungs[-1].settings == Extra(batch_size=7) and rungs[-1].name.count(" + ") == 3
    with pytest.raises(SettingsError):
        ladder(Extra(), Extra(own="b"), lambda s: s.check())


def test_what_a_simulation_cannot_see_is_carried_along_unnamed() -> None:
    fast = Extra(channels_last=True, compile=True, workers=1)
    rungs = ladder(Extra(), fast, lambda s: s.check(), "simulated")
    assert [rung.name for rung in rungs] == ["slow", "loading processes"] and rungs[-1].settings == fast


def turn(step_s: float, **more: float) -> dict[str, float]:
    return {"step_s": step_s, "samples": 10, "roof_step_s": 0.5, "data_wait_s": 0.1, "busy_frac": 0.5, **more}


def test_a_step_has_its_share_of_everything_periodic() -> None:
    periodic = {"evaluate_s": 6.0, "evaluate_every_steps": 3, "epoch_start_s": 1.0, "epoch_start_every_steps": 4}
    assert whole_step_s(turn(1.0, **periodic)) == pytest.approx(1 + 2 + 0.25)
    first, second = completed([turn(1.0, **periodic), turn(2.0, epoch_start_s=2.0, epoch_start_every_steps=4)])
    assert first["samples_per_s"] == pytest.approx(10 / 3.25) and first["of_roof"] == pytest.approx(0.5 / 3.25)
    assert second["samples_per_s"] == pytest.approx(10 / (2 + 2 + 0.5)), "its evaluation was timed in the first turn"
    assert second["steps_of_roof"] == pytest.approx(0.25)


def test_a_roof_waits_for_the_step_before_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Event:
        ended = False

        def record(self) -> None:
            assert not self.ended

        def synchronize(self) -> None:
            self.ended = True

    made: list[Event] = []
    monkeypatch.setattr(torch.cuda, "Event", lambda: made.append(Event()) or made[-1])
    waits: Any = [end_of(SimpleNamespace(is_cuda=True)) for _ in range(2)]  # type: ignore[arg-type]
    waits[0]()
    assert [event.ended for event in made] == [True, False]
    end_of(torch.ones(()))()


def test_factors_are_of_the_same_round_and_accumulate() -> None:
    turns = {"slow": [turn(4.0), turn(8.0), turn(4.0)], "a": [turn(2.0), turn(4.0), turn(1.0)], "b": [turn(1.0)] * 3}
    rows = figures(["slow", "a", "failed", "b"], turns)
    assert [row["name"] for row in rows] == ["slow", "a", "b"]
    assert [row["factor"]["median"] for row in rows] == pytest.approx([1, 2, 2])
    assert [row["cumulated"]["median"] for row in rows] == pytest.approx([1, 2, 4])
    assert (rows[1]["cumulated"]["lowest"], rows[1]["cumulated"]["highest"]) == pytest.approx((2, 4))
    assert rows[0]["samples_per_s_range"] == pytest.approx([1.25, 2.5])
    drawn = chart("A <title>", "about", rows)
    assert drawn.startswith("<svg") and "A &lt;title&gt;" in drawn and "4.00x" in drawn and drawn.count('"bar"') == 3


def test_settings_survive_the_way_to_another_process() -> None:
    settings = replace(EngineSettings(), trackers=("tensorboard",), lr=1e-4, persistent_workers=True, workers=3)
    assert override(EngineSettings(), json.loads(json.dumps(plain(settings))), "here") == settings


def test_short_epochs() -> None:
    order = ShortEpochs(Shuffled(100, 1), 2, 5)
    assert len(order.batches(order.rows(0), 10)) == 2 and len(order.batches(order.rows(1), 10)) == 5
    assert order.rows(1) == Shuffled(100, 1).rows(1)


def test_an_epoch_goes_through_the_data_several_times() -> None:
    plain_order = Shuffled(10, 1)
    order = Repeated(plain_order, 3, 5)
    assert order.rows(1) == plain_order.rows(3) + plain_order.rows(4) + plain_order.rows(0), "it has five epochs"
    assert len(order.batches(order.rows(0), 4)) == 8


def test_the_pace_is_that_of_the_second_half_of_an_epoch() -> None:
    found = steady(10.0, 21.5, [15.0, 16.0, 18.0, 21.0], [4.0, 0.0, 1.0, 2.0], [1.0] * 4, False)
    assert found == {"step_s": 2.5, "data_wait_s": 1.5, "in_step_s": 1.0, "epoch_start_s": 1.5}
    one = steady(10.0, 14.0, [13.0], [2.0], [1.0], False)
    assert one["step_s"] == 3.0 and one["epoch_start_s"] == 1.0


def test_a_whole_epoch_holds_steps_of_all_sizes() -> None:
    found = steady(10.0, 27.0, [15.0, 16.0, 18.0, 26.0], [4.5, 0.5, 0.5, 0.5], [0.5, 0.5, 1.5, 7.5], True)
    assert found == {"step_s": 3.0, "data_wait_s": 0.5, "in_step_s": pytest.approx(9.5 / 3), "epoch_start_s": 5.0}
    one = steady(10.0, 14.0, [13.0], [2.0], [1.0], True)
    assert one == {"step_s": 1.0, "data_wait_s": 2.0, "in_step_s": 1.0, "epoch_start_s": 3.0}


def test_the_device_works_while_the_host_goes_on() -> None:
    made, moment = device()
    first = made.launch(100.0)
    assert moment.now == 0.0 and first == 1.0
    moment.now = 0.25
    assert made.launch(50.0) == 1.5, "one thing after the other"
    moment.now = 5.0
    assert made.launch(100.0) == 6.0, "it begins when it is asked"
    made.wait()
    assert moment.now == pytest.approx(6.0) and made.busy_s == 2.5


def test_reading_what_is_late_waits_and_computing_with_it_does_not() -> None:
    made, moment = device()
    weight = torch.zeros((), requires_grad=True)
    loss = late(weight + 3.0, made, made.launch(100.0))
    half = (0 + loss / 2).detach() + 1
    loss.backward()
    assert moment.now == 0.0 and weight.grad == 1.0
    assert not torch.isnan(half) and moment.now == pytest.approx(1.0)
    moment.now = 0.0
    later = half + late(torch.ones(()), made, made.launch(300.0))
    for read in (float, torch.Tensor.item, torch.Tensor.cpu, bool, torch.Tensor.tolist):
        moment.now = 0.0
        value = read(later)
        assert moment.now == pytest.approx(made.free_at) and type(value) in (float, bool, torch.Tensor)
    assert later.item() == 3.5


def test_a_simulated_gpu_is_of_its_row_and_its_settings() -> None:
    gpu = Gpu("A100", 0.25)
    assert gpu.device(EngineSettings(precision="bf16")).flops_per_s == pytest.approx(312e12 / 4)
    assert gpu.device(EngineSettings()).flops_per_s == pytest.approx(19.5e12 / 4)
    assert gpu.device(EngineSettings(tf32=True)).flops_per_s == pytest.approx(156e12 / 4)
    assert gpu.machine(3) == Machine(3, (8, 0), "simulated A100") and Gpu("P100", 1).machine(2).capability == (6, 0)
    for wrong in (("A1000000", 0.3), ("A100", 0.0)):
        with pytest.raises(ValueError, match=r"A1000000|MFU"):
            Gpu(*wrong)


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 2)

    def forward(self, batch: Any) -> Any:
        out = self.layer(batch[0] if isinstance(batch, list) else batch)
        return {"loss": out.square().mean()} if self.training else out


class Rows:
    """Eight numbers and a label each."""

    def __len__(self) -> int:
        return 40

    def __getitem__(self, draw: Draw) -> tuple[torch.Tensor, int]:
        return torch.full((8,), float(draw.row)), 1


class Task:
    train_set, order, stages, collate = Rows(), Shuffled(40, 1), (), None

    def __init__(self) -> None:
        self.objective = Net()

    def evaluate(self, heavy: bool) -> dict[str, float]:
        with torch.inference_mode():
            return {"mean": float(sum(self.objective(torch.ones(rows, 8)).mean() for rows in (5, 5, 3)))}


def test_flops_are_counted_on_a_real_batch() -> None:
    task = Task()
    counted = count(task, EngineSettings(batch_size=16))
    assert counted.flops_per_sample == 2 * 8 * 2 * 2, "forward, and the gradient of the weights"
    assert list(counted.said) == ["loss"] and all(p.grad is None for p in task.objective.parameters())


def test_a_simulated_training_waits_where_a_real_one_would() -> None:
    made, moment = device(64.0)
    task = Task()
    counted = count(task, EngineSettings())
    settings = EngineSettings(batch_size=10, pin_memory=True, non_blocking=True)
    objective = SimulatedTask(task, counted, made, settings).objective
    for _ in range(2):
        said = objective([torch.zeros(10, 8)])
        said["loss"].backward()
    assert moment.now == 0.0 and made.free_at == pytest.approx(2 * 10 * 64 / 64)
    assert [name for name, p in objective.named_parameters() if p.requires_grad] == ["nothing"]
    blocking = SimulatedTask(task, counted, made, EngineSettings(batch_size=10)).objective
    blocking([torch.zeros(10, 8)])
    assert moment.now == pytest.approx(20.0), "a blocking copy waits for the step before"


def test_a_simulated_evaluation_makes_up_an_answer_to_each_form_of_input_once() -> None:
    made, moment = device(32.0)
    task = Task()
    calls: list[tuple[int, bool]] = []
    task.objective.layer.register_forward_hook(
        lambda _, given, __: calls.append((len(given[0]), isinstance(given[0], FakeTensor)))
    )
    simulated = SimulatedTask(task, count(task, EngineSettings()), made, EngineSettings())
    task.objective.eval()
    del calls[:]
    plain_call = torch.nn.Module.__call__
    first = simulated.evaluate(False)
    waited = moment.now
    assert calls == [(5, True), (3, True)] and waited == pytest.approx((5 + 5 + 3) * 8 * 2 * 2 / 32)
    assert simulated.evaluate(False) == first and len(calls) == 2 and moment.now == pytest.approx(2 * waited)
    assert torch.nn.Module.__call__ is plain_call


def test_the_list_knows_what_was_measured_and_on_what(tmp_path: Path) -> None:
    file = tmp_path / "measured.json"
    file.write_text("{}")
    facts = {"cpu": "A CPU", "cpu_flags": [], "cores": 2, "torch": "2.13", "accelerators": [{"name": "H200"}]}
    here, simulated = place(facts, "cpu", None), place(facts, "A100", 0.3)
    assert here == "A CPU, 2 cores, torch 2.13" and "SIMULATED A100 (MFU 0.3" in simulated
    assert place(facts, "cuda", None).startswith("H200, A CPU")
    same_name = [place(facts | {"cpu_flags": flags}, "cpu", None) for flags in (["avx2"], ["avx2", "avx512f"])]
    assert same_name == ["A CPU (AVX2), 2 cores, torch 2.13", "A CPU (AVX-512), 2 cores, torch 2.13"]
    remember("w", {"slow": Measured(1.0, here, "x", "d"), "fast": Measured(2.0, here, "x", "d")}, file)
    remember("w", {"slow": Measured(3.0, here, "x", "e")}, file)
    remember("w", {"slow": Measured(9.0, simulated, "x", "e")}, file)
    document = json.loads(file.read_text())
    assert [str(row) for row in measured("w", "slow", document)] == [
        "3.0 samples/s on A CPU, 2 cores, torch 2.13 (x, e)",
        f"9.0 samples/s on {simulated} (x, e)",
    ]
    assert not list(measured("w", "other", document)) and not list(measured("v", "slow", document))


class Wide(Rows):
    """Batches as wide as their first draw says: 8 to 64 numbers, all equally likely."""

    def __getitems__(self, draws: Sequence[Draw]) -> list[tuple[torch.Tensor, int]]:
        width = 8 * (1 + draws[0].seed % 8)
        return [(torch.ones(width), 1) for _ in draws]


class Sums(torch.nn.Module):
    """Twice as many FLOPs for twice as wide a batch."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1, 4))
        self.seen: list[int] = []

    def forward(self, batch: Any) -> dict[str, torch.Tensor]:
        self.seen.append(batch[0].shape[1])
        return {"loss": (batch[0].reshape(-1, 1) @ self.weight).mean()}


def test_flops_of_batches_of_random_sizes_are_those_of_their_mean() -> None:
    found = []
    for seed in (1, 2, 3):
        task = Task()
        task.train_set, task.objective = Wide(), Sums()  # type: ignore[assignment]
        found.append(count(task, EngineSettings(seed=seed)).flops_per_sample)
        assert len(task.objective.seen) == len(set(task.objective.seen)) <= 9, "each size is counted once"
    mean = 36 * 4 * 2 * 2
    assert found == pytest.approx([mean] * 3, rel=0.1)


def test_the_first_evaluation_is_not_timed(tmp_path: Path) -> None:
    task, calls = Task(), list[bool]()

    def evaluate(heavy: bool) -> dict[str, float]:
        time.sleep(0.0 if heavy in calls else 0.3)
        calls.append(heavy)
        return {}

    task.evaluate = evaluate  # type: ignore[method-assign]
    settings = EngineSettings(batch_size=8, evaluate_every_epochs=1, heavy_every_epochs=2)
    context = Context(torch.device("cpu"), tmp_path, say=lambda line: None)
    found = Watched("toy", task, settings, context, 2, lambda: None).periodic()
    assert calls == [False, False, True, True] and found["evaluate_s"] < 0.2 and found["heavy_s"] < 0.2
    assert (found["evaluate_every_steps"], found["heavy_every_steps"]) == (5, 10)


def test_presets_that_search_their_batch_are_left_out_where_nothing_can_be_searched(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = Namespace(workload="tiny_detr", set=[], data=None, ends=False, presets=True)
    _, found = arms(asked, Target("A100", 0.3))
    assert "preset training" in found and "preset training_fast_a5000" not in found
    assert "training_fast_a5000 is left out" in capsys.readouterr().err
    _, found = arms(asked, Target("cpu"))
    assert "preset training_fast_a5000" in found  # as it searches nothing there


def test_the_list_alone_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Namespace(workload="tiny_detr", set=[], data=None, ends=True, presets=True, for_list=True,
                      no_evaluations=False)  # fmt: skip
    target, noted = Target("cpu"), dict[str, Any]()
    rungs, found = arms(asked, target)
    assert len(rungs) == 2 and {"slow", "preset training"} < set(found)
    monkeypatch.setattr("ladder.save", lambda name, document: pytest.fail("no ladder was measured"))
    monkeypatch.setattr("ladder.remember", lambda workload, rows: noted.update(rows))
    rows = [{"name": name, "samples_per_s": k} for k, name in enumerate(("slow", rungs[1].name, "preset training"))]
    keep(asked, target, rungs, {"rows": rows[:2], "presets": rows[2:]}, "")
    assert {name: row.samples_per_s for name, row in noted.items()} == {"slow": 0, "fast": 1, "training": 2}


def test_a_preset_that_searches_its_batch_is_measured_with_what_it_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ladder_turn, "find_workload", lambda name: SimpleNamespace(build=lambda s, context: Task()))
    monkeypatch.setattr(ladder_turn, "find_batch_size", lambda task, settings, context: 20)
    monkeypatch.setattr(ladder_turn, "pick_device", lambda settings, machine: torch.device("cpu"))
    settings = EngineSettings(batch_size=8, search_batch_size=True)
    asked = {"workload": "toy", "out": str(tmp_path), "steps": 2, "times": 1}
    trainer, _ = ladder_turn.opened(asked, Target("cuda"), settings, None)
    assert trainer.batch_size == trainer.settings.batch_size == 20
