"""Every threshold of the diagnosis, in one place, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEFAULT", "Policy"]


@dataclass(frozen=True)
class Policy:
    """Thresholds and priors. Fractions are 0..1 of the step's wall time unless said otherwise."""

    min_steady_steps: int = 8
    """Steady steps below which nothing is claimed: with fewer, one stolen core decides the mean."""
    short_run_steps: int = 50
    """Steady steps below which the report warns that shares are rough (a share of 0.1 is then known to about 0.04)."""
    warmup_mads: float = 4.0
    """A leading step counts as warm-up when it is this many MADs slower than the later half's median."""
    warmup_slower_frac: float = 0.25
    """... and slower by at least this much: a very steady loop has a MAD near zero."""
    warmup_window: int = 3
    """Leading steps are judged by the median of this many, so that one lucky step does not end the warm-up."""
    warmup_limit_frac: float = 0.5
    """At most this part of the recorded steps is warm-up; a longer slow stretch is drift."""
    min_share: float = 0.02
    """Findings below are dropped: a trial's interval is about as wide, so the gain could not be shown."""
    min_data_wait_share: float = 0.04
    """Below, loading is hidden behind the step. Prior: a queue hand-over alone costs 1-2 %."""
    io_wait_frac: float = 0.15
    """Part of the load time spent off the CPU from which waiting is worth naming storage."""
    io_bytes_per_sample: float = 512.0
    """Bytes from the device per sample (when counted) below which the page cache served everything."""
    reader_frac: float = 0.05
    """Part of the load time inside timed readers from which their clock is believed rather than the stacks."""
    reader_missed: float = 2.0
    """... unless the stacks lie inside a reader's library this many times as often: it reads when asked."""
    sleep_frac: float = 0.2
    """Part of the loader's stack samples inside a ``sleep`` that explains its waiting away."""
    contention_frac: float = 1.1
    """Busy threads over cores from which threads fight."""
    contention_wait_frac: float = 0.15
    """Part of the workers' load time off the CPU, without reads, that shows the fight."""
    autocast_prior: float = 1 / 3
    """Part of fp32 forward + backward that a 16-bit type saves. Prior: 1.3-1.9x on bf16 CPUs and recent GPUs."""
    emulated_frac: float = 0.8
    """Part of compute in a 16-bit type without units that fp32 saves. Prior: it took 4 to 9 times as long with AVX2."""
    double_frac: float = 0.5
    """Part of fp64 forward, backward and update that fp32 saves: numbers of half the width, twice as many at a time."""
    page_fault_s: float = 1.4e-6
    """Seconds that a minor page fault of any thread costs at most: a trap, a page to clear, a cold cache. Prior ..."""
    page_fault_refill: float = 1.3
    """... and never more than this times what the kernel took in all. Prior: wall saved is about system time."""
    padding_min_frac: float = 0.15
    """Padding below which sorting into buckets of length is not worth its effect on the order of samples."""
    common_padding_frac: float = 0.05
    """Padding that all samples of a batch have in common, from which on batches are taken to be padded to one size."""
    padding_prior: float = 0.8
    """Part of the padded compute that buckets of length save. Prior: some is left within each bucket."""
    memory_free_frac: float = 0.5
    """Part of the memory that has to be free before activations may be kept."""
    min_recompiles: int = 3
    """Recompilations after the first steps from which it is no longer torch.compile learning which sizes vary."""
    cudnn_benchmark_prior: float = 0.1
    """Part of convolution compute that the best algorithm saves over the heuristic's. Prior: 0-20 %, by shapes."""
    cudnn_deterministic_prior: float = 0.1
    """Part of compute that deterministic algorithms cost on a device. Prior: 0-20 %."""
    frozen_prior: float = 0.45
    """Part of a frozen fp32 network's forward that 16-bit types in hardware and its layout save. Prior: nearly 2x."""
    frozen_layout_prior: float = 0.15
    """... and that channels-last alone saves, of its convolutions."""
    denormal_compute_factor: float = 50.0
    """An operation on denormals takes this many times as long. Prior: more in a matrix product of nothing else, fewer
    beside values that are normal ..."""
    denormal_update_factor: float = 7.0
    """... and in operations element by element, as an optimizer's. Prior."""
    denormal_inputs_prior: float = 0.5
    """Part of the compute in the layer that takes the inputs. Prior: a guess between all of it and next to nothing."""
    small_module_s: float = 0.0003
    """On a CPU, seconds of forward and backward per module below which Python and dispatch bound a step, so that no
    type or layout helps ..."""
    full_module_s: float = 0.002
    """... and from which the priors of precision and memory format hold in full. Priors: below the former
    bf16 costs more than it saves; linear layers gain in full from a millisecond or two, convolutions later."""
    forward_frac: float = 1 / 3
    """Part of these two that holds for a forward alone: a backward does twice its arithmetic (gradients of the inputs
    and of the weights)."""
    few_modules: int = 6
    """A model of fewer modules is taken to compute as much as this many: its operations are no modules."""
    module_call_s: float = 20e-6
    """Seconds that a module costs in forward and backward whatever its batch: Python, dispatch and autograd. Prior, for
    a CPU: of linear layers and ReLU so much ..."""
    conv_call_s: float = 65e-6
    """... of convolutions and norms so much ..."""
    tiny_calls_frac: float = 0.4
    """... and the part of forward and backward from which that is most of it: the true cost is higher, since other
    layers (attention, recurrent ones) cost more."""
    tiny_wait_share: float = 0.1
    """Share of the step that the host waits for the device from which launching is not all that the step does."""
    larger_batch_prior: float = 0.5
    """Part of what a step costs whatever its batch that a batch twice as large saves per sample: arithmetic."""
    memory_format_prior: float = 0.15
    """Part of convolution compute saved by channels-last. Prior: 1.1-1.2x on CPU (oneDNN) and tensor-core GPUs."""
    min_conv_frac: float = 0.2
    """Convolutions' part of the parameters or layers below which the memory format does not matter."""
    autograd_debug_prior: float = 0.5
    """Part of forward + backward that anomaly detection costs. Prior: a traceback and a check per operation."""
    profiler_prior: float = 0.2
    """Part of forward + backward that a running profiler costs. Prior."""
    optimizer_prior: float = 0.6
    """Part of a per-tensor optimizer loop that foreach or fused saves. Prior: 2-4x on many small tensors."""
    optimizer_min_tensors: int = 8
    """Fewer parameter tensors make no loop worth fusing."""
    validation_grad_prior: float = 0.15
    """Part of a validation that recording its graph costs. Prior."""
    loop_calls: float = 12.0
    """Rounds of a loop per forward from which it is a Python loop of small operations. Prior: layers of a kind that run
    side by side, or scales, are fewer; heads, experts and steps of a sequence seldom are."""
    loop_rounds: float = 6.0
    """The same in one run of a function that several layers run, where all of them together make ``loop_calls``."""
    loop_call_s: float = 500e-6
    """Mean seconds per call above which the operations are not small (heavy layers in a loop are fine)."""
    loop_round_s: float = 2e-3
    """The same of all that a line calls in one round, in functions or modules of the script's: a cell of a dozen
    operations, at the above's upper end for four of them."""
    loop_prior: float = 0.7
    """Part of such a loop that one batched call saves. Prior."""
    attention_prior: float = 0.5
    """Part of written-out attention that one fused kernel saves on a device. Prior: the matrix of scores is neither
    written nor read ..."""
    attention_cpu_prior: float = 0.2
    """... and on a CPU in fp32; in bf16 the written-out form may be the faster one there, so nothing is claimed. Prior,
    for a few dozen keys ..."""
    attention_large_prior: float = 0.6
    """... and for hundreds, whose matrix of scores is no guest of the caches: where a step ..."""
    attention_large_bytes: int = 8 << 20
    """... touches that much new memory."""
    samples_loop_rounds: float = 4.0
    """Rounds that a loop over samples makes at least, where they were counted: fewer are a pyramid's three scales, or
    two views. Prior."""
    samples_loop_prior: float = 0.7
    """Part of a loop over samples that one batched call saves. Prior."""
    cat_prior: float = 0.8
    """Part of the time in a growing concatenation that one concatenation at the end saves: n copies become one."""
    host_tensor_prior: float = 0.8
    """Part of making a tensor on the host and copying it that making it on the device saves. Prior."""
    host_work_share: float = 0.05
    """Share of residual time not explained otherwise from which the script's own Python is named."""
    host_work_min_s: float = 0.0005
    """Seconds per step below which the residual may be our own probes, or a loss written as a function."""
    reopened_times: float = 4.0
    """Calls per file within one batch from which a file counts as opened again and again (a shuffle repeats none)."""
    search_samples: int = 5
    """Stack samples on a line that searches from which it is named; a single one may be chance."""
    uneven_batches: float = 0.5
    """Standard deviation over mean of the batches' load times from which loading is bursty. Exponential times: 1."""
    deep_prefetch: int = 8
    """Batches ahead per worker from which a longer queue hides little more."""
    small_file_bytes: float = 131072.0
    """Mean file size below which opening costs more than reading: a disk seek is worth about a MiB, a flash read 64 KiB
    and a network round trip in between."""
    still_cold_frac: float = 0.25
    """Bytes read per sample after the first epoch over those within it, from which the page cache does not hold the
    data."""
    small_shm_bytes: float = 268435456.0
    """Memory file system below which worker batches may not fit (containers get 64 MiB unless told otherwise)."""
    growth_frac: float = 0.10
    """Growth of the step over the recorded window from which steps count as growing."""
    trend_z: float = 3.0
    """Mann-Kendall z (standard normal under no trend) wanted for a growth: 1 in 700 by chance."""
    side_z: float = 1.64
    """... and on each side of the best change point for a growth that noise makes look like one change: 1 in 20 each by
    chance, 1 in 400 both."""
    min_side: int = 6
    """Blocks of a side below which its growth is not asked for."""
    change_frac: float = 0.15
    """Change of the step time from which a change point is drift."""
    change_mads: float = 4.0
    """... and in units of the scatter within its two sides."""
    min_validations: int = 5
    """Validations, the first left out, from which a trend shows: by chance five rise in order once in 120 times."""
    validation_growth_frac: float = 0.3
    """Growth of the validations' time from which they count as growing ..."""
    validation_trend_z: float = 2.2
    """... and the Mann-Kendall z wanted: five in order reach it."""
    min_blocks: int = 8
    """Blocks of steps needed to speak about time at all."""
    max_blocks: int = 48
    """Blocks that a run is cut into: enough to place a change within 2 % of the run."""
    drift_growth_frac: float = 0.2
    """Growth over the window from which a guard warns: it looks a hundred thousand times a week, not once ..."""
    drift_least_s: float = 12.0
    """... and for this long on either side of a change: the load of a machine changes for seconds all the time ..."""
    drift_least_steps: int = 10
    """... and for so many steps."""
    alike_frac: float = 0.5
    """A phase took part in a slow-down when it grew by at least this part of what all of them grew."""
    alike_least_s: float = 50e-6
    """Phases shorter than this say nothing about the processor: the clock and the probes are as long."""
    neighbour_cores: float = 0.3
    """Cores that others took on top, from which they are neighbours ..."""
    neighbour_frac: float = 0.15
    """... and as a part of all cores."""
    waited_frac: float = 0.1
    """Part of the time more for which the training thread waited for a core: somebody is on it."""
    throttled_frac: float = 0.05
    """Part of the time more that a quota of CPU held the training back."""
    thermal_events_per_s: float = 0.5
    """Times that a processor throttles itself from which it is hot. Prior: one that stays hot does several a second."""
    swap_bytes_per_s: float = 1e6
    """To and from the swap: below, the kernel puts away what nobody uses."""
    load_growth_frac: float = 0.15
    """Growth of the time to load a step's samples from which loading itself got slower, not only the wait for it."""
    compiler_frac: float = 0.3
    """Part of the forward's samples inside torch.compile that shows it at work."""
    tracing_prior: float = 0.3
    """Part of the step's Python (not of its compute) that a profiler or tracer of the interpreter costs. Prior."""
    kept_per_step: float = 0.5
    """Values per step by which a collection of tensors has to grow to be a leak: less comes once an epoch or so."""
    validation_part: float = 0.4
    """Part of a validation's stack samples from which loading or metrics are named."""
    unused_search_prior: float = 0.05
    """Part of forward + backward that DDP's search for unused parameters costs. Prior: a walk over the graph."""
    driver_alloc_s: float = 0.0005
    """One request for memory of the device's driver. Prior: 0.1 to 1 ms; giving memory back waits for the device."""
    driver_retry_s: float = 0.01
    """A request that failed, after which all cached memory is given back and asked for again. Prior."""
    copy_bytes_per_s: float = 8e9
    """What one core copies from memory to memory. Prior: half of a memory channel's 20 to 25 GB/s (read and write)."""
    device_copy_bytes_per_s: float = 5e11
    """The same on an accelerator. Prior: half of an HBM2's 1 TB/s."""
    exchange_bytes_per_s: float = 1.2e9
    """What ranks exchange in one direction. Prior: ten-gigabit Ethernet; one machine's memory is faster."""
    exchange_hidden_prior: float = 0.1
    """Part of the exchange that other bucket sizes can hide behind the backward. Prior."""
    log_per_step: float = 0.05
    """Calls per step and line from which ranks log too much together: rarer lines are news, not a log."""
    roof_share: float = 0.9
    """Share of the roof from which there is nothing to gain."""
    material_share: float = 0.05
    """A finding above this (and not a prior alone) contradicts nothing-to-gain."""
    over_time_points: int = 200
    """Points of the report's chart."""
    max_where: int = 3
    """Lines named per finding."""
    max_stacks: int = 5
    """Stacks kept as evidence per finding."""


DEFAULT = Policy()
