import torch
from torch import nn
from toy import Blobs, write_losses

torch.manual_seed(0)
data, model, losses = Blobs(), nn.Linear(8, 2), []
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=4, line_search_fn="strong_wolfe")
for _ in range(12):

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(data.x), data.y)
        loss.backward()
        losses.append(loss.item())
        return loss

    optimizer.step(closure)
write_losses(losses)
