import atexit
import gc
import sys

import torch
import torch.nn.functional as F
from toy import loader, net, write_losses


def leave():
    with open("left.txt", "w") as out:
        out.write(f"steps {len(losses)}\n")
    print("left")


class Closing:
    def __del__(self):
        print("deleted")


atexit.unregister(gc.freeze)  # what is frozen is not collected, and says nothing at the end
keep = Closing()
atexit.register(leave)
atexit.register(lambda: print("registered last, runs first"))
sys.excepthook = lambda kind, err, tb: print("own excepthook:", kind.__name__, err)
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
raise ValueError("for the hook")
