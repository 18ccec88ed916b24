from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset


def batches(images, labels):
    dataset = TensorDataset(images, labels)
    return DataLoader(dataset, batch_size=None, sampler=BatchSampler(RandomSampler(dataset), 32, drop_last=False))
