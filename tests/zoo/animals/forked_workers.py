import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info
from toy import Blobs, loader, net, write_losses


class Stream(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        data = Blobs(48)
        yield from (data[k] for k in range(info.id, 48, info.num_workers))


torch.manual_seed(0)
model, losses = net(), []
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
kept = loader(num_workers=2, persistent_workers=True, prefetch_factor=4)
for _ in range(3):
    for batches in (kept, loader(num_workers=1), DataLoader(Stream(), batch_size=16, num_workers=2)):
        for x, y in batches:
            loss = torch.nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
for x, y in kept:  # left in the middle
    break
write_losses(losses)
