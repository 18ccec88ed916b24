"""``hotlap.attach("fast.yaml")``: the plan applied from inside the script, by its first line."""

from __future__ import annotations

import atexit
import os
import sys
import warnings
from pathlib import Path

__all__ = ["attach_plan"]


def attach_plan(path: str) -> None:
    """Check the plan at ``path`` against this machine and apply its moves to this process.

    Call it before the model, the loaders and the optimizers are made. Raises HotlapError when the plan cannot be read
    or this machine cannot do it. Environment variables that a move wants before the process starts (thread policy)
    cannot be set any more, and knobs are the command's or a file's: a warning says so. Below a ``hotlap`` command it
    does nothing, and a warning says so where that command applies no plan of its own.
    """
    from hotlap.inject.guest import attach_call
    from hotlap.lever.registry import levers
    from hotlap.machine.facts import read_machine
    from hotlap.machine.scratch import launched_here, make_scratch, remove_scratch
    from hotlap.plan.file import load_valid_plan
    from hotlap.plan.knobs import by_hand
    from hotlap.records.call import ENV, Call
    from hotlap.records.codec import loads

    if ENV in os.environ:  # under `hotlap …` the moves come from the command line
        call = loads(Call, Path(os.environ[ENV]).read_text(encoding="utf-8"), os.environ[ENV])
        if call.mode != "trial" and not call.has_plan:
            told = f"attach({path!r}) does nothing below a hotlap command: `hotlap run --plan {path}` applies the plan"
            warnings.warn(f"hotlap: {told}", stacklevel=3)
        return
    import torch  # noqa: F401 - the guest needs it imported

    machine = read_machine()
    plan = load_valid_plan(Path(path), machine)
    for line in by_hand(plan.moves, [sys.executable, *sys.argv], running=True):
        warnings.warn(f"hotlap: {line}", stacklevel=3)
    moves = [move for move in plan.moves if not move.is_knob]
    for move in moves:
        for name, value in levers()[move.lever].environment(move.setting).items():
            if os.environ.get(name) != value:
                warnings.warn(f"hotlap: {move.lever} wants {name}={value} set before Python starts", stacklevel=3)
    scratch = make_scratch()
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:  # not in a forked worker
            remove_scratch(scratch)

    atexit.register(remove)
    folder = str(scratch)
    attach_call(Call(
        folder, mode="run", moves=moves, stack_hz=0.0, cores=machine.cores, scratch=folder, scratches=launched_here()
    ))  # fmt: skip
