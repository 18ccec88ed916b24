"""What a lever does later in the script's stead ends as the script's own work would have."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy
import pytest
import torch

from hotlap.inject.last_errors import tell_at_exit
from hotlap.inject.target import GuestTarget
from hotlap.lever.catalog import cache_decode, cache_sample
from hotlap.lever.file_cache import USAGE
from hotlap.lever.pending_saves import PendingSaves
from hotlap.lever.script_errors import as_the_scripts
from hotlap.lever.usage import UNIT
from hotlap.machine.scratch import launched_here
from hotlap.probe.hook_points import HookPoints
from hotlap.probe.watch import Watch
from hotlap.records.call import Call


class Marks:
    """As much of the watch as a target tells."""

    def __init__(self) -> None:
        self.states: list[str] = []
        self.reasons: list[str] = []

    def set_mark(self, kind: str, id: str, state: str, count: int, why: str = "") -> None:
        self.states.append(state)
        self.reasons.append(why)


def made(tmp_path: Path) -> tuple[GuestTarget, HookPoints, Marks]:
    points, marks = HookPoints(), Marks()
    return GuestTarget("a-lever", Call(str(tmp_path)), points, cast("Watch", marks)), points, marks


def full(state: Any, path: Any) -> None:
    raise OSError(28, "No space left on device")


def test_a_save_that_failed_in_the_background_reaches_the_script(tmp_path: Path) -> None:
    target, points, marks = made(tmp_path)
    pending = PendingSaves(1)
    target.around_save(lambda save, args, kwargs: pending.submit(save, args, kwargs))
    (hook,) = points.around_save
    hook(full, ({}, tmp_path / "a.pt"), {})
    pending.settle()
    with pytest.raises(OSError, match="No space") as caught:
        hook(full, ({}, tmp_path / "b.pt"), {})
    assert "a.pt" in caught.value.__notes__[0]
    assert "failed" not in marks.states and points.around_save, "the lever has done no wrong"


def test_a_class_that_keeps_a_replaced_function_in_c_gets_no_method(tmp_path: Path) -> None:
    target, library = made(tmp_path)[0], ModuleType("library")
    library.read = len  # type: ignore[attr-defined]
    target.replace(library, "read", lambda *args: args)

    class Reads:
        of = library.read

    assert Reads().of("a") == ("a",)
    target.undo.undo_all()
    assert library.read is len


def test_a_step_is_wrapped_by_every_lever_that_asks_for_it(tmp_path: Path) -> None:
    targets, order = [made(tmp_path)[0] for _ in range(3)], list[str]()
    for name, target in zip("abc", targets, strict=True):

        def around(_: Any, call: Any, args: Any, kwargs: Any, name: str = name) -> Any:
            order.append(name)
            return call(*args, **kwargs)

        target.around_step(around)
    weight = torch.nn.Parameter(torch.ones(1))
    try:
        optimizer = torch.optim.SGD([weight], lr=0.1)
        schedule = torch.optim.lr_scheduler.ConstantLR(optimizer)
        weight.sum().backward()
        optimizer.step()
        schedule.step()
        assert order == ["c", "b", "a"] and weight.item() < 1, "the optimizer's own step is the innermost"
        targets[1].fail(ValueError("its own"))
        optimizer.step()
        assert order[3:] == ["c", "a"], "one that failed lets the others go on"
    finally:
        for target in reversed(targets):
            target.undo.undo_all()


def test_steps_of_copied_and_unpickled_optimizers_are_wrapped_once(tmp_path: Path) -> None:
    target, stepped = made(tmp_path)[0], list[Any]()

    def around(optimizer: Any, call: Any, args: Any, kwargs: Any) -> Any:
        stepped.append(optimizer)
        return call(*args, **kwargs)

    target.around_step(around)
    try:
        first = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1, momentum=0.9)
        others = [copy.deepcopy(first), pickle.loads(pickle.dumps(first))]
        first.load_state_dict(first.state_dict())
        for optimizer in (first, *others):
            optimizer.param_groups[0]["params"][0].grad = torch.ones(1)
            optimizer.step()
        assert stepped == [first, *others]
        assert [o.param_groups[0]["params"][0].item() for o in stepped] == pytest.approx([0.9] * 3)
    finally:
        target.undo.undo_all()


def test_what_is_owed_at_the_end_is_done_also_for_a_lever_that_was_undone(tmp_path: Path) -> None:
    target, _, marks = made(tmp_path)
    done = []
    target.at_exit(lambda: done.append(1))
    target.fail(ValueError("lever"))
    target.finish()
    target.finish()
    assert done == [1] and marks.states[-1] == "failed"


def test_what_the_script_does_behind_the_end_is_done_as_without_the_lever(tmp_path: Path) -> None:
    """Functions that a script gave to atexit before it imported torch run later than the guest's end."""
    target, points, _ = made(tmp_path)
    asked, weight = list[str](), torch.nn.Parameter(torch.ones(1))

    def late(name: str, given: Any = None) -> Any:
        asked.append(name)
        return given

    pending = PendingSaves(1)
    target.at_exit(pending.finish)
    target.around_save(lambda save, args, kwargs: pending.submit(save, args, kwargs))
    target.around_backward(lambda backward, args, kwargs: late("backward"))
    target.around_forward(lambda module, call, args, kwargs: late("forward"))
    target.around_step(lambda optimizer, step, args, kwargs: late("step"))
    target.wrap_iterator(lambda loader, iterator: late("iterator", iter([2])))
    try:
        optimizer = torch.optim.SGD([weight], lr=1.0)
        target.finish()
        points.around_save[0](torch.save, ({"a": 1}, tmp_path / "a.pt"), {})
        assert torch.load(tmp_path / "a.pt") == {"a": 1} and not pending.busy()
        weight.grad = torch.ones(1)
        optimizer.step()
        points.around_backward[0](lambda: asked.append("real backward"), (), {})
        points.around_forward[0](torch.nn.Linear(1, 1), lambda: asked.append("real forward"), (), {})
        assert next(points.wrap_iterator[0](None, iter([1]), False)) == 1
        assert weight.item() == 0 and asked == ["real backward", "real forward"]
    finally:
        target.undo.undo_all()


