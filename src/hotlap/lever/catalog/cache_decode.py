"""Keep decoded images, sounds and arrays in memory, so that each file is decoded once.

Evidence: The step waits while samples are decoded or read from storage, epoch after epoch from the same files.

Gain: After the first epoch a sample costs one copy from memory in place of its decoding: the load time falls by the
decode time, times the share of the files that fit.

Runtime: The well-known readers (PIL image loading, cv2.imread and imdecode, simplejpeg.decode_jpeg, soundfile.read
and SoundFile.read, scipy.io.wavfile.read, numpy.load with the arrays of .npz archives, torchaudio.load) look into a
cache in memory first, shared by all workers and epochs. The key is file, modification time, size and arguments, or a
hash of bytes that are in memory already, so random augmentation stays random and a changed file is read anew. Callers
get their own copy. The cache is bounded, for all processes of a machine together; what does not fit is decoded as
before.

Source: Decode once into an array on disk or in memory (numpy.save, a packed file), and read that in __getitem__.

Risk: Memory for the decoded data, given in the setting; bytes that the script encodes anew each time fill it in vain.
No other reader is helped, nor one that is handed something else than a path, an open file or bytes.
"""

from __future__ import annotations

import os
from types import ModuleType
from typing import Any

from hotlap.lever.archives import cached_archive, cached_member
from hotlap.lever.cache_room import cache_settings
from hotlap.lever.checks import MAX_BYTES, check_max_bytes
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.evidence import first, place
from hotlap.lever.file_cache import FileCache
from hotlap.lever.gains import bounded, load_seconds, step_with_loader
from hotlap.lever.readers import cached_decoder, cached_image_load, cached_reader
from hotlap.lever.sounds import swap_sounds
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

ID = "cache-decode"
TREATS = ("decode", "storage-read", "network-storage", "small-files", "whole-file-read", "too-few-workers")
PRESERVES = "bits"
CONFLICTS = ("mmap-arrays",)
NUMERIC = False
RULES = MAX_BYTES

_COPY_FRAC = 0.15
"""What a hit costs of the decoding it replaces (a copy of a 160x160 image against its JPEG decoding), at most."""


def evidence(findings: Findings) -> Finding | None:
    """Decoding or storage, where decoding was seen in a known reader."""
    found = first(findings, TREATS)
    decode_s = findings.step_model.decode_s
    return found if found is not None and (decode_s or found.cause != "too-few-workers") else None


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """Half of the free memory (and of the memory file system), if the decoded data set fits."""
    return cache_settings(findings.script.loader, machine, "The decoded data does")


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """The step model with the load time less decoding, for the share of samples that fits."""
    model = findings.step_model
    load = load_seconds(model)
    decode = model.decode_s if model.decode_s is not None else min(finding.seconds_per_step, load)
    waiting = model.io_wait_s or 0.0
    loader, hit = findings.script.loader, 1.0
    if loader is not None and loader.sample_bytes and loader.dataset_len:
        hit = min(1.0, setting["max_bytes"] / (loader.sample_bytes * loader.dataset_len))
    saved = hit * min(decode + waiting, load)
    if model.workers == 0:
        return bounded(findings, saved * (1 - 2 * _COPY_FRAC), saved * (1 - _COPY_FRAC), "modelled")
    now = model.data_wait_s + model.compute_s
    best, _ = step_with_loader(model, model.workers, None, load - saved * (1 - _COPY_FRAC))
    return bounded(findings, 0.3 * (now - best), now - best, "modelled")


def check(setting: Setting, machine: Machine) -> str | None:
    """Types, and no more than the machine's memory."""
    return check_max_bytes(setting, machine)


def environment(setting: Setting) -> dict[str, str]:
    """None needed."""
    return {}


def apply(target: Target, setting: Setting) -> None:
    """Replace each known reader when its module is imported. What counts as a change is a decoded file kept."""
    cache = FileCache(os.path.join(target.scratch, ID), setting["max_bytes"] // target.scratches)

    def swap(owner: Any, name: str, new: Any) -> None:
        target.replace(owner, name, new)
        target.changed(-1)  # a reader that is never called is no effect

    def images(module: ModuleType) -> None:
        from PIL import Image  # type: ignore[import-not-found,unused-ignore]

        swap(module.ImageFile, "load", cached_image_load(cache, Image, module.ImageFile.load))

    def plain(name: str, *skip: str) -> Any:
        def install(module: ModuleType) -> None:
            kind = f"{module.__name__}.{name}"
            swap(module, name, cached_reader(cache, kind, getattr(module, name), skip))

        return install

    def encoded(name: str) -> Any:
        return lambda m: swap(m, name, cached_decoder(cache, f"{m.__name__}.{name}", getattr(m, name)))

    def arrays(module: ModuleType) -> None:
        read = cached_reader(cache, "numpy.load", module.load, ("mmap_mode", "allow_pickle"))
        archive = module.lib.npyio.NpzFile
        swap(module, "load", cached_archive(cache, archive, read))
        swap(archive, "__getitem__", cached_member(cache, archive.__getitem__))

    target.on_import("PIL.ImageFile", images)
    target.on_import("soundfile", lambda m: swap_sounds(cache, m, swap))
    target.on_import("cv2", plain("imread"))
    target.on_import("scipy.io.wavfile", plain("read", "mmap"))
    target.on_import("numpy", arrays)
    target.on_import("torchaudio", plain("load"))
    target.on_import("cv2", encoded("imdecode"))
    target.on_import("simplejpeg", encoded("decode_jpeg"))
    counted: list[bool] = []

    def count(optimizer: Any, step: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not counted and cache.used():  # also what workers kept
            counted.append(True)
            target.changed()
        return step(*args, **kwargs)

    target.around_step(count)


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """The file's readers, each through a function that keeps what was decoded."""
    where = place(*finding.where)
    code = f"decode_once({setting['max_bytes']}, {{function}}, {{arguments}})"
    return [Edit("replace_call", where.file, where.line, target="readers", code=code)]
