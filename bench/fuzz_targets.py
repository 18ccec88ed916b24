"""What is fuzzed: every reader of what a user or a crash can have damaged. Each takes bytes, as a fuzzer gives them.

A reader may raise the product's own error for bad input (and ``Refused`` is that, nothing else); whatever else escapes
is a bug, and so is one that takes too long or too much memory.
"""

from __future__ import annotations

import json
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hotlap.guard.follow import Follower
from hotlap.pack.manifest import FORMAT, MANIFEST, VERSION, read_manifest
from hotlap.plan.file import parse_plan, validate
from hotlap.plan.knobs import parse_knobs
from hotlap.records.check import Check
from hotlap.records.codec import encode, loads
from hotlap.records.comparison import Comparison
from hotlap.records.errors import HotlapError
from hotlap.records.figures import Figures
from hotlap.records.findings import Findings
from hotlap.records.guard import GuardRecord
from hotlap.records.machine import Machine
from hotlap.records.plan import Plan
from hotlap.records.proof import Proof
from hotlap.records.rows import PHASES, SCHEMA, End, Event, Frame, Header, Hits, Load, Mark, Note, Setting, Stack, Step
from hotlap.records.run import RunRecord
from hotlap.records.run_folder import RunFolder
from hotlap.records.seed_proof import SeedProof
from hotlap.records.timeline import read_timeline
from hotlap.records.trials import Trial
from hotlap.trial.tail import Tail
from hotlap.ui.glimpse import look

__all__ = ["SEEDS", "TARGETS", "Target"]

Target = Callable[[bytes], None]
FOLDER = Path(tempfile.gettempdir())
MACHINE = Machine("Linux", "a CPU", 2, 1 << 34, 1 << 33, ["avx512_bf16"], "3.11", "2.13")
DOCUMENTS: tuple[Any, ...] = (
    Proof, SeedProof, Trial, RunRecord, Findings, GuardRecord, Check, Comparison, Machine, Figures, Plan,
)  # fmt: skip


def timeline(data: bytes) -> None:
    """A file by each of the four that read timelines: whole, followed by a guard or a trial, looked at by the ui."""
    with tempfile.TemporaryDirectory(dir=FOLDER) as name:
        folder = Path(name)
        path = folder / "t.jsonl"
        path.write_bytes(data)
        for read in (lambda: read_timeline(path), Follower(folder).poll, Tail(folder).poll, lambda: look(path)):
            _quietly(read)


def plan(data: bytes) -> None:
    """A plan's text, and its moves against a machine."""
    text = data.decode("utf-8", "replace")
    _quietly(lambda: validate(parse_plan(text, "fast.yaml"), MACHINE))


def document(data: bytes) -> None:
    """The JSON documents of a run folder, through the folder."""
    with tempfile.TemporaryDirectory(dir=FOLDER) as name:
        folder = RunFolder(Path(name))
        (folder.path / "x.json").write_bytes(data)
        for kind in DOCUMENTS:
            _quietly(lambda kind=kind: folder.read("x.json", kind))
    _quietly(lambda: loads(list[Trial], data.decode("utf-8", "replace"), "x"))


def pack_head(data: bytes) -> None:
    """A pack's manifest: as it is, and, where it is a mapping, with the checksum and the format that get it further."""
    with tempfile.TemporaryDirectory(dir=FOLDER) as name:
        path = Path(name) / MANIFEST
        path.write_bytes(data)
        _quietly(lambda: read_manifest(Path(name)))
        try:
            found = json.loads(data)
            if not isinstance(found, dict):
                return
            body = {**found, "format": FORMAT, "version": VERSION}
            body.pop("crc", None)
            crc = zlib.crc32(json.dumps(body, sort_keys=True, separators=(",", ":")).encode())
            path.write_text(json.dumps({**body, "crc": crc}))
        except (ValueError, RecursionError):
            return  # what our own preparation cannot do says nothing of the reader
        _quietly(lambda: read_manifest(Path(name)))


def knob(data: bytes) -> None:
    """A ``--knob``: first line the knob, then the suffix of its file, then the file."""
    text, _, rest = data.decode("utf-8", "replace").partition("\n")
    suffix, _, content = rest.partition("\n")
    command = ["python", "train.py", "--batch-size", "32", "lr=0.1", "-b4"]
    _quietly(lambda: parse_knobs([text], command))
    with tempfile.TemporaryDirectory(dir=FOLDER) as name:
        file = Path(name) / ("c" + (suffix if suffix in (".yaml", ".json", ".toml", ".ini") else ".yaml"))
        file.write_bytes(content.encode("utf-8", "replace"))
        _quietly(lambda: parse_knobs([f"{text}@{file}"], command))


