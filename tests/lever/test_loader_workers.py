"""What loader-workers offers by cause."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from lever_support import UNWATCHED
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from hotlap.lever.catalog import background_fetch, loader_workers
from hotlap.lever.contract import Refusal
from hotlap.lever.loader_change import load_here, load_in_workers
from hotlap.testing.lever_kit import findings_of, machine_of
from hotlap.testing.lever_target import LocalTarget

NONE = {"workers": 0, "prefetch": None, "torch_threads": None}
DATA = TensorDataset(torch.arange(12.0))


def test_uneven_batches_get_a_longer_queue_and_the_same_workers() -> None:
    findings = findings_of("prefetch-depth", num_workers=2, persistent_workers=True, prefetch_factor=2)
    finding = loader_workers.evidence(findings)
    assert finding is not None
    offered = loader_workers.settings(finding, findings, machine_of())
    assert not isinstance(offered, Refusal)
    assert [(s["workers"], s["prefetch"], s["torch_threads"]) for s in offered] == [(2, 8, None), (2, 16, None)]
    gain = loader_workers.gain(finding, findings, offered[0])
    assert gain.high_s > 0


def offered(*causes: str, **loader: Any) -> list[Any]:
    findings = findings_of(*causes, **loader)
    finding = loader_workers.evidence(findings)
    assert finding is not None
    found = loader_workers.settings(finding, findings, machine_of())
    assert not isinstance(found, Refusal)
    return found


def test_workers_that_are_needless_go() -> None:
    assert offered("needless-workers", num_workers=2) == [NONE]
    assert NONE in offered("decode", num_workers=2, persistent_workers=True)
    assert NONE not in offered("decode", num_workers=0), "there are none"


def test_many_workers_may_stay_alive_on_few_cores() -> None:
    """They are the script's own: only their starts are saved."""
    alive = {"workers": 16, "prefetch": 2, "torch_threads": None}
    assert alive in offered("workers-respawned", num_workers=16, prefetch_factor=2)
    assert loader_workers.check(alive, replace(machine_of(), cores=2)) is None


def test_the_gain_is_what_loading_here_leaves_of_the_wait_and_the_starts() -> None:
    findings = findings_of("needless-workers", num_workers=2)
    model = findings.step_model  # waits for 50 ms, computes for 30, an epoch's start costs each step 1 of 100
    quick = replace(findings, step_model=replace(model, load_s=0.01, epoch_start_s=0.001, workers=2))
    gain = loader_workers.gain(quick.findings[0], quick, NONE)
    assert (gain.low_s, gain.high_s) == pytest.approx((0.0205, 0.041))
    slow = replace(findings, step_model=replace(model, load_s=0.09, epoch_start_s=0.001, workers=2))
    assert loader_workers.gain(slow.findings[0], slow, NONE).high_s == 0.0


def test_workers_that_crowd_the_cores_are_worth_more_gone() -> None:
    """They waited for a core while they loaded, and stood in the way of the step."""
    findings = findings_of("decode", num_workers=16)
    model = replace(findings.step_model, workers=16, cores=2, torch_threads=2, load_s=0.09, io_wait_s=0.0)
    crowded = replace(
        findings, step_model=replace(model, load_cpu_s=0.01)
    )  # waits 50 ms, computes for 30, starts for 1
    most = 0.081 - (0.01 + 0.03 / (1 + 2.2 / 3))
    gain = loader_workers.gain(crowded.findings[0], crowded, NONE)
    assert (gain.low_s, gain.high_s) == pytest.approx((most / 2, most))
    for fewer in (replace(model, load_cpu_s=None), replace(model, load_cpu_s=0.01, cores=32)):
        roomy = replace(findings, step_model=fewer)
        assert loader_workers.gain(roomy.findings[0], roomy, NONE).high_s == 0.0, "as long as it took the worker"


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Any:
        return iter(range(4))


def changed(loader: DataLoader[Any], folder: Path) -> int:
    with LocalTarget(str(folder)) as target:
        loader_workers.apply(target, NONE)
        batches = list(loader)
        workers = loader.num_workers
    assert len(batches) == len(loader) and not target.problems
    assert (workers == 0) == bool(target.changes)
    return target.changes


def test_a_loader_loses_its_workers_and_gets_them_back(tmp_path: Path) -> None:
    loader = DataLoader(DATA, batch_size=4, num_workers=1, persistent_workers=True, prefetch_factor=3)
    assert changed(loader, tmp_path) == 3
    assert (loader.num_workers, loader.persistent_workers, loader.prefetch_factor) == (1, True, 3)


@pytest.mark.parametrize(
    "loader",
    [
        DataLoader(Stream(), batch_size=4, num_workers=1),
        DataLoader(DATA, batch_size=4, num_workers=1, worker_init_fn=print),
        DataLoader(DATA, batch_size=4, num_workers=1, timeout=60),
        DataLoader(DATA, batch_size=4, num_workers=1, multiprocessing_context="fork"),
    ],
    ids=["stream", "prepared", "timeout", "context"],
)
def test_workers_that_the_script_needs_stay(loader: DataLoader[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    target = LocalTarget("")
    monkeypatch.setattr(target, "unfit", said.append)
    load_here(target, loader)
    assert loader.num_workers == 1 and target.changes == 0
    assert bool(said) != isinstance(loader.dataset, IterableDataset)


def test_seeds_of_workers_that_are_not_there_are_not_missed(tmp_path: Path) -> None:
    assert changed(DataLoader(DATA, batch_size=4, num_workers=1, worker_init_fn=torch.manual_seed), tmp_path)


def test_the_patch_takes_back_what_only_workers_allow() -> None:
    findings = findings_of("needless-workers", num_workers=2)
    (edit,) = loader_workers.edits(findings.findings[0], NONE)
    assert edit.keywords == {"num_workers": 0, "persistent_workers": False, "prefetch_factor": None}
    DataLoader(DATA, **edit.keywords)  # torch accepts them together


def test_a_list_may_be_the_data_set_and_a_queue_without_a_length_is_torchs_own() -> None:
    loader: DataLoader[Any] = DataLoader([(torch.ones(2), n) for n in range(4)], batch_size=2)  # type: ignore[arg-type]
    target = LocalTarget("")
    load_in_workers(target, loader, {"workers": 1, "prefetch": None, "torch_threads": None}, UNWATCHED)
    assert (loader.num_workers, loader.prefetch_factor) == (1, 2)
    assert len(list(loader)) == 2 and target.changes == 4
    kept: DataLoader[Any] = DataLoader(DATA, num_workers=1, prefetch_factor=5)
    load_in_workers(target, kept, {"workers": 2, "prefetch": None, "torch_threads": None}, UNWATCHED)
    assert kept.prefetch_factor == 5, "what the script has asked for stays"


class Resumable(Dataset[Any]):
    """Says how far it has come, for a checkpoint in mid-epoch."""

    def __init__(self) -> None:
        self.seen = 0

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> int:
        self.seen += 1
        return index

    def state_dict(self) -> dict[str, int]:
        return {"seen": self.seen}


@pytest.mark.parametrize("apply", [loader_workers.apply, background_fetch.apply])
def test_a_loader_that_says_how_far_it_has_come_is_not_drawn_ahead(apply: Any, tmp_path: Path) -> None:
    data = Resumable()
    with LocalTarget(str(tmp_path)) as target:
        apply(target, {"workers": 1, "prefetch": 4, "torch_threads": None, "depth": 4})
        seen = [data.state_dict()["seen"] for _ in DataLoader(data, batch_size=2)]
    assert seen == [2, 4, 6, 8] and "state_dict" in target.reasons[0]
