import os
import sys

assert "torch" not in sys.modules and "numpy" not in sys.modules
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

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
print(torch.get_num_threads(), os.environ["PYTORCH_CUDA_ALLOC_CONF"])
write_losses(losses)
