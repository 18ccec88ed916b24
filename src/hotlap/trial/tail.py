"""Following timelines while they are written: only new bytes are read, only the rows that a trial needs are parsed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hotlap.records.codec import check_schema, decode, parse
from hotlap.records.errors import RecordError
from hotlap.records.rows import SCHEMA, End, Event, Header, Mark, Setting, Step

__all__ = ["FileTail", "Tail"]

KINDS: dict[str, type[Any]] = {
    "header": Header, "step": Step, "event": Event, "mark": Mark, "setting": Setting, "end": End,
}  # fmt: skip


@dataclass
class FileTail:
    """One timeline file, as far as it was read."""

    path: Path
    header: Header | None = None
    steps: list[Step] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)
    ended: bool = False
    ended_at: int | None = None
    """When the process ended by itself, in monotonic nanoseconds."""
    offset: int = 0

    @property
    def n_steps(self) -> int:
        """Steps seen."""
        return sum(row.n for row in self.steps)

    def poll(self) -> bool:
        """Read what is new; True when there was something. A row still being written waits for the next poll."""
        with open(self.path, "rb") as file:
            file.seek(self.offset)
            new = file.read()
        complete = new[: new.rfind(b"\n") + 1]
        for raw in complete.splitlines():
            self._add(raw)
        self.offset += len(complete)
        return bool(complete)

    def _add(self, raw: bytes) -> None:
        name = f"{self.path}"
        try:
            data = parse(raw)
        except ValueError as err:
            raise RecordError(f"{name} holds a corrupt row: {raw[:60]!r} ({err}).") from err
        kind = data.pop("k", None) if isinstance(data, dict) else None
        if not isinstance(kind, str):
            raise RecordError(f"{name} holds a corrupt row: {raw[:60]!r} (it names no kind).")
        if kind not in KINDS:
            return
        if kind == "header":
            check_schema(data, SCHEMA, name)
        row = decode(KINDS[kind], data, name)
        if kind == "header":
            self.header = row
        elif kind == "end":
            self.ended, self.ended_at = True, row.t
        else:
            getattr(self, kind + "s").append(row)


class Tail:
    """All timelines of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[Path, FileTail] = {}

    def poll(self) -> bool:
        """Read what is new in all files; True when there was something."""
        news = False
        for path in sorted(self.folder.glob("*.jsonl")):
            if path not in self.files:
                self.files[path] = FileTail(path)
            news |= self.files[path].poll()
        return news

    @property
    def trainer(self) -> FileTail | None:
        """The process that trains: one that has not ended, with most steps; where all have, the last one."""
        return max(self._training(), key=lambda f: (not f.ended, f.ended_at or 0, f.n_steps), default=None)

    @property
    def trainers(self) -> list[FileTail]:
        """The processes that trained one after the other (a stage each, a fold each), :attr:`trainer` last."""
        present = self.trainer
        if present is None:
            return []
        began = present.steps[0].t
        earlier = [f for f in self._training() if f.ended_at is not None and f.ended_at < began]
        return [*sorted(earlier, key=lambda f: f.steps[0].t), present]

    def _training(self) -> list[FileTail]:
        """Training processes of the lowest rank."""
        found = [(f.header.rank, f) for f in self.files.values() if f.header and f.header.role == "train" and f.steps]
        lowest = min((rank for rank, _ in found), default=0)
        return [f for rank, f in found if rank == lowest]
