"""Findings: what a timeline means. Written by diagnose, read by plan, proof, report and scripts (``--json``)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = [
    "MOST_TEXT",
    "SCHEMA",
    "Drift",
    "Finding",
    "Findings",
    "LoaderFacts",
    "Roof",
    "Script",
    "StepModel",
    "Throughput",
    "Where",
]

SCHEMA: Literal["hotlap.findings/1"] = "hotlap.findings/1"


MOST_TEXT = 200
"""Characters that are kept of a source line."""


@dataclass(frozen=True)
class Where:
    """A place in the user's code."""

    file: str
    line: int
    function: str
    text: str = ""
    share: float | None = None
    """Share of the cause's samples that were here, 0..1."""


@dataclass(frozen=True)
class Finding:
    """One cause, what it costs at most, and how sure we are."""

    cause: str
    share: float
    """Share of the step's time that could vanish at most, 0..1."""
    seconds_per_step: float
    confirmed: bool
    """True: it was taken away and the gain was measured. False: observed only."""
    where: list[Where]
    advice: str
    detail: str = ""
    """A few words for the report's line: ``decode + augment, one process``."""
    phase: str | None = None
    evidence: dict[str, Any] = field(default_factory=dict)
    """Numbers that the verdict rests on; ``stacks``: [{frames: [text], share}] when there are any."""
    without: float | None = None
    """Measured throughput ratio with the cause taken away (``3.4``), when confirmed."""
    ablation: str | None = None
    """What to take away to confirm it: ``data``, ``validation``, ``checkpoint``, ``logging``; None: nothing can be."""


@dataclass(frozen=True)
class Throughput:
    """Steady state, periodic work (validation, checkpoints) included at the script's own cadence."""

    samples_per_s: float | None
    steps_per_s: float
    step_s: float
    """Mean seconds per step, periodic work included."""
    steady_s: float
    """Mean seconds per step without periodic work (validation, checkpoint, epoch start)."""
    batch: float | None
    """Samples per step."""
    steps_seen: int
    warmup_steps: int


@dataclass(frozen=True)
class Roof:
    """The same step on a resident batch, host work gone, with the numeric levers on; measured, on this machine."""

    samples_per_s: float | None
    step_s: float
    share: float
    """Script's throughput over the roof's, 0..1."""
    how: str
    """What was taken away and which levers were on."""
    hardware_frac: float | None = None
    """Counted FLOPs over peak (MFU), where the peak is known."""
    hardware_source: str | None = None
    levers: list[str] = field(default_factory=list)
    """The numeric levers that were on."""


@dataclass(frozen=True)
class Drift:
    """A change point in step time."""

    at_step: int
    before_s: float
    after_s: float
    phase: str
    """The phase that grew most."""
    growing: bool
    """True: a steady growth rather than one change."""


@dataclass(frozen=True)
class LoaderFacts:
    """How the training loader was set up."""

    num_workers: int
    batch_size: int | None
    persistent_workers: bool
    prefetch_factor: int | None
    pin_memory: bool
    dataset: str
    dataset_len: int | None
    iterable: bool
    batches_per_epoch: int | None
    sample_bytes: int | None = None
    where: Where | None = None
    shuffled: bool = False
    """Whether torch's own samplers shuffle it, so that any samples may share a batch."""


@dataclass(frozen=True)
class StepModel:
    """One step's parameters, fitted to the timeline; levers predict by changing them. Seconds per step."""

    step_s: float
    data_wait_s: float
    compute_s: float
    """forward + backward + optimizer + zero_grad + h2d + sync."""
    host_s: float
    """logging + residual + gc."""
    periodic_s: float
    """validation + checkpoint + epoch start, amortised."""
    validation_s: float
    checkpoint_s: float
    epoch_start_s: float
    load_s: float | None = None
    """Time to load one step's samples in one process."""
    decode_s: float | None = None
    collate_s: float | None = None
    io_wait_s: float | None = None
    workers: int = 0
    cores: int = 1
    torch_threads: int = 1
    steps_per_epoch: float | None = None
    load_cpu_s: float | None = None
    """What a core computes of ``load_s``: workers that share the cores wait for one besides."""


@dataclass(frozen=True)
class Script:
    """What the script set up, as far as it was seen."""

    name: str
    argv: list[str]
    framework: str
    """``plain``, ``lightning``, ``accelerate``, ``transformers``."""
    device: str
    loader: LoaderFacts | None
    model: dict[str, Any] = field(default_factory=dict)
    """class, class_of_torch, parameters, dtype, conv_layers, conv_frac, conv2d_layers, conv2d_frac, norm_layers,
    stepwise_frac, channels_last, compiled, autocast, modules."""
    optimizers: list[dict[str, Any]] = field(default_factory=list)
    """class, tensors, foreach, fused."""
    debug: dict[str, Any] = field(default_factory=dict)
    """anomaly, profiler, deterministic, ... with ``where`` texts."""
    world_size: int = 1
    forward: Where | None = None
    """The line that calls the model in training."""


@dataclass(frozen=True)
class Findings:
    """The whole diagnosis of one timeline."""

    script: Script
    throughput: Throughput
    phases: dict[str, float | None]
    """Share of the step's wall time per phase, 0..1; None: not measured."""
    step_model: StepModel
    findings: list[Finding]
    """Ordered: largest first."""
    roof: Roof | None = None
    drift: Drift | None = None
    notes: list[str] = field(default_factory=list)
    over_time: list[dict[str, Any]] = field(default_factory=list)
    """At most 200 points: {step, t_s, step_s, phases: {phase: seconds per step}}."""
    laid_bare: list[Finding] = field(default_factory=list)
    """What showed once others were away, and a lever that was kept treats: of the step as it was then."""
    schema: Literal["hotlap.findings/1"] = SCHEMA
