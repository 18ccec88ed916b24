"""The scores of a run's model on its trials, in a process of its own; ``quality.py`` starts these.

python bench/quality_scores.py '{"workload": …, "out": …, "data": …, "heavy": true}'      writes OUT/scores.npz

Only trainings in ``READERS`` have scores that hang on identities; for any other nothing is written.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hotlap_workloads.engine.checkpoint import load
from hotlap_workloads.engine.stepper import autocast
from hotlap_workloads.session import Request, opened, settings_of_run

__all__ = ["FILE", "READERS", "joined", "main"]

FILE = "scores.npz"
Found = tuple[Any, Any, list[Any], list[Any]]
"""Scores, whether the same, and whom each trial compares: identity on the left, identity on the right."""


def speaker_verify(task: Any, heavy: bool) -> Found:
    """A speaker is the first folder on the way to a recording, as in VoxCeleb's lists (``id00012/video/00001.wav``)."""
    scorer = task.scorer(heavy)
    root = os.path.commonpath([str(path) for path in scorer.trials.paths])
    speakers = [path.relative_to(root).parts[0] for path in scorer.trials.paths]
    left, right = ([speakers[i] for i in side] for side in (scorer.trials.left, scorer.trials.right))
    return scorer.scores(), scorer.trials.same, left, right


def twin_verify(task: Any, heavy: bool) -> Found:
    """The data set knows the person of an image by its number."""
    scorer = task.scorer(heavy)
    left, right = ([task.train_set.person_of[i] for i in side] for side in (scorer.trials.left, scorer.trials.right))
    return scorer.scores(), scorer.trials.same, left, right


def face_distill(task: Any, heavy: bool) -> Found:
    """All sets of pairs one behind the other. Files of pairs name nobody: whom "same" pairs join is one person."""
    sets = [one for one in task.sets(heavy) if hasattr(one, "left")]
    if not sets:
        raise SystemExit("None of these evaluations compares pairs: leave --heavy out.")
    scores, same, left, right = [], [], [], []
    for one in sets:
        plain, mirrored = task.embedder(one.squares, one.name)
        both = plain + mirrored
        both /= np.linalg.norm(both, axis=1, keepdims=True)
        scores.append(np.einsum("td,td->t", both[one.left], both[one.right]))
        same += [bool(value) for value in one.same]
        people = joined(len(one.squares), one.left, one.right, one.same)
        left += [(one.name, people[i]) for i in one.left]
        right += [(one.name, people[i]) for i in one.right]
    return np.concatenate(scores), same, left, right


def joined(count: int, left: Sequence[int], right: Sequence[int], same: Sequence[Any]) -> list[int]:
    """A number for each of ``count`` items, equal for those that trials of the same person join, directly or not."""
    first = list(range(count))

    def root(item: int) -> int:
        while first[item] != item:
            first[item] = first[first[item]]
            item = first[item]
        return item

    for a, b, is_same in zip(left, right, same, strict=True):
        if is_same:
            first[root(int(a))] = root(int(b))
    return [root(item) for item in range(count)]


READERS: dict[str, Callable[[Any, bool], Found]] = {
    "speaker_verify": speaker_verify,
    "twin_verify": twin_verify,
    "face_distill": face_distill,
}


def main() -> None:
    """Score with the arithmetic that the run's own settings have."""
    asked = json.loads(sys.argv[1])
    out, say = Path(asked["out"]), partial(print, file=sys.stderr)
    request = Request(asked["workload"], out, data=Path(asked["data"]) if asked["data"] else None)
    settings = settings_of_run(request)
    with opened(request, settings, say) as trainer:
        if asked["workload"] not in READERS:
            say(f"No scores of trials are known of {asked['workload']}: its verdict will rest on seeds alone.")
            return
        state = load(out, say)
        if state is None:
            raise SystemExit(f"{out} holds no checkpoint.")
        objective = trainer.stepper.objective
        objective.load_state_dict(state["objective"])
        objective.eval()
        with torch.inference_mode(), autocast(settings, trainer.context.device):
            scores, same, left, right = READERS[asked["workload"]](trainer.task, asked["heavy"])
        number = {person: i for i, person in enumerate(sorted({*left, *right}))}
        people = {"left": [number[who] for who in left], "right": [number[who] for who in right]}
        np.savez(out / FILE, scores=np.asarray(scores, np.float64), same=np.asarray(same, bool), **people)


if __name__ == "__main__":
    main()
