"""The same training as ``train.py``, made fast by hand: same data, augmentation law, schedule and checkpoints.

Every utterance is decoded once; crops and babble of a whole batch are gathered by one call in a background thread;
validation runs in batches; bf16 and channels-last where the machine has them; checkpoints are written beside training.
"""

import os
import queue
import random
import threading
import time

import numpy as np
import torch
import torch.nn.functional as F
from train import CROP, AAMSoftmax, SpeakerNet, SpeakerSet, equal_error_rate, load_audio, parse_args

LOG_EVERY = 10


class Audio:
    """Decoded utterances end to end in one tensor, and a view of it with every crop as a row."""

    def __init__(self, paths):
        clips = [load_audio(path) for path in paths]
        self.lengths = [len(clip) for clip in clips]
        self.begins = [int(b) for b in np.cumsum([0, *self.lengths[:-1]])]
        self.flat = torch.from_numpy(np.concatenate(clips))
        self.crops = self.flat.as_strided((len(self.flat) - CROP + 1, CROP), (1, 1))

    def random_start(self, index, rng):
        return self.begins[index] + rng.randint(0, self.lengths[index] - CROP)


class Batches:
    """Endless (wave, label) batches, made ahead by one thread; each epoch is a new shuffle."""

    def __init__(self, train_set, batch_size, seed, ahead=3):
        self.audio = Audio(train_set.paths)
        self.labels = torch.tensor(train_set.labels)
        self.batch_size = batch_size
        self.rng = random.Random(seed)
        self.ready = queue.Queue(maxsize=ahead)
        self.per_epoch = len(self.labels) // batch_size
        threading.Thread(target=self.work, daemon=True).start()

    def work(self):
        while True:
            order = self.rng.sample(range(len(self.labels)), len(self.labels))
            for k in range(self.per_epoch):
                chosen = order[k * self.batch_size : (k + 1) * self.batch_size]
                self.ready.put((self.augment(chosen), self.labels[chosen]))

    def augment(self, chosen):
        audio, rng = self.audio, self.rng
        wave = audio.crops[torch.tensor([audio.random_start(i, rng) for i in chosen])]
        kinds = [rng.random() for _ in chosen]
        self.add_babble(wave, [row for row, kind in enumerate(kinds) if kind < 0.75])
        for row in (row for row, kind in enumerate(kinds) if 0.75 <= kind < 0.9):
            add_echoes(wave[row], rng)
        gains = torch.tensor([10 ** (rng.uniform(-6, 6) / 20) for _ in chosen])
        return wave.mul_(gains[:, None])

    def add_babble(self, wave, rows):
        if not rows:
            return
        audio, rng = self.audio, self.rng
        starts, snr = [], []
        for _ in rows:
            voices = rng.sample(range(len(audio.lengths)), rng.randint(1, 3))
            starts.append([audio.random_start(i, rng) for i in voices])
            snr.append(rng.uniform(5, 20))
        for row, begins, decibel in zip(rows, starts, snr, strict=True):
            babble = audio.crops[begins[0]].clone()
            for begin in begins[1:]:
                babble += audio.crops[begin]
            clean = wave[row]
            ratio = torch.dot(clean, clean) / (torch.dot(babble, babble) * 10 ** (decibel / 10) + 1e-9)
            clean.addcmul_(babble, ratio.sqrt())

    def next(self):
        return self.ready.get()


def add_echoes(wave, rng):
    dry = wave.clone()
    for k in range(1, 7):
        delay = rng.randint(150 * k, 300 * k)
        wave[delay:].add_(dry[:-delay], alpha=0.6**k)


