"""Time per batch inside the data set's ``fetch``, in whatever process runs it: readers, collate, CPU, storage."""

from __future__ import annotations

import functools
import random
import time
from collections.abc import Callable
from threading import get_ident
from typing import Any

from hotlap.probe.context import Context
from hotlap.probe.own_frames import strip
from hotlap.probe.sites import Pace
from hotlap.records.rows import Load

SHORT_NS = 500_000
"""A batch that took less is fetched in no time: timing each one would cost more than it tells."""
STRIDE = 4
"""One in so many short fetches is timed (on average, at random), and stands for the others."""
LATE_STRIDE = 32
"""The same, once :data:`MANY` were."""
MANY = 200

__all__ = ["LoadMeter", "TimedCollate", "install"]


def _thread_read_bytes() -> int | None:
    try:
        with open("/proc/thread-self/io") as lines:
            for line in lines:
                if line.startswith("read_bytes:"):
                    return int(line.split()[1])
    except OSError:
        return None
    return None


class LoadMeter:
    """Adds up fetches; a row goes to ``emit`` about once a second, later on more rarely, every ``most_s`` seconds at
    least (0: no bound). ``is_validation`` says on which account."""

    def __init__(self, emit: Callable[[Any], None], is_validation: Callable[[], bool], most_s: float = 0.0) -> None:
        self.emit = emit
        self.is_validation = is_validation
        self.after_row: Callable[[], None] | None = None
        """Called after a row was emitted (a worker writes its file then)."""
        self.fetching: set[int] = set()
        """Threads inside ``fetch``."""
        self.decode = 0
        self.collate = 0
        self.collated = 0
        """Samples that the last batch was made of."""
        self.skip = 0
        """Fetches that are only counted before one is timed again."""
        self._short = 0
        """Short fetches timed since the last long one."""
        self._random = random.Random(0)
        self.validation = False
        self._pace = Pace(1.0, 0.0005, most_s)
        self._read_bytes: int | None = None
        self._told = False
        self._clear()

    def _clear(self) -> None:
        self.wall = self.cpu = self.batches = self.samples = self.decode = self.collate = self.timed = 0
        self.squares = 0.0

    def fetched(self, wall: int, cpu: int, samples: int) -> None:
        """One batch was fetched. Of batches that come in no time only some are timed: the next ones to skip are set."""
        validation = self.is_validation()
        if validation != self.validation:
            self.write()
            self.validation = validation
        self.wall += wall
        self.squares += wall * wall
        self.cpu += cpu
        self.timed += 1
        self.batches += 1
        self.samples += samples
        due = self._pace.due(time.monotonic_ns())
        if due or (self.after_row is not None and not self._told):  # a worker may be ended before its first second
            self.write()
        self._short = 0 if wall > SHORT_NS else self._short + 1
        stride = LATE_STRIDE if self._short > MANY else STRIDE
        self.skip = self._random.randrange(2 * stride) if self._short else 0

    def write(self) -> None:
        """Emit what has come since the last row."""
        if not self.batches:
            return
        total = _thread_read_bytes()
        read = None if total is None or self._read_bytes is None else total - self._read_bytes
        self._read_bytes = total
        share = self.batches / self.timed if self.timed else 1.0
        self.emit(
            Load(
                time.monotonic_ns(),
                round(self.wall * share),
                self.batches,
                self.samples,
                round(self.decode * share),
                round(self.collate * share),
                round(self.cpu * share),
                read if read is None or read >= 0 else None,
                self.validation,
                not self.validation,
                self.squares * share / 1e18,
            )
        )
        self._told = True
        self._clear()
        if self.after_row is not None:
            self.after_row()


class TimedCollate:
    """A fetcher's ``collate_fn``, timed."""

    def __init__(self, collate: Callable[[Any], Any], holder: MeterHolder) -> None:
        self._collate = collate
        self._holder = holder

    def __call__(self, samples: Any) -> Any:
        meter = self._holder.meter
        meter.collated = len(samples) if type(samples) is list else 1
        try:
            if not meter.fetching:
                return self._collate(samples)
            begun, read = time.monotonic_ns(), meter.decode
            try:
                return self._collate(samples)
            finally:  # what is decoded in here counts as that
                meter.collate += time.monotonic_ns() - begun - (meter.decode - read)
        except BaseException as err:
            strip(err)
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._collate, name)


class MeterHolder:
    """Where the process' meter is: a loader worker puts its own here."""

    def __init__(self, meter: LoadMeter) -> None:
        self.meter = meter


def install(ctx: Context) -> MeterHolder:
    """Replace the fetchers' ``__init__`` (to time collate) and ``fetch``."""
    rec, points = ctx.rec, ctx.points
    holder = MeterHolder(LoadMeter(rec.emit, lambda: points.validating, ctx.call.hits_most_s))
    module = ctx.torch.utils.data._utils.fetch
    base = module._BaseDatasetFetcher
    init = base.__init__

    @functools.wraps(init)
    def __init__(self: Any, dataset: Any, auto_collation: Any, collate_fn: Any, drop_last: Any) -> None:
        init(
            self,
            dataset,
            auto_collation,
            collate_fn if collate_fn is None else TimedCollate(collate_fn, holder),
            drop_last,
        )

    ctx.undo.replace(base, "__init__", __init__)
    for owner in (module._MapDatasetFetcher, module._IterableDatasetFetcher):
        ctx.undo.replace(owner, "fetch", _timed_fetch(owner.fetch, holder, owner is module._IterableDatasetFetcher))
    return holder


def _timed_fetch(original: Any, holder: MeterHolder, iterable: bool) -> Any:
    """``fetch`` of map-style or of ``iterable`` data sets, which end in the middle of a batch, or before it."""
    clock, cpu_clock = time.monotonic_ns, time.thread_time_ns

    def samples(meter: LoadMeter, index: Any) -> int:
        if iterable:
            return meter.collated
        return len(index) if type(index) is list else 1

    @functools.wraps(original)
    def fetch(self: Any, index: Any) -> Any:
        meter = holder.meter
        try:
            if meter.skip > 0 and meter.is_validation() is meter.validation:
                meter.skip -= 1
                result = original(self, index)
                meter.batches += 1
                meter.samples += samples(meter, index)
                return result
            thread = get_ident()
            if thread in meter.fetching:
                return original(self, index)
            meter.fetching.add(thread)
            begun, cpu = clock(), cpu_clock()
            try:
                result = original(self, index)
            finally:
                meter.fetching.discard(thread)
            meter.fetched(clock() - begun, cpu_clock() - cpu, samples(meter, index))
            return result
        except BaseException as err:
            strip(err)
            raise

    return fetch
