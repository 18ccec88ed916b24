from PIL import Image
from torch.utils.data import Dataset


class Photos(Dataset):
    def __init__(self, paths):
        self.paths = paths
        self.decoded = {}

    def __getitem__(self, index):
        path = self.paths[index]
        if path not in self.decoded:
            self.decoded[path] = Image.open(path).convert("RGB")
        return self.decoded[path].copy()
