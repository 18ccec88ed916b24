"""Masked classification with the Hugging Face Trainer and a word-piece collator written by hand."""

import argparse
import random
import warnings

import torch
from torch.utils.data import Dataset
from transformers import (
    DistilBertConfig,
    DistilBertForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

warnings.filterwarnings("ignore")


def make_texts(count=1200):
    rng = random.Random(29)
    stems = ["".join(rng.choices("bcdfglmnprst", k=3)) + rng.choice(["a", "e", "o"]) for _ in range(120)]
    ends = ["ing", "ed", "ness", "fully", "s"]
    texts = []
    for i in range(count):
        pool = stems[:80] if i % 2 else stems[40:]
        texts.append((" ".join(rng.choice(pool) + rng.choice(ends) for _ in range(120)), i % 2))
    return texts, ["[PAD]", "[UNK]", *stems, *(f"##{e}" for e in ends)]


class Texts(Dataset):
    def __init__(self, texts, collator):
        self.texts = [(collator.encode(text), label) for text, label in texts]

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        row, label = self.texts[i]
        return {"row": row, "label": label}


class WordPieceCollator:
    def __init__(self, pieces, length=40):
        self.ids = {piece: k for k, piece in enumerate(pieces)}
        self.length = length

    def pieces_of(self, word):
        found, start = [], 0
        while start < len(word):
            end = len(word)
            while end > start:
                piece = word[start:end] if start == 0 else "##" + word[start:end]
                if piece in self.ids:
                    found.append(self.ids[piece])
                    break
                end -= 1
            else:
                return [1]
            start = end
        return found

    def encode(self, text):
        row = [piece for word in text.split() for piece in self.pieces_of(word)][: self.length]
        return torch.tensor(row + [0] * (self.length - len(row)))

    def __call__(self, features):
        ids = torch.stack([feature["row"] for feature in features])
        return {
            "input_ids": ids,
            "attention_mask": (ids > 0).long(),
            "labels": torch.tensor([f["label"] for f in features]),
        }


class PrintLoss(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        if logs and "loss" in logs:
            print(f"step {state.global_step} loss {float(logs['loss']):.4f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    args = parser.parse_args()
    texts, pieces = make_texts()
    config = DistilBertConfig(vocab_size=len(pieces), dim=32, n_layers=1, n_heads=2, hidden_dim=64)
    settings = TrainingArguments(
        output_dir="out",
        max_steps=args.steps,
        per_device_train_batch_size=64,
        learning_rate=2e-3,
        logging_steps=20,
        logging_first_step=True,
        save_strategy="no",
        report_to=[],
        remove_unused_columns=False,
        disable_tqdm=True,
        use_cpu=True,
        seed=0,
    )
    collator = WordPieceCollator(pieces)
    Trainer(
        DistilBertForSequenceClassification(config),
        settings,
        data_collator=collator,
        train_dataset=Texts(texts, collator),
        callbacks=[PrintLoss()],
    ).train()


if __name__ == "__main__":
    main()
