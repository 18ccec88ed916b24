"""Tells a lever's own failure from the script's: the first undoes the lever, the second is the script's to see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hotlap.lever.script_errors import is_the_scripts

__all__ = ["Guard"]

_NOT_RUN = object()


class Guard:
    """Wraps a lever's functions. Once :attr:`active` is false they do nothing."""

    def __init__(self, on_failure: Callable[[BaseException], None]) -> None:
        self.active = True
        self._on_failure = on_failure

    def callback(self, function: Callable[..., None]) -> Callable[..., None]:
        """``function`` whose exception is a failure of the lever."""

        def guarded(*args: Any) -> None:
            if not self.active:
                return
            try:
                function(*args)
            except Exception as err:
                self._on_failure(err)

        return guarded

    def around(self, wrapper: Callable[..., Any]) -> Callable[..., Any]:
        """``wrapper(owner, call, args, kwargs)`` whose own exception is a failure of the lever.

        An exception of ``call`` itself passes through, and so does one that the script would have met before. If the
        wrapper fails after ``call`` has returned, that result is used: the script's work is never done twice.
        """

        def guarded(owner: Any, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if not self.active:
                return call(*args, **kwargs)
            result: Any = _NOT_RUN
            theirs: BaseException | None = None

            def inner(*a: Any, **k: Any) -> Any:
                nonlocal result, theirs
                try:
                    result = call(*a, **k)
                except BaseException as err:
                    theirs = err
                    raise
                return result

            try:
                return wrapper(owner, inner, args, kwargs)
            except Exception as err:
                if err is theirs or is_the_scripts(err):
                    raise
                self._on_failure(err)
                return call(*args, **kwargs) if result is _NOT_RUN else result

        return guarded
