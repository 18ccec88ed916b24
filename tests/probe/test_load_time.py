"""What a row of loading counts."""

from __future__ import annotations

from typing import Any


def test_samples_are_those_that_came(watched: Any) -> None:
    timeline, _ = watched("""
    class Ten(IterableDataset):
        def __iter__(self):
            return iter([(torch.ones(4), 0)] * 10)
    model, lossf = net(), nn.CrossEntropyLoss()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    data = DataLoader(Ten(), 8)
    for epoch in range(30):
        for x, y in data:
            opt.zero_grad(); lossf(model(x), y).backward(); opt.step()
    model.eval()
    with torch.no_grad():
        for x, y in loader(16): model(x)
    """)
    rows = [row for row in timeline.load if not row.validation]
    assert (sum(row.batches for row in rows), sum(row.samples for row in rows)) == (60, 300)
