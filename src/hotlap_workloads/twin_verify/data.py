"""The training set: pairs one by one as floats, or a batch of pairs at once as bytes, each image in it once."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from hotlap_workloads.engine.order import Draw
from hotlap_workloads.twin_verify.augment import AS_IT_IS, Look, apply_look, draw_look, normalised
from hotlap_workloads.twin_verify.pairs import ANCHOR, Groups, row_of
from hotlap_workloads.twin_verify.pixels import Pixels

__all__ = ["BatchOfPairs", "OnePair"]

Batch = dict[str, Tensor]


class _Pairs:
    """``count`` groups an epoch; ``person_of`` by the number of an image. ``seed`` is that of the looks."""

    def __init__(self, groups: Groups, count: int, pixels: Pixels, person_of: list[int], seed: int | None) -> None:
        self.groups, self.count, self.pixels, self.person_of, self.seed = groups, count, pixels, person_of, seed

    def __len__(self) -> int:
        return 2 * self.count

    def places(self, draw: Draw) -> tuple[int, int, list[tuple[int, int]], bool]:
        """Epoch, group, of both images their place in the group and their number, and whether they are one person's."""
        epoch, group, same = row_of(draw.row, self.count)
        images = self.groups(epoch, group)
        other = 1 if same else 2
        return epoch, group, [(ANCHOR, images[ANCHOR]), (other, images[other])], same

    def look(self, epoch: int, group: int, place: int) -> Look:
        return AS_IT_IS if self.seed is None else draw_look(self.seed, epoch, group, place)


class OnePair(_Pairs):
    """A pair: its images decoded, resized, normalised and augmented here, one after the other."""

    def __getitem__(self, draw: Draw) -> Batch:
        epoch, group, places, same = self.places(draw)
        left, right = (
            apply_look(normalised(self.pixels([number])[0]), self.look(epoch, group, place)) for place, number in places
        )
        numbers = [number for _, number in places]
        return {
            "left": left,
            "right": right,
            "same": torch.tensor(float(same)),
            "number": torch.tensor(numbers),
            "person": torch.tensor([self.person_of[number] for number in numbers]),
        }


class BatchOfPairs(_Pairs):
    """A batch: ``images`` as bytes, each once; pair i is (``images[left[i]]``, ``images[right[i]]``).

    The anchor of both pairs of a group is one image here. The device makes floats of them and augments.
    """

    def __getitem__(self, draw: Draw) -> Batch:
        return self.__getitems__([draw])

    def __getitems__(self, draws: Sequence[Draw]) -> Batch:
        row: dict[tuple[int, int, int], int] = {}
        numbers: list[int] = []
        looks: list[Look] = []
        sides: list[list[int]] = []
        labels = []
        for draw in draws:
            epoch, group, places, same = self.places(draw)
            for place, number in places:
                if (epoch, group, place) not in row:
                    row[epoch, group, place] = len(numbers)
                    numbers.append(number)
                    looks.append(self.look(epoch, group, place))
            sides.append([row[epoch, group, place] for place, _ in places])
            labels.append(float(same))
        side = torch.tensor(sides)
        people = [self.person_of[number] for number in numbers]
        return {
            "images": self.pixels(numbers),
            "looks": torch.tensor(looks),
            "left": side[:, 0],
            "right": side[:, 1],
            "same": torch.tensor(labels),
            "number": torch.tensor(numbers)[side],
            "person": torch.tensor(people)[side],
        }
