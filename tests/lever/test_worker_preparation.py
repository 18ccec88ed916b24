"""What a script does at the start of its workers, and whether it is missed where there are none."""

from __future__ import annotations

import functools
import os
import random
import signal
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from hotlap.lever.worker_preparation import concerns_workers_alone
from hotlap_workloads.engine.loader import outlive_signals

DATA: dict[str, Any] = {}


def as_torchs_documentation_has_it(worker_id: int) -> None:
    """``seed_worker`` of its page on reproducibility."""
    worker_seed = torch.initial_seed() % 2**32
    np.random.seed(worker_seed)
    random.seed(worker_seed)


def seeded_by_sequence(worker_id: int, seed: int = 3) -> None:
    import numpy

    base = numpy.random.SeedSequence([seed, worker_id])
    numpy.random.seed(base.generate_state(4))
    torch.manual_seed(int(base.generate_state(1)[0].item()))


def on_one_core(worker_id: int) -> None:
    info = torch.utils.data.get_worker_info()
    assert_nothing = info is not None and info.num_workers > 1
    if assert_nothing:
        torch.set_num_threads(1)
        os.sched_setaffinity(0, {worker_id})
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def by_another(worker_id: int) -> None:
    as_torchs_documentation_has_it(worker_id)


@pytest.mark.parametrize(
    "function",
    [
        as_torchs_documentation_has_it, seeded_by_sequence, on_one_core, by_another, outlive_signals, torch.manual_seed,
        np.random.seed, random.seed, functools.partial(seeded_by_sequence, seed=4),
    ],
)  # fmt: skip
def test_seeds_threads_and_signals_are_not_missed(function: Callable[[int], object]) -> None:
    assert concerns_workers_alone(function)


def test_torchs_functions_are_known_as_they_were_before_the_compiler_came(monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.manual_seed
    monkeypatch.setattr(torch, "manual_seed", functools.wraps(before)(lambda seed: before(seed)))
    assert concerns_workers_alone(before) and concerns_workers_alone(torch.manual_seed)


def test_no_property_of_the_script_is_asked() -> None:
    class Loud:
        @property
        def seed(self) -> Any:
            raise RuntimeError("asked")

    loud = Loud()

    def prepare(worker_id: int) -> None:
        loud.seed(worker_id)

    assert not concerns_workers_alone(prepare)


def opens_a_file(worker_id: int) -> None:
    torch.utils.data.get_worker_info().dataset.file = open(os.devnull)  # type: ignore[union-attr]  # noqa: SIM115


def sets_an_attribute(worker_id: int) -> None:
    info: Any = torch.utils.data.get_worker_info()
    info.dataset.rng = np.random.SeedSequence(worker_id)


def fills_a_dict(worker_id: int) -> None:
    DATA["worker"] = worker_id


def prints(worker_id: int) -> None:
    print("worker", worker_id)


def calls_the_data_set(worker_id: int) -> None:
    info: Any = torch.utils.data.get_worker_info()
    info.dataset.start()


def says_global(worker_id: int) -> None:
    global DATA
    DATA = {}


def starts_a_thread(worker_id: int) -> None:
    threading.Thread(target=prints, args=(worker_id,)).start()


def unlike_its_name(worker_id: int) -> None:
    random = DATA["random"]
    random.seed(worker_id)


def by_one_that_prints(worker_id: int) -> None:
    prints(worker_id)


class Prepared:
    def __call__(self, worker_id: int) -> None:
        random.seed(worker_id)


@pytest.mark.parametrize(
    "function",
    [
        opens_a_file, sets_an_attribute, fills_a_dict, prints, calls_the_data_set, says_global, starts_a_thread,
        unlike_its_name, by_one_that_prints, Prepared(), print, None, functools.partial(prints),
        functools.wraps(as_torchs_documentation_has_it)(prints),
    ],
)  # fmt: skip
def test_whatever_else_may_be_wanted(function: Any) -> None:
    assert not concerns_workers_alone(function)


def test_a_function_of_which_there_is_no_source() -> None:
    names: dict[str, Any] = {}
    exec("def seed(worker):\n    import random\n    random.seed(worker)\n", names)
    assert not concerns_workers_alone(names["seed"])
