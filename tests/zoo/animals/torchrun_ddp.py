import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from toy import Blobs, net, write_losses

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = DistributedDataParallel(net())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = Blobs()
sampler = DistributedSampler(data)
losses = []
for epoch in range(4):
    sampler.set_epoch(epoch)
    for x, y in DataLoader(data, batch_size=8, sampler=sampler):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
with open(f"rank{rank}.txt", "w") as out:
    out.writelines(f"{v.hex()}\n" for v in losses)
dist.barrier()
if rank == 0:
    write_losses(losses)
dist.destroy_process_group()
