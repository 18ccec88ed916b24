from torch.utils.data import DataLoader, TensorDataset


def batches(images, labels):
    dataset = TensorDataset(images, labels)
    return DataLoader(dataset, batch_size=32, shuffle=True)
