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
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = model(x)
        assert out.dtype is torch.bfloat16
        loss = F.cross_entropy(out.float(), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
write_losses(losses)
