"""Causes of a data wait: each loud, and each silent beside a near miss."""

from __future__ import annotations

import pytest
from diagnose_scripts import (
    COLLATE,
    COMPUTE,
    CUSTOM,
    FETCH,
    H5,
    LOADER,
    LOOP,
    NOISE,
    READ,
    SLEEP,
    SOUNDFILE,
    causes,
    healthy,
)

from hotlap.testing.timelines import TimelineBuilder, UserLine, cpu_machine


def waiting(seconds: float = 0.02, n: int = 100, **loader: object) -> TimelineBuilder:
    return TimelineBuilder().loader(LOADER, **loader).steps(n, data_wait=seconds, **COMPUTE)


def test_decode_is_named_with_its_line() -> None:
    found = causes(waiting().loads(100, 0.02, decode=0.015).stack("data_wait", 90, LOOP, FETCH, READ, SOUNDFILE))
    assert found["decode"].where[0].line == 48
    assert found["decode"].seconds_per_step == pytest.approx(0.015, rel=0.01)
    assert found["decode"].ablation == "data"


def test_decode_by_a_reader_that_no_probe_knows() -> None:
    found = causes(waiting().loads(100, 0.02).stack("data_wait", 90, LOOP, FETCH, CUSTOM, H5))
    assert found["decode"].where[0].line == 49
    assert "augment" not in found


def test_decode_that_goes_on_after_a_timed_reader_has_returned() -> None:
    opened = waiting().loads(100, 0.02, decode=0.002)
    lazy = causes(opened.stack("data_wait", 70, LOOP, FETCH, CUSTOM, H5).stack("data_wait", 30, LOOP, FETCH, NOISE))
    assert lazy["decode"].seconds_per_step == pytest.approx(0.014, rel=0.05)
    assert lazy["augment"].seconds_per_step == pytest.approx(0.006, rel=0.05)


def test_a_timed_reader_is_believed_before_the_wording_of_a_line() -> None:
    found = causes(waiting().loads(100, 0.02, decode=0.002).stack("data_wait", 90, LOOP, FETCH, READ))
    assert found["decode"].seconds_per_step == pytest.approx(0.002, rel=0.05)


def test_no_decode_when_only_noise_is_added() -> None:
    found = causes(waiting().loads(100, 0.02).stack("data_wait", 90, LOOP, FETCH, NOISE))
    assert "decode" not in found
    assert (found["augment"].where[0].line, found["augment"].where[0].function) == (55, "add_noise")


def test_collate_loud_and_silent() -> None:
    assert "collate" in causes(waiting().loads(100, 0.02, decode=0.01, collate=0.009))
    assert "collate" not in causes(waiting().loads(100, 0.02, decode=0.01, collate=0.0005))
    collate = ("train.py", 60, "collate", "return torch.stack([to_tensor(sf.read(p)) for p in paths])")
    reading = (
        waiting().loads(100, 0.02, decode=0.018, collate=0.001).stack("data_wait", 50, LOOP, FETCH, collate, SOUNDFILE)
    )
    assert next(iter(causes(reading))) == "decode", "wherever it is done"
    stacked = causes(waiting().stack("data_wait", 50, LOOP, FETCH, COLLATE))
    assert next(iter(stacked)) == "collate"


def test_a_collator_object_is_known_by_who_calls_it() -> None:
    collator = ("train.py", 60, "__call__", "ids = torch.tensor([self.encode(text) for text in texts])")
    inner = ("train.py", 62, "encode", "return [self.ids.get(piece, 1) for piece in text.split()]")
    loads = waiting().loads(100, 0.02, collate=0.018)
    found = causes(
        loads.stack("data_wait", 60, LOOP, FETCH, collator, inner).stack("data_wait", 40, LOOP, FETCH, NOISE)
    )
    assert (found["collate"].where[0].line, found["collate"].where[0].function) == (62, "encode")
    wrapped = ("train.py", 61, "__call__", "return np.roll(wave, 3)")
    below = causes(waiting().loads(100, 0.02).stack("data_wait", 60, LOOP, FETCH, CUSTOM, wrapped))
    assert next(iter(below)) == "augment"


def test_storage_needs_bytes_from_the_device() -> None:
    cold = causes(waiting().loads(100, 0.02, decode=0.01, cpu=0.004, read_bytes=100 * 32 * 60_000))
    assert cold["storage-read"].share > 0.2
    warm = causes(waiting().loads(100, 0.02, decode=0.01, cpu=0.004, read_bytes=0))
    assert "storage-read" not in warm


def test_a_sleep_is_not_storage() -> None:
    slept = waiting().loads(100, 0.02, cpu=0.002, read_bytes=None).stack("data_wait", 90, LOOP, FETCH, SLEEP)
    found = causes(slept)
    assert "storage-read" not in found
    assert "sleep" in found["augment"].advice
    read = causes(waiting().loads(100, 0.02, cpu=0.002, read_bytes=None).stack("data_wait", 90, LOOP, FETCH, READ))
    assert "storage-read" in read


