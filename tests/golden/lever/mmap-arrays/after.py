import numpy
from torch.utils.data import Dataset


class Clips(Dataset):
    def __init__(self, path):
        self.path = path
        self.clips = None

    def __getitem__(self, index):
        if self.clips is None:
            self.clips = numpy.load(self.path, mmap_mode="r")
        return self.clips[index].copy()
