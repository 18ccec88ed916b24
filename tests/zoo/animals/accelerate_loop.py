import torch
import torch.nn.functional as F
from accelerate import Accelerator
from toy import loader, net, write_losses

torch.manual_seed(0)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
model = net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer, batches = accelerator.prepare(model, optimizer, loader())
losses = []
for _ in range(5):
    for x, y in batches:
        with accelerator.accumulate(model):
            loss = F.cross_entropy(model(x), y)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
write_losses(losses)