class Validation:
    """EER over trials.txt, the crops decoded once and embedded in large batches."""

    def __init__(self, root, n_crops=2):
        with open(os.path.join(root, "trials.txt")) as f:
            trials = [line.split() for line in f]
        names = sorted({p for _, a, b in trials for p in (a, b)})
        number = {name: k for k, name in enumerate(names)}
        self.labels = np.array([int(label) for label, _, _ in trials])
        self.left = torch.tensor([number[a] for _, a, _ in trials])
        self.right = torch.tensor([number[b] for _, _, b in trials])
        audio = Audio([os.path.join(root, "wav", name) for name in names])
        starts = [
            begin + k * (length - CROP) // (n_crops - 1)
            for begin, length in zip(audio.begins, audio.lengths, strict=True)
            for k in range(n_crops)
        ]
        self.crops, self.n_crops = audio.crops[torch.tensor(starts)], n_crops

    def __call__(self, model, device, amp):
        model.eval()
        with torch.inference_mode(), amp():
            out = torch.cat([model(part.to(device)).float().cpu() for part in self.crops.split(50)])
        model.train()
        mean = F.normalize(out, dim=1).view(-1, self.n_crops, out.shape[1]).mean(dim=1)
        embedding = F.normalize(mean, dim=1)
        scores = (embedding[self.left] * embedding[self.right]).sum(dim=1)
        return equal_error_rate(self.labels, scores.numpy())


class Saver:
    """Checkpoints are copied at once and written by a thread, under a temporary name until complete."""

    def __init__(self):
        self.thread = None

    def save(self, path, model, head, optimizer, step, eer):
        state = {"model": model.state_dict(), "head": head.state_dict(), "optimizer": optimizer.state_dict()}
        state = {**copy_tensors(state), "step": step, "eer": eer}
        self.wait()
        self.thread = threading.Thread(target=self.write, args=(state, path))
        self.thread.start()

    def write(self, state, path):
        torch.save(state, path + ".part")
        os.replace(path + ".part", path)

    def wait(self):
        if self.thread is not None:
            self.thread.join()


def copy_tensors(value):
    if isinstance(value, torch.Tensor):
        return value.detach().to("cpu", copy=True)
    if isinstance(value, dict):
        return {key: copy_tensors(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(copy_tensors(entry) for entry in value)
    return value


def mixed_precision(device):
    """A context that runs the network in bf16 where that is a hardware type."""
    if device.startswith("cuda"):
        fast = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        fast = torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return lambda: torch.autocast(device.split(":")[0], dtype=torch.bfloat16, enabled=fast)


def main():
    args = parse_args()
    torch.manual_seed(args.seed)
    os.makedirs(args.out, exist_ok=True)

    train_set = SpeakerSet(args.data)
    batches = Batches(train_set, args.batch_size, args.seed)
    validation = Validation(args.data)
    amp, saver = mixed_precision(args.device), Saver()
    model = SpeakerNet().to(args.device).to(memory_format=torch.channels_last)
    head = AAMSoftmax(256, len(train_set.speakers)).to(args.device)
    optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=args.lr, weight_decay=5e-5)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.98)
    total = args.epochs * batches.per_epoch
    if args.steps:
        total = min(total, args.steps)

    eer, best, began = 1.0, 1.0, 0.0
    log = open(os.path.join(args.out, "train.log"), "w")
    model.train()
    for step in range(1, total + 1):
        wave, label = batches.next()
        began = began or time.time()
        wave, label = wave.to(args.device), label.to(args.device)
        optimizer.zero_grad()
        with amp():
            embedding = model(wave)
        loss = head(embedding.float(), label)
        loss.backward()
        optimizer.step()

        if step % LOG_EVERY == 0 or step == total:
            rate = step * args.batch_size / (time.time() - began)
            line = f"Step {step}/{total}  loss {loss.item():.4f}  samples/s {rate:.0f}"
            print(line, flush=True)
            log.write(line + "\n")
        if step % args.val_every == 0:
            eer = validation(model, args.device, amp)
            print(f"Step {step}/{total}  EER {100 * eer:.1f} %", flush=True)
            if eer < best:
                best = eer
                saver.save(os.path.join(args.out, "best.pt"), model, head, optimizer, step, eer)
        if step % args.save_every == 0:
            saver.save(os.path.join(args.out, "last.pt"), model, head, optimizer, step, eer)
        if step % batches.per_epoch == 0:
            scheduler.step()

    eer = validation(model, args.device, amp)
    saver.save(os.path.join(args.out, "last.pt"), model, head, optimizer, step, eer)
    saver.wait()
    log.close()
    print(f"EER {100 * eer:.1f} %")


if __name__ == "__main__":
    main()
