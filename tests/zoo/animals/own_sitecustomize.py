import sys

import sitecustomize
import torch
import torch.nn.functional as F
from toy import loader, net, write_losses

print(from_site, sys.getrecursionlimit(), sitecustomize.__file__.endswith("site/sitecustomize.py"))  # noqa: F821
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
write_losses(losses)