def test_workers_that_hide_loading_are_no_cause() -> None:
    builder = healthy().setting("loader", num_workers=2, batch_size=32, batches_per_epoch=1000, id=1, training=True)
    assert not causes(builder.worker(60, 0.03, decode=0.025).worker(60, 0.03, decode=0.025))


def test_workers_stacks_name_the_line() -> None:
    builder = waiting(num_workers=1, persistent_workers=True)
    found = causes(builder.worker(100, 0.04, decode=0.035, stacks=[(50, [LOOP, FETCH, READ, SOUNDFILE])]))
    assert found["decode"].where[0].line == 48
    assert "1 worker" in found["decode"].detail


def test_needless_workers() -> None:
    builder = waiting(num_workers=2, persistent_workers=True)
    found = causes(builder.worker(50, 0.001, decode=0.0008).worker(50, 0.001, decode=0.0008))
    needless = found["needless-workers"]
    assert needless.seconds_per_step == pytest.approx(0.019, rel=0.01) and needless.where[0].line == 80
    assert (
        "num_workers=0" in needless.advice and "0.001 s to load" in needless.advice and "0.02 s for" in needless.advice
    )
    assert next(iter(found)) == "needless-workers" and "decode" not in found, (
        "a millisecond of decoding is not the wait"
    )
    held = waiting(num_workers=2, persistent_workers=True)
    held = held.worker(50, 0.015, cpu=0.002).worker(50, 0.015, cpu=0.002)
    assert next(iter(causes(held))) == "needless-workers", "they fight for the cores, and work for little of the time"
    slow = waiting(num_workers=2, persistent_workers=True).worker(50, 0.03, decode=0.02).worker(50, 0.03, decode=0.02)
    assert "needless-workers" not in causes(slow)
    here = causes(waiting().loads(100, 0.001, decode=0.0008))
    assert "needless-workers" not in here and "decode" in here, "there is no worker"


def test_too_few_workers_needs_idle_cores() -> None:
    load = waiting().loads(100, 0.02, decode=0.02)
    assert causes(load, cpu_machine(cores=4))["too-few-workers"].where[0].line == 80
    assert "too-few-workers" not in causes(load.setting("threads", torch=1), cpu_machine(cores=1))
    full = waiting(num_workers=4).worker(100, 0.1).worker(100, 0.1).worker(100, 0.1).worker(100, 0.1)
    assert "too-few-workers" not in causes(full, cpu_machine(cores=4))


def test_the_split_never_exceeds_the_wait() -> None:
    found = causes(waiting().loads(100, 0.03, decode=0.02, collate=0.02))
    split = [found[c].share for c in ("decode", "augment", "collate", "storage-read") if c in found]
    assert sum(split) <= 0.02 / (0.02 + sum(COMPUTE.values())) + 1e-9
    assert list(found).index("decode") < list(found).index("too-few-workers")


def epochs(persistent: bool, start_s: float, workers: int = 2) -> TimelineBuilder:
    builder = TimelineBuilder().loader(LOADER, num_workers=workers, persistent_workers=persistent, batches_per_epoch=25)
    for _ in range(4):
        builder.steps(25, lo=start_s, data_wait=0.0002, **COMPUTE)
    return builder


def test_workers_respawned() -> None:
    found = causes(epochs(False, 0.2))
    assert found["workers-respawned"].seconds_per_step == pytest.approx(0.2 / 25, rel=0.05)
    assert "worker-startup" not in found
    assert "workers-respawned" not in causes(epochs(False, 0.004))


@pytest.mark.parametrize(("workers", "cause"), [(2, "workers-respawned"), (0, "worker-startup")])
def test_an_iterator_for_each_batch_is_named_where_it_is_made(workers: int, cause: str) -> None:
    begin = ("train.py", 91, "main", "x, y = next(iter(loader))")
    builder = TimelineBuilder().loader(LOADER, num_workers=workers, batches_per_epoch=25)
    for _ in range(60):
        builder.steps(1, lo=0.02, data_wait=0.0002, **COMPUTE).event("loader_start", 0.02, begin)
    found = causes(builder)[cause]
    assert [w.line for w in found.where] == [91, 80]


def test_worker_startup() -> None:
    found = causes(epochs(True, 0.2))
    assert "workers-respawned" not in found
    assert found["worker-startup"].evidence["every_steps"] == pytest.approx(25)
    assert "worker-startup" not in causes(epochs(True, 0.004))


def test_slow_iterator_only_without_a_loader() -> None:
    line = ("train.py", 30, "batches", "noise = np.random.randn(32, 3, 64, 64)")
    ask = ("train.py", 90, "main", "for batch in batches():")
    found = causes(TimelineBuilder().steps(60, residual=0.02, **COMPUTE).stack("residual", 60, ask, line))
    assert found["slow-iterator"].where[0].line == 30
    plain = ("train.py", 90, "main", "for step in range(1000):")
    other = causes(TimelineBuilder().steps(60, residual=0.02, **COMPUTE).stack("residual", 60, plain, line))
    assert "slow-iterator" not in other and other["host-work"].where[0].line == 30


