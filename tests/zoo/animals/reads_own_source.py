import hashlib
import inspect
import os
import sys

import torch
import torch.nn.functional as F
from toy import loader, net, write_losses

source = open(sys.argv[0]).read()
print(sys.argv, __file__, __name__, hashlib.sha256(source.encode()).hexdigest())
print(os.path.basename(sys.executable), sys.path[0] == os.getcwd(), sys.flags.optimize, sorted(globals())[:6])
print("hotlap" in " ".join(sys.path), "HOTLAP" in source)


def marker():
    return "found by inspect"


print(inspect.getsource(marker))
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
