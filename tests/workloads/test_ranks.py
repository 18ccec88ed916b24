"""Two gloo ranks: the same weights on both, one writer, exact resume, skips that all ranks agree on."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
from launch import on_two_ranks
from torch import distributed as dist
from toy import losses, trainer

from hotlap_workloads.engine.ranks import Ranks, joined
from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.errors import SettingsError


def two_ranks(out: Path, max_steps: int = 0, bad_row: int = -1) -> str:
    """The toy's output."""
    return on_two_ranks("ddp_toy.py", str(out), str(max_steps), str(bad_row))


def test_two_ranks(tmp_path: Path) -> None:
    """The toy itself looks that they hold the same weights and statistics, though each has seen its own last batch."""
    assert "skipped 2 samples 96" in two_ranks(tmp_path / "whole", bad_row=5)
    whole = losses(tmp_path / "whole")
    assert len(whole) >= 4
    two_ranks(tmp_path / "parts", max_steps=2, bad_row=5)
    two_ranks(tmp_path / "parts", bad_row=5)
    assert losses(tmp_path / "parts") == whole
    with pytest.raises(SettingsError, match="on 2 ranks, and this one has 1"):
        trainer(tmp_path / "parts", EngineSettings(epochs=2, batch_size=8, on_nan="skip")).run()


def test_the_search_of_all_ranks_tries_the_same_batches() -> None:
    """Also where memory runs out on one of them alone, in a step whose loss all ranks compute together."""
    assert "found 18, then 6 rows, 3.0 a rank" in on_two_ranks("search_ranks.py")


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_rows_that_ranks_share_come_together_in_order(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Also where there are fewer rows than ranks, and some have none."""
    table, ranks = torch.rand(count, 2, 3), [Ranks(rank, 3) for rank in range(3)]
    batches = [[table[row : row + 1] for row in one.own_rows(count)] for one in ranks]
    shares = [torch.cat(own) if own else None for own in batches]
    assert torch.equal(Ranks().all_rows([table[:1], table[1:]], count), table)

    def gather(one: Ranks, mine: torch.Tensor | None) -> list[torch.Tensor | None]:
        return [mine if rank == one.rank else share for rank, share in enumerate(shares)]

    monkeypatch.setattr(Ranks, "gather", gather)
    assert all(torch.equal(one.all_rows(own, count), table) for one, own in zip(ranks, batches, strict=True))


def test_ranks_wait_for_the_one_that_stages_or_decodes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setattr(dist, "init_process_group", lambda backend, **how: asked.update(how, backend=backend))
    for name in ("barrier", "destroy_process_group"):
        monkeypatch.setattr(dist, name, lambda: None)
    with joined(on_gpu=False) as ranks:
        assert ranks.world == 2
    assert asked["backend"] == "gloo" and asked["timeout"] >= timedelta(hours=12)
