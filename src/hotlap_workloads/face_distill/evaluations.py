"""What the student is judged by: verification trials, templates in the form of IJB, and search in a gallery."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hotlap_workloads.errors import DataError
from hotlap_workloads.face_distill.squares import Squares
from hotlap_workloads.parts.face_metrics import FOLDS, fold_accuracies, rank_rates, template_embeddings, unit
from hotlap_workloads.parts.verification import both_kinds, eer, left_of, tar_at_far

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

    def checked(self, where: object) -> VerificationSet:
        """Itself, or an error that names the file where the trials are of one kind alone, or too few."""
        both_kinds(self.same, where)
        if len(self.same) < FOLDS:
            raise DataError(where, f"has {len(self.same)} trials, too few for {FOLDS} folds.")
        return self

    def without(self, bad: set[Path]) -> VerificationSet:
        kept = _kept(self.squares, bad)
        rows = np.flatnonzero(kept[self.left] & kept[self.right])
        same = np.asarray(self.same)[rows].tolist()
        number = np.cumsum(kept) - 1
        left, right, squares = number[self.left[rows]], number[self.right[rows]], _only(self.squares, kept)
        return replace(self, squares=squares, left=left, right=right, same=same).checked(_left(self.squares, bad))

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

    def checked(self, where: object) -> TemplateSet:
        """Itself, or an error that names the file where the pairs are of one kind alone."""
        both_kinds(self.same, where, "pairs of templates of one person")
        return self

    def without(self, bad: set[Path]) -> TemplateSet:
        kept = _kept(self.squares, bad)
        templates = self.templates[kept]
        there = np.isin(self.left, templates) & np.isin(self.right, templates)
        return replace(
            self,
            squares=_only(self.squares, kept),
            templates=templates,
            media=self.media[kept],
            weights=self.weights[kept],
            left=self.left[there],
            right=self.right[there],
            same=self.same[there],
        ).checked(_left(self.squares, bad))

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

    def checked(self, where: object) -> GallerySet:
        """Itself, or an error that names the folder where nobody asks, or somebody who is not in the gallery."""
        missing = np.setdiff1d(self.persons[: self.probes], self.persons[self.probes :])
        if not self.probes or len(missing):
            who = f", the first is {missing[0]}" if len(missing) else ""
            what = f"has {self.probes} probes, and {len(missing)} persons of them are not in the gallery{who}"
            raise DataError(where, f"{what}.")
        return self

    def without(self, bad: set[Path]) -> GallerySet:
        """Also without the probes of those of whom no photo is left in the gallery."""
        kept, at = _kept(self.squares, bad), self.probes
        kept[:at] &= np.isin(self.persons[:at], self.persons[at:][kept[at:]])
        left = replace(self, squares=_only(self.squares, kept), persons=self.persons[kept], probes=int(kept[:at].sum()))
        return left.checked(_left(self.squares, bad))

    def measure(self, embed: Embed) -> dict[str, float]:
        plain, mirrored = embed(self.squares, self.name)
        both, at = plain + mirrored, self.probes
        rates = rank_rates(both[:at], self.persons[:at], both[at:], self.persons[at:], (1, 5))
        return {f"{self.name}_rank{rank}": rate for rank, rate in zip((1, 5), rates, strict=True)}


def _left(squares: Squares, bad: set[Path]) -> str:
    return left_of(map(squares.photos.name, range(len(squares))), bad)


def _kept(squares: Squares, bad: set[Path]) -> NDArray[np.bool_]:
    """Which rows can be read."""
    return np.isin(np.arange(len(squares)), squares.kept_rows(bad))


def _only(squares: Squares, kept: NDArray[np.bool_]) -> Squares:
    return squares.only(np.flatnonzero(kept).tolist())
