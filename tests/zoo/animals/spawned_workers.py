import random

import torch
from toy import loader, net, write_losses


def seed_worker(worker_id):
    random.seed(torch.initial_seed() % 2**32 + worker_id)


def main():
    torch.manual_seed(0)
    model, losses = net(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = loader(
        num_workers=1, multiprocessing_context="spawn", worker_init_fn=seed_worker, persistent_workers=True
    )
    for _ in range(2):
        for x, y in batches:
            loss = torch.nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    write_losses(losses)


if __name__ == "__main__":
    main()
