import torch
import torch.nn.functional as F
from toy import loader, net, write_losses

asked = set()


class Wrapper(torch.nn.Module):
    """Forwards everything it does not know to what it wraps, and says yes to anything."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            asked.add(name)
            if name.startswith("has_"):
                return True
            return getattr(self.inner, name)

    def __setattr__(self, name, value):
        if name not in ("inner", "training") and not name.startswith("_"):
            raise TypeError(f"nobody may set {name}")
        super().__setattr__(name, value)

    def __len__(self):
        return 0  # false in an if

    def __eq__(self, other):
        raise TypeError("do not compare me")

    __hash__ = None

    def forward(self, *args, **kwargs):
        return self.inner(*args, **kwargs)


torch.manual_seed(0)
model = Wrapper(net())
optimizer = torch.optim.SGD(model.inner.parameters(), lr=0.1)
losses = []
for _ in range(4):
    for x, y in loader():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
print(sorted(asked))
write_losses(losses)
