import os
import sys

if os.environ.get("AGAIN") != "1":
    import torch

    os.environ["AGAIN"] = "1"
    print("again", flush=True)
    os.execv(sys.executable, [sys.executable, *sys.argv, "--second"])

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
print(sys.argv[1:])
write_losses(losses)
