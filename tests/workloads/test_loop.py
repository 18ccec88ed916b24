"""The loop: exact resume, cadences, accumulation, guards, stopping."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from toy import Objective, Points, Toy, losses, trainer

from hotlap_workloads import session
from hotlap_workloads.engine import batch_search, loop
from hotlap_workloads.engine.batch_search import find_batch_size
from hotlap_workloads.engine.checkpoint import load, write
from hotlap_workloads.engine.loop import Trainer
from hotlap_workloads.engine.memory import largest_batch, lowered
from hotlap_workloads.engine.optimise import load_optimizer
from hotlap_workloads.engine.order import Position, RankBatches, Shuffled
from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.engine.stop_signal import StopSignal
from hotlap_workloads.engine.task import Context
from hotlap_workloads.errors import SettingsError, WorkloadError
from hotlap_workloads.session import Request

SMALL = EngineSettings(
    epochs=3, batch_size=8, print_every_steps=1, lr=0.01, schedule="cosine", warmup_epochs=0.5, clip_norm=1.0
)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"workers": 1, "persistent_workers": True},
        {"batches_ahead": 2, "accumulate": 2, "drop_last": False},
        {"accumulate": 2, "optimizer": "sgd", "schedule": "step", "decay_every_epochs": 1.0},
        {"precision": "bf16", "channels_last": True, "checkpoint_in_background": True, "on_nan": "skip"},
        {"activation_checkpointing": True, "optimizer": "adamw", "read_loss_every_step": True},
    ],
    ids=["plain", "workers", "ahead", "accumulate", "bf16", "recompute"],
)
def test_losses_after_a_resume_equal_those_of_the_uninterrupted_run(tmp_path: Path, change: dict[str, Any]) -> None:
    settings = replace(SMALL, **change)
    trainer(tmp_path / "whole", settings).run()
    for stop in (4, 7, 99):
        trainer(tmp_path / "parts", replace(settings, max_steps=0 if stop == 99 else stop)).run()
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")


@pytest.mark.parametrize(("from_steps", "is_compiled"), [(0, True), (18, True), (19, False)])
def test_a_training_too_short_to_earn_it_back_is_not_compiled(
    tmp_path: Path, from_steps: int, is_compiled: bool
) -> None:
    made = trainer(tmp_path, replace(SMALL, compile=True, compile_from_steps=from_steps))
    assert made.total_steps == 18 and made.stepper.settings.compile is is_compiled
    assert (made.stepper.objective._compiled_call_impl is not None) is is_compiled
    told = "Not compiled: 18 steps would not earn back what that takes at the start (compile_from_steps=19)."
    assert made.lines == ([] if is_compiled else [told])


def test_dropout_makes_the_resume_test_mean_something(tmp_path: Path) -> None:
    trainer(tmp_path / "a", SMALL).run()
    trainer(tmp_path / "b", replace(SMALL, seed=2)).run()
    assert losses(tmp_path / "a") != losses(tmp_path / "b")


def test_augmentation_does_not_depend_on_workers(tmp_path: Path) -> None:
    trainer(tmp_path / "a", SMALL).run()
    trainer(tmp_path / "b", replace(SMALL, workers=2, persistent_workers=True)).run()
    assert losses(tmp_path / "a") == losses(tmp_path / "b")


def test_activation_checkpointing_changes_no_number(tmp_path: Path) -> None:
    states = []
    for name, on in (("a", False), ("b", True)):
        made = trainer(tmp_path / name, replace(SMALL, activation_checkpointing=on, epochs=1), dropout=0.0)
        made.run()
        states.append(made.stepper.objective.state_dict())
    assert losses(tmp_path / "a") == losses(tmp_path / "b")
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0]), "nor the statistics of the norms"


def test_micro_batches_give_the_gradients_of_the_whole(tmp_path: Path) -> None:
    points, labels = torch.randn(16, 1, 4, 4), torch.arange(16) % 2
    gradients = []
    for parts in (1, 4):
        stepper = trainer(tmp_path, replace(SMALL, accumulate=parts), dropout=0.0).stepper
        stepper.objective.eval()  # BatchNorm would see each micro-batch alone
        means = stepper.forward_backward(list(zip(points.chunk(parts), labels.chunk(parts), strict=True)))
        gradients.append([p.grad.clone() for p in stepper.objective.parameters()] + [means["loss"]])
    torch.testing.assert_close(gradients[0], gradients[1])


def test_a_smaller_micro_batch_counts_by_its_rows(tmp_path: Path) -> None:
    points, labels = torch.randn(16, 1, 4, 4), torch.arange(16) % 2
    gradients = []
    for rows in ([16], [10, 6]):
        stepper = trainer(tmp_path, SMALL, dropout=0.0).stepper
        stepper.objective.eval()
        parts = list(zip(points.split(rows), labels.split(rows), strict=True))
        means = stepper.forward_backward(parts, rows)
        gradients.append([p.grad.clone() for p in stepper.objective.parameters()] + [means["loss"], means["mean"]])
    torch.testing.assert_close(gradients[0], gradients[1])


@pytest.mark.parametrize(("accumulate", "steps"), [(2, 3), (4, 2), (8, 1)])
def test_the_last_step_of_an_epoch_has_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, accumulate: int, steps: int
) -> None:
    """Without drop_last: 48 rows in batches of 10 are five, and all are trained on and counted."""
    plain, seen = Points.__getitem__, []

    def noted(self: Points, draw: Any) -> Any:
        seen.append(draw.row)
        return plain(self, draw)

    monkeypatch.setattr(Points, "__getitem__", noted)
    settings = replace(SMALL, epochs=2, batch_size=10, accumulate=accumulate, drop_last=False)
    result = trainer(tmp_path / "whole", settings).run()
    assert (result.steps, result.samples) == (2 * steps, 96) and sorted(seen) == sorted(2 * list(range(48)))
    for stop in (steps, 0):
        last = trainer(tmp_path / "parts", replace(settings, max_steps=stop)).run()
    assert last.samples == 48 and losses(tmp_path / "parts") == losses(tmp_path / "whole")


def test_a_rest_too_small_to_train_on_is_left_out() -> None:
    """A norm of one row has nothing to go by."""
    for rows, world, wanted in ((33, 1, [16, 16]), (34, 1, [16, 16, 2]), (35, 2, [16]), (36, 2, [16, 2])):
        for rank in range(world):
            order = Shuffled(rows, 3, least=2)
            batches = RankBatches(order, 3, 16, Position(), rank, world, drop_last=False)
            assert [len(batch) for batch in batches] == list(batches.sizes()) == wanted


def test_a_line_of_progress_has_its_form(tmp_path: Path) -> None:
    made = trainer(tmp_path, replace(SMALL, print_every_steps=5))
    made.run()
    form = r"Speed \d+\.\d samples/s  Loss \d+\.\d\d  Epoch 2  Step 10/18  ETA \d+\.\d h"
    assert any(re.fullmatch(form, line) for line in made.lines)


def test_cadences_in_epochs_become_steps(tmp_path: Path) -> None:
    settings = replace(SMALL, evaluate_every_epochs=0.5, heavy_every_epochs=2.0)
    trainer(tmp_path, settings).run()
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows if "light" in row] == [3, 6, 9, 12, 15, 18]
    assert [row["step"] for row in rows if "heavy" in row] == [12]


def test_a_checkpoint_cut_short_gives_way_to_the_one_before(tmp_path: Path) -> None:
    trainer(tmp_path, SMALL).run()
    whole = losses(tmp_path)
    newest = tmp_path / "checkpoint.pt"
    newest.write_bytes(newest.read_bytes()[:1000])
    (tmp_path / "metrics.jsonl").unlink()
    again = trainer(tmp_path, SMALL)
    again.run()
    assert any("cannot be read" in line and "checkpoint.previous.pt" in line for line in again.lines)
    assert losses(tmp_path).items() <= whole.items()
    for name in ("checkpoint.pt", "checkpoint.previous.pt"):
        (tmp_path / name).write_bytes(b"no")
    with pytest.raises(WorkloadError, match="No checkpoint can be read"):
        trainer(tmp_path, SMALL).run()


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    made = trainer(tmp_path, SMALL)
    made.run()
    other = trainer(tmp_path, SMALL)
    other.stepper.objective.head = torch.nn.Conv2d(8, 3, 2)
    with pytest.raises(WorkloadError, match=r"another model: 2 tensors differ, the first is 'head\.weight'"):
        other.run()


def test_nan_stops_with_the_batch_saved(tmp_path: Path) -> None:
    settings = replace(SMALL, evaluate_every_epochs=0, checkpoint_every_epochs=0)
    with pytest.raises(WorkloadError, match="its batch is in") as err:
        trainer(tmp_path, settings, bad_row=11).run()
    assert err.value.exit_code == 3
    saved = torch.load(tmp_path / "nan_batch.rank0.pt", weights_only=True)
    assert torch.isnan(saved["batch"][0][0]).any() and not (tmp_path / "checkpoint.pt").exists()


def test_nan_is_skipped_and_counted(tmp_path: Path) -> None:
    settings = replace(SMALL, on_nan="skip", checkpoint_every_epochs=0.5)
    made = trainer(tmp_path, settings, bad_row=11)
    result = made.run()
    assert result.skipped == 3 and result.steps == 18
    assert all(torch.isfinite(t).all() for t in made.stepper.objective.state_dict().values()), "norms have seen it"
    for stop in (9, 0):
        parts = trainer(tmp_path / "parts", replace(settings, max_steps=stop), bad_row=11)
        last = parts.run()
    assert last.skipped == 3 and losses(tmp_path / "parts") == losses(tmp_path)


def test_a_step_that_is_skipped_moves_no_centres(tmp_path: Path) -> None:
    """Which are a parameter without gradient, moved by forward as the norms' statistics are."""
    made = trainer(tmp_path, replace(SMALL, on_nan="skip", epochs=1), bad_row=11)
    made.stepper.objective.centres = torch.nn.Parameter(torch.zeros(2), requires_grad=False)
    made.stepper.objective.register_forward_pre_hook(lambda module, batch: (module.centres.data.add_(1), None)[1])
    result = made.run()
    assert (result.steps, result.skipped) == (6, 1) and made.stepper.objective.centres.tolist() == [5, 5]