def test_callers_stand_behind_the_line_and_the_loop_is_not_to_blame() -> None:
    own = ("train.py", 39, "__getitem__", "wave = load_audio(path)")
    load = ("train.py", 59, "load_audio", "wave, rate = sf.read(path)")
    builder = waiting().loads(100, 0.02, decode=0.018).stack("data_wait", 20, LOOP, own, load, SOUNDFILE)
    assert [w.line for w in causes(builder)["decode"].where] == [59, 39]
    library = waiting().stack("data_wait", 20, LOOP, ("/v/site-packages/torchvision/io/image.py", 1, "read_image", ""))
    assert [w.line for w in causes(library)["decode"].where] == [80], "the loader's own line"


def test_an_idle_forked_worker_does_not_load() -> None:
    queue = ("/v/lib/python3.11/multiprocessing/connection.py", 931, "wait", "")
    stacks = [(90, [LOOP, queue]), (10, [LOOP, FETCH, CUSTOM, H5])]
    builder = waiting(num_workers=1, persistent_workers=True)
    found = causes(builder.worker(100, 0.03, stacks=stacks))
    assert found["decode"].seconds_per_step == pytest.approx(0.02)


def test_a_collate_function_is_known_by_its_place() -> None:
    tokens = ("train.py", 61, "tokenize_batch", "ids = tokenizer([r.text for r in rows], padding=True)")
    inner = ("train.py", 62, "encode", "return [self.ids.get(piece, 1) for piece in text.split()]")
    library = [(f"/v/site-packages/transformers/tok{i}.py", i, f"encode_{i}", "") for i in range(3)]
    own = ("train.py", 70, "main", "for batch in DataLoader(rows, collate_fn=lambda rows: stack(rows)):")

    def run(*stack: UserLine, **more: object) -> TimelineBuilder:
        builder = waiting(collate=[["train.py", "tokenize_batch", 60, 64]], **more).loads(100, 0.02, collate=0.018)
        return builder.stack("data_wait", 90, *stack)

    assert [w.line for w in causes(run(LOOP, tokens, *library))["collate"].where] == [61]
    assert [w.line for w in causes(run(LOOP, tokens, inner))["collate"].where] == [62, 61]
    worker = waiting(collate=[["train.py", "tokenize_batch", 60, 64]], num_workers=1, persistent_workers=True)
    worker.worker(100, 0.04, collate=0.035, stacks=[(50, [tokens, *library])])
    assert causes(worker)["collate"].where[0].line == 61
    other = waiting(collate=[["train.py", "<lambda>", 70, 70]]).loads(100, 0.02).stack("data_wait", 90, own, CUSTOM)
    assert next(iter(causes(other))) == "augment", "the loop stands on the lambda's line, and does not collate"


def test_a_table_in_memory_is_not_decoded() -> None:
    row = ("train.py", 48, "__getitem__", "row = self.df.iloc[i]")
    look = ("/v/site-packages/pandas/core/indexing.py", 1191, "__getitem__", "")
    text = ("train.py", 48, "__getitem__", "row = self.table(i)")
    parse = ("/v/site-packages/pandas/io/parsers/c_parser_wrapper.py", 234, "read", "")
    found = causes(waiting().loads(100, 0.02).stack("data_wait", 80, LOOP, FETCH, row, look))
    assert next(iter(found)) == "augment" and found["augment"].where[0].line == 48
    assert next(iter(causes(waiting().loads(100, 0.02).stack("data_wait", 80, LOOP, FETCH, text, parse)))) == "decode"


def test_work_on_the_readers_own_line() -> None:
    both = ("train.py", 48, "__getitem__", "x = resample_poly(sf.read(path)[0], 1, 3)")
    scipy = ("/v/site-packages/scipy/signal/_signaltools.py", 3400, "resample_poly", "")
    pil = ("train.py", 48, "__getitem__", "im = Image.open(path).convert('L').resize((64, 64))")
    resize = ("/v/site-packages/PIL/Image.py", 2300, "resize", "")
    trivial = ("train.py", 49, "__getitem__", "return torch.tensor(x)")

    def run(line: UserLine, library: UserLine, decode: float) -> TimelineBuilder:
        builder = waiting().loads(100, 0.02, decode=decode).stack("data_wait", 4, LOOP, FETCH, trivial)
        builder.stack("data_wait", 20, LOOP, FETCH, line, SOUNDFILE)
        return builder.stack("data_wait", 80, LOOP, FETCH, line, library)

    unclocked = causes(run(both, scipy, 0.0))
    assert next(iter(unclocked)) == "augment" and unclocked["augment"].where[0].line == 48
    clocked = causes(run(pil, resize, 0.004))
    assert next(iter(clocked)) == "augment" and clocked["augment"].where[0].line == 48
    quiet = waiting().loads(100, 0.02, decode=0.018).stack("data_wait", 90, LOOP, FETCH, CUSTOM)
    assert causes(quiet)["decode"].where[0].line == 49, "the clock knows a reader that neither text nor stack shows"
