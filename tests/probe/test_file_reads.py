"""Which files a batch is made of: told after a few looks, with nothing left in place."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from hotlap.probe.mounts import mount_kinds

pytestmark = pytest.mark.flaky(reruns=2)
# Shares of the time of a real training: on a shared machine one of three runs may tell.

BODY = """
import builtins, io, json, numpy, os
numpy.save("a.npy", numpy.zeros(3))
plain = builtins.open
with open("meta.json", "w") as f: json.dump([[i, i % 2] for i in range(48)], f)
for i in range(48): open(f"{i}.txt", "w").write(str(i))
replaced = []
class Rows(Dataset):
    def __len__(self): return 48
    def __getitem__(self, i):
        replaced.append(builtins.open is not plain)
        with open("meta.json") as f:
            row = json.load(f)[i]
        with open(f"{i}.txt") as f:
            f.read()
        numpy.load("a.npy")
        return torch.ones(4) * row[0], row[1]
def main():
    model, lossf = net(), nn.CrossEntropyLoss()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    data = DataLoader(Rows(), 4, num_workers=WORKERS)
    for epoch in range(2):
        for x, y in data:
            opt.zero_grad(); lossf(model(x), y).backward(); opt.step()
    print(builtins.open is plain, io.open is plain, sum(replaced))
main()
"""


def rows(timeline: Any) -> list[dict[str, Any]]:
    processes = [timeline, *timeline.workers]
    found = [[s.value for s in process.setting if s.name == "file_reads"] for process in processes]
    return [values[-1] for values in found if values]


@pytest.mark.parametrize("workers", [0, 1])
def test_lines_and_their_files(watched: Any, workers: int) -> None:
    timeline, out = watched(BODY.replace("WORKERS", str(workers)))
    value = rows(timeline)[0]
    looks = value["batches"]
    assert looks >= 2 and value["samples"] == 4 * looks and value["w"] > 0
    process = timeline.workers[0] if workers else timeline
    lines = {(process.frame[line[0]].line, line[1]): line for line in value["lines"]}
    first = min(number for number, _ in lines)
    assert {(number - first, op) for number, op in lines} == {
        (0, "open"),
        (1, "json.load"),
        (2, "open"),
        (4, "numpy.load"),
    }
    assert lines[first, "open"][2:4] == [4 * looks, looks], "one file, opened for each sample"
    assert lines[first + 1, "json.load"][2:4] == [4 * looks, looks]
    assert lines[first + 2, "open"][2:4] == [4 * looks, 4 * looks], "a file for each sample"
    assert all(line[4] > 0 and line[5] > 0 for line in lines.values())
    if not workers:
        assert out.split() == ["True", "True", str(4 * looks)], "replaced in the batches looked into alone"


def test_kinds_of_mounts(tmp_path: Path) -> None:
    info = tmp_path / "mountinfo"
    info.write_text(
        "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n36 21 0:33 / /data rw shared:1 - nfs4 server:/data rw\nodd line\n"
    )
    import os

    assert mount_kinds([os.makedev(0, 33)] * 3 + [os.makedev(8, 1), os.makedev(9, 9)], str(info)) == {
        "nfs4": 3, "ext4": 1,
    }  # fmt: skip
    assert mount_kinds([5], str(tmp_path / "absent")) == {}
    assert io.open is open


MADE = """
def main():
    model, lossf = net(), nn.CrossEntropyLoss()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    once = loader()
    for epoch in range(20):
        for x, y in EACH:
            opt.zero_grad(); lossf(model(x), y).backward(); opt.step()
main()
"""


WRAPPED = """
accelerate = {"__name__": "accelerate.data_loader", "DataLoader": DataLoader}
exec("def prepare(loader): return DataLoader(loader.dataset, 8)", accelerate)
"""


@pytest.mark.parametrize(("each", "told"), [("DataLoader(once.dataset, 8)", [2, 3, 4, 5, 6, 7, 8, 16]), ("once", [])])
@pytest.mark.parametrize("once", ["loader()", "accelerate['prepare'](DataLoader(loader().dataset, 8))"])
def test_a_loader_that_is_made_anew(watched: Any, each: str, told: list[int], once: str) -> None:
    timeline, _ = watched(WRAPPED + MADE.replace("EACH", each).replace("= loader()", f"= {once}"))
    made = [s for s in timeline.setting if s.name == "loader_made"]
    assert [s.value["count"] for s in made] == told
    assert len({s.frame for s in made}) == (1 if told else 0)


def test_loaders_that_one_helper_makes_are_several(watched: Any) -> None:
    body = MADE.replace("EACH", "once").replace("= loader()", "= make(); also = make()")
    timeline, _ = watched("def make(): return DataLoader(loader().dataset, 8)\n" + body)
    assert [s for s in timeline.setting if s.name == "loader_made"] == []


def test_a_wrapped_loader_is_known_by_the_scripts_own_line(watched: Any) -> None:
    made = "loader().dataset\n    own = DataLoader(once, 8)\n    once = accelerate['prepare'](own)"
    timeline, _ = watched(WRAPPED + MADE.replace("EACH", "once").replace("loader()", made, 1))
    row = next(s for s in timeline.setting if s.name == "loader" and s.value.get("training"))
    frame = timeline.frame[row.frame]
    assert timeline.source.get(f"{frame.file}:{frame.line}", "own").strip().startswith("own")


def test_how_uneven_batches_are(watched: Any) -> None:
    body = """
    import time
    class Uneven(Dataset):
        def __len__(self): return 64
        def __getitem__(self, i):
            time.sleep(0.16 if i % 8 == 0 else 0.01)
            return torch.ones(4), i % 2
    model, lossf = net(), nn.CrossEntropyLoss()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in DataLoader(Uneven(), 1):
        opt.zero_grad(); lossf(model(x), y).backward(); opt.step()
    """
    timeline, _ = watched(body)
    batches = sum(row.batches for row in timeline.load)
    mean = sum(row.w for row in timeline.load) / 1e9 / batches
    variance = sum(row.sq for row in timeline.load) / batches - mean**2
    assert batches >= 16 and 1.2 < variance**0.5 / mean < 2.2  # 1.72 by its sleeps
