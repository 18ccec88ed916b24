"""Findings: what a timeline means. Written by diagnose, read by plan, proof, report and scripts (``--json``)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = [
    "CAUSES",
    "NOT_ABOUT_TIME",
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

CAUSES: dict[str, str] = {
    # data wait, by what the loader spends its time on
    "decode": "Samples are decoded (image, audio, array readers) while the step waits.",
    "augment": "Python work per sample (augmentation, features) while the step waits.",
    "collate": "Putting samples together into a batch takes the time.",
    "storage-read": "The loader waits for the disk or the network mount.",
    "too-few-workers": "Loading is slower than the step, and cores are left.",
    "worker-startup": "Starting an epoch's workers (or its first batch) holds the step.",
    "workers-respawned": "Workers are started anew each epoch.",
    "prefetch-depth": "Batches take unevenly long to load, and too few are loaded ahead.",
    "reopened-per-sample": "The same file is opened anew for every sample.",
    "parsed-per-sample": "A table or an index is parsed from its file for every sample.",
    "whole-file-read": "An array file is read whole for every sample.",
    "linear-search": "Each sample is found by walking through all of them.",
    "loader-rebuilt": "The DataLoader is constructed anew each epoch.",
    "network-storage": "The loader waits for files on a network mount.",
    "page-cache-exhausted": "The data is larger than the page cache: each epoch reads it from storage again.",
    "small-files": "Samples lie in many small files, and opening each costs more than reading it.",
    "h2d-copy": "Batches are copied to the device from pageable memory.",
    "slow-iterator": "The step waits for an iterator that is no DataLoader.",
    # the rest of the step's path
    "validation-cadence": "Validation takes a large share of the run.",
    "validation-grad": "Validation records an autograd graph that nobody uses.",
    "checkpoint-blocking": "Saving checkpoints holds the step.",
    "logging-blocking": "Logging holds the step.",
    "logging-forced": "Log lines are forced out to disk one by one.",
    "logging-histogram": "Histograms, images or figures are logged often.",
    "sync": "The host waits for the device where it need not.",
    "autograd-debug": "Anomaly detection or a profiler was left on.",
    "precision": "Compute runs in fp32 where this machine has a faster type.",
    "memory-format": "Convolutions run in NCHW where channels-last is faster.",
    "page-faults": "Freed memory goes back to the system and is faulted in again at each step.",
    "frozen-subnetwork": "A network that is not trained (a teacher, a frozen trunk) runs as if it were.",
    "denormals": "The CPU computes on numbers so small that it takes its slow path.",
    "padding": "A large part of each batch is padding that is computed like content.",
    "activation-checkpointing": "Activations are computed twice to save memory that is free.",
    "recompilation": "torch.compile compiles the same code again and again.",
    "zero-grad": "Gradients are zeroed in place, and added to, where they could be let go.",
    "cudnn-deterministic": "Deterministic algorithms were asked for, which are slower.",
    "cudnn-benchmark": "Convolutions run by heuristics where cuDNN could try its algorithms out.",
    "optimizer-loop": "The optimizer updates parameter by parameter.",
    "python-loop": "A Python loop of small operations inside the forward.",
    "attention-by-hand": "Attention is written out as products and a softmax, where one kernel does it.",
    "samples-loop": "A Python loop over the samples of a batch, where one batched operation does it.",
    "repeated-cat": "A tensor grows by concatenation in a loop: everything is copied again each time.",
    "host-tensors": "Tensors are made on the host and copied to the device inside the step.",
    "host-work": "The script's own Python between the phases takes the time.",
    "gc": "Garbage collection pauses the step.",
    "gc-collect": "The script collects garbage by hand inside the loop.",
    "empty-cache": "The script empties the device's memory cache inside the loop.",
    "profiler-left-on": "A profiler or tracer of Python's was left on.",
    "thread-contention": "Threads and workers fight for the cores.",
    "growing-step": "Steps get slower as the run goes on.",
    "metrics-history": "Metrics are computed anew over a history that grows.",
    "memory-leak": "Tensors are kept from step to step with the graph behind them.",
    "straggler": "One rank is late in each step, and the others wait for it.",
    "rank-0-validation": "Some ranks validate while the others wait.",
    "ddp-find-unused": "DDP looks for unused parameters in every step, and there are none.",
    "logging-every-rank": "Every rank writes the same log lines.",
    "sampler-set-epoch": "Every epoch draws the samples in the same order.",
    "drift": "Throughput changed during the run.",
    "nothing-to-gain": "The training runs at its roof.",
}
"""Cause ids: the same names in diagnose, lint, docs and levers."""

NOT_ABOUT_TIME = frozenset({"memory-leak", "sampler-set-epoch", "logging-every-rank"})
"""Causes that are told whatever their share is: they spoil the training, or end it, rather than slow it down."""


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
    """class, parameters, dtype, conv_layers, conv_frac, channels_last, compiled, autocast, modules."""
    optimizers: list[dict[str, Any]] = field(default_factory=list)
    """class, tensors, foreach, fused."""
    debug: dict[str, Any] = field(default_factory=dict)
    """anomaly, profiler, deterministic, ... with ``where`` texts."""
    world_size: int = 1


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
    schema: Literal["hotlap.findings/1"] = SCHEMA
