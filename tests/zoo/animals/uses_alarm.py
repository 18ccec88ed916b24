"""A time limit by SIGALRM and an interval timer, both the script's own."""

import signal
import time

import torch
import torch.nn.functional as F
from toy import loader, net, write_losses


class TooLong(Exception):
    pass


def late(signum, frame):
    raise TooLong


torch.manual_seed(0)
before = signal.signal(signal.SIGALRM, late)
print(before is signal.SIG_DFL, signal.getitimer(signal.ITIMER_REAL))
model = net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
signal.alarm(100)
for _ in range(4):
    for x, y in loader():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
print(90 < signal.alarm(0) <= 100)
write_losses(losses)
signal.setitimer(signal.ITIMER_REAL, 0.2)
began = time.monotonic()
try:
    while time.monotonic() - began < 20:
        time.sleep(5)
except TooLong:
    print("stopped in time", 0.1 < time.monotonic() - began < 4)