@pytest.mark.parametrize(
    ("number", "name"),
    [(signal.SIGTERM, "SIGTERM"), pytest.param(signal.SIGINT, "Ctrl-C", marks=pytest.mark.cousin)],
)
def test_a_group_wide_signal_leaves_the_loading_processes_to_the_training(
    tmp_path: Path, number: signal.Signals, name: str
) -> None:
    out, script = tmp_path / "run", tmp_path / "long.py"
    script.write_text(f"""
import signal, sys
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # the tests may run in the background, which ignores it
from hotlap_workloads.engine.settings import EngineSettings
sys.path.insert(0, {str(Path(__file__).parent)!r})
from toy import trainer
loading = dict(workers=2, persistent_workers=True)
settings = EngineSettings(epochs=100000, batch_size=8, print_every_steps=10, evaluate_every_epochs=0, **loading)
trainer(Path({str(out)!r}), settings).run()
""")
    running = subprocess.Popen([sys.executable, str(script)], stderr=subprocess.PIPE, text=True, start_new_session=True)
    metrics, until = out / "metrics.jsonl", time.monotonic() + 60
    while not (metrics.exists() and metrics.read_text().count("\n") > 2):
        assert running.poll() is None and time.monotonic() < until
        time.sleep(0.05)
    os.killpg(running.pid, number)
    error = running.communicate(timeout=60)[1]
    assert f"Stopped by {name} after step" in error and (out / "checkpoint.pt").exists(), error


