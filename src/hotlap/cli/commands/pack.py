"""Pack a data set so that trainings read it at the speed of memory; inspect, verify or time a pack.

hotlap pack images/ faces.pack          pack a folder (or a list, tars, Parquet, module:Dataset, …)
hotlap pack inspect faces.pack          what it holds
hotlap pack verify faces.pack           every byte against its checksum
hotlap pack bench faces.pack            its throughput, beside every other loading library installed
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable

from rich.table import Table

from hotlap.cli.console import console
from hotlap.cli.option_types import duration, named, named_path, positive
from hotlap.cli.progress import bar, meter
from hotlap.machine.limits import usable_cores
from hotlap.report import units

NAME = "pack"
HELP = "pack a data set so that trainings read it at the speed of memory"
ORDER = 20
TAKES_COMMAND = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``hotlap pack``."""
    parser.description = (__doc__ or "").strip()
    parser.add_argument("source", metavar="SRC", type=named, help="what to pack; or: inspect, verify, bench")
    parser.add_argument("target", metavar="DST", help="the pack's folder", type=named_path)
    what = parser.add_argument_group("packing")
    what.add_argument("--root", metavar="DIR", help="folder or URL that names in a list are relative to")
    what.add_argument("--store", choices=("auto", "raw", "encoded"), default="auto",
                      help="decoded, or the files as they are (default: decoded if all have one size)")  # fmt: skip
    what.add_argument("--size", metavar="HxW", type=_size, help="resize images while packing")
    what.add_argument("--rows", choices=("planar", "interleaved"),
                      help="colours of decoded images apart, or together, for channels-last (planar)")  # fmt: skip
    what.add_argument("--ragged", metavar="COLUMN", action="append", default=[], help="a column whose length varies")
    what.add_argument("--on-error", choices=("stop", "quarantine"), default="stop",
                      help="at a row that cannot be packed: stop, or leave it out and list it")  # fmt: skip
    what.add_argument("--processes", metavar="N", type=positive, help="packing processes (default: one per core)")
    what.add_argument("--append", action="store_true", help="add to a pack that exists, packed as that was")
    timing = parser.add_argument_group("bench")
    timing.add_argument("--batch", metavar="N", type=positive, default=128,
                        help="rows per batch (default: %(default)s)")  # fmt: skip
    timing.add_argument("--crop", metavar="HxW", type=_size, help="read random crops of images")
    timing.add_argument("--clip", metavar="N", type=positive, help="read random clips of N entries of recordings")
    timing.add_argument("--budget", metavar="TIME", type=duration, help="time in all (default: 3s for each way)")
    timing.add_argument("--no-copies", action="store_true",
                        help="leave out libraries that need a copy of the data in a form of their own")  # fmt: skip


def _size(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d+)x(\d+)", text)
    if found is None or 0 in (sizes := (int(found[1]), int(found[2]))):
        raise argparse.ArgumentTypeError(f"{text!r} is not HEIGHTxWIDTH, as 160x160")
    return sizes


def execute(args: argparse.Namespace) -> int:
    """Pack, or what else was asked."""
    actions: dict[str, Callable[[argparse.Namespace], int]] = {"inspect": _inspect, "verify": _verify, "bench": _bench}
    return actions.get(args.source, _pack)(args)


def _pack(args: argparse.Namespace) -> int:
    from hotlap.pack import PackSettings, SourceOptions, pack, source_of
    from hotlap.pack.appending import options_as_packed
    from hotlap.pack.manifest import LEFT_OUT

    processes = usable_cores() if args.processes is None else args.processes
    settings = PackSettings(processes=processes, on_error=args.on_error, append=args.append,
                            ragged=frozenset(args.ragged))  # fmt: skip
    options = SourceOptions(args.root, args.store, args.size, args.rows == "interleaved")
    if args.append:
        options = options_as_packed(args.target, options, args.rows)
    with bar() as shown:
        copying = meter(shown, "copying", lambda speed: f"{units.bytes_(speed)}/s")
        with source_of(args.source, args.target, options, args.append, copying) as source:
            packing = meter(shown, "packing", lambda speed: f"{units.per_s(speed)} rows/s")
            manifest = pack(source, args.target, settings, packing)
    size = sum(p.size_bytes for p in manifest.parts)
    out = console(stderr=False)
    out.print(f"{args.target}: {units.count(manifest.rows)} rows, {units.bytes_(size)}", markup=False, soft_wrap=True)
    if manifest.left_out:
        out.print(f"left out: {units.count(manifest.left_out)} (listed in {args.target / LEFT_OUT})",
                  markup=False, soft_wrap=True)  # fmt: skip
    return 0


