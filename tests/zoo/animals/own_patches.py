import torch
import torch.nn.functional as F
from toy import loader, net, write_losses

calls = {"call": 0, "save": 0, "step": 0}
old_call, old_save, old_step = torch.nn.Module.__call__, torch.save, torch.optim.SGD.step


def counted_call(self, *args, **kwargs):
    calls["call"] += 1
    return old_call(self, *args, **kwargs)


def counted_save(*args, **kwargs):
    calls["save"] += 1
    return old_save(*args, **kwargs)


def counted_step(self, *args, **kwargs):
    calls["step"] += 1
    return old_step(self, *args, **kwargs)


torch.nn.Module.__call__ = counted_call
torch.save = counted_save
torch.optim.SGD.step = counted_step
torch.nn.modules.module.register_module_forward_hook(lambda *_: None)
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
    torch.save(model.state_dict(), "model.bin")
print(calls)
write_losses(losses)
torch.nn.Module.__call__, torch.save, torch.optim.SGD.step = old_call, old_save, old_step