def _quietly(read: Callable[[], object]) -> None:
    try:
        read()
    except HotlapError as err:
        str(err).encode("utf-8", "surrogatepass")


TARGETS: dict[str, Target] = {
    "timeline": timeline, "plan": plan, "document": document, "pack-head": pack_head, "knob": knob,
}  # fmt: skip


def _line(row: Any) -> bytes:
    return json.dumps({"k": type(row).__name__.lower(), **encode(row)}).encode() + b"\n"


_HEADER = Header(SCHEMA, "0.1", "train", 10, 1, 0, 1, ["t.py"], "/", "3.11", "2.13", "cpu", 0, 1.0)
_ROWS: list[Any] = [
    Step(0, 1, 0, 10**6, [None] * len(PHASES), 32, 1, l=[0.5]), Frame(3, "a.py", 7, "f", True), Stack(1, [3]),
    Hits(5, 10, [[1, 2, 3]]), Event("validation", 1, 2, 3), Load(0, 5, 1, 32, 2, 1, 3), Setting("loader", {"a": 1}),
    Mark("lever", "autocast", "applied", 1), Note("sync", "odd"), End(9, "exit"),
]  # fmt: skip
_MANIFEST = {
    "format": FORMAT, "version": VERSION, "metadata": {}, "left_out": 0,
    "columns": [{"name": "x", "kind": "tensor", "dtype": "uint8", "shape": [2]}],
    "parts": [{"file": "part-00000.arrow", "size_bytes": 64, "rows": 2, "frame_crc": 0, "lengths_crc": 0,
               "chunks": [[8, 32, 2, 0, {"x": 16}]]}],
}  # fmt: skip
SEEDS: dict[str, list[bytes]] = {
    "timeline": [b"".join(map(_line, [_HEADER, *_ROWS])), *(_line(_HEADER) + _line(row) for row in _ROWS)],
    "plan": [
        b"schema: hotlap.plan/1\nspeedup: 2.5\nmoves:\n  - lever: autocast\n    setting: {dtype: bf16}\n"
        b"    preserves: maths\n    gain: 1.5\n",
        b"schema: hotlap.plan/1\nmoves:\n  - lever: knob:batch\n    setting: {option: --b, value: 3}\n"
        b"    preserves: goal\n",
        b"schema: hotlap.plan/1\nmoves: []\n",
        b"a: &x [1]\nb: *x\nc: !!int 3\nd: 2026-01-02\n",
    ],
    "document": [
        b'{"id": "x", "setting": {}, "status": "measured", "interval": {"ratio": 1.0, "low": 0.9, "high": 1.1},'
        b' "windows": [{"arm": "baseline", "t": 1, "steps": 2, "samples": 3, "steady_s": 0.1}]}',
        b'{"speedup": null, "claimed": false, "quality": {"verdict": "proved", "kind": "bits", "summary": "x"}}',
        b'{"kind": "run", "command": ["python"], "started": "now"}',
        b'{"steps": 1, "samples": 2, "train_s": 0.5, "alarms": [{"at_step": 1, "found_step": 2, "at_s": 0.1,'
        b' "found_s": 0.2, "before_s": 0.1, "after_s": 0.2, "phase": "data_wait", "growing": true, "cause": "leak",'
        b' "where": [{"file": "a.py", "line": 1, "function": "f"}], "advice": "x"}]}',
        b'{"verdict": "proved", "max_slowdown_frac": 0.05, "seen_from_frac": 0.02, "against": "main", "commit": "a",'
        b' "changed": 1, "command": ["x"], "trial": {}, "machine": {}}',
    ],
    "pack-head": [json.dumps(_MANIFEST).encode()],
    "knob": [b"batch=--batch-size {24,32}", b"val=a.b={1,2,3}\n.yaml\na:\n  b: 7\n", b"v=a.0={1,2}\n.json\n"
             b'{"a": [3, 4]}', b"v=s.k={1,2}\n.toml\n[s]\nk = 3\n", b"v=s.k={1,2}\n.ini\n[s]\nk = 3\n"],
}  # fmt: skip
