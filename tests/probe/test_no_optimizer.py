"""Trainings without an optimizer: each backward pass ends a step, and only there."""

from __future__ import annotations

from typing import Any

from hotlap.records.rows import PHASES

BY_HAND = """
    model, lossf = net(), nn.CrossEntropyLoss()
    def update():
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-0.1); p.grad = None
"""


def test_weights_that_are_changed_by_hand(watched: Any) -> None:
    timeline, out = watched(
        BY_HAND
        + """
    for epoch in range(60):
        for x, y in loader():
            loss = lossf(model(x), y); loss.backward(); update()
            print(loss.item())
        if epoch == 40:
            model.eval()
            with torch.no_grad():
                for x, y in loader(16):
                    model(x)
            model.train()
    """
    )
    assert timeline.n_steps == 240 - 6, "those before it was clear are no steps"
    full = [row for row in timeline.step[1:] if row.n == 1 and row.lo_n == 0]
    assert full and all(row.s == 8 and row.m == 1 and row.p[PHASES.index("backward")] for row in full[:50])
    assert [f"{row.l[0]}" for row in full[:3]] == out.split()[7:8] + out.split()[9:11]
    assert any(row.n > 1 for row in timeline.step), "short steps go in brief here too"
    assert [event.kind for event in timeline.event].count("validation") == 1
    assert sum(row.s for row in timeline.step[1:]) == 8 * (timeline.n_steps - 1)
    assert not any(row.name == "frozen" for row in timeline.setting), "nobody knows what is not trained"
    assert any("each backward pass counts as a step" in note.why for note in timeline.note)


def test_an_optimizer_that_has_not_stepped_yet_is_waited_for(watched: Any) -> None:
    timeline, _ = watched(
        BY_HAND
        + """
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(8):
        for x, y in loader(64):
            lossf(model(x), y).backward()
        opt.step(); opt.zero_grad()
    """
    )
    assert [row.m for row in timeline.step] == [8] * 8
    assert not timeline.note


def test_an_optimizer_that_comes_later_takes_over(watched: Any) -> None:
    timeline, _ = watched(
        BY_HAND
        + """
    for _ in range(3):
        for x, y in loader():
            lossf(model(x), y).backward(); update()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        for x, y in loader():
            lossf(model(x), y).backward()
        opt.step(); opt.zero_grad()
    """
    )
    by_hand = 12 - 6
    assert [row.m for row in timeline.step[-3:]] == [4, 4, 4]
    assert timeline.n_steps <= by_hand + 8 and sum(row.n for row in timeline.step) == timeline.n_steps


def test_gradients_that_train_nothing_make_no_steps(watched: Any) -> None:
    """An attack, a saliency map: gradients of inputs."""
    timeline, _ = watched("""
    image = torch.zeros(1, 4, requires_grad=True)
    model = net().requires_grad_(False)
    for _ in range(20):
        model(image).sum().backward()
    """)
    assert timeline is None
