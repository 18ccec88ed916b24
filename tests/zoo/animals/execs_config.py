import torch
import torch.nn.functional as F
from toy import loader, net, write_losses

lr, epochs = 1.0, 1
exec(open("config.txt").read())
for key in [k for k, v in globals().items() if not k.startswith("_") and isinstance(v, (int, float, list))]:
    print(key, globals()[key])
torch.manual_seed(0)
model = net()
optimizer = torch.optim.SGD(model.parameters(), lr=lr)
losses = []
for _ in range(epochs):
    for x, y in loader():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
write_losses(losses)
