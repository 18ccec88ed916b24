"""Started as torchrun does: two ranks search a batch for a loss of both together; memory runs out on one alone."""

from __future__ import annotations

import signal
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from toy import Objective, trainer

from hotlap_workloads.engine.batch_search import find_batch_size
from hotlap_workloads.engine.ranks import Ranks, joined
from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.parts.face_heads import _of_all_ranks
from hotlap_workloads.tiny_detr.losses import _mean_over_ranks

signal.alarm(60)  # ranks that wait for each other do so for a day


class Shared(Objective):
    """Like the losses of the trainings. More than 20 samples are too many for the first rank."""

    most = 20

    def forward(self, batch: tuple[torch.Tensor, torch.Tensor]) -> dict[str, torch.Tensor]:
        if len(batch[1]) > self.most:
            raise torch.cuda.OutOfMemoryError
        (gathered,) = _of_all_ranks(batch[0])
        self.count, self.rows = float(_mean_over_ranks(len(batch[1]), batch[0].device)), len(gathered)
        return super().forward(batch)


def main(ranks: Ranks) -> None:
    with TemporaryDirectory() as out:
        made = trainer(Path(out), EngineSettings(batch_size=2), ranks=ranks)
    made.task.objective = Shared(0.0)
    made.task.objective.most = 20 if ranks.first else 40
    found = find_batch_size(made.task, made.settings, made.context, lambda device: 0.5)
    made.task.objective((torch.zeros(3, 1, 4, 4), torch.zeros(3, dtype=torch.long)))  # afterwards they share again
    if ranks.first:
        print(f"found {found}, then {made.task.objective.rows} rows, {made.task.objective.count} a rank")
    assert ranks.gather(found) == [found] * ranks.world


with joined(on_gpu=False) as ranks:
    main(ranks)