def _inspect(args: argparse.Namespace) -> int:
    from hotlap.pack.manifest import read_manifest

    manifest, out = read_manifest(args.target), console(stderr=False)
    size = sum(p.size_bytes for p in manifest.parts)
    parts, chunks = len(manifest.parts), sum(len(p.chunks) for p in manifest.parts)
    out.print(f"{units.count(manifest.rows)} rows, {units.bytes_(size)}, {parts} parts of {chunks} chunks, "
              f"{units.count(manifest.left_out)} left out")  # fmt: skip
    table = Table(box=None, pad_edge=False)
    for title in ("column", "kind", "dtype", "shape"):
        table.add_column(title)
    for c in manifest.columns:
        numbers = c.kind in ("tensor", "ragged")
        shape = [*(["*"] if c.kind == "ragged" else []), *map(str, c.shape)] if numbers else []
        table.add_row(c.name, c.kind, c.dtype if numbers else "", " x ".join(shape))
    out.print(table)
    for key, value in manifest.metadata.items():
        many = (
            f"{len(value)} ({', '.join(map(str, value[:5]))}, …)"
            if isinstance(value, list) and len(value) > 5
            else value
        )
        out.print(f"{key}: {many}", markup=False, soft_wrap=True)
    return 0


def _verify(args: argparse.Namespace) -> int:
    from hotlap.pack.verifying import verify

    with bar() as shown:
        problems = verify(args.target, meter(shown, "verifying"))
    out = console(stderr=False)
    for problem in problems:
        out.print(problem, markup=False, soft_wrap=True)
    out.print(
        f"{args.target}: {'damaged' if problems else 'every byte is as it was written'}", markup=False, soft_wrap=True
    )
    return 1 if problems else 0


def _bench(args: argparse.Namespace) -> int:
    from hotlap.pack import Pack
    from hotlap.pack.ways import compare_ways, default_views

    pack, out = Pack(args.target), console(stderr=False)

    def tell(line: str) -> None:
        console().print(line, markup=False, soft_wrap=True)

    views = default_views(pack, args.crop, args.clip)
    found = compare_ways(pack, args.batch, views, args.budget, tell=tell, copies=not args.no_copies)
    table = Table(box=None, pad_edge=False)
    table.add_column("way")
    for title in ("samples/s", "", "CPU per\n1,000 samples"):
        table.add_column(title, justify="right")
    for way in found.table:
        cpu_s = None if way.cpu_s_per_sample is None else 1000 * way.cpu_s_per_sample
        ratio = units.ratio(way.samples_per_s / found.table[0].samples_per_s)
        table.add_row(way.name, units.per_s(way.samples_per_s), ratio, units.seconds(cpu_s))
    out.print(table)
    lines = [f"with {', '.join(found.libraries)}"] if found.libraries else []
    if found.rows < len(pack):
        rows = f"{units.count(found.rows)} of {units.count(len(pack))} rows"
        lines.append(f"All ways read the first {rows}, from memory: copies for other libraries hold no more. "
                     "The whole pack: --no-copies")  # fmt: skip
    lines += found.told
    if found.missing:
        lines.append(f"not installed here, so not timed: {', '.join(found.missing)}")
    for line in lines:
        out.print(line, markup=False, soft_wrap=True)
    return 0
