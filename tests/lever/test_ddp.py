"""Levers on DistributedDataParallel: two real ranks over gloo, each arm in turn, and what they refuse."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hotlap.lever.catalog import ddp_bucket_size, ddp_bucket_view, ddp_search_off
from hotlap.lever.contract import Refusal
from hotlap.testing.lever_kit import findings_of, machine_of

RANK = """
import json, sys, torch, torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel as DDP
from hotlap.lever.registry import lever
from hotlap.testing.lever_target import LocalTarget

rank, store, scratch = int(sys.argv[1]), sys.argv[2], sys.argv[3]
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)

def train(count=False, **arguments):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(256, 512), nn.Tanh(), nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 512), nn.Tanh(),
                        nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 4))
    model = DDP(net, None, **arguments)
    buckets = []
    if count:
        def hook(state, bucket):
            buckets.append(1)
            return allreduce_hook(None, bucket)
        model.register_comm_hook(None, hook)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    data = torch.Generator().manual_seed(rank)
    losses = []
    for _ in range(5):
        x, y = torch.randn(8, 256, generator=data), torch.randint(4, (8,), generator=data)
        optimizer.zero_grad(set_to_none=False)
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        weights = [int(p.view(torch.int32).sum(dtype=torch.int64)) for p in model.parameters()]
    views = net[0].weight.grad._base is not None
    return {"losses": losses, "weights": weights, "views": views, "search": model.find_unused_parameters,
            "static": model.static_graph, "cap": model.bucket_bytes_cap, "buckets": len(buckets)}

found = {"plain": train(), "searching": train(find_unused_parameters=True)}
for name, id, setting, arguments in (
    ("view", "ddp-bucket-view", {}, {}),
    ("small", "ddp-bucket-size", {"bucket_cap_mb": 1}, {}),
    ("off", "ddp-search-off", {"static_graph": False}, {"find_unused_parameters": True}),
    ("static", "ddp-search-off", {"static_graph": True}, {"find_unused_parameters": True}),
    ("none", "ddp-search-off", {"static_graph": False}, {}),
):
    with LocalTarget(scratch) as target:
        lever(id).apply(target, setting)
        found[name] = train(**arguments) | {"changes": target.changes}
    assert not target.problems
    if name == "small":
        with LocalTarget(scratch) as target:
            lever(id).apply(target, setting)
            found["small"]["buckets"] = train(count=True)["buckets"]
found["after"] = train()
found["plain"]["buckets"] = train(count=True)["buckets"]
print(json.dumps(found))
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each of two ranks saw."""
    folder = tmp_path_factory.mktemp("ranks")
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    started = [
        subprocess.Popen([sys.executable, "-c", RANK, str(rank), str(folder / "store"), str(folder)],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        for rank in range(2)
    ]  # fmt: skip
    told = [process.communicate(timeout=120) for process in started]
    assert all(process.returncode == 0 for process in started), told
    return [json.loads(out.splitlines()[-1]) for out, _ in told]


def test_ranks_stay_together_and_nothing_is_left_behind(ranks: list[dict[str, Any]]) -> None:
    first, second = ranks
    assert first["plain"]["losses"] != second["plain"]["losses"], "each has data of its own"
    assert all(first[arm]["weights"] == second[arm]["weights"] for arm in first)
    assert {**first["after"], "buckets": first["plain"]["buckets"]} == first["plain"] and not first["after"]["views"]


def test_views_of_the_buckets_give_the_same_bits(ranks: list[dict[str, Any]]) -> None:
    for rank in ranks:
        arm = rank["view"]
        assert arm["changes"] == 1 and arm["views"] and not rank["plain"]["views"]
        assert (arm["losses"], arm["weights"]) == (rank["plain"]["losses"], rank["plain"]["weights"])


def test_smaller_buckets_are_more_buckets(ranks: list[dict[str, Any]]) -> None:
    for rank in ranks:
        arm = rank["small"]
        assert arm["changes"] == 1 and arm["cap"] == 1 << 20 and rank["plain"]["cap"] == 25 << 20
        assert arm["buckets"] > rank["plain"]["buckets"] > 0
        assert arm["losses"] == pytest.approx(rank["plain"]["losses"], rel=1e-5)


def test_the_search_is_spared(ranks: list[dict[str, Any]]) -> None:
    for rank in ranks:
        assert rank["searching"]["search"]
        for name in ("off", "static"):
            arm = rank[name]
            assert arm["changes"] == 1 and not arm["search"] and arm["static"] is (name == "static")
            assert arm["losses"] == pytest.approx(rank["searching"]["losses"], rel=1e-5)
        assert rank["none"]["changes"] == 0 and not rank["none"]["static"], "who does not search is left alone"


def test_refusals() -> None:
    def offered(lever: Any, **known: Any) -> Any:
        findings = findings_of("gradient-exchange")
        findings.findings[0].evidence.update(known)
        return lever.settings(findings.findings[0], findings, machine_of())

    assert "already" in offered(ddp_bucket_view, bucket_view=True).reason
    assert offered(ddp_bucket_view, bucket_view=False) == [{}]
    assert offered(ddp_bucket_size, gradient_bytes=100 << 20) == [{"bucket_cap_mb": 100}, {"bucket_cap_mb": 5}]
    assert offered(ddp_bucket_size, gradient_bytes=20 << 20) == [{"bucket_cap_mb": 5}]
    assert isinstance(offered(ddp_bucket_size, gradient_bytes=1 << 20), Refusal)
    assert ddp_search_off.check({"static_graph": 1}, machine_of())


def test_arguments_that_are_wrong_are_the_scripts_own_error(tmp_path: Path) -> None:
    from torch.nn.parallel import DistributedDataParallel

    from hotlap.testing.lever_target import LocalTarget

    with LocalTarget(str(tmp_path)) as target:
        ddp_bucket_view.apply(target, {})
        with pytest.raises(TypeError, match="no_such"):
            DistributedDataParallel(None, no_such=1)
    assert target.changes == 0
