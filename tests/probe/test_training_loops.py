"""Loops as people write them: what is booked where."""

from __future__ import annotations

from typing import Any

import pytest

from hotlap.records.rows import PHASES


def phase(timeline: Any, name: str, first: int = 1) -> int:
    return sum(row.p[PHASES.index(name)] or 0 for row in timeline.step[first:])


def test_plain_loop_with_validation_and_checkpoint(watched: Any) -> None:
    timeline, out = watched("""
    import time
    model, lossf = net(), nn.CrossEntropyLoss()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    train, val = loader(), loader(16)
    def evaluate():
        model.eval()
        with torch.no_grad():
            for x, y in val:
                model(x); time.sleep(0.002)
        model.train()
    for epoch in range(3):
        for x, y in train:
            opt.zero_grad(); loss = lossf(model(x), y); loss.backward(); opt.step()
            print(loss.item())
        time.sleep(0.01)
        evaluate()
        torch.save(model.state_dict(), "m.pt")
    """)
    assert timeline.n_steps == 12
    assert [row.i for row in timeline.step] == list(range(12))
    assert all(row.s == 8 and row.m == 1 for row in timeline.step)
    assert [f"{row.l[0]}" for row in timeline.step] == out.split()
    for row in timeline.step:
        assert sum(v or 0 for v in row.p) == row.w
        assert row.p[PHASES.index("h2d")] is None
    kinds = [e.kind for e in timeline.event]
    assert kinds.count("validation") == 3 and kinds.count("checkpoint") == 3 and kinds.count("loader_start") == 3
    event = next(e for e in timeline.event if e.kind == "validation")
    assert event.d["batches"] == 2 and event.d["grad_mode"] == 0 and 4e6 < event.w < 1e9
    functions = [timeline.frame[f].func for f in timeline.stack[event.stack].f]
    assert functions[-1] == "evaluate"
    assert phase(timeline, "validation") >= 8e6 and phase(timeline, "residual") >= 20e6
    assert [row.lo_n for row in timeline.step] == [1, 0, 0, 0] * 3
    loaders = {s.value["dataset_len"]: s.value["training"] for s in timeline.setting if s.name == "loader"}
    assert loaders == {32: True, 16: False}
    assert sum(load.samples for load in timeline.load if not load.validation) == 96
    assert {site.kind for site in timeline.site} == {"sync", "logging"}
    assert timeline.end is not None


def test_accumulation_counts_micro_batches(watched: Any) -> None:
    timeline, _ = watched("""
    model, lossf = net(), nn.CrossEntropyLoss()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for i, (x, y) in enumerate(loader(64)):
            lossf(model(x), y).backward()
            if i % 4 == 3:
                opt.step(); opt.zero_grad()
    """)
    assert [(row.m, row.s) for row in timeline.step] == [(4, 32)] * 4


@pytest.mark.parametrize("again", [False, True])
def test_accumulation_without_a_loader_counts_each_micro_batch(watched: Any, again: bool) -> None:
    """``again``: activations are computed a second time, within the backward."""
    timeline, _ = watched(
        """
    from torch.utils.checkpoint import checkpoint
    class Body(nn.Module):
        def __init__(self):
            super().__init__(); self.inner = nn.Linear(4, 8)
        def forward(self, x):
            return checkpoint(self.inner, x, use_reentrant=False) if AGAIN else self.inner(x)
    body, head, lossf = Body(), nn.Linear(8, 2), nn.CrossEntropyLoss()
    opt = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
    for i in range(16):
        x, y = torch.randn(8, 4), torch.randint(0, 2, (8,))
        lossf(head(body(x)), y).backward()
        if i % 4 == 3:
            opt.step(); opt.zero_grad()
    """.replace("AGAIN", str(again))
    )
    assert [(row.m, row.s) for row in timeline.step] == [(4, 32)] * 4


