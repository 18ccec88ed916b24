"""Lightning's Trainer, with its own validation and checkpoints."""

import logging
import warnings

import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from task import BATCH, EPOCHS, RunLog, Student, loss_of, options, teacher, training_data
from torch.utils.data import DataLoader

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Distillation(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.student = Student()
        self.teacher = teacher()
        self.run_log = RunLog()

    def training_step(self, batch, _):
        images, labels = batch
        with torch.no_grad():
            target = self.teacher(images)
        loss = loss_of(self.student(images), target, labels)
        self.run_log.step(loss.item())
        return loss

    def validation_step(self, batch, _):
        images, labels = batch
        self.log("right", (self.student(images).argmax(1) == labels).float().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.student.parameters(), lr=1e-3)


def main():
    data, collate = training_data(options().data)
    loader = DataLoader(data, batch_size=BATCH, shuffle=True, collate_fn=collate)
    held = DataLoader(data, batch_size=BATCH, collate_fn=collate)
    trainer = L.Trainer(
        max_epochs=EPOCHS,
        accelerator="cpu",
        detect_anomaly=True,
        logger=False,
        callbacks=[ModelCheckpoint("checkpoints", save_last=True)],
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Distillation(), loader, held)


if __name__ == "__main__":
    main()
