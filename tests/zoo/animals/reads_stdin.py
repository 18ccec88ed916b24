import sys

import torch
import torch.nn.functional as F
from toy import loader, net, write_losses

lr = float(input("learning rate? "))
print("rest", sys.stdin.read().split(), sys.stdin.isatty())
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