def test_the_scripts_error_at_the_end_is_told_and_a_levers_own_is_its_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def theirs() -> None:
        raise as_the_scripts(OSError("No space left"), "Of an earlier torch.save.")

    def own() -> None:
        raise ValueError("lever")

    target, _, marks = made(tmp_path)
    target.at_exit(theirs)
    target.finish()
    assert marks.states == ["no-effect"] and [str(e) for e in target.last_errors] == ["No space left"]
    monkeypatch.setattr("sys.stdout", None)
    tell_at_exit(target.last_errors)
    assert "OSError: No space left\nOf an earlier torch.save." in capsys.readouterr().err
    other, _, marks = made(tmp_path)
    other.at_exit(own)
    other.finish()
    assert marks.states == ["failed"] and other.last_errors == []


class Rows(torch.utils.data.Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 32

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((60_000,), index, dtype=torch.uint8)


@pytest.mark.parametrize("lever", [cache_decode, cache_sample])
def test_ranks_with_a_folder_each_keep_together_what_one_may(tmp_path: Path, lever: Any) -> None:
    """As where each attaches by itself, or is launched with `hotlap run` by srun."""
    data, kept = numpy.zeros(60_000, numpy.uint8), 0
    for rank in range(2):
        folder = tmp_path / str(rank)
        call = Call(str(folder), scratch=str(folder), scratches=launched_here({"LOCAL_WORLD_SIZE": "2"}))
        points = HookPoints()
        target = GuestTarget(lever.ID, call, points, cast("Watch", Marks()))
        lever.apply(target, {"max_bytes": 1 << 20})
        loader = torch.utils.data.DataLoader(Rows(), collate_fn=list)
        for hook in points.on_loader:
            hook(loader, False)
        list(loader)
        for number in range(16):
            numpy.save(tmp_path / f"{number}.npy", data)
            numpy.load(tmp_path / f"{number}.npy")
        target.undo.undo_all()
        kept += UNIT * (folder / USAGE).stat().st_size
    assert 1 << 19 < kept <= 1 << 20


def test_a_reason_that_comes_up_later_is_told_before_the_end(tmp_path: Path) -> None:
    target, _, marks = made(tmp_path)
    target.changed(1)
    target.changed(-1)  # a function was replaced, which changes nothing until it is called
    target.unfit("its layers keep statistics")
    target.report()
    target.report()
    assert marks.states == ["applied", "no-effect", "no-effect"]
    assert marks.reasons == ["", "", "its layers keep statistics"]
