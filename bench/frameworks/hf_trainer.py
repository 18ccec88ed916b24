"""The Hugging Face Trainer, with its own evaluation and checkpoints."""

import os
import warnings

os.environ["TOKENIZERS_PARALLELISM"] = "false"
import torch
from task import BATCH, EPOCHS, RunLog, Student, loss_of, options, teacher, training_data
from torch import nn
from transformers import PrinterCallback, Trainer, TrainingArguments

warnings.filterwarnings("ignore")


class Distillation(nn.Module):
    def __init__(self):
        super().__init__()
        self.student = Student()
        self.teacher = teacher()
        self.run_log = RunLog()

    def forward(self, images, labels):
        with torch.no_grad():
            target = self.teacher(images)
        logits = self.student(images)
        loss = loss_of(logits, target, labels)
        if self.training:
            self.run_log.step(loss.item())
        return {"loss": loss, "logits": logits}


class Named:
    """A collate function whose batch has names, which the Trainer wants."""

    def __init__(self, collate):
        self.collate = collate or torch.utils.data.default_collate

    def __call__(self, rows):
        images, labels = self.collate(rows)
        return {"images": images, "labels": labels}


def main():
    torch.autograd.set_detect_anomaly(True)
    data, collate = training_data(options().data)
    settings = TrainingArguments(
        "out",
        num_train_epochs=EPOCHS,
        per_device_train_batch_size=BATCH,
        learning_rate=1e-3,
        report_to=[],
        logging_strategy="no",
        eval_strategy="epoch",
        save_strategy="epoch",
        remove_unused_columns=False,
        disable_tqdm=True,
        use_cpu=True,
        seed=0,
    )
    trainer = Trainer(Distillation(), settings, train_dataset=data, eval_dataset=data, data_collator=Named(collate))
    trainer.remove_callback(PrinterCallback)
    trainer.train()


if __name__ == "__main__":
    main()
