"""What a function's code may do beside giving its result, as its names tell."""

from __future__ import annotations

import dis
import re
from types import FunctionType
from typing import Any

from hotlap.lever.users_code import codes_in

__all__ = ["hands_itself_on", "has_effect", "unnamed_methods"]

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

_LOADS = ("LOAD_FAST", "LOAD_DEREF", "STORE_FAST_LOAD_FAST")
_OF_ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "STORE_ATTR", "DELETE_ATTR")


def has_effect(name: str) -> bool:
    """Whether what is called so may say or do something beside its result."""
    return _EFFECTS.match(name) is not None


def unnamed_methods(kind: Any) -> list[str]:
    """Methods of a class of the script's that code uses without naming them: by calls, operators, ``with``."""
    found = {name for k in kind.__mro__ for name, value in vars(k).items() if isinstance(value, FunctionType)}
    return sorted(n for n in found if n == "forward" or (n[:2] == n[-2:] == "__" and n not in _NEVER_ASKED))


def hands_itself_on(method: FunctionType) -> bool:
    """Whether a method uses its object other than for an attribute or its length: iterates over it, enters it, gives
    it to others."""
    if not method.__code__.co_argcount:
        return False
    itself = method.__code__.co_varnames[0]
    for code in codes_in(method.__code__):
        found = list(dis.get_instructions(code))
        for before, one, after in zip(found, found[1:], found[2:], strict=False):
            names = one.argval if type(one.argval) is tuple else (one.argval,)  # newer Pythons load two at once
            if not one.opname.startswith(_LOADS) or itself not in names:
                continue
            is_length = (before.opname, before.argval) == ("LOAD_GLOBAL", "len")
            if itself in names[:-1] or not (is_length or after.opname in _OF_ATTRIBUTE):
                return True
    return False
