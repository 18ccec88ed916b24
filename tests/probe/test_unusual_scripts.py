"""What scripts do that few do: it works as it does without the probes."""

from __future__ import annotations

from typing import Any

import pytest

TRAIN = """
    model = net(); opt = torch.optim.SGD(model.parameters(), 0.1)
    for x, y in loader():
        opt.zero_grad(); model(x).sum().backward(); opt.step()
"""


def test_a_model_without_shapes_yet_is_moved(watched: Any) -> None:
    _, out = watched("""
    lazy = nn.Sequential(nn.LazyLinear(3)).to("cpu").cpu()
    print(lazy(torch.ones(2, 4)).shape)
    undo.undo_all()
    allowed = nn.parameter.UninitializedTensorMixin._allowed_methods
    print([one for one in allowed if "hotlap" in repr(getattr(one, "__code__", one))])
    """)
    assert out.split("\n")[:2] == ["torch.Size([2, 3])", "[]"]


def test_a_reader_that_is_a_partial(watched: Any) -> None:
    _, out = watched("""
    import functools
    torch.load = functools.partial(torch.load, weights_only=False)
    print(sum(1 for epoch in range(4) for _ in loader()), type(torch.load).__name__, open.__module__)
    """)
    assert out.split() == ["16", "partial", "_io"] or out.split() == ["16", "partial", "io"]


def test_signals_by_keyword(watched: Any) -> None:
    _, out = watched("""
    import signal
    signal.signal(signalnum=signal.SIGTERM, handler=signal.SIG_IGN)
    print(signal.getsignal(signal.SIGTERM) == signal.SIG_IGN)
    """)
    assert out.split() == ["True"]


def test_functions_of_torch_are_pickled_by_their_names(watched: Any) -> None:
    _, out = watched("""
    import pickle
    from torch.utils.data._utils import worker
    for function in (torch.load, torch.save, worker._worker_loop, torch.Tensor.item, torch.Tensor.numpy, print):
        print(pickle.loads(pickle.dumps(function)) is function)
    data = pickle.dumps(worker._worker_loop)
    undo.undo_all()
    print(pickle.loads(data) is worker._worker_loop, b"hotlap" in data)
    """)
    assert out.split() == ["True"] * 7 + ["False"]


def test_a_class_that_keeps_a_function_in_c_gets_no_method(watched: Any) -> None:
    _, out = watched("""
    import copy, gc
    class Trainer:
        log, clean = print, gc.collect
    Trainer().log("epoch", 1)
    print(Trainer().clean(0) >= 0, copy.deepcopy(print) is print, print.__name__, print.__module__)
    model = net(); opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(3):
        model(torch.ones(2, 4)).mean().backward(); opt.step(); Trainer().log(i)
    """)
    assert out.split() == ["epoch", "1", "True", "True", "print", "builtins", "0", "1", "2"]


def test_no_parametrization_is_computed_by_a_look(watched: Any) -> None:
    timeline, out = watched("""
    from torch.nn.utils import parametrize
    class Counted(nn.Module):
        calls = 0
        def forward(self, w):
            Counted.calls += 1
            return w * 1.0
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Linear(16, 1))
    for part in (model[0], model[2]):
        parametrize.register_parametrization(part, "weight", Counted())
    Counted.calls = 0
    opt = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(25):
        opt.zero_grad(); model(torch.ones(2, 1, 4, 4)).sum().backward(); opt.step()
    print(Counted.calls)
    """)
    assert out.split() == ["50"]
    facts = [row.value for row in timeline.setting if row.name == "model"][-1]
    assert facts["parameters"] == 36 + 4 + 16 + 1 and facts["conv_frac"] == pytest.approx(40 / 57, abs=1e-4)


def test_a_sampler_is_not_asked_to_count_its_batches(watched: Any) -> None:
    timeline, out = watched("""
    class Buckets(torch.utils.data.Sampler):
        def __iter__(self):
            for b in torch.arange(32).split(4): yield b.tolist()
        def __len__(self):
            print("asked")
            return sum(1 for _ in self)
    class Known(Buckets):
        def __init__(self): self.n = 8
        def __len__(self): return self.n
    data = TensorDataset(torch.randn(32, 4), torch.zeros(32))
    model = net(); opt = torch.optim.SGD(model.parameters(), 0.1)
    for sampler in (Buckets(), Known()):
        for x, y in DataLoader(data, batch_sampler=sampler):
            opt.zero_grad(); model(x).sum().backward(); opt.step()
    """)
    assert "asked" not in out
    assert [row.value["batches_per_epoch"] for row in timeline.setting if row.name == "loader"] == [None, 8]