@pytest.mark.parametrize("background", [False, True])
def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, background: bool) -> None:
    def full(state: object, out: Any) -> None:
        out.write(b"half of it")
        raise RuntimeError("[enforce fail at inline_container.cc:664] . unexpected pos 64 vs 0")

    made = trainer(tmp_path, replace(SMALL, checkpoint_in_background=background, checkpoint_every_epochs=0))
    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(WorkloadError, match=r"Cannot write a checkpoint in .*: .*unexpected pos"):
        made.run()
    assert not list(tmp_path.glob("checkpoint*"))


def test_a_file_that_is_no_checkpoint_of_a_training_is_named(tmp_path: Path) -> None:
    made = trainer(tmp_path, SMALL)
    torch.save(made.stepper.objective.state_dict(), tmp_path / "checkpoint.pt")
    with pytest.raises(WorkloadError, match=r"checkpoint\.pt is no checkpoint of a training"):
        made.run()


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """As in the foreground, also where the tests run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("number", "name", "exit_code"), [(signal.SIGTERM, "SIGTERM", 143), (signal.SIGINT, "Ctrl-C", 130)]
)
def test_a_signal_saves_and_the_same_command_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ctrl_c: None, number: signal.Signals, name: str, exit_code: int
) -> None:
    trainer(tmp_path / "whole", SMALL).run()
    plain = Points.__getitem__
    seen = []

    def pull_the_plug(self: Points, draw: Any) -> Any:
        seen.append(draw)
        if len(seen) == 60:
            os.kill(os.getpid(), number)
        return plain(self, draw)

    monkeypatch.setattr(Points, "__getitem__", pull_the_plug)
    before = signal.getsignal(number)
    with pytest.raises(WorkloadError, match=f"Stopped by {name} after step 8") as err:
        trainer(tmp_path / "cut", SMALL).run()
    assert err.value.exit_code == exit_code and signal.getsignal(number) is before
    trainer(tmp_path / "cut", SMALL).run()
    assert losses(tmp_path / "cut") == losses(tmp_path / "whole")


def test_a_stop_does_not_wait_for_the_evaluations_that_are_due(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are made up for once, the heavy one too. Nor does one that comes at once when the training goes on."""
    settings = replace(SMALL, checkpoint_every_epochs=0, heavy_every_epochs=1.0)
    sample, evaluate, now = Points.__getitem__, Toy.evaluate, signal.getsignal(signal.SIGTERM)
    seen: list[Any] = []
    evaluated: list[tuple[int, bool]] = []

    def killed_at_the_48th(self: Points, draw: Any) -> Any:
        seen.append(draw)
        if len(seen) == 48:
            os.kill(os.getpid(), signal.SIGTERM)
        return sample(self, draw)

    def noted(self: Toy, heavy: bool) -> dict[str, float]:
        evaluated.append((made.position.step, heavy))
        return evaluate(self, heavy)

    monkeypatch.setattr(Points, "__getitem__", killed_at_the_48th)
    monkeypatch.setattr(Toy, "evaluate", noted)
    made = trainer(tmp_path, settings)
    with pytest.raises(WorkloadError, match="Stopped by SIGTERM after step 6"):
        made.run()
    made = trainer(tmp_path, settings)
    made._stop._came = signal.SIGTERM
    with pytest.raises(WorkloadError, match="Stopped by SIGTERM after step 6"):
        made.run()
    assert evaluated == [] and signal.getsignal(signal.SIGTERM) is now
    made = trainer(tmp_path, settings)
    made.run()
    assert evaluated == [(step, heavy) for step in (6, 12, 18) for heavy in (False, True)]


