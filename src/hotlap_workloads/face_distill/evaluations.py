"""What the student is judged by: verification trials, templates in the form of IJB, and search in a gallery."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hotlap_workloads.errors import DataError
from hotlap_workloads.face_distill.squares import Squares
from hotlap_workloads.parts.face_metrics import FOLDS, fold_accuracies, rank_rates, template_embeddings, unit
from hotlap_workloads.parts.verification import eer, tar_at_far

__all__ = ["Evaluation", "GallerySet", "TemplateSet", "VerificationSet"]

Embed = Callable[[Squares, str], tuple[NDArray[np.float32], NDArray[np.float32]]]
Numbers = NDArray[np.int64]


class Evaluation(Protocol):
    """One set of photos with its questions."""

    @property
    def squares(self) -> Squares: ...

    def without(self, bad: set[Path]) -> Evaluation:
        """Without what hangs on photos that cannot be read."""
        ...

    def measure(self, embed: Embed) -> dict[str, float]:
        """Metrics; names begin with that of the set."""
        ...


@dataclass(frozen=True)
class VerificationSet:
    """Trial i asks whether photos ``left[i]`` and ``right[i]`` show one person."""

    name: str
    squares: Squares
    left: Numbers
    right: Numbers
    same: Sequence[int | bool]

    def checked(self, where: Path) -> VerificationSet:
        """Itself, or an error that names the file where the trials are too few, or of one kind alone."""
        same = sum(map(bool, self.same))
        if len(self.same) < FOLDS or not 0 < same < len(self.same):
            what = f"has {len(self.same)} trials, {same} of them of one person"
            raise DataError(where, f"{what}: too few for {FOLDS} folds with trials of both kinds.")
        return self

    def without(self, bad: set[Path]) -> VerificationSet:
        squares, number, kept = _kept(self.squares, bad)
        rows = np.flatnonzero(kept[self.left] & kept[self.right])
        same = np.asarray(self.same)[rows].tolist()
        left, right = number[self.left[rows]], number[self.right[rows]]
        return replace(self, squares=squares, left=left, right=right, same=same).checked(_one_of(bad, self.squares))

    def measure(self, embed: Embed) -> dict[str, float]:
        """Accuracy over ten folds of the sum of a photo's and its mirror image's embeddings; XNorm is their length."""
        plain, mirrored = embed(self.squares, self.name)
        both = plain + mirrored
        folds = fold_accuracies(both[self.left], both[self.right], self.same)
        cosine = np.einsum("td,td->t", unit(both)[self.left], unit(both)[self.right])
        lengths = np.linalg.norm(np.concatenate([plain, mirrored]), axis=1)
        return {
            f"{self.name}_accuracy": float(folds.mean()),
            f"{self.name}_accuracy_std": float(folds.std()),
            f"{self.name}_eer": eer(cosine, self.same),
            f"{self.name}_xnorm": float(lengths.mean()),
        }


@dataclass(frozen=True)
class TemplateSet:
    """Photos belong to templates; pair i asks whether templates ``left[i]`` and ``right[i]`` show one person.

    ``weights`` is how sure the detector was of each photo; blurred and covered faces count less.
    """

    name: str
    squares: Squares
    templates: Numbers
    media: Numbers
    weights: NDArray[np.float64]
    left: Numbers
    right: Numbers
    same: Numbers
    fars: tuple[float, ...]

    def checked(self, where: Path) -> TemplateSet:
        """Itself, or an error that names the file where the pairs are of one kind alone."""
        same = int(np.count_nonzero(self.same))
        if not 0 < same < len(self.same):
            what = f"has {len(self.same)} pairs of templates, {same} of them of one person"
            raise DataError(where, f"{what}: both kinds are needed.")
        return self

    def without(self, bad: set[Path]) -> TemplateSet:
        squares, _, kept = _kept(self.squares, bad)
        templates = self.templates[kept]
        there = np.isin(self.left, templates) & np.isin(self.right, templates)
        return replace(
            self,
            squares=squares,
            templates=templates,
            media=self.media[kept],
            weights=self.weights[kept],
            left=self.left[there],
            right=self.right[there],
            same=self.same[there],
        ).checked(_one_of(bad, self.squares))

    def measure(self, embed: Embed) -> dict[str, float]:
        plain, mirrored = embed(self.squares, self.name)
        vectors, row = template_embeddings((plain + mirrored) * self.weights[:, None], self.templates, self.media)
        scores = np.empty(len(self.same))
        for begin in range(0, len(scores), 100_000):  # IJB-C has 15 million pairs
            part = slice(begin, begin + 100_000)
            left, right = ([row[t] for t in side[part].tolist()] for side in (self.left, self.right))
            scores[part] = np.einsum("td,td->t", vectors[left], vectors[right])
        return {f"{self.name}_tar_at_far_{far:.0e}": tar_at_far(scores, self.same, far) for far in self.fars}


@dataclass(frozen=True)
class GallerySet:
    """Who is on each probe? ``persons`` are those of all photos, -1 for strangers; the first ``probes`` photos ask."""

    name: str
    squares: Squares
    persons: Numbers
    probes: int

    def checked(self, where: Path) -> GallerySet:
        """Itself, or an error that names the folder where nobody asks, or somebody who is not in the gallery."""
        missing = np.setdiff1d(self.persons[: self.probes], self.persons[self.probes :])
        if not self.probes or len(missing):
            who = f", the first is {missing[0]}" if len(missing) else ""
            what = f"has {self.probes} probes, and {len(missing)} persons of them are not in the gallery{who}"
            raise DataError(where, f"{what}.")
        return self

    def without(self, bad: set[Path]) -> GallerySet:
        squares, _, kept = _kept(self.squares, bad)
        left = replace(self, squares=squares, persons=self.persons[kept], probes=int(kept[: self.probes].sum()))
        return left.checked(_one_of(bad, self.squares))

    def measure(self, embed: Embed) -> dict[str, float]:
        plain, mirrored = embed(self.squares, self.name)
        both, at = plain + mirrored, self.probes
        rates = rank_rates(both[:at], self.persons[:at], both[at:], self.persons[at:], (1, 5))
        return {f"{self.name}_rank{rank}": rate for rank, rate in zip((1, 5), rates, strict=True)}


def _one_of(bad: set[Path], squares: Squares) -> Path:
    """The first photo of the set that cannot be read, or the first of all where every one can."""
    names = (squares.photos.name(row) for row in range(len(squares)))
    return next((name for name in names if name in bad), squares.photos.name(0))


def _kept(squares: Squares, bad: set[Path]) -> tuple[Squares, Numbers, NDArray[Any]]:
    """The readable squares, the new number of each old row, and which rows stay."""
    rows = squares.kept_rows(bad)
    if not rows:
        raise DataError(squares.photos.name(0), "and all others of its set cannot be read.")
    kept = np.zeros(len(squares), bool)
    kept[rows] = True
    return squares.only(rows), np.cumsum(kept) - 1, kept
