"""What is told of the loader's benchmark: feeding, writing, and data larger than the memory."""

from __future__ import annotations

from typing import Any

from result_values import value

from hotlap.report import units

__all__ = ["loader_rows"]

Rows = list[tuple[str, str]]
RATIOS = {
    "samples_per_s": "samples/s over it",
    "cpu_s_per_1000": "CPU time of a sample over it",
    "anonymous_bytes": "memory over it",
}


def loader_rows(document: dict[str, Any]) -> Rows:
    """Figures of whichever part was measured; then what failed, and which rivals were not there."""
    f = document["figures"]
    if "of_disk" in f:
        return _memory_rows(f)
    found: Rows = [("data set", f"{units.count(f['count'])} {f['kind']}, compiled kernel {f['kernel']}")]
    for tier, row in f.get("summary", {}).items():
        found.append((f"{tier}: the best rival", row["best_rival"]))
        found += [(f"{tier}: {row['ours']}, {words}", _ratio(row[f"{key}_ratio"])) for key, words in RATIOS.items()]
        limits = [name for name in row if name.startswith(("of ", "best rival of "))]
        found += [(f"{tier}: {name}", str(value("share", row[name]))) for name in limits]
    found += [(name, _feeding(row)) for name, row in f.get("ways", {}).items()]
    found += [(name, _writing(row, f["count"])) for name, row in f.get("forms", {}).items()]
    found += [(f"FAILED: {name}", str(reason)) for name, reason in f["failed"].items()]
    versions = {name: rival["version"] for name, rival in f["rivals"].items()}
    missing = [name for name, version in versions.items() if version.startswith("not installed")]
    found.append(("versions", ", ".join(f"{name} {versions[name]}" for name in versions if name not in missing)))
    return [*found, ("not installed, so not measured", ", ".join(missing) or "none")]


def _memory_rows(f: dict[str, Any]) -> Rows:
    size, limit = units.bytes_(f["data_bytes"]), units.bytes_(f["limit_bytes"])
    found = [("data set", f"{size} of images under a memory limit of {limit}")]
    found += [(name, _reading(row, f["of_disk"].get(name))) for name, row in f["readers"].items()]
    return found + [(f"FAILED: {name}", str(reason)) for name, reason in f["failed"].items()]


def _ratio(found: dict[str, Any]) -> str:
    middle, low, high = (units.ratio(found[key]) for key in ("median", "lowest", "highest"))
    return f"{middle} [{low}, {high}]"


def _reading(row: dict[str, Any], of_disk: dict[str, Any] | None) -> str:
    low, high = (units.bytes_(rate) for rate in row["bytes_per_s_range"])
    words = f"{units.bytes_(row['bytes_per_s'])}/s [{low}, {high}] in {row['turns']} runs"
    if of_disk is not None:
        words += f", {value('share', of_disk)} of the disk"
    return f"{words}, {units.seconds(row['cpu_s_per_gb'])} of CPU a GB"


def _feeding(row: dict[str, Any]) -> str:
    return ", ".join([
        f"{units.per_s(row['samples_per_s'])} samples/s in {row['turns']} turns",
        f"{units.seconds(row['cpu_s_per_1000'])} of CPU per 1,000",
        f"first batch after {units.seconds(row['first_batch_s'])}",
        f"next epoch after {units.seconds(row['epoch_start_s'])}",
        f"{units.bytes_(row['anonymous_bytes'])} of memory",
    ])  # fmt: skip


def _writing(row: dict[str, Any], count: int) -> str:
    return ", ".join([
        f"{units.per_s(count / row['wall_s'])} samples/s in {row['turns']} turns",
        f"{units.seconds(row['cpu_s'])} of CPU",
        f"{units.bytes_(row['disk_bytes'])} on disk",
    ])  # fmt: skip
