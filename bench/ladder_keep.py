"""Where the throughput of presets is noted for `python -m hotlap_workloads.train --list`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import hotlap_workloads
from hotlap_workloads.measured import Measured

__all__ = ["VECTORS", "place", "remember"]

FILE = Path(hotlap_workloads.__file__).with_name("measured.json")
VECTORS = {"amx_bf16": "AMX", "avx512_bf16": "AVX-512 with bf16", "avx512f": "AVX-512", "avx2": "AVX2"}
"""Flags of a CPU, the widest first, in words: virtual machines call CPUs of several generations by the same name."""


def place(machine: Mapping[str, Any], on: str, simulated_mfu: float | None) -> str:
    """The machine in words, from the facts that results.save wrote."""
    vectors = next((f" ({word})" for flag, word in VECTORS.items() if flag in machine["cpu_flags"]), "")
    host = f"{machine['cpu']}{vectors}, {machine['cores']} cores, torch {machine['torch']}"
    if simulated_mfu is not None:
        return f"a SIMULATED {on} (MFU {simulated_mfu:g} assumed) with {host}"
    return f"{machine['accelerators'][0]['name']}, {host}" if on == "cuda" else host


def remember(workload: str, rows: Mapping[str, Measured], file: Path = FILE) -> None:
    """Note a figure of each preset, in place of an older one from the same machine and data."""
    document = json.loads(file.read_text(encoding="utf-8"))
    presets = document.setdefault(workload, {})
    for preset, row in rows.items():
        others = [old for old in presets.get(preset, []) if (old["on"], old["data"]) != (row.on, row.data)]
        presets[preset] = sorted([*others, asdict(row)], key=lambda entry: (entry["on"], entry["data"]))
    file.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")
