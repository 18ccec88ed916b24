"""Why two runs, or two plans, do not compare: said first, before any number."""

from __future__ import annotations

from collections.abc import Callable

from hotlap.compare.settings import same_amount
from hotlap.compare.side import Side
from hotlap.records.comparison import Warned
from hotlap.records.plan import Plan

__all__ = ["plan_caveats", "run_caveats"]

FEW_STEPS = 50
"""Steady steps below which a share of 0.1 is known to about 0.04 only: a diagnosis warns of as many."""


def run_caveats(a: Side, b: Side) -> list[Warned]:
    """All that speaks against reading one run's numbers beside the other's."""
    return [Warned(kind, text) for kind, check in _CHECKS if (text := check(a, b))]


def _same_run(a: Side, b: Side) -> str:
    return "A and B are one and the same run." if a.path == b.path else ""


def _other_script(a: Side, b: Side) -> str:
    if a.script != b.script:
        return f"Another script: {a.script} and {b.script}."
    old, new = a.findings.script.model, b.findings.script.model
    keys = ("class", "parameters")
    if old and new and any(old.get(key) != new.get(key) for key in keys):
        return f"Another model: {_model(old)} and {_model(new)}. Compute differs by what is computed."
    return ""


def _model(value: dict[str, object]) -> str:
    count = value.get("parameters")
    return f"{value.get('class')}{f' with {count:,} parameters' if isinstance(count, int) else ''}"


def _other_machine(a: Side, b: Side) -> str:
    if a.machine is None or b.machine is None:
        return "Whether both ran on the same machine is not known."
    if a.computer == b.computer:
        return _other_host(a.machine.host, b.machine.host)
    return f"Another machine: {a.computer}, and {b.computer}. Its part in each change is not known."


def _other_host(a: str | None, b: str | None) -> str:
    if a is None or b is None or a == b:
        return ""
    return (
        "Another host name: another machine of the same kind, whose part in each change is not known, or another "
        "container on the same one."
    )


def _other_torch(a: Side, b: Side) -> str:
    old, new = a.torch_version, b.torch_version
    return f"Another torch: {old} and {new}." if old != new else ""


def _other_batch(a: Side, b: Side) -> str:
    old, new = a.findings.throughput.batch, b.findings.throughput.batch
    if same_amount(old, new):
        return ""
    if old is None or new is None:
        return "The samples per step are known of one run only: steps may not be the same amount of work."
    return f"Another batch: {old:g} and {new:g} samples per step. Seconds per step do not compare; samples/s may."


def _other_ranks(a: Side, b: Side) -> str:
    old, new = a.findings.script.world_size, b.findings.script.world_size
    return f"Another number of ranks: {old} and {new}." if old != new else ""


def _few_steps(a: Side, b: Side) -> str:
    few = [f"{n} of {label}" for label, n in (("A", a.steady_steps), ("B", b.steady_steps)) if n < FEW_STEPS]
    return f"Few steady steps ({' and '.join(few)}): numbers are rough below {FEW_STEPS}." if few else ""


def _trial(a: Side, b: Side) -> str:
    if a.in_trial == b.in_trial:
        return ""
    trial, own = ("A", "B") if a.in_trial else ("B", "A")
    return (
        f"{trial} was watched in a trial, which was stopped after some steps, {own} to its own end: what comes late or "
        "seldom (validation, checkpoints, epochs) may have been seen in one of them only."
    )


def _cut_off(a: Side, b: Side) -> str:
    told = []
    for label, side in (("A", a), ("B", b)):
        if side.run.status == "running":
            told.append(f"{label} is still running, or was killed.")
        elif side.run.status != "finished":
            told.append(f"{label} {'' if side.run.status == 'failed' else 'was '}{side.run.status}.")
        elif side.run.exit_code:
            told.append(f"The script of {label} ended with exit code {side.run.exit_code}.")
    return " ".join(told)


def _no_stacks(a: Side, b: Side) -> str:
    if a.stacks == b.stacks:
        return ""
    label = "B" if a.stacks else "A"
    return (
        f"{label} has no stack samples (a run of a second hardly has any, `hotlap run --no-guard` takes none): causes "
        "that need them are not found in it."
    )


def _drift(a: Side, b: Side) -> str:
    drifted = [label for label, side in (("A", a), ("B", b)) if side.findings.drift is not None]
    if not drifted:
        return ""
    return f"Step times changed during the run in {' and in '.join(drifted)}: its mean depends on when it was ended."


_CHECKS: list[tuple[str, Callable[[Side, Side], str]]] = [
    ("same-run", _same_run),
    ("script", _other_script),
    ("machine", _other_machine),
    ("torch", _other_torch),
    ("batch", _other_batch),
    ("ranks", _other_ranks),
    ("steps", _few_steps),
    ("trial", _trial),
    ("status", _cut_off),
    ("stacks", _no_stacks),
    ("drift", _drift),
]


def plan_caveats(a: Plan, b: Plan) -> list[Warned]:
    """A recorded speedup is over the unmodified script of its own run: never to be set against another's."""
    found = []
    if a.speedup is not None and b.speedup is not None:
        text = (
            "The speedups are those of two runs, each against the unmodified script of that day: they do not compare. "
            "To compare the plans, run both now (hotlap run --plan) and compare the runs."
        )
        found.append(Warned("ratios", text))
    for kind, what, old, new in (
        ("script", "script", a.script, b.script),
        ("machine", "machine", a.machine, b.machine),
        ("torch", "torch", a.torch, b.torch),
    ):
        if old != new:
            found.append(Warned(kind, f"Another {what}: {old or 'not recorded'}, and {new or 'not recorded'}."))
    return found
