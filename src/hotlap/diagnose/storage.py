"""Why loading waits for storage: a network mount, data larger than memory, many small files, or just a slow disk."""

from __future__ import annotations

from typing import Any

from hotlap.diagnose.mounts import is_network, remote_frac
from hotlap.diagnose.reading import measure_reading
from hotlap.diagnose.view import View
from hotlap.diagnose.waiting import wait_evidence, wait_seconds, wait_where
from hotlap.records.findings import Finding

__all__ = ["storage_cause", "storage_finding"]


def _later_reads(view: View) -> tuple[float, float] | None:
    """Bytes from the device per sample, within the first epoch and after it; None where it cannot be told."""
    length = view.loader.dataset_len if view.loader else None
    timelines = view.timeline.workers if view.loading and view.loading.in_workers else [view.timeline]
    rows = [row for t in timelines for row in t.load if row.training and not row.validation]
    counted = [(row.samples, row.read_bytes) for row in sorted(rows, key=lambda r: r.t) if row.read_bytes is not None]
    if not length or not counted:
        return None
    first = later = first_n = later_n = 0
    for samples, read in counted:
        if first_n < length:
            first, first_n = first + read, first_n + samples
        else:
            later, later_n = later + read, later_n + samples
    return (first / first_n, later / later_n) if first_n and later_n else None


def _file_bytes(view: View) -> tuple[float, float] | None:
    """Files per sample and their mean size, among those opened by the lines that read a file per sample."""
    reading = measure_reading(view)
    read = [o for o in reading.opened if o.files and o.files >= 0.9 * reading.samples] if reading else []
    if reading is None or not read:
        return None
    most = max(read, key=lambda o: o.files)
    return most.files / reading.samples, most.file_bytes / most.files


def storage_cause(view: View) -> tuple[str, dict[str, Any]]:
    """The one cause id that the wait for storage goes under, with what speaks for it."""
    reading = measure_reading(view)
    mounts = reading.mounts if reading else {}
    part = remote_frac(mounts)
    if part >= 0.5:
        return "network-storage", {"mounts": sorted(k for k in mounts if is_network(k)), "part_of_files": part}
    reads = _later_reads(view)
    policy = view.policy
    if reads and reads[1] >= policy.io_bytes_per_sample and reads[1] >= policy.still_cold_frac * reads[0]:
        return "page-cache-exhausted", {"first_bytes_per_sample": reads[0], "later_bytes_per_sample": reads[1]}
    files = _file_bytes(view)
    if files and files[1] <= policy.small_file_bytes:
        return "small-files", {"files_per_sample": files[0], "mean_file_bytes": files[1]}
    return "storage-read", {}


def storage_finding(view: View, cause: str, advice: str, detail: str) -> Finding | None:
    """The wait for storage as a finding of ``cause``, when it goes under that id."""
    seconds = wait_seconds(view, "storage")
    if seconds <= 0.0:
        return None
    found, numbers = storage_cause(view)
    if found != cause:
        return None
    evidence = wait_evidence(view, "storage") | numbers
    if view.loading is not None:
        evidence["off_cpu_frac"] = view.loading.wait_frac
    return view.finding(
        cause, seconds, advice, wait_where(view, "storage"), detail=detail, phase="data_wait", evidence=evidence,
        ablation="data",
    )  # fmt: skip
