"""One of two runs: its documents, as they were read."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

from hotlap.records.comparison import Compared
from hotlap.records.findings import Findings, Where
from hotlap.records.machine import Machine
from hotlap.records.plan import Plan
from hotlap.records.run import RunRecord

__all__ = ["Side"]


@dataclass(frozen=True)
class Side:
    """Everything that a comparison asks of a run."""

    name: str
    path: str
    run: RunRecord
    machine: Machine | None
    findings: Findings
    plan: Plan | None = None
    """What the run found (``speedup``), if anything."""
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The last setting rows of its timeline, by name."""
    hotlap: str | None = None
    python: str | None = None
    torch: str | None = None
    """As its training process reported them; None: its timeline is gone."""
    folder: str = ""
    """The working folder of its training process."""
    in_trial: bool = False
    """Watched in a trial rather than to its own end."""
    stacks: bool = True
    """Whether stacks were sampled: without them, causes have no line, and some are not found."""

    @property
    def torch_version(self) -> str | None:
        """torch, as the training imported it; else the machine's."""
        return self.torch or (self.machine.torch if self.machine is not None else None)

    @property
    def script(self) -> str:
        """The script's name, without its folder."""
        name = self.findings.script.name
        return name.replace("\\", "/").rpartition("/")[2] or name

    @property
    def steady_steps(self) -> int:
        """Steps that the numbers rest on."""
        throughput = self.findings.throughput
        return max(0, throughput.steps_seen - throughput.warmup_steps)

    @property
    def computer(self) -> str | None:
        """What it ran on, in a few words."""
        machine = self.machine
        if machine is None:
            return None
        devices = [accelerator.name for accelerator in machine.accelerators]
        return ", ".join([*devices, machine.cpu, f"{machine.cores} core{'' if machine.cores == 1 else 's'}"])

    def place(self, where: Where) -> Where:
        """The place with its file named from the working folder, the script's folder or the package's."""
        origin = self.run.origin
        beside = (origin.script or "").rpartition("/")[0] if origin is not None else ""
        file = where.file
        for folder in (self.folder, beside):
            if len(folder) > 1:
                file = file.removeprefix(folder + "/")
        return replace(where, file=re.sub(r"^.*/(?:site|dist)-packages/", "", file))

    def compared(self) -> Compared:
        """Its line in the comparison."""
        throughput, plan = self.findings.throughput, self.plan
        return Compared(
            name=self.name,
            path=self.path,
            kind=self.run.kind,
            script=self.findings.script.name,
            command=list(self.run.command),
            started=self.run.started,
            status=self.run.status,
            machine=self.computer,
            torch=self.torch_version,
            samples_per_s=throughput.samples_per_s,
            steps_per_s=throughput.steps_per_s,
            batch=throughput.batch,
            steady_steps=self.steady_steps,
            in_trial=self.in_trial,
            speedup=plan.speedup if plan is not None else None,
            low=plan.low if plan is not None else None,
            high=plan.high if plan is not None else None,
        )
