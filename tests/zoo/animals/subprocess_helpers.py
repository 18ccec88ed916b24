import multiprocessing
import os
import subprocess
import sys

import torch
import torch.nn.functional as F
from toy import loader, net, write_losses


def square(k):
    return k * k


if __name__ == "__main__":
    print(
        subprocess.run(
            [sys.executable, "-c", "import sys; print(sys.argv, sys.path[0] == '')", "x"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )
    print(subprocess.check_output([sys.executable, "-S", "-E", "-c", "print('no site')"], text=True))
    print(subprocess.run("echo shell; exit 5", shell=True, stdout=subprocess.PIPE).returncode)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(square, range(5)))
    torch.manual_seed(0)
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for epoch in range(4):
        for x, y in loader():
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        pid = os.fork()
        if pid == 0:  # a child that saves and leaves, while the parent trains on
            with open(f"child{epoch}.txt", "w") as out:
                out.write(losses[-1].hex())
            os._exit(0)
        print(os.waitpid(pid, 0)[1])
    write_losses(losses)
