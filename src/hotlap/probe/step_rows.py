"""Step rows as text, bounded: a long run puts more and more steps into one row.

The first :data:`FULL` rows hold one step each; then the number of steps per row doubles every :data:`EACH` rows, so
that ten million steps take about 200,000 rows.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from hotlap.probe.recorder import RESIDUAL, StepRow
from hotlap.records.rows import PHASES

__all__ = ["EACH", "FULL", "StepRows"]

FULL = 50_000
EACH = 25_000
_N = len(PHASES)


def _loss(value: Any) -> str:
    """A loss as JSON. Tensors are read here, on the writer's thread: a device has long computed them."""
    try:
        number = value if type(value) is float else float(_item(value))
    except (RuntimeError, ValueError, TypeError):
        return "null"  # freed, or a fake tensor: nothing was computed
    return repr(number) if number - number == 0 else "null"


def _item(tensor: Any) -> Any:
    from torch._C import TensorBase  # the C method: the script's own `Tensor.item` may be watched

    return TensorBase.item(tensor)


class StepRows:
    """Turns steps into lines. ``unmeasured``: indices of phases that nobody measures here (written as null)."""

    def __init__(self, unmeasured: frozenset[int] = frozenset()) -> None:
        self.unmeasured = unmeasured
        self._measured = itemgetter(*[k for k in range(_N) if k not in unmeasured])
        phases = ",".join(["null" if k in unmeasured else "%d" for k in range(_N)])
        self._form = '{"k":"step","i":%d,"n":%d,"t":%d,"w":%d,"p":[' + phases + '],"s":%d,"m":%d,"mx":%d%s}\n'
        self._rows = 0
        self._each = 1
        self._next_doubling = FULL
        self._sum: list[Any] | None = None  # [index, n, start, wall, phases, samples, micro, lo, lo_n, longest, losses]

    def text(self, steps: list[StepRow]) -> list[str]:
        """Lines for these steps; an unfinished group is kept for the next call."""
        lines = []
        for step in steps:
            if self._each == 1:
                lines.append(self._line((step[0], 1, step[1], step[2], step[3], *step[4:8], step[2], step[8])))
            else:
                self._add(step)
                assert self._sum is not None
                if self._sum[1] >= self._each:
                    lines.extend(self.rest())
        return lines

    def rest(self) -> list[str]:
        """The unfinished group as a line, if there is one."""
        if self._sum is None:
            return []
        total, self._sum = self._sum, None
        return [self._line(total)]

    def _add(self, step: StepRow) -> None:
        total = self._sum
        if total is None:
            self._sum = [step[0], 1, step[1], step[2], list(step[3]), *step[4:8], step[2], step[8]]
            return
        total[1] += 1
        total[3] += step[2]
        phases = total[4]
        for k, spent in enumerate(step[3]):
            if spent:
                phases[k] += spent
        for k in range(4):
            total[5 + k] += step[4 + k]
        if step[2] > total[9]:
            total[9] = step[2]
        total[10] = step[8]

    def _line(self, total: Any) -> str:
        """``total``: index, n, start, wall, phases, samples, micro-batches, lo, lo_n, longest, losses."""
        index, n, start, wall, phases, samples, micro, lo, lo_n, longest, losses = total
        self._rows += 1
        if self._rows >= self._next_doubling:
            self._each *= 2
            self._next_doubling += EACH
        phases[RESIDUAL] = 0
        measured = sum(phases)
        if wall > measured:
            phases[RESIDUAL] = wall - measured
        more = f',"lo":{lo},"lo_n":{lo_n}' if lo_n or lo else ""
        if losses:
            more += f',"l":[{",".join(map(_loss, losses[-8:]))}]'
        return self._form % (index, n, start, wall, *self._measured(phases), samples, micro, longest, more)
