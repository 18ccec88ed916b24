"""One lap's surroundings: run folder, machine, clock, and the making of arms."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from hotlap.inject import door
from hotlap.inject.host import whereabouts
from hotlap.lap.awake import awake
from hotlap.lap.not_watched import NotWatched
from hotlap.lap.options import Listener, Options
from hotlap.lever.registry import levers
from hotlap.machine.scratch import make_scratch, remove_scratch
from hotlap.plan.knobs import changed_files, rewritten
from hotlap.records.call import Call
from hotlap.records.errors import HotlapError
from hotlap.records.findings import Findings, Where
from hotlap.records.machine import Machine
from hotlap.records.plan import Move
from hotlap.records.run_folder import RunFolder
from hotlap.records.timeline import Timeline
from hotlap.trial.arm import Arm, ArmSpec
from hotlap.trial.collect import annotate
from hotlap.trial.pauses import Cycle
from hotlap.trial.progress import Progress
from hotlap.trial.sandbox import Sandbox

__all__ = ["MOST_GROWN_S", "Session", "validation_place", "waits_for"]

MOST_LENT = {"search": 0.4, "start": 1.5, "proof": 1.0}
"""Of the default budget: what :meth:`Session.lend` adds at most, for each. The search has an account of its own, so
that no proof lacks the launches that bench/power.py says it needs; so have levers that start slowly, so
that neither the others' trials nor a second look leave them out. How much is a prior: five minutes of compiling."""
MOST_GROWN_S = 900.0
"""The default budget may grow to a quarter of an hour where steps are slow: they belong to trainings of many hours."""
TRIAL_FLUSH_S = 0.2
"""A trial's rows are read while it runs, so they are written more often than in a watched run."""


