import copy
import hashlib
import io
import pickle

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
    ema = copy.deepcopy(model) if _ == 0 else ema
    with torch.no_grad():
        for a, b in zip(ema.parameters(), model.parameters(), strict=True):
            a.lerp_(b, 0.5)
    optimizer = copy.deepcopy(optimizer) if _ == 9 else optimizer
    blob = io.BytesIO()
    torch.save({"model": model, "optimizer": optimizer}, blob)
    both = torch.load(io.BytesIO(blob.getvalue()), weights_only=False)
    model, optimizer = both["model"], torch.optim.SGD(both["model"].parameters(), lr=0.1)
torch.save(model, "model.bin")
torch.save(ema.state_dict(), "ema.bin")
with open("model.pickle", "wb") as out:
    pickle.dump(model, out)
pickle.dumps(optimizer)
pickle.dumps(loader())
print(hashlib.sha256(blob.getvalue()).hexdigest(), sorted(vars(model)), sorted(vars(optimizer)))
write_losses(losses)
