"""A training at its roof: resident data, bf16 where the machine has it, nothing on the step's path.

`python healthy.py [STEPS] [restless]`: `restless` leaves glibc's allocator as it is, which makes the step slower and
differently so in each launch.
"""

import ctypes
import sys

import torch
import torch.nn.functional as F
from torch import nn


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    if sys.platform == "linux" and "restless" not in sys.argv:
        libc = ctypes.CDLL(None)
        if hasattr(libc, "mallopt"):  # freed memory is kept for the next step: M_MMAP_MAX, M_TRIM_THRESHOLD, M_TOP_PAD
            for parameter, value in ((-4, 0), (-1, 2**31 - 1), (-2, 64 << 20)):
                libc.mallopt(parameter, value)
    torch.manual_seed(0)
    fast = torch.ops.mkldnn._is_mkldnn_bf16_supported()
    model = nn.Sequential(nn.Linear(768, 1536), nn.GELU(), nn.Linear(1536, 1536), nn.GELU(), nn.Linear(1536, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)
    inputs, labels = torch.randn(8, 256, 768), torch.randint(0, 10, (8, 256))
    for step in range(steps):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=fast):
            out = model(inputs[step % 8])
        loss = F.cross_entropy(out.float(), labels[step % 8])
        loss.backward()
        optimizer.step()
        if step % 500 == 0:
            print(step, loss.item(), flush=True)


if __name__ == "__main__":
    main()
