"""What is told of the GPU bench: of each part how it ended, and what it printed."""

from __future__ import annotations

from typing import Any

__all__ = ["gpu_lines"]


def gpu_lines(document: dict[str, Any]) -> list[str]:
    """A part that was not done is told with its reason and the last line that it printed."""
    figures = document["figures"]
    device = figures["device"]
    found = [f"{gpu} (driver, highest clock, power limit); CUDA {device['cuda']}" for gpu in device["driver"]]
    for name, part in figures["parts"].items():
        more = "".join(f", {part[key]}" for key in ("date", "note") if key in part)
        why = f": {part['why']}" if "why" in part else ""
        status = "NOT MEASURED" if part["status"] == "not measured" else part["status"]
        told = part.get("told", [])
        found += ["", f"{name}: {status}{more}{why}", *(told if status == "done" else told[-1:])]
    return found
