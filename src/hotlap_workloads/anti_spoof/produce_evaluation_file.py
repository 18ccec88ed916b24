"""Write the scores of a run's model, as the organisers' tools read them: lines ``UTT SRC KEY SCORE``.

python -m hotlap_workloads.anti_spoof.produce_evaluation_file --out runs/anti_spoof-fast --data DIR
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

from hotlap_workloads.anti_spoof.clips import BONA_FIDE, Clips
from hotlap_workloads.anti_spoof.scoring import Scores
from hotlap_workloads.anti_spoof.settings import SpoofSettings
from hotlap_workloads.anti_spoof.workload import SpoofTask
from hotlap_workloads.engine.overrides import parse_pairs
from hotlap_workloads.errors import WorkloadError, ended
from hotlap_workloads.session import Request, data_of_run, opened, settings_of_run

__all__ = ["main", "write_scores"]


def main(argv: Sequence[str] | None = None) -> int:
    """Write the file and print the metrics as JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m hotlap_workloads.anti_spoof.produce_evaluation_file",
        description="Write lines `UTT SRC KEY SCORE` with the scores of a run's model.",
    )
    parser.add_argument("--out", type=Path, required=True, help="the run's folder, with its checkpoint")
    parser.add_argument("--data", type=Path, help="the data set's folder; without it, what the run was trained on")
    parser.add_argument("--part", choices=("eval", "dev"), default="eval", help="which recordings (default eval)")
    parser.add_argument("--file", type=Path, help="where to write (default: eval_output in the run's folder)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change a setting of the run")
    parser.add_argument("--quarantine", action="store_true", help="leave unreadable files out")
    return ended(partial(produced, parser.parse_args(argv)))


def produced(args: argparse.Namespace) -> int:
    values = parse_pairs(args.set)
    request = Request("anti_spoof", args.out, values=values, data=args.data, quarantine=args.quarantine)
    request = replace(request, data=data_of_run(request))
    settings = cast(SpoofSettings, settings_of_run(request))
    with opened(request, settings, lambda line: print(line, file=sys.stderr)) as trainer:
        task = cast(SpoofTask, trainer.task)
        scorer = task.scorer(args.part)

        def scores() -> Scores:
            with task.final_weights():
                return scorer.scores()

        found = trainer.with_checkpoint(scores)
        if trainer.context.ranks.first:
            file = args.file or args.out / settings.eval_output
            write_scores(file, scorer.clips, found)
            print(json.dumps({"file": str(file), **scorer.measured(found)}))
    return 0


def write_scores(file: Path, clips: Clips, scores: Scores) -> None:
    """Whole or not at all: under another name first."""
    words = ["bonafide" if key == BONA_FIDE else "spoof" for key in clips.keys]
    rows = zip(clips.names, clips.sources, words, scores.tolist(), strict=True)
    lines = [f"{utt} {src} {key} {score!r}" for utt, src, key, score in rows]
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_name(f"{file.name}.new")
        new.write_text("\n".join(lines) + "\n", encoding="utf-8")
        os.replace(new, file)
    except OSError as err:
        raise WorkloadError(f"{file} cannot be written: {err.strerror}.", "--file names another place.") from err


if __name__ == "__main__":
    sys.exit(main())
