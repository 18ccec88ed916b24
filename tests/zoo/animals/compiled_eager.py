import torch
import torch._dynamo
import torch.nn.functional as F
from toy import loader, net, write_losses

graphs = []


def backend(gm, inputs):
    graphs.append(len(gm.graph.nodes))
    return gm.forward


torch.manual_seed(0)
model = torch.compile(net(), backend=backend)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for _ in range(4):
    for x, y in loader():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
print("graphs", graphs, torch._dynamo.utils.counters["graph_break"])
write_losses(losses)
