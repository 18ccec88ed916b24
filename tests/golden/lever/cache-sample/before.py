import numpy as np
from PIL import Image
from torch.utils.data import DataLoader, Dataset


class Photos(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return np.asarray(Image.open(self.paths[index]).convert("RGB"))


def train(step, paths, to_tensors):
    for images in DataLoader(Photos(paths), batch_size=32, shuffle=True, collate_fn=to_tensors):
        step(images)
