import torch
from toy import Blobs, net, write_losses

torch.manual_seed(0)
data, model, losses, step = Blobs(), net(), [], 0
velocity = [torch.zeros_like(p) for p in model.parameters()]
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
while True:
    pick = torch.randint(0, len(data), (16,))
    loss = torch.nn.functional.cross_entropy(model(data.x[pick]), data.y[pick])
    grads = torch.autograd.grad(loss, list(model.parameters()))
    for p, g in zip(model.parameters(), grads, strict=True):
        p.grad = g
    optimizer.step()
    losses.append(loss.item())
    step += 1
    if step >= 40:
        break
write_losses(losses)
