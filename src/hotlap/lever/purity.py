"""What the names of functions, modules and classes tell: whether they draw at random, or only compute."""

from __future__ import annotations

import os
import random
import re
from typing import Any

from hotlap.lever.users_code import is_standard

__all__ = ["IN_PLACE_OF", "draws_by_name", "is_generator", "is_known_name", "is_library", "own_function"]

IN_PLACE_OF = "_hotlap_in_place_of"
"""Attribute of a function of ours: the script's own, which is the one to read."""

_SUSPECT = re.compile(
    r"(?i)^_*(rand.*|.*_rand|.*random.*|.*augment.*|.*shuffle.*|.*jitter.*|.*noise.*|.*dropout.*|.*perm(utation)?|choices?|"
    r"uniform|normal|bernoulli|multinomial|poisson|gauss|.*variate|rvs|distributions|.*generator|default_rng|.*rng|seed|"
    r"manual_seed|urandom|token_bytes|uuid\d?|time|time_ns|perf_counter|monotonic|now|today|.*epoch.*|global_step)$"
)
_LIBRARIES = (
    "torch.",
    "numpy.",
    "PIL.",
    "scipy.",
    "cv2.",
    "soundfile.",
    "h5py.",
    "lmdb.",
    "pandas.",
    "os.",
    "posixpath.",
    "pathlib.",
    "json.",
    "builtins.",
)
_OURS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
_NO_CODE = compile("", "", "exec")
_GENERATORS = frozenset(("Generator", "RandomState", "SystemRandom", "BitGenerator"))


def own_function(function: Any) -> Any:
    """The script's own behind a function of ours that stands before it; any other is what it is."""
    own = getattr(function, IN_PLACE_OF, None)
    if own is None and getattr(function, "__code__", _NO_CODE).co_filename.startswith(_OURS):
        own = getattr(function, "__wrapped__", None)
    return function if own is None else own_function(own)


def is_generator(value: Any) -> bool:
    """Whether it is a generator of random numbers: of Python's, numpy's or torch's."""
    return isinstance(value, random.Random) or any(kind.__name__ in _GENERATORS for kind in type(value).__mro__)


def draws_by_name(name: str) -> bool:
    """Whether what is called so may draw at random, or tells the time."""
    return _SUSPECT.match(name) is not None


def _is_library_name(module: str) -> bool:
    """Whether the functions of such a module only compute what they are asked for."""
    return (module + ".").startswith(_LIBRARIES)


def is_known_name(module: str) -> bool:
    """Of the standard library, or of the libraries whose functions are known to compute alone."""
    return is_standard(module) or _is_library_name(module)


def is_library(function: Any) -> bool:
    """Whether a function need not be followed: it only computes, or its name says what it does."""
    name = getattr(function, "__module__", None) or ""
    return _is_library_name(name) and "transforms" not in name
