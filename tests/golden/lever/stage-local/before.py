import torch
from PIL import Image


class Faces(torch.utils.data.Dataset):
    def __init__(self, rows, to_tensor):
        self.rows, self.to_tensor = rows, to_tensor

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        path, label = self.rows[index]
        image = Image.open(path).convert("RGB")
        return self.to_tensor(image), label


def train(model, optimizer, rows, to_tensor):
    for images, labels in torch.utils.data.DataLoader(Faces(rows, to_tensor), 64, shuffle=True):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