def test_a_second_ctrl_c_stops_at_once(ctrl_c: None, capfd: pytest.CaptureFixture[str]) -> None:
    with StopSignal() as stop, pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.asked
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)
    assert capfd.readouterr().err.count("Ctrl-C again stops at once") == 1


def test_an_ignored_ctrl_c_stays_ignored(ctrl_c: None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with StopSignal() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert not stop.asked
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_a_handler_from_c_is_followed_by_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python cannot say what it was, and takes no None for a handler."""
    chosen: list[Any] = []

    def choose(number: int, handler: Any) -> None:
        if handler is None:
            raise TypeError("signal handler must be signal.SIG_IGN, signal.SIG_DFL, or a callable object")
        chosen.append(handler)

    monkeypatch.setattr(signal, "getsignal", lambda number: None)
    monkeypatch.setattr(signal, "signal", choose)
    with StopSignal():
        assert len(chosen) == 2
    assert chosen[2:] == [signal.SIG_DFL, signal.SIG_DFL]


def test_a_full_memory_lowers_the_batch_and_no_row_is_lost_or_read_twice(tmp_path: Path) -> None:
    settings = replace(SMALL, epochs=1, batch_size=16, memory_check_every_steps=1, drop_last=False)
    made = trainer(tmp_path, settings)
    made.memory = lambda device: 0.96
    seen: list[int] = []
    plain = made.task.train_set

    class Watched(Points):
        def __getitem__(self, draw: Any) -> Any:
            seen.append(draw.row)
            return plain[draw]

    made.task.train_set = Watched()
    assert made.run().steps == 12  # 16 + 12 + 8 + 4 + 8 x 1 rows
    assert any("batch 16 becomes 12" in line for line in made.lines)
    assert sorted(seen) == list(range(48))


def test_the_memory_of_an_evaluation_lowers_no_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor hides what the training took before it."""
    for trained, wanted in ((0.5, [8] * 6), (0.97, [8] * 3 + [4] * 6)):
        peak = [trained]

        def evaluate(self: Toy, heavy: bool, peak: list[float] = peak) -> dict[str, float]:
            peak[0] = 0.97 if peak[0] < 0.9 else 0.1
            return {"light": 0.0}

        monkeypatch.setattr(Toy, "evaluate", evaluate)
        monkeypatch.setattr(loop, "forget_peak", lambda device, peak=peak: peak.__setitem__(0, 0.5))
        cadence = {"evaluate_every_epochs": 0.5, "memory_check_every_steps": 3, "epochs": 1}
        made = trainer(tmp_path / str(trained), replace(SMALL, **cadence))
        made.memory = lambda device, peak=peak: peak[0]
        sizes: list[int] = []
        step = made.stepper.forward_backward
        made.stepper.forward_backward = lambda batches, *rows, step=step, sizes=sizes: (
            sizes.append(len(batches[0][1])), step(batches, *rows))[1]  # fmt: skip
        made.run()
        assert sizes == wanted


def test_lowering_is_by_4_to_8() -> None:
    assert (lowered(36, 0.94, 0.95), lowered(36, 0.96, 0.95), lowered(36, 0.99, 0.95)) == (36, 32, 28)
    assert lowered(2, 1.0, 0.95) == 1


def test_lowering_and_searching_keep_groups_whole() -> None:
    assert [lowered(batch, 0.96, 0.95, 3) for batch in (36, 12, 6, 3)] == [30, 6, 3, 3]
    tried: list[int] = []
    assert largest_batch(6, lambda batch: tried.append(batch) or batch / 100, 0.5, 4096, 6) % 6 == 0  # type: ignore[func-returns-value]
    assert all(batch % 6 == 0 for batch in tried) and max(tried) > 50
    with pytest.raises(WorkloadError, match="Already a batch of 6"):
        largest_batch(6, lambda batch: None, 0.95, 4096, 6)


def test_a_lowered_batch_trains_the_epochs_that_were_asked_for(tmp_path: Path) -> None:
    """In whole groups; the learning rate ends with the last step; a resume counts the same steps."""
    settings = replace(SMALL, epochs=3, batch_size=16, memory_check_every_steps=2, lr_min=0.001, warmup_epochs=0)

    def made(out: Path, **change: Any) -> Any:
        one = trainer(out, replace(settings, **change))
        one.task.order = Shuffled(48, 1, 4)
        one.memory = lambda device: 0.96 if one.batch_size > 8 else 0.5
        return one

    whole = made(tmp_path / "whole")
    result = whole.run()
    assert any("batch 16 becomes 12, and the 9 steps of the training become 11" in line for line in whole.lines)
    assert any("batch 12 becomes 8, and the 11 steps of the training become 14" in line for line in whole.lines)
    assert result.steps == 14 and whole.position.epoch == 2 and whole.epoch_steps == 6
    assert whole.stepper.schedule.get_last_lr()[0] == pytest.approx(0.001)
    for stop in (3, 7, 0):
        last = made(tmp_path / "parts", max_steps=stop)
        last.run()
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")


def test_an_epoch_without_a_batch_is_an_error(tmp_path: Path) -> None:
    made = trainer(tmp_path, SMALL)

    class Once(Shuffled):
        def rows(self, epoch: int) -> list[int]:
            return [] if epoch else super().rows(epoch)

    made.task.order = Once(48, 1)
    with pytest.raises(WorkloadError, match="Epoch 2 gives not one step of 1 x 8 on each of 1 ranks"):
        made.run()


@pytest.mark.parametrize("limit", [8, 9, 50, 63, 64, 1000])
def test_the_search_returns_a_batch_that_it_tried(limit: int) -> None:
    tried = {}

    def attempt(batch: int) -> float | None:
        tried[batch] = batch <= limit
        return 0.9 * batch / limit if batch <= limit else None

    found = largest_batch(8, attempt, 0.95, 4096)
    assert tried[found] and max(8, limit * 0.8) <= found <= limit


def test_the_search_keeps_below_the_ceiling_and_says_when_nothing_fits() -> None:
    assert largest_batch(4, lambda batch: batch / 100, 0.5, 4096) <= 50
    with pytest.raises(WorkloadError, match="Already a batch of 4"):
        largest_batch(4, lambda batch: None, 0.95, 4096)


def test_the_search_leaves_the_model_as_it_was(tmp_path: Path) -> None:
    made = trainer(tmp_path, SMALL)
    before = {name: value.clone() for name, value in made.task.objective.state_dict().items()}
    random = torch.get_rng_state()
    found = find_batch_size(made.task, replace(SMALL, batch_size=2), made.context, lambda device: 0.5)
    assert found == 43  # of 48 rows, with the margin
    assert all(torch.equal(value, before[name]) for name, value in made.task.objective.state_dict().items())
    assert torch.equal(random, torch.get_rng_state())


def test_the_cosine_ends_at_its_least_rate_where_the_rate_follows_the_samples(tmp_path: Path) -> None:
    settings = replace(SMALL, lr_for_samples=64, lr_min=0.001)
    made = trainer(tmp_path, settings)
    made.run()
    assert made.stepper.schedule.get_last_lr()[0] == pytest.approx(0.001)
    said = "lr_min=0.002 is above lr=0.00125, which is 0.01 for 64 samples a step, and a step has 8."
    refused = trainer(tmp_path / "new", replace(settings, lr_min=0.002))
    with pytest.raises(SettingsError, match=re.escape(said)):
        refused.run()
    assert not list((tmp_path / "new").iterdir()), "before anything is written"
    trainer(tmp_path / "new", replace(settings, lr_min=0.02, lr_for_samples=2)).run()


def test_the_least_rate_is_held_against_the_rate_of_training_alone(tmp_path: Path) -> None:
    """One process judges what many ranks trained, and the search begins at a batch that no one trains with."""
    settings = replace(SMALL, lr_for_samples=64)
    trainer(tmp_path, settings).run()
    few = trainer(tmp_path, replace(settings, lr_min=0.002))
    assert "light" in few.evaluate_checkpoint(heavy=False)
    assert find_batch_size(few.task, replace(few.settings, batch_size=2), few.context, lambda device: 0.5) == 43


def test_the_search_keeps_to_what_the_loss_takes(tmp_path: Path) -> None:
    made = trainer(tmp_path, SMALL)
    made.task.batch_most = 20
    for asked, wanted in ((0, 18), (12, 10)):
        settings = replace(SMALL, batch_size=2, search_most=asked)
        assert find_batch_size(made.task, settings, made.context, lambda device: 0.5) == wanted  # with the margin


def test_the_search_forgets_the_peak_of_what_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(batch_search, "forget_peak", lambda device: seen.append("forgotten"))

    def memory(device: torch.device) -> float:
        seen.append("tried")
        return 0.5

    made = trainer(tmp_path, SMALL)
    find_batch_size(made.task, replace(SMALL, batch_size=2), made.context, memory)
    assert seen[-4:] == ["forgotten", "forgotten", "tried", "forgotten"], "of each step, and once more at the end"


def test_a_resume_goes_on_with_the_batch_that_the_search_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another answer would bend the schedule. Without a checkpoint there is nothing to go on with."""
    settings, answers = replace(SMALL, search_batch_size=True), iter((8, 8, 12))

    def build(settings: EngineSettings, context: Context) -> Toy:
        objective = Objective(0.3)
        return Toy(objective, Points(), Shuffled(48, settings.seed), [objective.stage])

    def run(out: Path, **change: Any) -> list[float]:
        with session.opened(Request("toy", out), replace(settings, **change), lambda line: None) as made:
            made.run()
        rows = map(json.loads, (out / "metrics.jsonl").read_text().splitlines())
        return [row["lr"] for row in rows if "lr" in row]

    def batch_of(out: Path) -> int:
        return int(json.loads((out / "settings.json").read_text())["batch_size"])

    monkeypatch.setattr(session, "find_workload", lambda name: SimpleNamespace(build=build))
    monkeypatch.setattr(session, "find_batch_size", lambda *asked: next(answers))
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    wanted = run(whole)
    run(parts, max_steps=4)
    assert run(parts) == wanted and len(wanted) == 18 and batch_of(parts) == 8
    for checkpoint in parts.glob("checkpoint*"):
        checkpoint.unlink()
    run(parts)
    assert batch_of(parts) == 12


def test_activation_checkpointing_wraps_a_stage_once(tmp_path: Path) -> None:
    """The batch-size search has asked for it before the training does."""
    made = trainer(tmp_path, replace(SMALL, activation_checkpointing=True))
    wrapped = made.task.stages[0].forward
    find_batch_size(made.task, replace(made.settings, batch_size=2), made.context, lambda device: 0.5)
    assert made.task.stages[0].forward is wrapped


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"batch_size": 16}, "made with batch_size=8, and batch_size=16 is asked for"),
        ({"lr": 0.02, "weight_decay": 0.1}, "made with lr=0.01, weight_decay=0.0, and lr=0.02, weight_decay=0.1"),
        ({"optimizer": "sgd"}, "optimizer=adam, and optimizer=sgd"),
        ({"accumulate": 2, "betas": (0.8, 0.9)}, "accumulate=1, betas=[0.9, 0.999], and accumulate=2"),
        ({"seed": 2, "drop_last": False}, "seed=1, drop_last=True, and seed=2, drop_last=False is asked for"),
    ],
)
def test_a_resume_with_other_settings_is_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    trainer(tmp_path, replace(SMALL, max_steps=2)).run()
    kept = (tmp_path / "settings.json").read_bytes()
    with pytest.raises(SettingsError, match=re.escape(said)):
        trainer(tmp_path, replace(SMALL, **change)).run()
    assert (tmp_path / "settings.json").read_bytes() == kept
    trainer(tmp_path, replace(SMALL, epochs=1)).run()


@pytest.mark.parametrize(("before", "now"), [("single", "fused"), ("fused", "single"), ("auto", "foreach")])
def test_a_resume_updates_in_the_loop_that_is_asked_for(tmp_path: Path, before: Any, now: Any) -> None:
    trainer(tmp_path, replace(SMALL, optimizer_loop=before, max_steps=2)).run()
    made = trainer(tmp_path, replace(SMALL, optimizer_loop=now, lr=0.01))
    asked = [{key: group[key] for key in ("foreach", "fused")} for group in made.stepper.optimizer.param_groups]
    assert made.run().steps == 18
    found = [{key: group[key] for key in ("foreach", "fused")} for group in made.stepper.optimizer.param_groups]
    assert found == asked and asked[0][now if now != "single" else "fused"] is (now != "single")


@pytest.mark.parametrize("old", [False, True])
def test_a_resume_on_another_number_of_ranks_is_refused(tmp_path: Path, old: bool) -> None:
    """A checkpoint of before says it by its random numbers alone."""
    trainer(tmp_path, replace(SMALL, max_steps=2)).run()
    state = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    state |= {"world": 2, "random": 2 * state["random"]}
    torch.save({key: state[key] for key in state.keys() - ({"world"} if old else set())}, tmp_path / "checkpoint.pt")
    said = "of a training on 2 ranks, and this one has 1. Go on with 2 (torchrun --nproc-per-node 2), or begin anew"
    with pytest.raises(SettingsError, match=re.escape(said)):
        trainer(tmp_path, SMALL).run()


@pytest.mark.parametrize(
    ("batch_size", "drop_last", "refused"), [(10, False, True), (8, False, False), (10, True, False)]
)
def test_a_run_of_before_whose_epochs_were_cut_is_not_gone_on_with(
    tmp_path: Path, batch_size: int, drop_last: bool, refused: bool
) -> None:
    """It left out the batches at the end of an epoch that make no whole step: of five, two steps of two, not three."""
    settings = replace(SMALL, batch_size=batch_size, accumulate=2, drop_last=drop_last)
    trainer(tmp_path, replace(settings, max_steps=2)).run()
    state = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    assert state.pop("whole_epochs") is True
    torch.save(state, tmp_path / "checkpoint.pt")
    made = trainer(tmp_path, settings)
    if not refused:
        assert made.run().steps == made.total_steps
        return
    said = "an older version, which left out the end of each epoch (5 batches, 2 a step). Begin anew with another --out"
    with pytest.raises(SettingsError, match=re.escape(said)):
        made.run()


def test_a_resume_in_fp16_of_a_training_without_begins_its_own_scale(tmp_path: Path) -> None:
    trainer(tmp_path, replace(SMALL, max_steps=2)).run()
    made = trainer(tmp_path, replace(SMALL, precision="fp16", max_steps=3))
    assert made.run().steps == 3 and made.stepper.scaler.get_scale() >= 2.0**15


def test_a_kill_in_the_heavy_evaluation_loses_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = replace(SMALL, evaluate_every_epochs=0.5, heavy_every_epochs=2.0)
    trainer(tmp_path / "whole", settings).run()
    plain = Toy.evaluate

    def killed(self: Toy, heavy: bool) -> dict[str, float]:
        if heavy:
            raise KeyboardInterrupt
        return plain(self, heavy)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Toy, "evaluate", killed)
        trainer(tmp_path / "cut", settings).run()
    again = trainer(tmp_path / "cut", settings)
    again.run()
    assert "Going on after step 12." in again.lines
    assert losses(tmp_path / "cut") == losses(tmp_path / "whole")
    kept = {name: (tmp_path / name / "metrics.jsonl").read_text() for name in ("whole", "cut")}
    assert kept["whole"].count('"light"') == 6 and kept["cut"].count('"light"') == 7  # that of step 12 came after it
    assert kept["whole"].count('"heavy"') == 1 and kept["cut"].count('"heavy"') == 0


@pytest.mark.parametrize("end", [WorkloadError, KeyboardInterrupt])
@pytest.mark.parametrize("stop", [6, 18])
def test_what_ends_a_training_in_an_evaluation_costs_no_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: type[BaseException], stop: int
) -> None:
    """And the evaluation is made up for, before the next step: what a task keeps of it is in the next checkpoint."""
    trainer(tmp_path / "whole", SMALL).run()

    def ended(self: Toy, heavy: bool) -> dict[str, float]:
        if made.position.step == stop:
            raise end("no")
        return plain(self, heavy)

    plain = Toy.evaluate
    made = trainer(tmp_path / "cut", SMALL)
    with monkeypatch.context() as patch, pytest.raises(end):
        patch.setattr(Toy, "evaluate", ended)
        made.run()
    again = trainer(tmp_path / "cut", SMALL)
    again.run()
    assert f"Going on after step {stop}." in again.lines
    whole, cut = (
        [(row["step"], row.get("loss"), row.get("light")) for row in map(json.loads, text.splitlines())]
        for text in ((tmp_path / name / "metrics.jsonl").read_text() for name in ("whole", "cut"))
    )
    assert cut == whole


def test_what_a_task_keeps_of_an_evaluation_that_the_end_alone_asks_for_is_not_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that was stopped early and went on, or was started again when done, keeps what the whole run keeps."""
    plain = Toy.evaluate

    def counted(self: Toy, heavy: bool) -> dict[str, float]:
        self.objective.looks += 1
        return plain(self, heavy)

    monkeypatch.setattr(Toy, "evaluate", counted)
    for stop, looks in ((4, 0), (4, 0), (0, 3), (0, 3)):
        made = trainer(tmp_path, replace(SMALL, max_steps=stop))
        made.task.objective.looks = torch.nn.Parameter(torch.zeros(1), requires_grad=False)
        assert "light" in made.run().metrics
        assert load(tmp_path, print)["objective"]["looks"].item() == looks  # type: ignore[index]


def test_a_broken_checkpoint_does_not_push_out_the_one_before(tmp_path: Path) -> None:
    trainer(tmp_path, replace(SMALL, epochs=1)).run()
    (tmp_path / "checkpoint.pt").replace(tmp_path / "checkpoint.previous.pt")
    (tmp_path / "checkpoint.pt").write_bytes(b"broken")
    assert load(tmp_path, print) is not None and (tmp_path / "checkpoint.pt").exists(), "only a training sets it aside"
    again = trainer(tmp_path, replace(SMALL, epochs=1))
    again.run()
    assert "It is kept as checkpoint.pt.broken." in again.lines
    assert (tmp_path / "checkpoint.pt.broken").read_bytes() == b"broken"
    (tmp_path / "checkpoint.pt").unlink()
    assert load(tmp_path, print) is not None


def test_a_kill_between_two_renames_loses_no_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"objective": {}, "optimizer": {}, "position": 1})
    done: list[Path] = []

    def killed(old: Path, new: Path) -> None:
        if done:
            raise KeyboardInterrupt
        old.rename(new)
        done.append(new)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(os, "replace", killed)
        write(tmp_path, {"objective": {}, "optimizer": {}, "position": 2})
    assert not (tmp_path / "checkpoint.pt").exists()
    assert (load(tmp_path, print) or {})["position"] == 2
    (tmp_path / "checkpoint.pt.new").write_bytes(b"half of it")
    assert (load(tmp_path, print) or {})["position"] == 1
    (tmp_path / "checkpoint.previous.pt").unlink()
    assert load(tmp_path, print) is None, "the first one was never whole"


