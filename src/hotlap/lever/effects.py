"""What a function's code may do beside giving its result, as its names tell."""

from __future__ import annotations

import re
from types import FunctionType
from typing import Any

__all__ = ["has_effect", "unnamed_methods"]

_EFFECTS = re.compile(
    r"(?i)^_*(print.*|warn.*|write.*|save.*|imwrite|dump.*|next|mkdir|makedirs|unlink|rmtree|to_csv|to_file|tofile|put|send"
    r"|log_.*|logger|logging|stdout|stderr|setattr|delattr|getattr|vars|globals|locals|eval|exec|__dict__|input|system"
    r"|create_dataset|require_dataset|popen|run|check_output|lru_cache|get_worker_info|current_process|getpid|lseek)$"
)
"""What is said or done beside the result, and ways to what no name tells."""
_NEVER_ASKED = frozenset((
    "__init__", "__new__", "__del__", "__repr__", "__str__", "__getstate__", "__setstate__", "__reduce__",
    "__reduce_ex__", "__copy__", "__deepcopy__", "__setattr__", "__delattr__", "__init_subclass__", "__class_getitem__",
    "__set_name__", "__set__", "__delete__", "__getnewargs__", "__getnewargs_ex__", "__dir__", "__sizeof__",
))  # fmt: skip
"""By the making, printing, pickling and ending of an object, or by stores, which count themselves."""


def has_effect(name: str) -> bool:
    """Whether what is called so may say or do something beside its result."""
    return _EFFECTS.match(name) is not None


def unnamed_methods(kind: Any) -> list[str]:
    """Methods of a class of the script's that code uses without naming them: by calls, operators, ``with``."""
    found = {name for k in kind.__mro__ for name, value in vars(k).items() if isinstance(value, FunctionType)}
    return sorted(n for n in found if n == "forward" or (n[:2] == n[-2:] == "__" and n not in _NEVER_ASKED))
