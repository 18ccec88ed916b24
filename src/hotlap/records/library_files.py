"""Files of torch whose frames tell what goes on, as the end of a path with forward slashes.

The probe keeps such frames in a timeline, however far in what they call lies; the diagnosis goes by them.
"""

from __future__ import annotations

__all__ = ["CALLS_HOOKS", "CHECKPOINT", "MODULE", "slashes"]

MODULE = "torch/nn/modules/module.py"
CHECKPOINT = "torch/utils/checkpoint.py"
CALLS_HOOKS = (MODULE, "torch/autograd/graph.py")
"""A module calls its hooks; the backward calls those of tensors from C++ code, below ``_engine_run_backward``."""


def slashes(path: str) -> str:
    """A path as these are written."""
    return path.replace("\\", "/")
