import os
import signal
import sys

signal.signal(signal.SIGTERM, lambda *_: (print("saving before the end", flush=True), sys.exit(143)))

import torch
import torch.nn.functional as F
from toy import loader, net, write_losses

torch.manual_seed(0)
model = net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for _ in range(4):
    for x, y in loader():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if _ == 2:
        write_losses(losses)
        os.kill(os.getpid(), signal.SIGTERM)
