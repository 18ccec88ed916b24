"""The fast training in Lightning, as its documentation advises for speed.

Mixed precision by the Trainer's flag, the scheduler by step, losses logged every few steps and not shown, no progress
bar, no model summary, no sanity check, the workers and pinned memory of the loader.
"""

from __future__ import annotations

from typing import Any

import lightning as L
import torch
from lightning.pytorch.loggers import CSVLogger
from parts import Training, asked_for

PRECISION = {"off": "32-true", "bf16": "bf16-mixed", "fp16": "16-mixed"}


class Module(L.LightningModule):
    """The objective, its optimiser and schedule."""

    def __init__(self, training: Training, epoch_steps: int) -> None:
        super().__init__()
        self.objective = training.task.objective
        self._made = training.optimizer(epoch_steps)

    def training_step(self, batch: Any, number: int) -> torch.Tensor:
        said = self.objective(batch)
        for name, value in said.items():
            self.log(name, value)
        loss: torch.Tensor = said["loss"]
        return loss

    def configure_optimizers(self) -> Any:
        optimizer, schedule = self._made
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


class Steps(L.Callback):
    """Tells the stopwatch of each step."""

    def __init__(self, training: Training) -> None:
        self._training = training
        self._micro: list[torch.Tensor] = []

    def on_train_start(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        self._training.seed()

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, number: int) -> None:
        self._micro.append(outputs["loss"])
        if len(self._micro) == self._training.settings.accumulate:
            self._training.stopwatch.step(torch.stack(self._micro).sum())  # each is its share of the mean already
            self._micro = []


def main() -> None:
    training = asked_for()
    s, device = training.settings, training.context.device
    loader = training.loader()
    trainer = L.Trainer(
        accelerator="gpu" if device.type == "cuda" else "cpu",
        devices=1,
        precision=PRECISION[s.precision],
        max_steps=s.max_steps,
        max_epochs=-1,
        accumulate_grad_batches=s.accumulate,
        gradient_clip_val=s.clip_norm or None,
        benchmark=s.cudnn_benchmark,
        callbacks=[Steps(training)],
        logger=CSVLogger(training.context.out),
        log_every_n_steps=s.print_every_steps,
        limit_val_batches=0,
        num_sanity_val_steps=0,
        use_distributed_sampler=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Module(training, len(loader) // s.accumulate), loader)
    training.done()


if __name__ == "__main__":
    main()
