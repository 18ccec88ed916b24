"""Errors that come to light when the script has ended: shown, and told by the exit status."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import Any

__all__ = ["tell_at_exit"]


class _Unfinished:
    """Standard output whose last flush fails: Python then ends with status 120, as for any error while it cleans up.

    To raise in an atexit function would leave the status at 0, and to call ``os._exit`` would skip what is still to be
    done.
    """

    def __init__(self, real: Any) -> None:
        self._real = real

    def __repr__(self) -> str:
        return "what Hotlap was still to write (see above)"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    @property
    def closed(self) -> bool:
        return False

    def flush(self) -> None:
        if self._real is not None and not self._real.closed:
            self._real.flush()
        if sys.is_finalizing():
            raise OSError("the script's last work was not done; the exit status is 120")


def tell_at_exit(errors: Sequence[BaseException]) -> None:
    """Show the errors as Python shows one that nobody caught, and see to it that the process ends with a status."""
    for error in errors:
        traceback.print_exception(error)
    if errors:
        sys.stdout = _Unfinished(sys.stdout)
