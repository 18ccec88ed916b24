"""Run by ``read_machine`` as a script, with the user's Python: prints what torch sees, as one line of JSON.

A process of its own, because importing torch takes seconds and hundreds of MB that the host has no use for, and
because the user's Python may be another one than Hotlap's.
"""

from __future__ import annotations

import json
import platform
import sys
from importlib.util import find_spec
from typing import Any

__all__ = ["accelerators", "main"]


def accelerators(torch: Any) -> list[dict[str, Any]]:
    """One entry per visible GPU, with the keys of :class:`hotlap.records.machine.Accelerator`."""
    if not torch.cuda.is_available():
        return []
    has_triton = find_spec("triton") is not None
    amd = torch.version.hip is not None
    found = []
    for index in range(torch.cuda.device_count()):
        facts = torch.cuda.get_device_properties(index)
        capability = (facts.major, facts.minor)
        found.append(
            {
                "name": facts.name,
                "memory_bytes": int(facts.total_memory),
                "capability": f"{facts.major}.{facts.minor}",
                # AMD: matrix cores with bf16 and fp16 from CDNA (gfx908, reported as 9.0) on
                "bf16": capability >= (8, 0),
                # 6.0 (P100) runs fp16 at twice the fp32 rate; 6.1 and 6.2 at a sixty-fourth of it
                "fp16": capability >= (7, 0) or capability == (6, 0),
                "tf32": capability >= (8, 0) and not amd,
                "triton": has_triton and capability >= (7, 0),
            }
        )
    return found


def main() -> None:
    """Print ``{"torch": version or null, "python": version, "accelerators": [...], "problem": text or null}``."""
    answer: dict[str, Any] = {
        "torch": None,
        "python": platform.python_version(),
        "accelerators": [],
        "problem": None,
    }
    try:
        import torch

        answer["torch"] = str(torch.__version__)
        answer["accelerators"] = accelerators(torch)
    except ModuleNotFoundError as err:
        answer["problem"] = None if err.name == "torch" else str(err)
    except (ImportError, OSError, RuntimeError) as err:  # a broken install, or a driver that does not answer
        answer["problem"] = f"{type(err).__name__}: {err}"
    # the marker: anything that torch itself prints while it is imported comes before it
    sys.stdout.write("HOTLAP " + json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
