"""Facts of a wrapped model, of samplers and barriers, in a group of one; and two real ranks read together."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

GROUP = """
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler
dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}.store", rank=0, world_size=1)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.spare = net(), nn.Linear(4, 4)
    def forward(self, x):
        return self.body(x)
"""


def test_what_is_told_of_a_wrapped_model(watched: Any) -> None:
    timeline, out = watched(
        GROUP
        + """
import inspect
model = DistributedDataParallel(Net(), find_unused_parameters=True)
data = TensorDataset(torch.randn(32, 4), torch.randint(0, 2, (32,)))
told, untold = DistributedSampler(data), DistributedSampler(data)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    told.set_epoch(epoch)
    for sampler in (told, untold):
        for x, y in DataLoader(data, 8, sampler=sampler):
            opt.zero_grad(); nn.functional.cross_entropy(model(x), y).backward(); opt.step()
    dist.barrier()
print(list(inspect.signature(DistributedDataParallel).parameters)[:2], dist.barrier.__name__)
dist.destroy_process_group()
"""
    )
    assert out.splitlines() == ["['module', 'device_ids'] barrier"]
    rows = [row for row in timeline.setting if row.name == "ddp"]
    assert len(rows) >= 2 and {row.value["step"] for row in rows} >= {2, 4}
    value = rows[0].value
    assert value["find_unused"] and not value["static_graph"]
    assert (value["parameters"], value["unreached"]) == (6, None), "no backward was looked into yet"
    assert {row.value["unreached"] for row in rows[1:]} == {2}
    assert timeline.frame[rows[0].frame].user
    epochs = [row.value["epochs"] for row in timeline.setting if row.name == "sampler"]
    assert [0, 1, 2] in epochs and [0, 0, 0] in epochs
    barriers = [site for site in timeline.site if site.kind == "barrier"]
    assert sum(site.n for site in barriers) == 3


HALVES = """
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
class Halves(nn.Module):
    def __init__(self):
        super().__init__()
        self.halves = nn.ModuleList([nn.Linear(4, 2), nn.Linear(4, 2)])
    def forward(self, x):
        return self.halves[HALF](x)
other = os.fork()
rank = int(other == 0)
dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}.store", rank=rank, world_size=2)
model = DistributedDataParallel(Halves(), find_unused_parameters=True)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.ones(24, 8, 4):
    opt.zero_grad(); model(x).sum().backward(); opt.step()
gradients = [p.grad is not None for p in model.parameters()]
undo.undo_all()
model(x).sum().backward()
held = [p for p in model.parameters() if p._post_accumulate_grad_hooks]
watch.close()
if rank:
    os._exit(0)
os.waitpid(other, 0)
print(all(gradients), held)
"""


@pytest.mark.parametrize("half", ["rank", "0"])
def test_a_parameter_that_another_rank_alone_uses_is_told(watched: Any, half: str) -> None:
    """Its gradient is there all the same: DDP writes the mean of all ranks."""
    timeline, out = watched(HALVES.replace("HALF", half))
    assert out.split() == [str(half == "rank"), "[]"]
    told = [[row.value["unreached"] for row in t.setting if row.name == "ddp"] for t in (timeline, *timeline.ranks)]
    assert len(told) == 2 and all(looks[0] is None and set(looks[1:]) == {2} for looks in told), told


TRAIN = """
import time, torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
class Clips(Dataset):
    def __len__(self):
        return 320
    def __getitem__(self, index):
        if rank == 1:
            time.sleep(0.002)
        return torch.randn(16), index % 2
net = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 2))
model = DistributedDataParallel(net)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def evaluate():
    net.eval()
    with torch.no_grad():
        for _ in range(10):
            net(torch.randn(4, 16)); time.sleep(0.02)
    net.train()
def main():
    loader = DataLoader(Clips(), batch_size=8, sampler=DistributedSampler(Clips()))
    for epoch in range(3):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad(); loss.backward(); optimizer.step()
            print("loss", loss.item())
        if rank == 0:
            evaluate()
        dist.barrier()
main()
dist.destroy_process_group()
"""


SPAWN = """
import os, runpy, sys, torch.multiprocessing as mp
def rank(number, store):
    import torch.distributed as dist
    real = dist.init_process_group
    dist.init_process_group = lambda backend: real(backend, init_method=f"file://{store}", rank=number, world_size=2)
    runpy.run_path("train.py", run_name="__main__")
if __name__ == "__main__":
    mp.spawn(rank, (os.path.abspath("store"),), nprocs=2)
"""
LAUNCHED = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "train.py"]


@pytest.mark.parametrize(
    "ranks",
    [
        pytest.param(LAUNCHED, id="torchrun", marks=pytest.mark.cousin),
        pytest.param([sys.executable, "spawn.py"], id="spawned"),
    ],
)
def test_two_ranks_are_read_together(tmp_path: Path, ranks: list[str]) -> None:
    (tmp_path / "train.py").write_text(textwrap.dedent(TRAIN))
    (tmp_path / "spawn.py").write_text(textwrap.dedent(SPAWN))
    command = [sys.executable, "-m", "hotlap", "diagnose", "--no-confirm", "--json", "found.json", "--", *ranks]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=120, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = {f["cause"]: f for f in json.loads((tmp_path / "found.json").read_text())["findings"]}
    straggler = found["straggler"]
    assert straggler["evidence"]["rank"] == 1 and straggler["evidence"]["late_phase"] == "data_wait"
    assert straggler["where"][0]["text"] == "time.sleep(0.002)"
    assert found["rank-0-validation"]["where"][0]["function"] == "evaluate"
    assert found["sampler-set-epoch"]["where"][0]["text"] == "for x, y in loader:"
    assert found["logging-every-rank"]["where"][0]["text"] == 'print("loss", loss.item())'
