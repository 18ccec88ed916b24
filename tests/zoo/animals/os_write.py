import os

import torch
import torch.nn.functional as F
from toy import loader, net, write_losses

os.write(1, b"raw bytes \xff\xfe\n")
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
os.write(1, f"{losses[-1]:.6f}\n".encode())
os.write(2, b"no newline at the end")
write_losses(losses)
