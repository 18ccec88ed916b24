"""What a report is made of: the documents of one run, each of which may be missing when the run was cut off."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from hotlap.records.check import Check
from hotlap.records.findings import Findings
from hotlap.records.machine import Machine
from hotlap.records.plan import Plan
from hotlap.records.proof import Proof
from hotlap.records.seed_proof import SeedProof
from hotlap.records.trials import Interval, LeverResult, Trial

__all__ = ["Report"]


@dataclass
class Report:
    """Everything that terminal, HTML and JSON show. None and empty mean: the run did not get there."""

    machine: Machine | None = None
    findings: Findings | None = None
    levers: list[LeverResult] = field(default_factory=list)
    """In the order in which they were tried."""
    proof: Proof | None = None
    plan: Plan | None = None
    plan_path: str | None = None
    command: list[str] = field(default_factory=list)
    """The user's command, as argv."""
    run_path: str = ""
    wall_s: float | None = None
    """How long the whole Hotlap command took."""
    verdict: str = ""
    """One sentence; made from the documents when empty."""
    notes: list[str] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    """(lever id, why it cannot be used here)."""
    status: str = "finished"
    """``finished``, or why the run ended before: ``interrupted``, ``failed``, ``running``."""
    kind: str = ""
    """``diagnose``, ``speedup``, ``prove`` or ``check``; empty: speedup when there is a lever, a proof or a plan."""
    trials: list[Trial] = field(default_factory=list)
    """Raw trials; their windows are drawn where given."""
    plan_text: str = ""
    """The plan file as written; made from ``plan`` when empty."""
    seed_proof: SeedProof | None = None
    """The proof of ``hotlap prove``, which has no findings and no levers of its own."""
    check: Check | None = None
    """The comparison of ``hotlap check``; likewise."""

    @property
    def is_speedup(self) -> bool:
        """Whether this is a report of ``hotlap speedup``."""
        return self.kind == "speedup" or (not self.kind and bool(self.levers or self.proof or self.plan))

    @property
    def script(self) -> str:
        """The script as the user named it, else the command, else ``training``."""
        if self.findings is not None and self.findings.script.name:
            return self.findings.script.name
        return (
            next((word for word in self.command if word.endswith((".py", ".sh"))), " ".join(self.command)) or "training"
        )

    def brief(self, text: str) -> str:
        """Text with files named from the script's folder (``/home/me/proj/train.py`` -> ``train.py``) or package."""
        folder = self._folder
        if folder.startswith("/") and len(folder) > 1:
            text = text.replace(folder + "/", "")
        return re.sub(r"/\S*/(?:site|dist)-packages/", "", text)

    @property
    def _folder(self) -> str:
        """The script's folder; where the script was named relatively, from a finding in it. Empty when not known."""
        script = self.script
        if script.startswith("/"):
            return script.rpartition("/")[0]
        tail = "/" + script.removeprefix("./")
        findings = self.findings.findings if self.findings is not None else []
        return next((w.file[: -len(tail)] for f in findings for w in f.where if w.file.endswith(tail)), "")

    @property
    def all_notes(self) -> list[str]:
        """Notes of the findings and of the run, each once."""
        return list(dict.fromkeys([*(self.findings.notes if self.findings is not None else []), *self.notes]))

    @property
    def before(self) -> float | None:
        """Samples per second of the unmodified script."""
        return self.findings.throughput.samples_per_s if self.findings is not None else None

    @property
    def kept(self) -> list[LeverResult]:
        """The levers in the plan."""
        return [lever for lever in self.levers if lever.kept]

    @property
    def speedup(self) -> Interval | None:
        """The proved (or at least measured) throughput ratio of the whole plan."""
        if self.seed_proof is not None:
            return self.seed_proof.speedup
        return self.proof.speedup if self.proof is not None else None

    @property
    def after(self) -> float | None:
        """Samples per second with the plan; None without one or where samples are unknown."""
        if self.proof is not None and self.proof.samples_per_s is not None:
            return self.proof.samples_per_s
        known = [lever.samples_per_s for lever in self.kept if lever.samples_per_s is not None]
        if known:
            return known[-1]
        if self.before is not None and self.speedup is not None and self.kept:
            return self.before * self.speedup.ratio
        return None

    @property
    def roof_samples_per_s(self) -> float | None:
        """The roof, in samples per second."""
        roof = self.findings.roof if self.findings is not None else None
        return roof.samples_per_s if roof is not None else None

    def share_of_roof(self, cumulative: float | None) -> float | None:
        """Share of the roof at ``cumulative`` times the unmodified script's throughput."""
        roof = self.findings.roof if self.findings is not None else None
        if roof is None or cumulative is None or not math.isfinite(cumulative):
            return None
        return roof.share * cumulative

    @property
    def roof_share_after(self) -> float | None:
        """Share of the roof with the plan (without one: of the script as it is)."""
        if self.proof is not None and self.proof.roof_share is not None and math.isfinite(self.proof.roof_share):
            return self.proof.roof_share
        return self.share_of_roof(self.kept[-1].cumulative if self.kept else 1.0)
