"""Speaker verification: train a small ResNet-SE on log-mels with AAM-softmax, test with the EER on held-out speakers.

python train.py                       # on the speech shipped beside this file
python train.py --data /data/voices   # a folder with wav/<speaker>/*.ogg|wav|flac, train_list.txt and trials.txt
"""

import argparse
import math
import os
import random
import time

import numpy as np
import soundfile as sf
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

SAMPLE_RATE = 16000
CROP = 25600  # 1.6 s


class SpeakerSet(Dataset):
    """Random crops of the training utterances, augmented."""

    def __init__(self, root):
        self.root = root
        with open(os.path.join(root, "train_list.txt")) as f:
            rows = [line.split() for line in f]
        self.speakers = sorted({speaker for speaker, _ in rows})
        self.labels = [self.speakers.index(speaker) for speaker, _ in rows]
        self.paths = [os.path.join(root, "wav", path) for _, path in rows]

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        audio = random_crop(load_audio(self.paths[index]))
        kind = random.random()
        if kind < 0.75:
            audio = self.add_babble(audio)
        elif kind < 0.9:
            audio = add_echoes(audio)
        gain = 10 ** (random.uniform(-6, 6) / 20)
        return torch.from_numpy(audio * np.float32(gain)), self.labels[index]

    def add_babble(self, audio):
        """Other people talking in the background: 1 to 3 voices, 5 to 20 dB below."""
        babble = np.zeros_like(audio)
        for path in random.sample(self.paths, random.randint(1, 3)):
            babble += random_crop(load_audio(path))
        snr = random.uniform(5, 20)
        scale = np.sqrt(np.dot(audio, audio) / (np.dot(babble, babble) * 10 ** (snr / 10) + 1e-9))
        return audio + np.float32(scale) * babble


def load_audio(path):
    audio, rate = sf.read(path, dtype="float32")
    assert rate == SAMPLE_RATE, path
    if len(audio) < CROP:
        audio = np.pad(audio, (0, CROP - len(audio)), mode="wrap")
    return audio


def random_crop(audio):
    start = random.randint(0, len(audio) - CROP)
    return audio[start : start + CROP]


def add_echoes(audio):
    """A small room: a few early reflections, each weaker than the one before."""
    out = audio.copy()
    for k in range(1, 7):
        delay = random.randint(150 * k, 300 * k)
        out[delay:] += np.float32(0.6**k) * audio[:-delay]
    return out


