"""Loader workers, forked and spawned: files of their own."""

from __future__ import annotations

from typing import Any

import pytest

BODY = """
import io, wave, time
class Slow(Dataset):
    def __len__(self): return 16
    def __getitem__(self, i):
        end = time.thread_time() + 0.003
        while time.thread_time() < end: pass
        torch.load(io.BytesIO(blob))
        return torch.ones(4) * i, i % 2
buffer = __import__("io").BytesIO(); torch.save(torch.ones(1000), buffer); blob = buffer.getvalue()
def main():
    model, lossf = net(), nn.CrossEntropyLoss()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    data = DataLoader(Slow(), 4, num_workers=2, multiprocessing_context="METHOD", persistent_workers=PERSISTENT)
    for epoch in range(2):
        for x, y in data:
            opt.zero_grad(); lossf(model(x), y).backward(); opt.step()
if __name__ == "__main__": main()
"""


@pytest.mark.parametrize(("method", "persistent"), [("fork", False), ("fork", True), ("spawn", True)])
def test_workers_write_their_load_time_and_stacks(watched: Any, method: str, persistent: bool) -> None:
    timeline, _ = watched(BODY.replace("METHOD", method).replace("PERSISTENT", str(persistent)))
    assert timeline.n_steps == 8 and all(row.s == 4 for row in timeline.step)
    assert len(timeline.workers) == (2 if persistent else 4)
    loads = [load for worker in timeline.workers for load in worker.load]
    assert sum(load.samples for load in loads) == 32 and sum(load.batches for load in loads) == 8
    for load in loads:
        assert load.decode > 0 and load.collate > 0 and load.decode + load.collate < load.w
        assert load.cpu >= load.samples * 3e6 * 0.9
    names = {w.frame[f].func for w in timeline.workers for s in w.stack.values() for f in s.f}
    assert "__getitem__" in names and "main" not in names
    assert all(w.end is not None and w.header.worker in (0, 1) for w in timeline.workers)


def test_a_worker_that_samples_blames_nobody(watched: Any) -> None:
    timeline, _ = watched(BODY.replace("METHOD", "fork").replace("PERSISTENT", "True"))
    rows = [row for worker in timeline.workers for row in worker.note]
    assert [n.why for n in (*timeline.note, *rows) if n.what == "stacks"] == []