def test_a_script_that_waits_for_all_threads_ends(watched: Any) -> None:
    timeline, out = watched(
        TRAIN
        + """
    import threading, time
    time.sleep(0.3)
    for thread in threading.enumerate():
        if thread is not threading.current_thread(): thread.join()
    print("done", threading.active_count())
    """
    )
    assert out.split() == ["done", "1"] and timeline.n_steps == 4


def test_keywords_of_a_forward_are_the_scripts(watched: Any) -> None:
    _, out = watched("""
    points.around_forward.append(lambda module, call, args, kwargs: call(*args, **kwargs))
    class Model(nn.Module):
        def __init__(self):
            super().__init__(); self.inner = net()
        def forward(self, x, module, call, wrapper):
            return getattr(self, module)(x) * call * wrapper
    model = Model(); opt = torch.optim.SGD(model.parameters(), 0.1)
    for x, y in loader():
        opt.zero_grad(); model(x, module="inner", call=1, wrapper=2).sum().backward(); opt.step()
    print("done")
    """)
    assert out.split() == ["done"]


def test_what_a_step_is_given_is_the_scripts(watched: Any) -> None:
    _, out = watched("""
    class Odd(torch.optim.Optimizer):
        def __init__(self, p): super().__init__(p, {})
        def step(self, given): return given
    model = net(); opt = Odd(model.parameters())
    for x, y in loader():
        model(x).sum().backward()
        assert opt.step(model) is model and opt.step(3) == 3
        assert opt.step(lambda eps, two=0: (eps, two))(1e-3, two=2) == (1e-3, 2)
    print("done")
    """)
    assert out.split() == ["done"]


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_a_loop_that_is_woken_by_signals_is_left_alone(watched: Any, before: bool) -> None:
    told = "import socket, signal\n    ends = socket.socketpair()\n    [e.setblocking(False) for e in ends]\n"
    told += "    signal.set_wakeup_fd(ends[0].fileno())\n"
    busy = "    import time\n    time.sleep(0.5)\n"
    first, then = ("    " + told, TRAIN) if before else (TRAIN, "    " + told)
    timeline, out = watched(
        first
        + then
        + busy
        + """
    try: print(len(ends[1].recv(1000)))
    except BlockingIOError: print(0)
    print(signal.set_wakeup_fd(-1) == ends[0].fileno())
    """
    )
    assert out.split() == ["0", "True"]
    assert any("woken by signals" in note.why for note in timeline.note)


def test_a_warning_names_the_line_of_the_script(watched: Any) -> None:
    _, out = watched("""
    import warnings
    shown = []
    warnings.showwarning = lambda m, c, file, line, *_: shown.append((os.path.basename(file), line))
    model = net(); opt = torch.optim.SGD(model.parameters(), 0.1)
    total = 0.0
    for x, y in loader():
        loss = model(x).sum()
        total += float(loss)
        opt.zero_grad(); loss.backward(); opt.step()
    with torch.autograd.detect_anomaly():
        pass
    warnings.warn("its own")
    print(shown)
    import linecache
    print([linecache.getline("script.py", line).strip() for _, line in shown])
    """)
    names, lines = out.strip().split("\n")
    assert "hotlap" not in names and {name for name, _ in eval(names)} == {"script.py"}
    assert eval(lines)[-2:] == ["with torch.autograd.detect_anomaly():", 'warnings.warn("its own")']


def test_a_script_that_begins_anew_as_the_same_process_has_a_timeline(watched: Any) -> None:
    timeline, _ = watched("""
    import time
    model = net(); opt = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3 if "--again" not in sys.argv else 6):
        for x, y in loader():
            opt.zero_grad(); model(x).sum().backward(); opt.step()
    time.sleep(0.4)
    if "--again" not in sys.argv:
        os.execv(sys.executable, [sys.executable, *sys.argv, "--again"])
    print("done")
    """)
    assert timeline.n_steps == 24
