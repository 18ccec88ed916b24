import torch
from toy import loader, net


class Odd(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.seen = net(), 0

    def forward(self, x):
        self.seen += 1
        if self.seen == 20:
            raise RuntimeError(f"no luck at {self.seen}")
        return self.net(x)


def train():
    torch.manual_seed(0)
    model = Odd()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with open("losses.txt", "w") as out:
        while True:
            for x, y in loader():
                loss = torch.nn.functional.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                out.write(loss.item().hex() + "\n")


train()
