import numpy
from torch.utils.data import Dataset


class Clips(Dataset):
    def __init__(self, path):
        self.path = path

    def __getitem__(self, index):
        return numpy.load(self.path)[index]