class Session:
    """Makes arms, counts them, and stops whatever is still running when the lap ends, however it ends."""

    def __init__(self, options: Options, machine: Machine, folder: RunFolder, listener: Listener) -> None:
        self.options = options
        self.machine = machine
        self.folder = folder
        self.listener = listener
        self.started = time.monotonic()
        self.budget_s = options.budget_s
        """The budget that shares are of."""
        self.stage = "start"
        self.extra_s = 0.0
        """Seconds that were granted beyond the budget."""
        self.lent_s = dict.fromkeys(MOST_LENT, 0.0)
        """Of these, what a budget of our own has grown by, since a result lacked it, and for what."""
        self.cycle = Cycle()
        """Pauses that come round in the unmodified script."""
        self.step_s = 0.0
        """Seconds that a step of the unmodified script takes, once it is known."""
        self.one_at_a_time = False
        """Whether two arms do not fit into memory (lap/one_at_a_time)."""
        self.not_watched = NotWatched(listener.line)
        self.scratch = make_scratch()
        self.layers: Path | None = None
        self.sandbox = self._sandbox() if options.sandbox else None
        self._arms: list[Arm] = []
        self._count = 0

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop every arm and remove the scratch folder."""
        for arm in self._arms:
            arm.stop()
        self._remove_folders()

    def _sandbox(self) -> Sandbox:
        try:
            if self.options.scratch is not None:
                self.layers = make_scratch(Path(self.options.scratch))
            return Sandbox.plan([self.folder.path, self.scratch], self.layers)
        except HotlapError:
            self._remove_folders()
            raise

    def _remove_folders(self) -> None:
        for folder in (self.scratch, self.layers):
            if folder is not None:
                remove_scratch(folder)

    @property
    def elapsed_s(self) -> float:
        """Wall seconds since the lap began."""
        return time.monotonic() - self.started

    def left_s(self, share: float = 1.0) -> float:
        """Seconds until ``share`` of the budget is spent (never negative)."""
        return max(0.0, self.budget_s * share + self.extra_s - self.elapsed_s)

    def lendable_s(self, to: str = "proof") -> float:
        """Seconds by which the budget may still grow for it: none where the user named it."""
        return 0.0 if self.options.budget_asked else MOST_LENT[to] * self.options.budget_s - self.lent_s[to]

    def grow(self, budget_s: float) -> bool:
        """Make ``budget_s`` the budget, if it is ours (the user named none) and that is not too long to wait for."""
        fits = not self.options.budget_asked and self.budget_s < budget_s <= MOST_GROWN_S
        self.budget_s = budget_s if fits else self.budget_s
        return fits

    def stop_all_but(self, *arms: Arm) -> None:
        """End every other arm: it starts again when it is needed."""
        for arm in self._arms:
            if arm not in arms:
                arm.stop()

    def lend(self, seconds: float, share: float = 1.0, to: str = "proof") -> None:
        """Grow the budget until ``seconds`` are left before ``share`` of it is spent, if it is ours (the user named
        none) and has not grown by too much. A proof has no debt of what the search overdrew."""
        lacking_s = seconds - self.left_s(share)
        if 0 < lacking_s <= self.lendable_s(to):
            overdrawn_s = max(0.0, self.elapsed_s - self.budget_s * share - self.extra_s)
            self.lent_s[to] += lacking_s
            self.extra_s += lacking_s + (overdrawn_s if to == "proof" else 0.0)

    def arm(
        self,
        name: str,
        moves: Sequence[Move] = (),
        ablate: Sequence[str] = (),
        seed_offset: int = 0,
        replay_batches: int = 0,
        validation: Where | None = None,
        on_trial: str | None = None,
    ) -> Arm:
        """A new arm of the user's command, not yet started.

        ``validation``: the function that an ablation replays. ``on_trial``: the lever that the arm is about.
        """
        self._count += 1
        name = f"{self._count:02d}-{name}"
        timeline_dir = self.folder.timeline_dir(name)
        call = Call(
            timeline_dir=str(timeline_dir),
            mode="trial",
            host_pid=0 if self.sandbox is not None else os.getpid(),
            host_where=whereabouts(),
            moves=[move for move in moves if not move.is_knob],
            ablate=list(ablate),
            flush_s=TRIAL_FLUSH_S,
            seed_offset=seed_offset,
            replay_batches=replay_batches,
            cores=self.machine.cores,
            scratch=str(self._own_scratch(name)),
            offline=True,
            extra={}
            if validation is None
            else {"validation": {"file": validation.file, "function": validation.function}},
        )
        arm = Arm(
            ArmSpec(
                name=name,
                command=rewritten(self.options.command, moves),
                env=door.environment(call) | self._shared_caches(moves),
                timeline_dir=timeline_dir,
                cwd=Path.cwd(),
                sandbox=self.sandbox,
                output=timeline_dir / "output.txt",
                lever=on_trial,
                waits_for=frozenset() if on_trial is None else waits_for(on_trial),
                replaced=self._stand_ins(name, moves),
            )
        )
        self._arms.append(arm)
        return arm

    def _stand_ins(self, name: str, moves: Sequence[Move]) -> dict[Path, Path]:
        """Configuration files with the values of the knobs, for one arm alone: the real ones are never written."""
        found: dict[Path, Path] = {}
        for file, text in changed_files(moves).items():
            if self.sandbox is None:
                what = f"{file} cannot be given other values for a trial without a sandbox."
                raise HotlapError(what, "Leave --no-sandbox or that knob away.")
            found[file] = self.scratch / f"{name}-{len(found)}{file.suffix}".replace(":", "-")
            found[file].write_bytes(text.encode())
        return found

    def _shared_caches(self, moves: Sequence[Move]) -> dict[str, str]:
        """Where levers keep what one process of the lap has made and the others use again (compiled code), unless the
        user has such a place."""
        known = levers()
        names = {getattr(known[move.lever], "SHARED_CACHE", "") for move in moves if not move.is_knob}
        return {name: str(self.scratch / name.lower()) for name in names if name and name not in os.environ}

    def _own_scratch(self, name: str) -> Path:
        """An arm's folder for caches: what one arm holds neither fills another's nor makes its levers look used."""
        own = self.scratch / name
        own.mkdir()
        return own

    def discard(self, arm: Arm) -> None:
        """Stop an arm that is no longer needed, so that it gives back its memory."""
        arm.stop()
        shutil.rmtree(self.scratch / arm.spec.name, ignore_errors=True)

    def on_progress(self, progress: Progress) -> None:
        """Hand a trial's progress to the listener."""
        self.not_watched.look(self._arms, progress)
        self.listener.update(
            self.stage,
            progress.note,
            progress.arm,
            self.elapsed_s,
            self.budget_s + self.extra_s,
            progress.steps,
        )

    def timeline(self, arm: Arm) -> Timeline | None:
        """The arm's timeline so far, on its own clock, with source lines."""
        timeline = arm.read()
        return None if timeline is None else annotate(awake(timeline, arm.thaws))


def waits_for(lever_id: str) -> frozenset[str]:
    """Kinds of events that a lever needs to see before it can change anything, from the causes that it treats."""
    treats = levers()[lever_id].TREATS
    return frozenset(k for k in ("validation", "checkpoint") if all(cause.startswith(k) for cause in treats))


def validation_place(findings: Findings) -> Where | None:
    """Where validation is called from, as far as it was found."""
    return next((w for f in findings.findings if f.ablation == "validation" for w in f.where), None)
