"""A lever's failure undoes the lever; the script's own failure is the script's to see."""

from __future__ import annotations

from typing import Any

import pytest

from hotlap.inject.guard import Guard


def make() -> tuple[Guard, list[BaseException]]:
    failures: list[BaseException] = []
    return Guard(failures.append), failures


def test_wrapper_result_is_used() -> None:
    guard, failures = make()
    around = guard.around(lambda owner, call, args, kwargs: call(*args) + 1)
    assert around(None, lambda x: x * 2, (3,), {}) == 7
    assert failures == []


def test_failure_before_the_call_falls_back_to_it() -> None:
    guard, failures = make()

    def wrapper(owner: Any, call: Any, args: Any, kwargs: Any) -> Any:
        raise ValueError("lever")

    assert guard.around(wrapper)(None, lambda x: x, (3,), {}) == 3
    assert [str(e) for e in failures] == ["lever"]


def test_failure_after_the_call_does_not_repeat_it() -> None:
    guard, failures = make()
    calls = []

    def wrapper(owner: Any, call: Any, args: Any, kwargs: Any) -> Any:
        call(*args)
        raise ValueError("lever")

    assert guard.around(wrapper)(None, lambda x: calls.append(x) or "done", (3,), {}) == "done"
    assert calls == [3]
    assert len(failures) == 1


def test_the_scripts_exception_passes_and_is_no_failure() -> None:
    guard, failures = make()

    def broken(x: int) -> int:
        raise KeyError("script")

    with pytest.raises(KeyError, match="script"):
        guard.around(lambda owner, call, args, kwargs: call(*args))(None, broken, (3,), {})
    assert failures == []


def test_inactive_guard_passes_through() -> None:
    guard, failures = make()
    guard.active = False
    assert guard.around(lambda owner, call, args, kwargs: 0)(None, lambda x: x, (3,), {}) == 3
    guard.callback(lambda: failures.append(ValueError()))()
    assert failures == []
