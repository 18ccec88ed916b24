import torch
import torch.nn.functional as F
from torch import nn
from toy import write_losses

torch.manual_seed(0)
gen = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8))
critic = nn.Sequential(nn.Linear(8, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
opt_g = torch.optim.Adam(gen.parameters(), lr=1e-3, betas=(0.5, 0.9))
opt_d = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.9))
losses = []
for step in range(30):
    real = torch.randn(16, 8) + 2
    for _ in range(2):
        fake = gen(torch.randn(16, 4)).detach()
        loss_d = F.softplus(-critic(real)).mean() + F.softplus(critic(fake)).mean()
        opt_d.zero_grad(set_to_none=True)
        loss_d.backward()
        opt_d.step()
    loss_g = F.softplus(-critic(gen(torch.randn(16, 4)))).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    losses += [loss_d.item(), loss_g.item()]
write_losses(losses)
