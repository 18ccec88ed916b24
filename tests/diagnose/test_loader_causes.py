"""Causes on the loader's side: what is opened, searched, rebuilt, uneven, far away. Each loud, and silent beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from diagnose_scripts import COMPUTE, FETCH, LOADER, LOOP, READ, SOUNDFILE, causes, judge

from hotlap.testing.timelines import TimelineBuilder, UserLine, cpu_machine

PARSE: UserLine = ("train.py", 40, "__getitem__", "rows = json.load(f)")
OPEN: UserLine = ("train.py", 39, "__getitem__", "with open(self.index) as f:")
LINES: UserLine = ("train.py", 41, "__getitem__", "line = f.readlines()[i]")
ARRAY: UserLine = ("train.py", 42, "__getitem__", "clip = np.load(self.path)[i]")
JSON: UserLine = ("/usr/lib/python3.11/json/decoder.py", 355, "raw_decode", "")


def waiting(seconds: float = 0.02, **loader: Any) -> TimelineBuilder:
    return TimelineBuilder().loader(LOADER, **loader).steps(100, data_wait=seconds, **COMPUTE)


def read(builder: TimelineBuilder, *lines: tuple[UserLine, str, int, int, float, int], **more: Any) -> TimelineBuilder:
    """Three batches of 32 samples looked into, 60 ms; lines are (line, op, calls, files, seconds, bytes)."""
    rows = [[builder.frame(at), op, n, files, round(s * 1e9), size] for at, op, n, files, s, size in lines]
    return builder.setting("file_reads", **{"batches": 3, "samples": 96, "w": 60_000_000, "lines": rows, **more})


def test_parsed_per_sample() -> None:
    lines = [(OPEN, "open", 96, 3, 0.001, 3 * 10**6), (PARSE, "json.load", 96, 3, 0.045, 3 * 10**6)]
    found = causes(read(waiting().loads(100, 0.02), *lines))
    assert found["parsed-per-sample"].where[0].line == 40
    assert found["parsed-per-sample"].seconds_per_step == pytest.approx(0.015, rel=0.01)
    assert found["parsed-per-sample"].evidence["calls_per_file"] == 32
    assert "reopened-per-sample" not in found, "opening alone takes no time"


def test_a_file_for_each_sample_is_not_reopened() -> None:
    lines = [(OPEN, "open", 96, 96, 0.03, 96 * 2000), (PARSE, "json.load", 96, 96, 0.03, 96 * 2000)]
    assert not {"parsed-per-sample", "reopened-per-sample"} & set(causes(read(waiting().loads(100, 0.02), *lines)))
    few = [(OPEN, "open", 4, 1, 0.05, 2000)]
    assert "reopened-per-sample" not in causes(read(waiting().loads(100, 0.02), *few))


def test_reopened_counts_the_reading_beside_it() -> None:
    builder = waiting().loads(100, 0.02).stack("data_wait", 60, LOOP, FETCH, LINES)
    builder.stack("data_wait", 40, LOOP, FETCH, READ, SOUNDFILE)
    found = causes(read(builder, (OPEN, "open", 96, 3, 0.003, 3 * 10**6)))
    own = found["reopened-per-sample"]
    assert own.where[0].line == 39 and "train.py:39" in own.advice
    # all stacks read in this __getitem__: 0.05 by its clock, the rest by stacks, never more than the wait
    assert own.seconds_per_step == pytest.approx(0.02, rel=0.01)


def test_a_database_is_opened_by_its_first_statement() -> None:
    connect: UserLine = ("train.py", 42, "__getitem__", "con = sqlite3.connect(self.path)")
    ask: UserLine = ("train.py", 43, "__getitem__", "row = con.execute(QUERY, (i,)).fetchone()")
    builder = waiting().loads(100, 0.02).stack("data_wait", 80, LOOP, FETCH, ask)
    found = causes(read(builder, (connect, "sqlite3.connect", 96, 3, 0.003, 3 * 10**6)))
    assert found["reopened-per-sample"].where[0].line == 42
    assert found["reopened-per-sample"].seconds_per_step == pytest.approx(0.02, rel=0.01)
    assert "augment" not in found, "its seconds have a name of their own"


def test_whole_file_read() -> None:
    found = causes(read(waiting().loads(100, 0.02, decode=0.018), (ARRAY, "numpy.load", 96, 3, 0.054, 3 * 10**8)))
    assert found["whole-file-read"].where[0].line == 42 and 'mmap_mode="r"' in found["whole-file-read"].advice
    assert "decode" not in found, "these seconds have a name of their own"
    hidden = causes(read(waiting(0.0002).loads(100, 0.0002), (ARRAY, "numpy.load", 96, 3, 0.054, 3 * 10**8)))
    assert "whole-file-read" not in hidden


@pytest.mark.parametrize(
    ("text", "op", "cause"),
    [
        ("rows = list(csv.reader(open(self.path)))", "csv.reader", "parsed-per-sample"),
        ("rec = json.loads(Path(self.path).read_text())[i]", "open", "parsed-per-sample"),
        ("x = np.load(self.path)['x'][i]", "numpy.load", "whole-file-read"),
        ("x = np.load(self.path, mmap_mode='r')[i].copy()", "numpy.load mapped", "reopened-per-sample"),
        ("lines = open(self.path).readlines()", "open", "reopened-per-sample"),
    ],
)
def test_what_the_opening_line_itself_goes_on_to_do(text: str, op: str, cause: str) -> None:
    line: UserLine = ("train.py", 44, "__getitem__", text)
    builder = waiting().loads(100, 0.02).stack("data_wait", 80, LOOP, FETCH, line)
    found = causes(read(builder, (line, op, 96, 3, 0.001, 3 * 10**6)))
    assert next(iter(found)) == cause and found[cause].where[0].line == 44
    assert found[cause].seconds_per_step == pytest.approx(0.02, rel=0.01)
    assert len({"parsed-per-sample", "whole-file-read", "reopened-per-sample"} & set(found)) == 1


def test_a_transform_on_the_opening_line_is_not_reading() -> None:
    line: UserLine = ("train.py", 44, "__getitem__", "x = self.transform(np.load(self.path)[i])")
    resize: UserLine = ("/v/site-packages/torchvision/transforms/functional.py", 9, "resize", "")
    builder = waiting().loads(100, 0.02).stack("data_wait", 80, LOOP, FETCH, line, resize)
    found = causes(read(builder, (line, "numpy.load", 96, 3, 0.003, 3 * 10**6)))
    assert next(iter(found)) == "augment"


@pytest.mark.parametrize(
    "text",
    [
        "place = self.names.index(name)",
        "if name not in self.seen_names:",
        "row = next(r for r in self.rows if r['id'] == i)",
        "rows = [r for r in self.rows if r.speaker == i]",
        "same = [j for j, label in enumerate(self.labels) if label == y]",
        "other = [j for j in range(len(self.labels)) if self.labels[j] != y]",
        "row = self.table[self.table['id'] == i]",
        "row = df[df.id == i].iloc[0]",
        "places = np.where(self.ids == i)[0]",
        "row = self.table.query('id == @i')",
    ],
)
def test_linear_search(text: str) -> None:
    line: UserLine = ("train.py", 44, "__getitem__", text)
    found = causes(waiting().loads(100, 0.02).stack("data_wait", 80, LOOP, FETCH, line))
    assert found["linear-search"].where[0].line == 44
    assert found["linear-search"].seconds_per_step == pytest.approx(0.02, rel=0.01)
    assert "3200 samples" in found["linear-search"].advice


@pytest.mark.parametrize(
    "text",
    [
        "for name in self.names:",
        "words = [w for w in self.words]",
        "wave = wave + np.random.randn(len(wave))",
        "ids = [self.vocabulary[w] for w in words]",
        "x = np.where(x > 0, x, 0)",
        "y = self.table[i]",
    ],
)
def test_no_search(text: str) -> None:
    line: UserLine = ("train.py", 44, "__getitem__", text)
    assert "linear-search" not in causes(waiting().loads(100, 0.02).stack("data_wait", 80, LOOP, FETCH, line))


def test_a_search_written_as_a_loop() -> None:
    header = "for j, (name, label) in enumerate(self.items):"
    walk: UserLine = ("train.py", 44, "__getitem__", header)
    compare: UserLine = ("train.py", 45, "__getitem__", "if name == key:")
    builder = waiting().loads(100, 0.02).stack("data_wait", 40, LOOP, FETCH, walk)
    builder.stack("data_wait", 40, LOOP, FETCH, compare)
    plain = causes(builder)
    assert plain["augment"].where[0].line == 44, "in a data set a loop's own line does the work"
    found = causes(builder.loop("train.py", 44, header).loop("train.py", 45, header))
    assert next(iter(found)) == "linear-search" and {w.line for w in found["linear-search"].where} == {44, 45}


def epochs(made: int, workers: int = 2, start_s: float = 0.2, folds: int = 1, residual: float = 0.0) -> TimelineBuilder:
    builder = TimelineBuilder().loader(LOADER, num_workers=workers, batches_per_epoch=25)
    for _ in range(4 * folds):
        builder.steps(25, lo=start_s, data_wait=0.0002, residual=residual, **COMPUTE)
    return builder.setting("loader_made", LOADER, count=made, workers=workers) if made > 1 else builder


def test_loader_rebuilt() -> None:
    found = causes(epochs(4))
    assert found["loader-rebuilt"].seconds_per_step == pytest.approx(0.2 / 25, rel=0.05)
    assert "persistent_workers" in found["loader-rebuilt"].advice and found["loader-rebuilt"].where[0].line == 80
    assert not {"workers-respawned", "worker-startup"} & set(found)
    assert "workers-respawned" in causes(epochs(1)) and "loader-rebuilt" not in causes(epochs(1))
    folds = epochs(2, folds=5)
    assert "workers-respawned" in causes(folds) and "loader-rebuilt" not in causes(folds), "a loader for each fold"
    assert "loader-rebuilt" in causes(epochs(4, workers=0)) and "worker-startup" not in causes(epochs(4, workers=0))


@pytest.mark.parametrize("makes", ["loader = DataLoader(Clips())", "data = Clips()"])
def test_a_data_set_that_is_made_again_with_its_loader(makes: str) -> None:
    at: UserLine = (*LOADER[:3], makes) if "DataLoader" in makes else ("train.py", 79, LOADER[2], makes)
    reads: UserLine = ("train.py", 20, "__init__", "self.clips.append(torch.tensor(row))")
    builder = epochs(4, workers=0, start_s=0.001, residual=0.03)
    builder.stack("residual", 80, at, reads).stack("residual", 20, ("train.py", 90, LOADER[2], "total += float(loss)"))
    builder.stack("residual", 1, ("/usr/lib/python3.11/threading.py", 9, "wait", ""))  # none of the user's frames
    found = causes(builder)
    assert next(iter(found)) == "loader-rebuilt" and "data set and its DataLoader" in found["loader-rebuilt"].detail
    assert found["loader-rebuilt"].where[0].line == at[1]
    assert {w.line for w in found["loader-rebuilt"].where} == {at[1], LOADER[1]}
    assert [w.line for w in found["host-work"].where] == [90], "the rest of the residual"
    later: UserLine = ("train.py", 95, LOADER[2], "state = Matcher(x)")
    per_step = epochs(4, workers=0, start_s=0.001, residual=0.03).stack("residual", 80, later, reads)
    assert causes(per_step)["host-work"].where[0].line == 20, "made in each step, after the loader"
    once = epochs(1, workers=0, start_s=0.001, residual=0.03).stack("residual", 80, at, reads)
    assert "loader-rebuilt" not in causes(once)


def uneven(std_over_mean: float, depth: int = 2, each_s: float = 0.02) -> TimelineBuilder:
    builder = waiting(0.006, num_workers=2, persistent_workers=True, prefetch_factor=depth)
    builder.worker(50, each_s).worker(50, each_s)
    for worker in builder.build().workers:
        row = worker.load[0]
        mean = row.w / row.batches / 1e9
        worker.load[0] = replace(row, sq=row.batches * mean * mean * (1 + std_over_mean**2))
    return builder


def test_prefetch_depth() -> None:
    found = causes(uneven(1.2))
    assert found["prefetch-depth"].seconds_per_step == pytest.approx(0.006, rel=0.01)
    assert found["prefetch-depth"].evidence["std_over_mean"] == pytest.approx(1.2, rel=1e-6)
    assert "prefetch_factor=8" in found["prefetch-depth"].advice
    assert "prefetch-depth" not in causes(uneven(0.1)), "even batches"
    assert "prefetch-depth" not in causes(uneven(1.2, each_s=0.001)), "no batch takes as long as the step waits"
    assert "prefetch-depth" not in causes(uneven(1.2, depth=16)), "deep already"
    assert "prefetch-depth" not in causes(uneven(1.2, each_s=0.06)), "too slow on the mean: no queue helps"


def test_the_start_of_short_epochs_is_no_unevenness() -> None:
    builder = uneven(1.2)
    for _ in range(9):
        builder.steps(10, lo=0.0, data_wait=0.006, **COMPUTE)
    assert "prefetch-depth" in causes(builder)
    short = uneven(1.2)
    for _ in range(9):
        short.steps(1, lo=0.05, data_wait=0.006, **COMPUTE).steps(9, data_wait=0.006, **COMPUTE)
    assert "prefetch-depth" not in causes(short)


def cold(**more: Any) -> TimelineBuilder:
    return waiting(**more).loads(100, 0.02, decode=0.01, cpu=0.004, read_bytes=100 * 32 * 60_000)


STORAGE = {"storage-read", "network-storage", "page-cache-exhausted", "small-files"}


def storage_of(builder: TimelineBuilder) -> set[str]:
    return STORAGE & set(causes(builder))


def test_why_storage_is_waited_for() -> None:
    large = (OPEN, "open", 96, 96, 0.01, 96 * 4 * 10**6)
    assert storage_of(cold()) == {"storage-read"}
    assert storage_of(read(cold(), large, mounts={"ext4": 96})) == {"storage-read"}
    assert storage_of(read(cold(), large, mounts={"nfs4": 96})) == {"network-storage"}
    assert storage_of(read(cold(), large, mounts={"fuse.sshfs": 60, "ext4": 3})) == {"network-storage"}
    assert storage_of(read(cold(), large, mounts={"fuseblk": 96})) == {"storage-read"}
    assert storage_of(read(cold(), (OPEN, "open", 96, 96, 0.01, 96 * 2000))) == {"small-files"}
    assert storage_of(read(cold(), (OPEN, "open", 96, 3, 0.001, 3 * 2000))) == {"storage-read"}


def test_reads_that_go_on_after_the_first_epoch() -> None:
    def run(later_bytes: int, first_bytes: int = 60_000) -> set[str]:
        builder = waiting(dataset_len=1600)
        builder.loads(100, 0.02, decode=0.01, cpu=0.004, read_bytes=100 * 32 * first_bytes)
        return storage_of(builder.loads(100, 0.02, decode=0.01, cpu=0.004, read_bytes=100 * 32 * later_bytes))

    assert run(60_000) == {"page-cache-exhausted"}
    assert run(0) == {"storage-read"}, "the second epoch came from memory"
    assert run(300, first_bytes=900) == {"storage-read"}, "next to nothing is read at all"


def test_a_network_mount_whose_bytes_are_not_counted() -> None:
    def run(kind: str) -> set[str]:
        builder = waiting().loads(100, 0.02, decode=0.01, cpu=0.004, read_bytes=0)
        builder.stack("data_wait", 90, LOOP, FETCH, READ, SOUNDFILE)
        return storage_of(read(builder, (READ, "soundfile.read", 96, 96, 0.04, 96 * 4 * 10**6), mounts={kind: 96}))

    assert run("9p") == {"network-storage"}
    assert run("ext4") == set()


def test_h2d_copy_on_a_device_alone() -> None:
    def run(device: str, pin: bool) -> set[str]:
        builder = TimelineBuilder(device).loader(LOADER, pin_memory=pin).steps(100, h2d=0.004, **COMPUTE)
        return {f.cause for f in judge(builder, cpu_machine()).findings}

    assert "h2d-copy" in run("NVIDIA A100", False)
    assert "h2d-copy" not in run("NVIDIA A100", True) and "h2d-copy" not in run("cpu", False)


def test_h2d_copy_is_not_the_devices_compute() -> None:
    def seconds(h2d_s: float, **times: float) -> float:
        builder = TimelineBuilder("NVIDIA A100").loader(LOADER, pin_memory=False).steps(100, h2d=h2d_s, **times)
        builder.event("device_step", 0.02, h2d=1e6, forward=6e6, backward=12e6)
        found = judge(builder, cpu_machine()).findings
        return sum(f.seconds_per_step for f in found if f.cause == "h2d-copy")

    waiting_s = seconds(0.018, forward=0.001, backward=0.001)
    assert waiting_s == pytest.approx(0.003, rel=0.01), "the copy, and the launches: the device computes in the rest"
    assert seconds(0.001, forward=0.008, backward=0.011) == pytest.approx(0.001, rel=0.01), "no more than it took"


@pytest.mark.parametrize(("backward_s", "idle_s"), [(0.062, 0.0), (0.042, 0.02)])
def test_waits_that_a_device_computes_through_cost_no_more_than_its_idle_time(backward_s: float, idle_s: float) -> None:
    host = {"data_wait": 0.062, "residual": 0.008, "forward": 0.01, "backward": 0.01, "sync": 0.01}
    builder = (
        TimelineBuilder("NVIDIA A100").loader(LOADER).steps(100, **host).loads(100, 0.06, decode=0.05, collate=0.01)
    )
    without = causes(builder)
    assert without["decode"].share > 0.4 and without["too-few-workers"].share > 0.3, "nobody knows what the device took"
    builder.event("device_step", 0.1, forward=34e6, backward=backward_s * 1e9, optimizer=4e6)
    found = [f for f in judge(builder).findings if f.phase in ("data_wait", "residual")]
    assert bool(found) is bool(idle_s) and all(f.seconds_per_step <= idle_s + 1e-9 for f in found)
    assert sum(f.seconds_per_step for f in found if f.cause in ("decode", "collate")) == pytest.approx(idle_s)


def test_workers_share_the_cores_with_the_host_and_not_with_what_a_device_computes() -> None:
    builder = TimelineBuilder("NVIDIA A100").loader(LOADER).steps(100, data_wait=0.08, forward=0.01, backward=0.01)
    builder.loads(100, 0.07, decode=0.07).event("device_step", 0.1, forward=20e6, backward=40e6)
    found = causes(builder)["too-few-workers"]
    assert found.seconds_per_step == pytest.approx(0.04), "on two cores loading goes below what the device takes"


def test_h2d_copy_names_the_copies_and_then_the_loader() -> None:
    copies: UserLine = ("train.py", 31, "train", "images = images.to(device)")
    builder = TimelineBuilder("NVIDIA A100").loader(LOADER, pin_memory=False).steps(100, h2d=0.004, **COMPUTE)
    found = judge(builder.stack("h2d", 40, copies), cpu_machine()).findings
    where = next(f.where for f in found if f.cause == "h2d-copy")
    assert [w.line for w in where] == [31, LOADER[1]]


def test_collate_says_when_lists_become_tensors() -> None:
    collate: UserLine = ("train.py", 70, "collate", "return torch.tensor(images), torch.tensor(labels)")
    stacked: UserLine = ("train.py", 70, "collate", "return torch.stack(images), torch.tensor_split(labels, 2)")
    builder = waiting().loads(100, 0.02, collate=0.015).stack("data_wait", 50, LOOP, FETCH, collate)
    found = causes(builder)["collate"]
    assert found.where[0].line == 70 and "train.py:70" in found.advice and "numpy.stack" in found.advice
    other = causes(waiting().loads(100, 0.02, collate=0.015).stack("data_wait", 50, LOOP, FETCH, stacked))["collate"]
    assert "numpy.stack" not in other.advice


def test_notes_on_workers_and_memory() -> None:
    def notes(workers: int, growth: int, shm: int, jump: int = 0) -> str:
        builder = waiting(num_workers=workers).worker(50, 0.02)
        for i in range(20):
            builder.ticks(1, children_rss_bytes=2**28 + i * growth + (i > 12) * jump)
        timeline = builder.build()
        timeline.tick = [replace(tick, t=builder.clock.now - (20 - i) * 10**8) for i, tick in enumerate(timeline.tick)]
        return " ".join(judge(builder, cpu_machine(shm_bytes=shm)).notes)

    assert "workers grew by 448 MiB (from 416 MiB)" in notes(2, 2**25, 2**33)
    assert "/dev/shm" not in notes(2, 2**25, 2**33) and "grew" not in notes(2, 2**20, 2**33)
    assert "grew" not in notes(2, 0, 2**33, jump=2**30), "workers of a second epoch, forked of a larger training"
    assert "/dev/shm) holds 64.0 MiB" in notes(2, 0, 2**26) and "/dev/shm" not in notes(0, 0, 2**26)


def test_what_has_a_name_is_taken_out_of_the_general_words() -> None:
    search: UserLine = ("train.py", 44, "__getitem__", "place = self.names.index(name)")
    other: UserLine = ("train.py", 45, "__getitem__", "wave = wave * window")
    builder = waiting().loads(100, 0.02)
    builder.stack("data_wait", 60, LOOP, FETCH, search).stack("data_wait", 40, LOOP, FETCH, other)
    found = causes(builder)
    assert found["linear-search"].seconds_per_step == pytest.approx(0.012, rel=0.01)
    assert found["augment"].seconds_per_step == pytest.approx(0.008, rel=0.01)
    assert [w.line for w in found["augment"].where] == [45] and "train.py:45" in found["augment"].advice


@pytest.mark.parametrize(
    ("text", "searches"),
    [
        ("rows = self.df.loc[self.df['user'] == u]", True),
        ("rows = self.df.loc[(self.df.user == u) & (self.df.day < d)]", True),
        ("mask = self.df.user == u", True),
        ("mask = (self.df['user'].values == u) & keep", True),
        ("same = self.labels == label", True),
        ("mask = self.df.user.isin(friends)", True),
        ("rows = self.rows[self.rows[:, 0] == i]", True),
        ("place = (self.ids == i).nonzero()[0]", True),
        ("rows = CLICKS[CLICKS['user'] == u]", True),
        ("where = np.flatnonzero(NAMES == name)", True),
        ("where = np.where(table['id'] == i)[0]", True),
        ("ys, xs = np.where(mask == k)", False),
        ("ys, xs = np.where(self.masks[i] == k)", False),
        ("box = boxes[boxes[:, 4] == k]", False),
        ("near = self.tree.query(point)", False),
        ("inside = self.masks[i] == k", False),
        ("row = self.df.iloc[i]", False),
    ],
)
def test_what_all_samples_share_is_searched(text: str, searches: bool) -> None:
    line: UserLine = ("train.py", 44, "__getitem__", text)
    found = causes(waiting().loads(100, 0.02).stack("data_wait", 80, LOOP, FETCH, line))
    assert next(iter(found)) == ("linear-search" if searches else "augment")


def test_what_a_mask_looks_up_is_its_search_too() -> None:
    mask: UserLine = ("train.py", 44, "__getitem__", "mask = self.df.user == u")
    rows: UserLine = ("train.py", 45, "__getitem__", "rows = self.df[mask]")
    other: UserLine = ("train.py", 46, "add_noise", "x = x[mask]")
    builder = waiting().loads(100, 0.02).stack("data_wait", 40, LOOP, FETCH, mask)
    found = causes(builder.stack("data_wait", 40, LOOP, FETCH, rows).stack("data_wait", 20, LOOP, FETCH, other))
    assert [w.line for w in found["linear-search"].where] == [44, 45]
    assert found["linear-search"].seconds_per_step == pytest.approx(0.016, rel=0.01)
