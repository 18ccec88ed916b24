"""Waiting for data: ``DataLoader.__iter__``, the iterators' ``__next__``, and which loader is read for what.

A batch counts as trained on at the next backward. Until then what its iterator cost is "fresh": a validation that
turns out to have begun takes it over.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable
from typing import Any

from hotlap.probe.batches import sample_bytes
from hotlap.probe.context import Context
from hotlap.probe.loader_passes import IterState, LoaderInfo, WaitingIterator, loader_facts
from hotlap.probe.recorder import DATA_WAIT
from hotlap.probe.step_samples import StepSamples
from hotlap.probe.validation import MAX_EVENTS, Validations
from hotlap.records.rows import Event

__all__ = ["LOADER_ENV", "LoaderInfo", "Loads"]

LOADER_ENV = "HOTLAP_LOADER"
"""Set while workers are started: ``validation`` or ``training``, for the rows they write."""


class Loads:
    """Data waits of the training thread, and what is fresh."""

    def __init__(self, ctx: Context, validations: Validations, watch_next: Callable[[Loads, Any], None]) -> None:
        self.ctx = ctx
        self.watch_next = watch_next
        """Replaces ``__next__`` of a class of loader iterators that was not met before."""
        self.rec = ctx.rec
        self.validations = validations
        self.infos: dict[int, LoaderInfo] = {}
        self.on_kind: list[Callable[[LoaderInfo, bool], None]] = []
        self.on_made: list[Callable[[Any, int | None, bool], None]] = []
        """Called with a new loader, the line that made it, and whether it wraps another one."""
        self.training_loader_seen = False
        self.fresh: list[IterState] = []
        """Passes of which no batch was trained on yet."""
        self.strange = False
        """Whether one of them is of a loader that no step is known to have trained on."""
        self._fresh_ns = 0
        self.count = StepSamples(self.rec)
        self._starts = 0
        self._numbers = 0
        self._unseen = ctx.torch._C.DisableTorchFunction
        self._made_at: dict[int, LoaderInfo] = {}

    def info(self, loader: Any) -> LoaderInfo:
        """The record of a loader."""
        found = self.infos.get(id(loader))
        if found is None or found.loader() is not loader:
            if len(self.infos) > 64:  # a script that makes a loader each epoch
                self.infos = {key: info for key, info in self.infos.items() if info.loader() is not None}
            self._numbers += 1
            found = self.infos[id(loader)] = LoaderInfo(loader, self._numbers, None)
        return found

    def constructed(self, loader: Any, frame: int | None, wraps: bool = False) -> None:
        """A loader was made at this line. One made there again, when the last one is gone, keeps its number.

        A library that ``wraps`` the script's own loader makes another of its data set: the script's line is that of the
        first.
        """
        info = self.info(loader)
        if wraps:
            own = (i for i in self.infos.values() if i is not info and i.frame)
            frame = next((i.frame for i in own if getattr(i.loader(), "dataset", None) is loader.dataset), frame)
        info.frame = frame
        if frame is None:
            return
        before = self._made_at.get(frame)
        if before is not None and before.loader() is None:
            info.number, info.sample_bytes, info.has_rows = before.number, before.sample_bytes, before.has_rows
        self._made_at[frame] = info

    def kind_known(self, info: LoaderInfo, training: bool) -> None:
        """It turned out what a loader is for."""
        info.training = training
        for callback in self.on_kind:
            callback(info, training)

    def has_fresh(self) -> bool:
        """Whether a pass has begun of which no batch was trained on yet."""
        return bool(self.fresh)

    def may_validate(self) -> bool:
        """Whether such a pass may be a validation's. One through a loader that is trained on begins an epoch, as far as
        its first batch tells: a network that trains may be called without gradients, too (a GAN's generator)."""
        return any(not state.info.training or state.batches > 1 for state in self.fresh)

    def take_fresh(self) -> tuple[int, list[IterState]]:
        """A validation takes over what is fresh: its data wait in ns, and its passes."""
        taken = self._fresh_ns, self.fresh
        self.fresh, self._fresh_ns, self.strange = [], 0, False
        return taken

    def give_fresh(self, wait_ns: int, states: list[IterState]) -> None:
        """A validation gives back batches that were not its own."""
        back = [s for s in states if s.fresh and s not in self.fresh]
        if back:
            self._fresh_ns += wait_ns
            self.fresh.extend(back)

    def confirm(self) -> None:
        """A backward: what was fetched is trained on."""
        rec = self.rec
        self.count.trained()
        self.strange = False
        if not self.fresh:
            return
        for state in self.fresh:
            state.fresh = False
            self.training_loader_seen = True
            if not state.info.training:
                self.kind_known(state.info, True)
            if state.start_ns:
                rec.lo += state.start_ns
                rec.lo_n += 1
                self._starts += 1
                if self._starts <= MAX_EVENTS:
                    number = {"loader": float(state.info.number)}
                    rec.emit(Event("loader_start", rec.clock(), state.start_ns, rec.step_index, state.stack, number))
                state.start_ns = 0
        self.fresh = []
        self._fresh_ns = 0

    def samples_in(self, state: IterState, batch: Any, most: int) -> int:
        """Samples of a batch of so many that were asked for (0: not known), by its tensors."""
        with self._unseen():
            return state.info.samples_in(batch, most)

    def got(self, state: IterState, batch: Any, spent: int, begun: int) -> None:
        """A batch has come, in ``spent`` ns since ``begun``."""
        state.batches += 1
        samples = state.lens.popleft() if state.lens else 0
        state.lens_known = bool(samples)
        if not samples or state.iterable:
            samples = self.samples_in(state, batch, samples)
        if state.batches == 1:
            in_workers = state.info.facts is None or state.info.facts["num_workers"] > 0
            state.start_ns += spent if in_workers else max(0, state.indices_ns - begun)
            if state.info.sample_bytes is None:
                with self._unseen():
                    state.info.sample_bytes = sample_bytes(batch, samples)
        if self.ctx.points.validating:
            self.validations.waited(state, spent, True)
            if state.info.training or self.validations.chain is not None:
                self.count.samples = samples
            return
        self.count.fetched(samples)
        if state.fresh:
            self._fresh_ns += spent
            if not state.info.training and not self.strange:
                self.strange = True
                self.rec.look_closely()
            if state not in self.fresh:
                self.fresh.append(state)

    def next_batch(self, state: IterState, take: Callable[[], Any]) -> Any:
        """Run the script's ``next``, timed."""
        rec = self.rec
        opened = rec.enter(DATA_WAIT)
        begun = rec.t0 if opened else rec.clock()
        spent = 0
        try:
            batch = take()
        except StopIteration:
            if self.ctx.points.validating:
                self.validations.waited(state, 0, False)
            raise
        finally:
            spent = rec.leave() if opened and rec.cur == DATA_WAIT else rec.clock() - begun
        try:
            self.got(state, batch, spent, begun)
        except Exception as err:
            self.ctx.failed("loader", err)
        return batch

    def begin_pass(self, loader: Any, make: Callable[[Any], Any]) -> Any:
        """Run the script's ``iter(loader)``, timed."""
        rec, points = self.rec, self.ctx.points
        known = self.infos.get(id(loader))
        if points.validating and known is not None and known.training and known.loader() is loader:
            self.validations.end_by_pass()
        validating = points.validating
        for callback in tuple(points.on_loader):  # one that fails is removed
            callback(loader, validating)
        rec.sign_of_training()
        rec.look_closely()
        state: IterState | None = None
        try:
            state = self._new_pass(loader)
        except Exception as err:
            self.ctx.failed("loader", err)
        opened = rec.enter(DATA_WAIT)
        begun = rec.t0 if opened else rec.clock()
        validates = validating or (state is not None and state.info.training is False)
        os.environ[LOADER_ENV] = "validation" if validates else "training"
        try:
            iterator = make(loader)
            for wrap in tuple(points.wrap_iterator):
                iterator = wrap(loader, iterator, validating)
        finally:
            os.environ.pop(LOADER_ENV, None)
            spent = rec.leave() if opened and rec.cur == DATA_WAIT else rec.clock() - begun
        if state is None:
            return iterator
        state.start_ns = spent
        if not validating:
            self._fresh_ns += spent
        try:
            return self._watched(iterator, state)
        except Exception as err:
            self.ctx.failed("loader", err)
            return iterator

    def _new_pass(self, loader: Any) -> IterState:
        info = self.info(loader)
        if info.facts is None:
            info.facts = loader_facts(loader, info.number)
        old = vars(loader).get("_iterator")
        if old is not None and "_hotlap_lens" in vars(old):
            old._hotlap_lens.clear()
        state = IterState(info, self.kind_known)
        state.stack = self.rec.frames.user_stack(sys._getframe(3))
        return state

    def _watched(self, iterator: Any, state: IterState) -> Any:
        base = self.ctx.torch.utils.data.dataloader._BaseDataLoaderIter
        if not isinstance(iterator, base):
            return WaitingIterator(iterator, state, self)
        kind = type(iterator)
        owner: Any = next(c for c in kind.__mro__ if "__next__" in vars(c))
        if not hasattr(owner.__next__, "_hotlap"):
            self.watch_next(self, owner)
        state.lens = vars(iterator).setdefault("_hotlap_lens", deque())
        iterator._hotlap_state = state
        return iterator
