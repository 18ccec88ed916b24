"""Sequence classification with the Hugging Face Trainer."""

import argparse
import warnings
from pathlib import Path

import torch
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

warnings.filterwarnings("ignore")


class Reviews(Dataset):
    def __init__(self, count=800, length=16):
        generator = torch.Generator().manual_seed(23)
        self.labels = torch.randint(0, 2, (count,), generator=generator)
        common = torch.randint(100, 900, (count, length), generator=generator)
        marked = torch.rand(count, length, generator=generator) < 0.2
        self.ids = torch.where(marked, self.labels[:, None] * 10 + common % 10, common)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.labels[i]}


class PrintLoss(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        if logs and "loss" in logs:
            print(f"step {state.global_step} loss {float(logs['loss']):.4f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--out", type=Path, default=Path("checkpoints"))
    args = parser.parse_args()
    config = BertConfig(
        vocab_size=9000, hidden_size=96, num_hidden_layers=1, num_attention_heads=4, intermediate_size=192
    )
    settings = TrainingArguments(
        output_dir=str(args.out),
        max_steps=args.steps,
        per_device_train_batch_size=16,
        learning_rate=5e-4,
        logging_steps=20,
        logging_first_step=True,
        save_steps=2,
        save_total_limit=2,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        seed=0,
    )
    trainer = Trainer(BertForSequenceClassification(config), settings, train_dataset=Reviews(), callbacks=[PrintLoss()])
    trainer.train()


if __name__ == "__main__":
    main()
