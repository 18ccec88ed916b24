from PIL import Image
from torch.utils.data import Dataset


class Photos(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __getitem__(self, index):
        return Image.open(self.paths[index]).convert("RGB")
