"""The fast training in Accelerate, as its documentation advises for speed.

``prepare`` moves model and batches and puts autocast around forward, losses stay on the device between the lines, the
loader has its workers and pinned memory.
"""

from __future__ import annotations

import torch
from accelerate import Accelerator, DataLoaderConfiguration
from parts import Training, asked_for

PRECISION = {"off": "no", "bf16": "bf16", "fp16": "fp16"}


def train(training: Training, accelerator: Accelerator) -> None:
    """Epochs until the stopwatch has seen its last step."""
    s = training.settings
    loader = training.loader()
    optimizer, schedule = training.optimizer(len(loader) // s.accumulate)
    objective, optimizer, loader, schedule = accelerator.prepare(training.task.objective, optimizer, loader, schedule)
    objective.train()
    training.seed()
    total, micro, steps = torch.zeros((), device=accelerator.device), torch.zeros((), device=accelerator.device), 0
    while True:
        for batch in loader:
            with accelerator.accumulate(objective):
                loss = objective(batch)["loss"]
                accelerator.backward(loss)
                if s.clip_norm and accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(objective.parameters(), s.clip_norm)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            micro = micro + loss.detach() / s.accumulate
            if not accelerator.sync_gradients:
                continue
            steps, total = steps + 1, total + micro
            training.stopwatch.step(micro)
            micro = torch.zeros_like(micro)
            if steps % s.print_every_steps == 0:
                accelerator.print(f"step {steps}  loss {total.item() / s.print_every_steps:.3f}", flush=True)
                total = torch.zeros_like(total)
            if steps == training.stopwatch.last:
                return


def main() -> None:
    training = asked_for()
    s = training.settings
    accelerator = Accelerator(
        cpu=training.context.device.type == "cpu",
        mixed_precision=PRECISION[s.precision],
        gradient_accumulation_steps=s.accumulate,
        step_scheduler_with_optimizer=True,
        dataloader_config=DataLoaderConfiguration(non_blocking=s.non_blocking),
    )
    train(training, accelerator)
    training.done()


if __name__ == "__main__":
    main()
