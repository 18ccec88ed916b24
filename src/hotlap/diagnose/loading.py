"""What loading spends its time on: seconds per step in one process, by kind, from load rows and stacks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hotlap.diagnose.kinds import data_kind, in_reader, is_idle, touches_storage
from hotlap.diagnose.mounts import mounts_read, remote_frac
from hotlap.diagnose.policy import Policy
from hotlap.diagnose.shares import Times
from hotlap.diagnose.stacks import StackBook, collate_places, collect, merge
from hotlap.records.rows import Load
from hotlap.records.timeline import Timeline

__all__ = ["Loading", "measure_loading"]


@dataclass(frozen=True)
class Loading:
    """One step's loading."""

    load_s: float | None
    """Seconds to load one step's samples in one process; None when no load row was written."""
    cpu_s: float | None
    kinds: dict[str, float]
    """Fractions of the load time: decode, augment, collate, storage. They add up to 1 (or it is empty: unknown)."""
    stacks: dict[str, StackBook]
    """The loader's stacks by the same kinds (sleeps are under augment)."""
    sleep_frac: float
    """Part of the load time inside a sleep, by stacks."""
    wait_frac: float
    """Part of the load time off the CPU, sleeps taken out."""
    read_bytes_per_sample: float | None
    busy_workers: float
    """Mean number of workers loading at once."""
    in_workers: bool

    def seconds(self, kind: str) -> float | None:
        """Seconds per step in one process of a kind; None when unknown."""
        return None if self.load_s is None or not self.kinds else self.load_s * self.kinds.get(kind, 0.0)


def _rows(timelines: list[Timeline], start_ns: int) -> list[Load]:
    every = [row for t in timelines for row in t.load if row.training and not row.validation and row.batches > 0]
    return [row for row in every if row.t >= start_ns] or every


def _book(timeline: Timeline, workers: bool, start_ns: int) -> StackBook:
    if not workers:
        return collect(timeline, start_ns).phase("data_wait")
    books = [collect(worker, start_ns).where(lambda s: not is_idle(s)) for worker in timeline.workers]
    return replace(merge(books, timeline.source, timeline.loops), collates=collate_places(timeline))


def _of_kind(book: StackBook, kind: str) -> StackBook:
    kinds = (kind, "sleep") if kind == "augment" else (kind,)
    return book.where(lambda sample: data_kind(book, sample) in kinds)


def _storage_frac(
    rows: list[Load], wait_frac: float, sleep_frac: float, book: StackBook, policy: Policy, remote: bool
) -> tuple[float, float | None]:
    """The part of the load time that waits for storage, and bytes from the device per sample (None: not counted).

    Waiting is storage's only where bytes came from the device; where these are not counted, only where the stacks
    show reads: the kernel counts none for several network file systems. A sleep or a fight for the cores is neither.
    """
    samples = sum(row.samples for row in rows)
    counted = [row.read_bytes for row in rows if row.read_bytes is not None]
    per_sample = sum(counted) / samples if counted and samples else None
    if wait_frac < policy.io_wait_frac or sleep_frac >= policy.sleep_frac:
        return 0.0, per_sample
    if per_sample is not None and not (remote and per_sample < policy.io_bytes_per_sample):
        return (wait_frac if per_sample >= policy.io_bytes_per_sample else 0.0), per_sample
    total = book.total()
    reading = sum(s.count for s in book.samples if touches_storage(book, s))
    return (min(wait_frac, reading / total) if total else 0.0), per_sample


def _decode_frac(counted: float, seen: float, book: StackBook, policy: Policy) -> float:
    """Decoding's part of the load time: by the readers' clock, or by the stacks where that clock cannot know.

    A reader that no probe knows shows in the stacks alone; where one was timed, its clock is a better witness than the
    wording of a line. But an archive is decoded when its content is asked for, after the timed `np.load` has returned:
    where the stacks lie inside a reader's library far more often than the clock says, the clock has missed that.
    """
    if counted < policy.reader_frac:
        return max(counted, seen)
    inside = book.where(lambda s: data_kind(book, s) == "decode" and in_reader(s)).total() / max(1, book.total())
    return inside if inside >= policy.reader_missed * counted else counted


def measure_loading(timeline: Timeline, times: Times, start_ns: int, workers: int, policy: Policy) -> Loading | None:
    """Split loading; None when there is neither a load row nor a stack to tell from."""
    in_workers = workers > 0 and bool(timeline.workers)
    sources = timeline.workers if in_workers else [timeline]
    rows = _rows(sources, start_ns)
    book = _book(timeline, in_workers, start_ns)
    total = book.total()
    by_kind = {kind: _of_kind(book, kind) for kind in ("decode", "augment", "collate")}
    by_kind["storage"] = book.where(lambda s: touches_storage(book, s))
    seen = {kind: by_kind[kind].total() / total if total else 0.0 for kind in ("decode", "augment", "collate")}
    sleeping = book.where(lambda s: data_kind(book, s) == "sleep").total() / total if total else 0.0
    wall = sum(row.w for row in rows)
    if wall <= 0:
        if not total:
            return None
        return Loading(None, None, {**seen, "storage": 0.0}, by_kind, sleeping, 0.0, None, 0.0, in_workers)
    cpu = min(wall, sum(row.cpu for row in rows))
    wait_frac = max(0.0, 1.0 - cpu / wall - sleeping)
    remote = remote_frac(mounts_read(sources)) >= 0.5
    storage, per_sample = _storage_frac(rows, wait_frac, sleeping, book, policy, remote)
    collate = min(1.0, sum(row.collate for row in rows) / wall)
    counted = min(1.0 - collate, sum(row.decode for row in rows) / wall)
    decode = min(1.0 - collate, _decode_frac(counted, seen["decode"], book, policy))
    augment = 1.0 - collate - decode
    storage = min(storage, decode + augment)
    scale = 1.0 - storage / (decode + augment) if decode + augment > 0 else 1.0
    kinds = {"decode": decode * scale, "augment": augment * scale, "collate": collate, "storage": storage}
    samples, batches = sum(row.samples for row in rows), sum(row.batches for row in rows)
    per_step = times.samples / samples if times.samples and samples else times.micro / batches
    span = max(row.t for row in rows) - start_ns
    busy = wall / span if in_workers and span > 0 else 0.0
    return Loading(
        load_s=wall * per_step / 1e9,
        cpu_s=cpu * per_step / 1e9,
        kinds=kinds,
        stacks=by_kind,
        sleep_frac=sleeping,
        wait_frac=wait_frac,
        read_bytes_per_sample=per_sample,
        busy_workers=min(busy, float(max(1, workers))),
        in_workers=in_workers,
    )
