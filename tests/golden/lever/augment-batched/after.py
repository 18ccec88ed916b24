import torch

from hotlap.pack import augment


class Faces(torch.utils.data.Dataset):
    def __init__(self, images, labels):
        self.images, self.labels = images, labels

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index].float(), self.labels[index]


def train(model, optimizer, images, labels):
    generator = torch.Generator().manual_seed(0)
    for batch, wanted in torch.utils.data.DataLoader(Faces(images, labels), 64, shuffle=True):
        batch = augment.flip(batch, 0.5, generator)
        loss = torch.nn.functional.cross_entropy(model(batch), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
