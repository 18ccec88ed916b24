"""Started by torchrun: trains the toy on two ranks into the folder given."""

from __future__ import annotations

import sys
from pathlib import Path

from toy import trainer

from hotlap_workloads.engine.ranks import Ranks, joined
from hotlap_workloads.engine.settings import EngineSettings


def main(ranks: Ranks) -> None:
    settings = EngineSettings(
        epochs=2, batch_size=16 // ranks.world, max_steps=int(sys.argv[2]), print_every_steps=1, on_nan="skip"
    )
    made = trainer(Path(sys.argv[1]), settings, bad_row=int(sys.argv[3]), ranks=ranks)
    result = made.run()
    total = sum(float(p.detach().double().sum()) for p in made.stepper.objective.parameters())
    assert ranks.gather(total) == [total] * ranks.world, "ranks hold different weights"
    seen = str([buffer.tolist() for buffer in made.stepper.objective.buffers()])
    assert ranks.gather(seen) == [seen] * ranks.world, "ranks are evaluated with different statistics"
    if ranks.first:
        print(f"skipped {result.skipped} samples {result.samples}")


with joined(on_gpu=False) as ranks:
    main(ranks)
