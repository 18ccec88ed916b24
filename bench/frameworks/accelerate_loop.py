"""A loop prepared by Accelerate."""

import torch
from accelerate import Accelerator
from task import BATCH, EPOCHS, RunLog, Student, loss_of, options, teacher, training_data
from torch.utils.data import DataLoader


def validate(model, loader):
    model.eval()
    with torch.no_grad():
        right = sum(int((model(images).argmax(1) == labels).sum()) for images, labels in loader)
    model.train()
    return right


def main():
    torch.autograd.set_detect_anomaly(True)
    accelerator = Accelerator(cpu=True)
    data, collate = training_data(options().data)
    model, wanted, log = Student(), teacher(), RunLog()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loader = DataLoader(data, batch_size=BATCH, shuffle=True, collate_fn=collate)
    held = DataLoader(data, batch_size=BATCH, collate_fn=collate)
    model, optimizer, loader, held = accelerator.prepare(model, optimizer, loader, held)
    for _ in range(EPOCHS):
        for images, labels in loader:
            optimizer.zero_grad(set_to_none=False)
            with torch.no_grad():
                target = wanted(images)
            loss = loss_of(model(images), target, labels)
            accelerator.backward(loss)
            optimizer.step()
            log.step(loss.item())
        validate(model, held)
        accelerator.save_state("state")


if __name__ == "__main__":
    main()
