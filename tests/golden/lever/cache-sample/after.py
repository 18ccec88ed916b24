from PIL import Image
from torch.utils.data import Dataset


class Photos(Dataset):
    def __init__(self, paths):
        self.samples = [Image.open(path).convert("RGB") for path in paths]

    def __getitem__(self, index):
        return self.samples[index].copy()
