"""On each of two ranks: centres moved by two ranks, then the training by its command line with the arguments given."""

from __future__ import annotations

import sys
from contextlib import nullcontext

import torch

from hotlap_workloads import session, train
from hotlap_workloads.engine.ranks import Ranks, joined
from hotlap_workloads.parts.face_heads import MovedCentres


def centres_are_shared(ranks: Ranks) -> None:
    """Two ranks with three samples each move as one with all six; a class is on both ranks."""
    torch.manual_seed(0)
    student, teacher, labels = torch.randn(6, 8), torch.randn(6, 8), torch.tensor([0, 1, 2, 2, 3, 4])
    head = MovedCentres("arcface", 8, 5, 64.0, 0.45)
    alone = head.centres.detach().clone()
    mine = slice(3 * ranks.rank, 3 * ranks.rank + 3)
    weight = head.move(student[mine], teacher[mine], labels[mine])
    assert weight.shape == (3,)
    found = ranks.gather((head.centres.detach(), weight))
    torch.testing.assert_close(found[0][0], found[1][0])
    cosine = torch.nn.functional.cosine_similarity
    wanted = (cosine(student, teacher) * cosine(alone[labels], teacher)).clamp(1e-6, 1)
    torch.testing.assert_close(torch.cat([found[0][1], found[1][1]]), wanted)
    unit = torch.nn.functional.normalize(teacher)
    moved = wanted[:, None] * alone[labels] + (1 - wanted[:, None]) * unit
    torch.testing.assert_close(head.centres.detach()[2], (moved[2] + moved[3]) / 2)
    torch.testing.assert_close(head.centres.detach()[4], moved[5])


with joined(on_gpu=False) as ranks:
    centres_are_shared(ranks)
    session.joined = lambda on_gpu: nullcontext(ranks)  # a second group cannot be joined in one process
    code = train.main(sys.argv[1:])
sys.exit(code)