def test_nothing_heavy_is_due_where_the_data_have_nothing_for_it(tmp_path: Path) -> None:
    made = trainer(tmp_path, replace(SMALL, heavy_every_epochs=1.0))
    made.task.has_heavy = False
    again = Trainer("toy", made.task, made.settings, made.context)
    again.run()
    assert '"light"' in (tmp_path / "metrics.jsonl").read_text()
    assert '"heavy"' not in (tmp_path / "metrics.jsonl").read_text()


def test_a_checkpoint_of_before_is_read(tmp_path: Path) -> None:
    trainer(tmp_path / "whole", SMALL).run()
    trainer(tmp_path / "old", replace(SMALL, max_steps=4)).run()
    file = tmp_path / "old/checkpoint.pt"
    state = torch.load(file, weights_only=True)
    torch.save({key: state[key] for key in state.keys() - {"asked", "pace", "planned_at", "tracked", "world"}}, file)
    trainer(tmp_path / "old", SMALL).run()
    assert losses(tmp_path / "old") == losses(tmp_path / "whole")


def test_two_ranks_with_half_the_batch_see_what_one_sees() -> None:
    order = Shuffled(50, 3)
    for drop_last in (True, False):
        one = [list(b) for b in RankBatches(order, 3, 8, Position(), drop_last=drop_last)]
        two = [list(RankBatches(order, 3, 4, Position(), rank, 2, drop_last)) for rank in (0, 1)]
        assert len(two[0]) == len(two[1])
        assert [sorted(a + b) for a, b in zip(*two, strict=True)] == [sorted(b) for b in one]