@pytest.mark.parametrize("made", ["g(z).detach()", "made_apart(z)"])
def test_networks_that_take_turns_have_one_batch(watched: Any, made: str) -> None:
    timeline, _ = watched(
        """
    g, d = nn.Linear(4, 4), nn.Linear(4, 1)
    og, od = torch.optim.Adam(g.parameters()), torch.optim.Adam(d.parameters())
    @torch.no_grad()
    def made_apart(z): return g(z)
    for i in range(6):
        x, z = torch.randn(8, 4), torch.randn(8, 4)
        od.zero_grad(); d(x).mean().backward(); d(MADE).mean().backward(); od.step()
        og.zero_grad(); d(g(z)).mean().backward(); og.step()
    """.replace("MADE", made)
    )
    assert [(row.m, row.s) for row in timeline.step[2:]] == [(3, 8)] * 5


@pytest.mark.parametrize("parts", [1, 4])
def test_a_batch_that_is_split_over_updates_is_counted_once(watched: Any, parts: int) -> None:
    timeline, _ = watched(
        """
    model, lossf = net(), nn.CrossEntropyLoss()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader(96, 32):
        for i, (part, wanted) in enumerate(zip(x.chunk(8), y.chunk(8))):
            lossf(model(part), wanted).backward()
            if (i + 1) % PARTS == 0:
                opt.step(); opt.zero_grad()
    """.replace("PARTS", str(parts))
    )
    each = 4 * parts
    assert [row.s for row in timeline.step][1:] == [each] * (96 // each - 1)
    assert timeline.step[0].s == 32, "that batches are split shows in the second update"


def test_a_batch_that_several_updates_use_whole_is_counted_for_each(watched: Any) -> None:
    timeline, _ = watched("""
    model, lossf = net(), nn.CrossEntropyLoss()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader(24):
        for again in range(2):
            opt.zero_grad(); lossf(model(x), y).backward(); opt.step()
    """)
    assert [row.s for row in timeline.step] == [8] * 6


@pytest.mark.parametrize("workers", [0, 2])
def test_the_last_batch_of_an_iterable_data_set_holds_less(watched: Any, workers: int) -> None:
    timeline, _ = watched(
        """
    class Ten(IterableDataset):
        def __iter__(self):
            return iter([(torch.ones(4), 0)] * 10)
    if __name__ == "__main__":
        model, lossf = net(), nn.CrossEntropyLoss()
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for x, y in DataLoader(Ten(), 8, num_workers=WORKERS):
                opt.zero_grad(); lossf(model(x), y).backward(); opt.step()
    """.replace("WORKERS", str(workers))
    )
    each = [8, 8, 2, 2] if workers else [8, 2]
    assert [row.s for row in timeline.step] == each * 2
    assert sum(row.samples for worker in timeline.workers for row in worker.load) == (sum(each) * 2 if workers else 0)


def test_a_batch_that_is_looked_at_twice_in_a_step_counts_once(watched: Any) -> None:
    """Sharpness-aware minimisation without a loader."""
    timeline, _ = watched("""
    model = net()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(5):
        x = torch.randn(8, 4)
        for _ in range(2):
            model(x).sum().backward()
        opt.step(); opt.zero_grad()
    """)
    assert [row.s for row in timeline.step] == [8] * 5


@pytest.mark.parametrize("collate", ["torch.nn.utils.rnn.pad_sequence", "lambda xs: torch.cat(xs)[None]", "Odd"])
def test_a_batch_whose_first_dimension_is_another_has_the_samples_that_were_asked_for(
    watched: Any, collate: str
) -> None:
    """Time first, all packed into one row, or an object that does not like to be looked at."""
    timeline, _ = watched(
        """
    class Odd(list):
        @property
        def shape(self):
            raise RuntimeError("not to be looked at")
    class Texts(IterableDataset):
        def __iter__(self):
            return (torch.ones(3 + i % 3, 4) for i in range(40))
    model = net()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in DataLoader(Texts(), 8, collate_fn=COLLATE):
        x = torch.cat(batch) if isinstance(batch, list) else batch
        opt.zero_grad(); model(x).sum().backward(); opt.step()
    """.replace("COLLATE", collate)
    )
    assert [row.s for row in timeline.step] == [8] * 5


def test_gan_steps_follow_the_last_optimizer_and_are_no_validation(watched: Any) -> None:
    timeline, _ = watched("""
    g, d = nn.Linear(4, 4), nn.Linear(4, 1)
    og, od = torch.optim.Adam(g.parameters()), torch.optim.Adam(d.parameters())
    for epoch in range(3):
        for x, y in loader():
            g.eval()
            with torch.no_grad():
                fake = g(x)
            od.zero_grad(); (d(x).mean() - d(fake).mean()).backward(); od.step()
            g.train()
            og.zero_grad(); d(g(x)).mean().backward(); og.step()
    """)
    assert timeline.n_steps == 13  # the discriminator's very first update ended one, until the generator took over
    assert all(row.m == 2 for row in timeline.step[2:])
    assert phase(timeline, "validation", 2) < 0.2 * sum(row.w for row in timeline.step[2:])
    assert phase(timeline, "backward", 2) > 0


def test_a_network_that_trains_and_is_asked_for_a_batch_without_gradients_begins_no_validation(watched: Any) -> None:
    timeline, _ = watched("""
    g, d = nn.Linear(4, 4), nn.Linear(4, 1)
    og, od = torch.optim.Adam(g.parameters()), torch.optim.Adam(d.parameters())
    for x, y in loader(): pass
    train = loader()
    for epoch in range(4):
        for x, y in train:
            with torch.no_grad():
                fake = g(x)
            od.zero_grad(); (d(x).mean() - d(fake).mean()).backward(); od.step()
            og.zero_grad(); d(g(x)).mean().backward(); og.step()
    """)
    assert not [e for e in timeline.event if e.kind == "validation"] and phase(timeline, "validation") == 0
    assert sum(row.lo_n for row in timeline.step[3:]) == 3 and sum(row.lo_n for row in timeline.step) >= 4


def test_the_training_loader_read_without_gradients_is_a_validation(watched: Any) -> None:
    timeline, _ = watched("""
    model, lossf = net(), nn.CrossEntropyLoss()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    train = loader()
    for epoch in range(3):
        for x, y in train:
            opt.zero_grad(); lossf(model(x), y).backward(); opt.step()
        with torch.no_grad():
            right = sum((model(x).argmax(1) == y).sum().item() for x, y in train)
    """)
    events = [e for e in timeline.event if e.kind == "validation"]
    assert [e.d["batches"] for e in events][:2] == [4, 4]
    assert [row.lo_n for row in timeline.step] == [1, 0, 0, 0] * 3 and all(row.s == 8 for row in timeline.step)


def test_closures_are_not_the_optimizers_own_time(watched: Any) -> None:
    timeline, _ = watched("""
    import time
    model = net()
    opt = torch.optim.LBFGS(model.parameters(), max_iter=3)
    x = torch.randn(8, 4)
    def closure():
        opt.zero_grad(); time.sleep(0.01); loss = model(x).pow(2).mean(); loss.backward(); return loss
    for i in range(4):
        opt.step(closure)
    """)
    assert timeline.n_steps == 4
    assert phase(timeline, "residual") >= 3 * 10e6
    assert phase(timeline, "forward") > 0 and timeline.step[-1].s == 8


def test_scaler_reports_unscaled_losses_and_skipped_updates_end_steps(watched: Any) -> None:
    timeline, out = watched("""
    model = net()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    for i in range(4):
        x = torch.full((8, 4), float("inf")) if i == 1 else torch.ones(8, 4)
        opt.zero_grad(); loss = model(x).mean()
        scaler.scale(loss).backward(); scaler.step(opt); scaler.update()
        print(loss.item())
    """)
    losses = out.split()
    assert timeline.n_steps == 4
    assert f"{timeline.step[0].l[0]}" == losses[0]
    assert timeline.step[1].l == [None]


def test_what_a_scaler_asks_of_the_device_is_its_updates_own(watched: Any) -> None:
    timeline, _ = watched("""
    import time
    class Asks(torch.amp.GradScaler):
        def _maybe_opt_step(self, optimizer, optimizer_state, *args, **kwargs):
            time.sleep(0.01); torch.ones(1).item()
            return super()._maybe_opt_step(optimizer, optimizer_state, *args, **kwargs)
    model = net()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = Asks("cpu", init_scale=2.0**10)
    for i in range(6):
        x = torch.full((8, 4), float("inf")) if i == 1 else torch.ones(8, 4)
        opt.zero_grad(); scaler.scale(model(x).mean()).backward(); scaler.step(opt); scaler.update()
    """)
    assert timeline.n_steps == 6
    assert [site for site in timeline.site if site.op == "item"] == []
    assert phase(timeline, "optimizer") >= 5 * 10e6 and phase(timeline, "residual") < 3 * 10e6


def test_no_train_and_no_eval_call_is_still_seen_as_validation(watched: Any) -> None:
    timeline, _ = watched("""
    model, lossf = net(), nn.CrossEntropyLoss()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    train, val = loader(), loader(16)
    for epoch in range(2):
        for x, y in train:
            opt.zero_grad(); lossf(model(x), y).backward(); opt.step()
        with torch.no_grad():
            for x, y in val: model(x)
    for x, y in train:
        opt.zero_grad(); lossf(model(x), y).backward(); opt.step()
    """)
    events = [e for e in timeline.event if e.kind == "validation"]
    assert [e.d["batches"] for e in events] == [2, 2]
    assert [row.lo_n for row in timeline.step] == [1, 0, 0, 0] * 3
    assert all(row.s == 8 for row in timeline.step)


EVERY_FIFTH = """
model, lossf = net(), nn.CrossEntropyLoss()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(64, 4), torch.randint(0, 2, (64,))
for i in range(200):
    opt.zero_grad(); lossf(model(x), y).backward(); opt.step()
    CALL
"""


@pytest.mark.parametrize("name", ["evaluate", "validation_loss", "accuracy"])
def test_a_function_that_evaluates_needs_no_eval_mode(watched: Any, name: str) -> None:
    function = f"""
def {name}(model, x):
    with torch.no_grad():
        return [model(part) for part in x.split(16)]
"""
    timeline, _ = watched(function + EVERY_FIFTH.replace("CALL", f"if i % 5 == 4: {name}(model, x)"))
    events = [e for e in timeline.event if e.kind == "validation"]
    assert 39 <= len(events) <= 40 and {e.d["grad_mode"] for e in events} == {0.0}
    assert phase(timeline, "validation") > 0 and timeline.n_steps == 200


def test_a_forward_without_gradients_in_training_is_no_validation(watched: Any) -> None:
    function = """
def latest_targets(model, x):
    with torch.no_grad():
        return model(x)
"""
    timeline, _ = watched(function + EVERY_FIFTH.replace("CALL", "latest_targets(model, x)"))
    assert not [e for e in timeline.event if e.kind == "validation"]


@pytest.mark.parametrize(("name", "events"), [("evaluate", 4), ("pseudo_labels", 0)])
def test_validating_an_average_of_the_weights(watched: Any, name: str, events: int) -> None:
    function = f"""
import copy
def {name}(teacher, x):
    teacher.eval()
    with torch.no_grad():
        return teacher(x)
teacher = copy.deepcopy(net()).requires_grad_(False)
"""
    timeline, _ = watched(function + EVERY_FIFTH.replace("CALL", f"if i % 50 == 49: {name}(teacher, x)"))
    found = [e for e in timeline.event if e.kind == "validation"]
    assert len(found) in (events, max(0, events - 1)), "the last is open when the script ends"


def test_validation_that_records_a_graph_is_told(watched: Any) -> None:
    timeline, _ = watched("""
    model, lossf = net(), nn.CrossEntropyLoss()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        model.train()
        for x, y in loader():
            opt.zero_grad(); lossf(model(x), y).backward(); opt.step()
        model.eval()
        for x, y in loader(16): model(x)
    """)
    event = next(e for e in timeline.event if e.kind == "validation")
    assert event.d["grad_mode"] == 1.0 and event.d["batches"] == 2


GRADED = """
def score(model, batches):
    return sum((model(x).argmax(1) == y).sum().item() for x, y in batches)
model, lossf = net(), nn.CrossEntropyLoss()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
train, val = loader(), loader(24)
for epoch in range(3):
    for x, y in train:
        opt.zero_grad(); lossf(model(x), y).backward(); opt.step()
    VALIDATE
"""


@pytest.mark.parametrize("validate", ["score(model, val)", "for x, y in val: model(x)"])
def test_validation_without_eval_and_without_no_grad(watched: Any, validate: str) -> None:
    timeline, _ = watched(GRADED.replace("VALIDATE", validate))
    events = [e for e in timeline.event if e.kind == "validation"]
    assert [e.d["batches"] for e in events][:2] == [3, 3] and all(e.d["grad_mode"] == 1.0 for e in events)
    assert all(row.s == 8 for row in timeline.step) and phase(timeline, "data_wait") >= 0


def test_training_that_goes_on_elsewhere_with_another_loader_is_no_validation(watched: Any) -> None:
    timeline, _ = watched("""
    def fine_tune(batches):
        for x, y in batches:
            opt.zero_grad(); lossf(model(x), y).backward(); opt.step()
    model, lossf = net(), nn.CrossEntropyLoss()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader():
        opt.zero_grad(); lossf(model(x), y).backward(); opt.step()
    fine_tune(loader(64))
    """)
    assert not [e for e in timeline.event if e.kind == "validation"]
    assert timeline.n_steps == 12 and all(row.s == 8 for row in timeline.step)
    assert [row.lo_n for row in timeline.step] == [1, 0, 0, 0, 1, *[0] * 7]
    assert phase(timeline, "validation") == 0
    assert [row.value["training"] for row in timeline.setting if row.name == "loader"][-1] is True


def test_a_teacher_in_a_second_stage_is_no_validation_and_the_line_is_known_from_then_on(watched: Any) -> None:
    timeline, _ = watched("""
    model, teacher, lossf = net(), net(), nn.MSELoss()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader():
        opt.zero_grad(); model(x).mean().backward(); opt.step()
    for epoch in range(3):
        for x, y in loader(24):
            out = model(x)
            with torch.no_grad(): goal = teacher(x)
            opt.zero_grad(); lossf(out, goal).backward(); opt.step()
    """)
    assert not [e for e in timeline.event if e.kind == "validation"] and phase(timeline, "validation") == 0
    assert all(row.s == 8 for row in timeline.step) and timeline.n_steps == 13
    assert [row.lo_n for row in timeline.step] == [1, 0, 0, 0, *[1, 0, 0] * 3]


def test_the_pass_after_a_graded_validation_is_training(watched: Any) -> None:
    timeline, _ = watched(GRADED.replace("range(3)", "range(4)").replace("VALIDATE", "score(model, val)"))
    assert [row.lo_n for row in timeline.step] == [1, 0, 0, 0] * 4
    assert [row.value["training"] for row in timeline.setting if row.name == "loader"][:2] == [True, False]
    early = "for i, (x, y) in enumerate(val):\n        if i == 2: break\n        model(x)"
    timeline, _ = watched(GRADED.replace("VALIDATE", early))
    events = [e for e in timeline.event if e.kind == "validation"]
    assert len(events) >= 2 and all(row.s == 8 for row in timeline.step), "a validation that stops early stays one"
    made = GRADED.replace("for x, y in train", "for x, y in loader()").replace("VALIDATE", "score(model, val)")
    timeline, _ = watched(made)
    assert all(row.s == 8 for row in timeline.step), "where the training loader is made anew"


def test_importing_torch_or_inference_without_training_leaves_no_file(watched: Any) -> None:
    timeline, _ = watched("print(net()(torch.ones(2, 4)).shape)")
    assert timeline is None


@pytest.mark.parametrize(("how", "shuffled"), [
    ("shuffle=True, batch_size=8", True),
    ("sampler=WeightedRandomSampler([1.0] * 16, 16), batch_size=8", False),  # some samples more often than others
    ("batch_sampler=[[0, 1], [2, 3]]", False),
    ("batch_sampler=Numbered(SubsetRandomSampler(range(16)), 8, False)", True),
    ("batch_sampler=Pairs(RandomSampler(rows), 8, False)", False),
])  # fmt: skip
def test_a_loader_that_torchs_own_samplers_shuffle(watched: Any, how: str, shuffled: bool) -> None:
    timeline, _ = watched(f"""
    from torch.utils.data import (
        BatchSampler, DataLoader, RandomSampler, SubsetRandomSampler, WeightedRandomSampler)
    class Numbered(BatchSampler):  # torch's, which is told the epoch
        epoch = 0
    class Pairs(BatchSampler):  # which samples meet means something
        def __iter__(self):
            return iter([[0, 1], [2, 3]])
    model = net()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    rows = [(torch.ones(4), 0.0)] * 16
    for x, y in DataLoader(rows, {how}):
        opt.zero_grad(); model(x).sum().backward(); opt.step()
    """)
    assert [s.value["shuffled"] for s in timeline.setting if s.name == "loader"] == [shuffled]


def test_loaders_made_in_the_for_line_are_one_loader_with_facts(watched: Any) -> None:
    timeline, _ = watched("""
    model = net()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(100):
        for x, y in loader(16):
            opt.zero_grad(); model(x).sum().backward(); opt.step()
    """)
    told = [s for s in timeline.setting if s.name == "loader"]
    assert [s.value["batches_per_epoch"] for s in told] == [2] and told[0].value["training"]
    assert told[0].value["shuffled"] is False, "its samples come in the order of the data set"
    assert timeline.frame[told[0].frame].func == "loader"
    assert {e.d["loader"] for e in timeline.event if e.kind == "loader_start"} == {float(told[0].value["id"])}


def test_without_workers_the_first_batch_is_loaded_as_any_other(watched: Any) -> None:
    timeline, _ = watched("""
    import time
    class Slow(torch.utils.data.Dataset):
        def __len__(self):
            return 8
        def __getitem__(self, i):
            time.sleep(0.002)
            return torch.ones(4), 0
    class Order:
        def __len__(self):
            return 8
        def __iter__(self):
            time.sleep(0.03)
            return iter(range(8))
    model = net()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    def train(loader, steps):
        for _ in range(steps):
            x, y = next(iter(loader))
            opt.zero_grad(); model(x).sum().backward(); opt.step()
    train(torch.utils.data.DataLoader(Slow(), batch_size=8), 5)
    train(torch.utils.data.DataLoader(Slow(), batch_size=8, sampler=Order()), 5)
    """)
    rows = timeline.step
    assert [row.lo_n for row in rows] == [1] * 10
    assert all(row.p[PHASES.index("data_wait")] - row.lo > 15e6 for row in rows), "loading is no start"
    assert all(row.lo < 10e6 for row in rows[1:5]) and all(row.lo > 29e6 for row in rows[5:]), "a slow sampler is one"


def test_where_the_collate_functions_are_written(watched: Any) -> None:
    timeline, out = watched("""
    import functools
    model = net()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    class Merge:
        def __call__(self, rows):
            return torch.ones(2, 4)
        def batch(self, rows):
            return self(rows)
    def pad_batch(rows, length):
        return torch.ones(2, length)
    def logged(function):
        @functools.wraps(function)
        def wrapper(rows):
            return function(rows)
        return wrapper
    class Holder:
        def __init__(self, inner):
            self.collator, self.tokenizer = inner, pad_batch
        __call__ = len
    def own_collate(rows):
        return torch.ones(2, 4)
    four = functools.partial(pad_batch, length=4)
    for k, collate in enumerate((None, own_collate, four, Merge(), Merge().batch, logged(four.func))):
        data = torch.utils.data.DataLoader(range(2 * (k + 1)), batch_size=1, collate_fn=collate)
        for x in data if k in (2, 3, 4) else ():
            opt.zero_grad(); model(x).sum().backward(); opt.step()
    from hotlap.probe.loader_passes import _collate_code
    for given in (Holder(four), logged(own_collate), len, lambda x: x):
        print([place[1] for place in _collate_code(given)])
    """)
    told = [s.value.get("collate") for s in timeline.setting if s.name == "loader"]
    assert [[place[1] for place in places] for places in told] == [["pad_batch"], ["__call__"], ["batch"]]
    assert all(last == first + 1 for [[_, _, first, last]] in told)
    assert out.splitlines() == ["['pad_batch']", "['wrapper']", "[]", "['<lambda>']"]
