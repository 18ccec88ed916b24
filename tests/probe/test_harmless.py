"""What the probes must not change, and that they can be taken back."""

from __future__ import annotations

from typing import Any


def test_undo_leaves_nothing_of_ours_on_torch(watched: Any) -> None:
    _, out = watched("""
    import builtins, gc, signal
    import numpy
    model = net(); opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader(): model(x).mean().backward(); opt.step()
    problems = undo.undo_all()
    def ours(value):
        return hasattr(type(value), "__code__") and "hotlap" in value.__code__.co_filename
    owners = [torch, nn.Module, torch.Tensor, torch.autograd, torch.optim.Optimizer, DataLoader, builtins, signal, os,
              torch.utils.data.dataloader._BaseDataLoaderIter, torch.utils.data._utils.fetch._MapDatasetFetcher,
              torch.utils.data._utils.worker, torch.amp.GradScaler, torch.serialization, torch.cuda, numpy,
              torch.utils.data._utils.fetch._BaseDatasetFetcher, torch.amp.autocast_mode.autocast]
    left = [f"{o}.{n}" for o in owners for n, v in vars(o).items() if ours(v)]
    left += [n for n in ("item", "cpu", "__bool__") if n in vars(torch.Tensor)]
    hooks = sys.modules["torch.optim.optimizer"]
    print(problems, left, len(hooks._global_optimizer_pre_hooks), len(gc.callbacks), signal.getsignal(signal.SIGALRM))
    """)
    assert out.strip() == "[] [] 0 0 0"


def test_compiled_models_trace_in_one_graph_and_do_not_recompile(watched: Any) -> None:
    timeline, out = watched("""
    import torch._dynamo
    from torch._dynamo.testing import CompileCounter
    class Block(nn.Module):
        def __init__(self): super().__init__(); self.a = net()
        def forward(self, x): return self.a(x) + 1
    model = Block(); count = CompileCounter()
    fast = torch.compile(model, backend=count, fullgraph=True)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    other = Block(); other.compile(backend=count, fullgraph=True)
    part = CompileCounter()
    def broken(x):
        y = x * 2
        print("seen", y.sum().item(), bool(y.sum() > 0))
        return y + 1
    broken = torch.compile(broken, backend=part)
    for i in range(6):
        opt.zero_grad(); x = torch.ones(8, 4)
        loss = fast(x).mean() + other(x).mean(); loss.backward(); opt.step()
        broken(torch.ones(2))
    print(count.frame_count, part.frame_count)
    """)
    assert out.splitlines() == ["seen 4.0 True"] * 6 + ["1 3"]  # as many graphs as without the probes
    assert timeline.n_steps == 6 and timeline.step[-1].s == 8
    assert all(row.p[2] > 0 for row in timeline.step)


def test_copies_pickles_and_scripts_of_modules_work(watched: Any) -> None:
    _, out = watched("""
    import copy, pickle
    model = net(); opt = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(2, 4)).mean().backward(); opt.step()
    twin = pickle.loads(pickle.dumps(copy.deepcopy(model)))
    x = torch.ones(2, 4)
    script, trace = torch.jit.script(model), torch.jit.trace(model, x)
    pickle.loads(pickle.dumps(loader())); pickle.loads(pickle.dumps(print)); pickle.loads(pickle.dumps(opt))
    print(all(torch.equal(model(x), m(x)) for m in (twin, script, trace)), bool(x.sum() > 0), int(x.sum()))
    """)
    assert out.strip() == "True True 8"


def test_a_script_that_takes_the_alarm_keeps_it(watched: Any) -> None:
    timeline, out = watched("""
    import signal, time
    model = net(); opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(5): model(torch.ones(2, 4)).mean().backward(); opt.step()
    before = signal.signal(signal.SIGALRM, lambda *a: print("mine"))
    signal.alarm(1); time.sleep(1.2)
    for i in range(5): model(torch.ones(2, 4)).mean().backward(); opt.step()
    print(before == signal.SIG_DFL)
    """)
    assert out.split() == ["mine", "True"]
    assert timeline.n_steps == 10 and "SIGALRM" in timeline.note[0].why


def test_exec_is_not_killed_by_the_timer(watched: Any) -> None:
    _, out = watched("""
    model = net(); opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(5): model(torch.ones(2, 4)).mean().backward(); opt.step()
    sys.stdout.flush()
    os.execvp(sys.executable, [sys.executable, "-c", "import time; time.sleep(0.3); print('alive')"])
    """)
    assert out.strip() == "alive"


def test_waiting_for_a_signal_waits_for_the_scripts_own(watched: Any) -> None:
    _, out = watched("""
    import signal, threading
    model = net(); opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(5): model(torch.ones(2, 4)).mean().backward(); opt.step()
    came = []
    signal.signal(signal.SIGTERM, lambda *_: came.append("SIGTERM"))
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGTERM)).start()
    signal.pause()
    print(came)
    """)
    assert out.strip() == "['SIGTERM']"


def test_a_forked_rank_tells_what_was_changed_before_the_fork(watched: Any) -> None:
    """A switch of the whole process (flushing denormals) is set once, where torch is imported."""
    timeline, _ = watched("""
    from hotlap.inject.target import GuestTarget
    target = GuestTarget("flush-denormals", watch.call, points, watch)
    target.changed()
    pid = os.fork()
    if pid == 0:
        model = net(); opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader():
            opt.zero_grad(); model(x).sum().backward(); opt.step()
        target.report()
        watch.flush()
        os._exit(0)
    os.waitpid(pid, 0)
    """)
    assert timeline.n_steps == 4, "the child's"
    assert [(mark.id, mark.state, mark.count) for mark in timeline.mark] == [("flush-denormals", "applied", 1)]


def test_a_forked_child_does_not_write_the_parents_file(watched: Any) -> None:
    timeline, _ = watched("""
    model = net(); opt = torch.optim.SGD(model.parameters(), lr=0.1)
    def train(n):
        for i in range(n): model(torch.ones(2, 4)).mean().backward(); opt.step()
    train(5)
    pid = os.fork()
    if pid == 0:
        train(3); watch.close("child"); os._exit(0)
    os.waitpid(pid, 0)
    train(2)
    import glob
    print(len(glob.glob(sys.argv[1] + "/*.jsonl")))
    """)
    assert timeline.n_steps == 7


def test_a_full_disk_does_not_stop_the_training(watched: Any) -> None:
    _, out = watched("""
    import resource, signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
    model = net(); opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(200): model(torch.ones(2, 4)).mean().backward(); opt.step()
    watch.close("exit")
    import glob, json
    lines = open(glob.glob(sys.argv[1] + "/*.jsonl")[0]).read().splitlines()
    [json.loads(line) for line in lines]
    print("done")
    """)
    assert out.strip() == "done"
