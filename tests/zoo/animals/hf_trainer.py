import os

os.environ["TOKENIZERS_PARALLELISM"] = "false"
import torch
import torch.nn.functional as F
from torch import nn
from toy import Blobs, net, write_losses
from transformers import PrinterCallback, Trainer, TrainingArguments

losses = []


class Task(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = net()

    def forward(self, x, labels=None):
        logits = self.net(x)
        loss = F.cross_entropy(logits, labels)
        if self.training:
            losses.append(loss.item())
        return {"loss": loss, "logits": logits}


def collate(rows):
    return {"x": torch.stack([x for x, _ in rows]), "labels": torch.stack([y for _, y in rows])}


args = TrainingArguments(
    "hf",
    num_train_epochs=3,
    per_device_train_batch_size=16,
    report_to=[],
    save_strategy="no",
    use_cpu=True,
    disable_tqdm=True,
    seed=0,
    logging_strategy="no",
    eval_strategy="epoch",
)
torch.manual_seed(0)
trainer = Trainer(Task(), args, train_dataset=Blobs(), eval_dataset=Blobs(32), data_collator=collate)
trainer.remove_callback(PrinterCallback)
trainer.train()
write_losses(losses)
