"""A loop in plain PyTorch; with ``--compile`` its model is compiled."""

import torch
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
    chosen = options("--compile")
    data, collate = training_data(chosen.data)
    model, wanted, log = Student(), teacher(), RunLog()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    called = torch.compile(model) if chosen.compile else model
    loader = DataLoader(data, batch_size=BATCH, shuffle=True, collate_fn=collate)
    held = DataLoader(data, batch_size=BATCH, collate_fn=collate)
    for _ in range(EPOCHS):
        for images, labels in loader:
            optimizer.zero_grad(set_to_none=False)
            with torch.no_grad():
                target = wanted(images)
            loss = loss_of(called(images), target, labels)
            loss.backward()
            optimizer.step()
            log.step(loss.item())
        validate(called, held)
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "last.pt")


if __name__ == "__main__":
    main()