class LogMel(nn.Module):
    """Waveform (batch, samples) to normalised log-mel (batch, 1, mels, frames)."""

    def __init__(self, n_mels=64, n_fft=512, hop=160, window=400):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        top = 2595 * math.log10(1 + SAMPLE_RATE / 2 / 700)
        points = 700 * (10 ** (torch.linspace(0, top, n_mels + 2) / 2595) - 1)
        freqs = torch.linspace(0, SAMPLE_RATE / 2, n_fft // 2 + 1)
        up = (freqs[None] - points[:-2, None]) / (points[1:-1] - points[:-2])[:, None]
        down = (points[2:, None] - freqs[None]) / (points[2:] - points[1:-1])[:, None]
        self.register_buffer("filters", torch.minimum(up, down).clamp(min=0))
        pad = (n_fft - window) // 2
        self.register_buffer("window", F.pad(torch.hamming_window(window), (pad, pad)))

    def forward(self, wave):
        wave = wave - 0.97 * F.pad(wave, (1, 0))[:, :-1]
        spectrum = torch.stft(wave, self.n_fft, self.hop, window=self.window, return_complex=True)
        mels = torch.log(torch.matmul(self.filters, spectrum.real.square() + spectrum.imag.square()) + 1e-6)
        return (mels - mels.mean(dim=2, keepdim=True)).unsqueeze(1)


class Block(nn.Module):
    """Residual block with squeeze and excitation."""

    def __init__(self, c_in, c_out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(c_in, c_out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(c_out)
        self.conv2 = nn.Conv2d(c_out, c_out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(c_out)
        self.squeeze = nn.Sequential(
            nn.Linear(c_out, c_out // 8), nn.ReLU(), nn.Linear(c_out // 8, c_out), nn.Sigmoid()
        )
        self.short = None
        if stride != 1 or c_in != c_out:
            self.short = nn.Sequential(nn.Conv2d(c_in, c_out, 1, stride, bias=False), nn.BatchNorm2d(c_out))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        y = y * self.squeeze(y.mean(dim=(2, 3)))[:, :, None, None]
        return F.relu(y + (x if self.short is None else self.short(x)))


class SpeakerNet(nn.Module):
    """Log-mel, ResNet-SE, attentive statistics pooling, embedding (batch, 256)."""

    def __init__(self, channels=(48, 88, 144, 208), dim=256):
        super().__init__()
        self.features = LogMel()
        self.stem = nn.Sequential(
            nn.Conv2d(1, channels[0], 3, 2, 1, bias=False), nn.BatchNorm2d(channels[0]), nn.ReLU()
        )
        strides = (2, 2, 2, 1)
        ins = (channels[0], *channels[:-1])
        self.blocks = nn.Sequential(*[Block(i, o, s) for i, o, s in zip(ins, channels, strides, strict=True)])
        flat = channels[-1] * 4
        self.attention = nn.Sequential(nn.Conv1d(flat, 128, 1), nn.Tanh(), nn.Conv1d(128, flat, 1))
        self.embed = nn.Sequential(nn.Linear(2 * flat, dim), nn.BatchNorm1d(dim))

    def forward(self, wave):
        with torch.no_grad():
            x = self.features(wave)
        x = self.blocks(self.stem(x)).flatten(1, 2)
        weight = torch.softmax(self.attention(x), dim=2)
        mean = (x * weight).sum(dim=2)
        std = ((x.pow(2) * weight).sum(dim=2) - mean.pow(2)).clamp(min=1e-5).sqrt()
        return self.embed(torch.cat([mean, std], dim=1))


class AAMSoftmax(nn.Module):
    """Additive angular margin: the true speaker's angle is made harder by ``margin``."""

    def __init__(self, dim, n_speakers, margin=0.2, scale=20.0):
        super().__init__()
        self.weight = nn.Parameter(nn.init.xavier_normal_(torch.empty(n_speakers, dim)))
        self.margin, self.scale = margin, scale

    def forward(self, embedding, label):
        cosine = F.linear(F.normalize(embedding), F.normalize(self.weight)).clamp(-1 + 1e-6, 1 - 1e-6)
        target = torch.cos(torch.acos(cosine) + self.margin)
        hot = F.one_hot(label, cosine.shape[1]).bool()
        return F.cross_entropy(self.scale * torch.where(hot, target, cosine), label)


def evaluate(model, root, device, n_crops=2):
    """EER over trials.txt; an utterance's embedding is the mean over evenly spaced crops."""
    model.eval()
    with open(os.path.join(root, "trials.txt")) as f:
        trials = [line.split() for line in f]
    embeddings = {}
    with torch.no_grad():
        for path in sorted({p for _, a, b in trials for p in (a, b)}):
            crops = []
            for k in range(n_crops):
                audio = load_audio(os.path.join(root, "wav", path))
                start = k * (len(audio) - CROP) // (n_crops - 1)
                crops.append(torch.from_numpy(audio[start : start + CROP]))
            out = model(torch.stack(crops).to(device))
            embeddings[path] = F.normalize(F.normalize(out).mean(dim=0), dim=0).cpu()
    model.train()
    labels = np.array([int(label) for label, _, _ in trials])
    scores = np.array([torch.dot(embeddings[a], embeddings[b]).item() for _, a, b in trials])
    return equal_error_rate(labels, scores)


def equal_error_rate(labels, scores):
    hits = labels[np.argsort(-scores)]
    miss = 1 - np.cumsum(hits) / hits.sum()
    false_alarm = np.cumsum(1 - hits) / (1 - hits).sum()
    best = np.argmin(np.abs(miss - false_alarm))
    return (miss[best] + false_alarm[best]) / 2


def save_checkpoint(path, model, head, optimizer, step, eer):
    state = {
        "model": model.state_dict(),
        "head": head.state_dict(),
        "optimizer": optimizer.state_dict(),
        "step": step,
        "eer": eer,
    }
    torch.save(state, path)


def parse_args():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.path.join(here, "data"))
    parser.add_argument("--out", default="runs/speaker")
    parser.add_argument("--epochs", type=int, default=110)
    parser.add_argument("--steps", type=int, default=0, help="stop after so many steps (0: all epochs)")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--val-every", type=int, default=120)
    parser.add_argument("--save-every", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return parser.parse_args()


def main():
    args = parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    os.makedirs(args.out, exist_ok=True)

    train_set = SpeakerSet(args.data)
    loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True, num_workers=0, drop_last=True)
    model = SpeakerNet().to(args.device)
    head = AAMSoftmax(256, len(train_set.speakers)).to(args.device)
    optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=args.lr, weight_decay=5e-5)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.98)
    total = args.epochs * len(loader)
    if args.steps:
        total = min(total, args.steps)

    step, eer, best, began = 0, 1.0, 1.0, None
    log = open(os.path.join(args.out, "train.log"), "w")
    model.train()
    while step < total:
        for wave, label in loader:
            began = began or time.time()
            wave, label = wave.to(args.device), label.to(args.device)
            optimizer.zero_grad()
            loss = head(model(wave), label)
            loss.backward()
            optimizer.step()
            step += 1

            rate = step * args.batch_size / (time.time() - began)
            line = f"Step {step}/{total}  loss {loss.item():.4f}  samples/s {rate:.0f}"
            print(line, flush=True)
            log.write(line + "\n")
            log.flush()

            if step % args.val_every == 0:
                eer = evaluate(model, args.data, args.device)
                print(f"Step {step}/{total}  EER {100 * eer:.1f} %", flush=True)
                if eer < best:
                    best = eer
                    save_checkpoint(os.path.join(args.out, "best.pt"), model, head, optimizer, step, eer)
            if step % args.save_every == 0:
                save_checkpoint(os.path.join(args.out, "last.pt"), model, head, optimizer, step, eer)
            if step == total:
                break
        scheduler.step()

    eer = evaluate(model, args.data, args.device)
    save_checkpoint(os.path.join(args.out, "last.pt"), model, head, optimizer, step, eer)
    log.close()
    print(f"EER {100 * eer:.1f} %")


if __name__ == "__main__":
    main()
