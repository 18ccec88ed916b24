"""Step rows as text, bounded: a long run puts more and more steps into one row.

The first :data:`FULL` rows hold one step each; then the number of steps per row doubles every :data:`EACH` rows, so
that ten million steps take about 250,000 rows. A step measured in full stays a row of its own among those in brief.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter, or_
from typing import Any

from hotlap.probe.recorder import RESIDUAL, Skips, StepRow

__all__ = ["EACH", "FULL", "StepRows", "forget_losses"]

FULL = 50_000
EACH = 25_000


def _told(losses: list[Any]) -> str:
    """The losses as a part of a line; nothing where one of them cannot be read: null says that it is no number.

    Tensors are read here, on the writer's thread: a device has computed them by now.
    """
    try:
        numbers = [value if type(value) is float else float(_item(value)) for value in losses]
    except (RuntimeError, ValueError, TypeError):
        return ""  # freed, or a fake tensor: nothing was computed
    return f',"l":[{",".join(repr(x) if x - x == 0 else "null" for x in numbers)}]'


def _on_device(value: Any) -> bool:
    from torch import Tensor

    return type(value) is Tensor and not value.is_cpu


def _read_together(steps: list[StepRow]) -> None:
    """Losses on a device, with one copy to the host for all of these steps.

    With one copy per loss the writer would be slower than a training of short steps.
    """
    alike: dict[Any, list[tuple[list[Any], int]]] = {}
    for step in steps:
        for k, value in enumerate(step[8]):
            if type(value) is not float and _on_device(value):
                alike.setdefault((value.device, value.dtype), []).append((step[8], k))
    for places in alike.values():
        try:
            values = _values([losses[k] for losses, k in places])
        except (RuntimeError, ValueError, TypeError):
            continue  # one of them is gone (its memory is a CUDA graph's): each is read by itself
        for (losses, k), value in zip(places, values, strict=True):
            losses[k] = float(value)


def _values(tensors: list[Any]) -> list[Any]:
    """The values of scalars of one device. On CUDA by a stream of our own: on the script's a copy waits for everything
    that has been queued there since."""
    import torch

    device = tensors[0].device
    if device.type != "cuda":
        return _together(tensors)
    if device not in _streams:
        _streams[device] = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    with torch.cuda.device(device), torch.cuda.stream(_streams[device]):
        return _together(tensors)


_streams: dict[Any, Any] = {}


def _together(tensors: list[Any]) -> list[Any]:
    import torch

    return list(torch._C.TensorBase.tolist(torch.cat([tensor.reshape(1) for tensor in tensors])))


def forget_losses(steps: list[StepRow]) -> None:
    """Losses of steps with one on a device are given up: it has not come to that, and may never."""
    for step in steps:
        if any(type(value) is not float and _on_device(value) for value in step[8]):
            step[8].clear()


def _item(tensor: Any) -> Any:
    from torch._C import TensorBase  # the C method: the script's own `Tensor.item` may be watched

    return TensorBase.item(tensor)


class StepRows:
    """Turns rows of steps into lines. ``unmeasured()``: indices of phases that nobody measures here now (written as
    null)."""

    def __init__(self, unmeasured: Callable[[], frozenset[int]] = frozenset) -> None:
        self._unmeasured = unmeasured
        self._null: frozenset[int] = frozenset()
        self._forms: dict[Skips, tuple[str, Callable[[list[int]], tuple[int, ...]]]] = {}
        self._rows = 0
        self._each = 1
        self._next_doubling = FULL
        self._sum: list[Any] | None = None
        """Rows added up, as a list of the same entries."""
        self._told_brief = False
        """Whether the last line has phases that were skipped."""

    def text(self, steps: list[StepRow]) -> list[str]:
        """Lines for these steps; an unfinished group is kept for the next call."""
        lines = []
        if (null := self._unmeasured()) != self._null:
            self._null = null
            self._forms.clear()
        _read_together(steps)
        for step in steps:
            if self._each == 1 or (self._sum is None and self._told_brief and not any(step[11])):
                # Were all steps measured in full lost in groups with those in brief, no phase would be known.
                lines.append(self._line(step))
            else:
                lines.extend(self._add(step))
        return lines

    def rest(self) -> list[str]:
        """The unfinished group as a line, if there is one."""
        if self._sum is None:
            return []
        total, self._sum = self._sum, None
        return [self._line(total)]

    def _add(self, step: StepRow) -> list[str]:
        total = self._sum
        if total is None:
            total = self._sum = list(step)
            total[3] = list(step[3])
        else:
            for k, spent in enumerate(step[3]):
                total[3][k] += spent
            for k in (2, 4, 5, 6, 7, 9):
                total[k] += step[k]
            total[8] = step[8]
            total[10] = max(total[10], step[10])
            total[11] = tuple(map(or_, total[11], step[11]))
        return self.rest() if total[9] >= self._each else []

    def _line(self, row: Any) -> str:
        index, start, wall, phases, samples, micro, lo, lo_n, losses, steps, longest, skips = row
        self._rows += 1
        if self._rows >= self._next_doubling:
            self._each *= 2
            self._next_doubling += EACH
        self._told_brief = any(skips)
        form, measured = self._forms.get(skips) or self._form(skips)
        phases[RESIDUAL] = 0
        phases[RESIDUAL] = max(0, wall - sum(phases))
        more = f',"lo":{lo},"lo_n":{lo_n}' if lo_n or lo else ""
        if losses:
            more += _told(losses[-8:])
        return form % (index, steps, start, wall, *measured(phases), samples, micro, longest, more)

    def _form(self, skips: Skips) -> tuple[str, Callable[[list[int]], tuple[int, ...]]]:
        null = [k in self._null or skipped for k, skipped in enumerate(skips)]
        phases = ",".join("null" if none else "%d" for none in null)
        form = '{"k":"step","i":%d,"n":%d,"t":%d,"w":%d,"p":[' + phases + '],"s":%d,"m":%d,"mx":%d%s}\n'
        found = form, itemgetter(*[k for k, none in enumerate(null) if not none])
        self._forms[skips] = found
        return found
