"""The causes: every name that a finding may carry, and what it says."""

from __future__ import annotations

__all__ = ["AROUND", "CAUSES", "NOT_ABOUT_TIME"]

CAUSES: dict[str, str] = {
    # data wait, by what the loader spends its time on
    "decode": "Samples are decoded (image, audio, array readers) while the step waits.",
    "augment": "Python work per sample (augmentation, features) while the step waits.",
    "collate": "Putting samples together into a batch takes the time.",
    "storage-read": "The loader waits for the disk or the network mount.",
    "too-few-workers": "Loading is slower than the step, and cores are left.",
    "worker-startup": "Starting an epoch's workers (or its first batch) holds the step.",
    "workers-respawned": "Workers are started anew each epoch.",
    "needless-workers": "Handing a batch over from a worker takes longer than loading it would.",
    "prefetch-depth": "Batches take unevenly long to load, and too few are loaded ahead.",
    "reopened-per-sample": "The same file is opened anew for every sample.",
    "parsed-per-sample": "A table or an index is parsed from its file for every sample.",
    "whole-file-read": "An array file is read whole for every sample.",
    "linear-search": "Each sample is found by walking through all of them.",
    "loader-rebuilt": "The DataLoader, with its data set or without, is constructed anew each epoch.",
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
    "emulated-dtype": "Compute runs in a 16-bit type that this machine has no units for.",
    "memory-format": "Convolutions run in NCHW where channels-last is faster.",
    "unfused": "Norms, activations and the like run one by one: each reads and writes memory, and is dispatched.",
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
    "tiny-batch": "Batches are so small that Python and dispatch take most of each step.",
    "python-loop": "A Python loop of small operations inside the forward.",
    "attention-by-hand": "Attention is written out as products and a softmax, where one kernel does it.",
    "samples-loop": "A Python loop over the samples of a batch, where one batched operation does it.",
    "repeated-cat": "A tensor grows by concatenation in a loop: everything is copied again each time.",
    "host-tensors": "Tensors are made on the host and copied to the device inside the step.",
    "host-work": "The script's own Python between the phases, or in hooks within them, takes the time.",
    "gc": "Garbage collection pauses the step.",
    "gc-collect": "The script collects garbage by hand inside the loop.",
    "empty-cache": "The script empties the device's memory cache inside the loop.",
    "device-allocations": "The device's allocator asks the driver for memory in the midst of training.",
    "profiler-left-on": "A profiler or tracer of Python's was left on.",
    "thread-contention": "Threads, workers and training processes fight for the cores.",
    "growing-step": "Steps get slower as the run goes on.",
    "metrics-history": "Metrics are computed anew over a history that grows.",
    "memory-leak": "Tensors are kept from step to step with the graph behind them.",
    "straggler": "One rank is late in each step, and the others wait for it.",
    "rank-0-validation": "Some ranks validate while the others wait.",
    "gradient-exchange": "Ranks exchange their gradients in each step, and copy them into buckets and back.",
    "ddp-find-unused": "DDP looks for unused parameters in every step, and there are none.",
    "logging-every-rank": "Every rank writes the same log lines.",
    "sampler-set-epoch": "Every epoch draws the samples in the same order.",
    "growing-validation": "Each validation takes longer than the one before.",
    "drift": "Throughput changed during the run.",
    "nothing-to-gain": "The training runs at its roof.",
}
"""Cause ids: the same names in diagnose, lint, docs and levers."""

NOT_ABOUT_TIME = frozenset({"memory-leak", "sampler-set-epoch", "logging-every-rank"})
"""Causes that are told whatever their share is: they spoil the training, or end it, rather than slow it down."""

AROUND: dict[str, str] = {
    "neighbour-load": "Other processes took the cores.",
    "throttling": "The processor itself got slower: every phase takes longer, and nobody else has the cores.",
    "swapping": "The machine ran out of memory and swaps.",
    "worker-lost": "A loader worker no longer delivers.",
    "larger-batches": "Batches have grown: forward and backward take longer, the update does not.",
}
"""Further causes that the guard of a run can name, since it has a before and an after and looks at the machine too."""
