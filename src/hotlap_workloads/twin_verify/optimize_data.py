"""Compute the pairs of every epoch and pack the images, once per image, before training.

python -m hotlap_workloads.twin_verify.optimize_data --output-dir optimized \
    --dataset-info twins/dataset_infor.json --twin-pairs twins/twin_pairs_infor.json
python -m hotlap_workloads.train twin_verify --preset kaggle_p100_data_optimized --data optimized
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from hotlap_workloads.catalogue import find_preset, find_workload
from hotlap_workloads.engine.machine import read_machine
from hotlap_workloads.engine.overrides import override, parse_pairs
from hotlap_workloads.engine.quarantine import quarantined
from hotlap_workloads.engine.task import Context
from hotlap_workloads.errors import SettingsError, ended
from hotlap_workloads.parts.writing import writing_into
from hotlap_workloads.twin_verify.optimized import write_optimized
from hotlap_workloads.twin_verify.pairs import PairLaw, compute_pairs
from hotlap_workloads.twin_verify.pixels import pack_images, read_sized
from hotlap_workloads.twin_verify.settings import TwinSettings
from hotlap_workloads.twin_verify.splits import read_people

__all__ = ["main", "optimize"]


def optimize(s: TwinSettings, data: Path, out: Path, processes: int, quarantine: bool) -> str:
    """Write ``out``; say what is in it."""
    album, splits = read_people(s, data)
    with writing_into(out, "--output-dir"):
        context = Context(torch.device("cpu"), out, quarantine=quarantine)
        album = album.without(quarantined(album.paths, partial(read_sized, size=s.image_size), context))
    law = PairLaw(album, splits["train"], s.seed, s.twin_share)
    law.check(data)
    pairs = s.pairs_per_epoch or 2 * sum(len(album.images_of[p]) for p in splits["train"])
    whole = pairs // s.batch_size * s.batch_size // 2
    if whole == 0:
        raise SettingsError(f"{pairs} pairs give no batch of {s.batch_size}.", "Lower --batch-size.")
    table = compute_pairs(law, s.epochs, whole)
    with writing_into(out, "--output-dir"):
        pack_images(album, s.image_size, out / "images.pack", processes)
        write_optimized(out, album, splits, table, s)
    return (
        f"{len(album.used())} images of {s.image_size} pixels and {s.epochs} epochs of {2 * whole} pairs "
        f"({2 * whole // s.batch_size} batches of {s.batch_size}) are in {out}."
    )


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m hotlap_workloads.twin_verify.optimize_data",
        description="Compute the pairs of every epoch and pack the images, once per image, before training.",
    )
    parser.add_argument("--dataset-info", type=Path, required=True, help="{identity: [image, …]}")
    parser.add_argument("--twin-pairs", type=Path, required=True, help="[[identity, identity], …], in the same folder")
    parser.add_argument("--output-dir", type=Path, required=True, help="give this to training as --data")
    parser.add_argument(
        "--preset", default="kaggle_p100_data_optimized", help="whose image size, seed, epochs and batch count"
    )
    parser.add_argument("--num-workers", type=int, default=1, help="processes that decode and pack (default 1)")
    parser.add_argument("--batch-size", type=int, help="an epoch gets a whole number of batches of so many pairs")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="one setting over the preset")
    parser.add_argument(
        "--quarantine", action="store_true", help="leave unreadable images out, list them in quarantine.txt"
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Pack; the exit code says how it ended."""
    return ended(partial(packed, arguments().parse_args(argv)))


def packed(args: argparse.Namespace) -> int:
    found = find_preset(find_workload("twin_verify"), args.preset, read_machine())
    s = override(found, parse_pairs(args.set), "--set")
    assert isinstance(s, TwinSettings)
    if args.batch_size is not None:
        s = replace(s, batch_size=args.batch_size)
    s = replace(s, dataset_info=args.dataset_info.name, twin_pairs=args.twin_pairs.name)
    s.check()
    if args.num_workers < 1:
        raise SettingsError(f"--num-workers={args.num_workers} is less than 1.")
    if args.dataset_info.parent.resolve() != args.twin_pairs.parent.resolve():
        raise SettingsError(f"{args.dataset_info} and {args.twin_pairs} are not in the same folder.")
    print(optimize(s, args.dataset_info.parent, args.output_dir, args.num_workers, args.quarantine), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
