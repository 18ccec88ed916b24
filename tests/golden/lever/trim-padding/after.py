from torch.utils.data import DataLoader


def batches(tokenizer, texts, labels):
    def collate(rows):
        ids = tokenizer([texts[row] for row in rows], padding="longest", return_tensors="pt")
        return {**ids, "labels": labels[rows]}

    return DataLoader(range(len(texts)), batch_size=32, shuffle=True, collate_fn=collate)
