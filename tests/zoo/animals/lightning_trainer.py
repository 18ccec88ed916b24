import logging
import warnings

import torch
import torch.nn.functional as F
from toy import loader, net, write_losses

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
import lightning as L  # noqa: E402


class Task(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = net()
        self.losses = []

    def training_step(self, batch, _):
        loss = F.cross_entropy(self.net(batch[0]), batch[1])
        self.losses.append(loss.item())
        return loss

    def validation_step(self, batch, _):
        self.log("val", F.cross_entropy(self.net(batch[0]), batch[1]))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-2)


L.seed_everything(0, verbose=False)
task = Task()
trainer = L.Trainer(
    max_epochs=4,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(task, loader(), loader())
write_losses(task.losses)
