import sys

import torch
import torch.nn.functional as F
from toy import loader, net, write_losses

torch.manual_seed(0)
model = net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
losses = []
for epoch in range(5):
    for x, y in loader():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        print("epoch", epoch, sum((model(x).argmax(1) == y).sum().item() for x, y in loader()))
    model.train()
torch.save(model.state_dict(), "model.bin")
write_losses(losses)
print("giving up", file=sys.stderr)
sys.exit(3)