@pytest.mark.parametrize("fused", [False, True])
def test_moments_follow_the_memory_order_of_a_resumed_model(fused: bool) -> None:
    """A fused optimiser on a CPU reads both as flat memory: NCHW moments on NHWC weights would train wrongly."""

    def steps(channels_last: bool) -> torch.Tensor:
        torch.manual_seed(0)
        layer = torch.nn.Conv2d(4, 6, 3)
        first = torch.optim.Adam(layer.parameters(), 0.1, fused=fused)
        gradient = torch.randn_like(layer.weight)
        layer.weight.grad, layer.bias.grad = gradient.clone(), torch.ones_like(layer.bias)
        first.step()
        if channels_last:
            layer.to(memory_format=torch.channels_last)
        second = torch.optim.Adam(layer.parameters(), 0.1, fused=fused)
        load_optimizer(second, first.state_dict())
        layer.weight.grad = torch.randn(gradient.shape).to(memory_format=torch.preserve_format)
        layer.weight.grad = torch.empty_like(layer.weight).copy_(layer.weight.grad)
        layer.bias.grad = torch.ones_like(layer.bias)
        second.step()
        return layer.weight.detach().contiguous()

    torch.testing.assert_close(steps(True), steps(False))


def test_moments_of_parameters_in_other_groups_are_refused() -> None:
    layer = torch.nn.Linear(2, 2)
    before = torch.optim.AdamW([layer.weight, layer.bias])
    after = torch.optim.AdamW([{"params": [layer.weight]}, {"params": [layer.bias]}])
    with pytest.raises(WorkloadError, match=r"of another optimiser: .* parameter group"):
        load_optimizer(after, before.state_dict())


def test_the_profilers_window_leaves_a_trace(tmp_path: Path) -> None:
    trainer(tmp_path, replace(SMALL, epochs=1, profile_steps=2, profile_after_steps=1)).run()
    traces = list((tmp_path / "profile").glob("*.json"))
    assert len(traces) == 1 and json.loads(traces[0].read_text())["traceEvents"]
