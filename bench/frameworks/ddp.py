"""Two ranks with DistributedDataParallel over gloo, started by torchrun."""

import torch
import torch.distributed as dist
from task import BATCH, EPOCHS, RunLog, Student, loss_of, options, teacher, training_data
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def validate(model, loader):
    model.eval()
    with torch.no_grad():
        right = sum(int((model(images).argmax(1) == labels).sum()) for images, labels in loader)
    model.train()
    return right


def main():
    dist.init_process_group("gloo")
    torch.autograd.set_detect_anomaly(True)
    data, collate = training_data(options().data)
    model, wanted, log = DistributedDataParallel(Student()), teacher(), RunLog(dist.get_rank() == 0)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=BATCH // 2, sampler=sampler, collate_fn=collate)
    held = DataLoader(data, batch_size=BATCH, collate_fn=collate)
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        for images, labels in loader:
            optimizer.zero_grad(set_to_none=False)
            with torch.no_grad():
                target = wanted(images)
            loss = loss_of(model(images), target, labels)
            loss.backward()
            optimizer.step()
            log.step(loss.item())
        validate(model, held)
        if dist.get_rank() == 0:
            torch.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}, "last.pt")
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
