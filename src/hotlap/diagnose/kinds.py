"""What a stack is doing, told from library files and the text of the user's lines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise

from hotlap.diagnose.stacks import Sampled, StackBook
from hotlap.diagnose.trainers import below, trainer_logs, trainer_saves
from hotlap.records.library_files import MODULE
from hotlap.records.rows import Frame

__all__ = [
    "asks",
    "data_kind",
    "draws",
    "in_loader",
    "in_reader",
    "is_checkpoint",
    "is_idle",
    "is_logging",
    "is_next",
    "is_profiler",
    "is_torch",
    "loader_blame",
    "touches_storage",
    "works",
]

_READER_PARTS = (
    "soundfile", "audioread", "imageio", "h5py", "tifffile", "pydicom", "nibabel", "torchcodec", "av", "decord",
    "pyarrow", "rasterio", "simplejpeg", "zarr", "json", "npyio", "_npyio_impl", "wave", "tarfile",
    "zipfile", "gzip", "wavfile", "matlab", "lmdb", "ImageFile", "JpegImagePlugin", "PngImagePlugin", "WebPImagePlugin",
    "_format_impl",
)  # fmt: skip
"""Folder or file names of libraries whose frames mean reading and decoding."""

_READER_FUNCTIONS = {
    "PIL": {"open", "load", "draft", "verify", "preinit"},
    "librosa": {"load", "stream"},
    "torchaudio": {"load", "info"},
    "torchvision": {"decode_image", "decode_jpeg", "read_image", "pil_loader", "default_loader"},
    "skimage": {"imread"},
    "cv2": {"imread", "imdecode"},
}
"""Libraries that also do other work: only these functions of theirs are decoding ..."""
_READER_FOLDERS = ("pandas/io/",)
"""... or these folders: a table in memory is not decoded when its rows are looked up."""
_WORK_PARTS = {"transformers", "tokenizers", "transforms", "albumentations", "skimage", "librosa", "signal", "ndimage"}
"""Libraries, and folders of theirs, that work on what was read: below a line that reads as well, they are at work."""

_DECODE_TEXT = re.compile(
    r"Image\.open|\bimread|imdecode|decode_(?:jpeg|png|image)|\bdecode\w*\(|sf\.read|soundfile|librosa\.load"
    r"|torchaudio\.load|np\.(?:load|fromfile|loadtxt|genfromtxt|frombuffer)|torch\.load|json\.loads?\(|pickle\.loads?\("
    r"|h5py|read_(?:csv|image|parquet)|\bwave\.open|readframes|\.read_(?:bytes|text)\(|zlib\.decompress|\.decompress\("
)
_STORAGE_TEXT = re.compile(
    r"\bopen\(|\.read\w*\(|Image\.open|\bimread|\bload\(|recv\(|requests\.|urlopen|fromfile|get_object"
)
_SLEEP_TEXT = re.compile(r"\bsleep\(")
_LOGGING_TEXT = re.compile(
    r"\.write\(|\.writelines\(|\.flush\(|json\.dump|savefig|\.writerows?\(|\.to_csv\("
    r"|\.add_(?:scalars?|images?|histogram|figure|text|video|audio)\(|\b(?:wandb|mlflow|logger|logging|log)\.\w+\("
    r"|\b(?:self|run|experiment|writer)\.log(?:_\w+)?\(|imsave|imwrite|save_image\(|np\.savetxt"
    r"|log_metrics?\(|\.write_(?:text|bytes)\(|\.commit\(|\bINSERT INTO\b"
    r"|\bopen\([^)]*['\"][aw]\+?[bt]?['\"]|\bfsync\("
)
"""Without `print`: the probe times it by the clock, so its line shows the work of its arguments."""
_CHECKPOINT_TEXT = re.compile(
    r"torch\.save|save_checkpoint|pickle\.dump|save_pretrained|save_model|save_file\(|np\.savez?\("
)
_FOR_TEXT = re.compile(r"^(?:async )?for\b.*\bin\b")
_NEXT_TEXT = re.compile(_FOR_TEXT.pattern + r"|\bnext\(")
_RANGE_TEXT = re.compile(r"\bin\s+range\(")
_PROFILER_FILES = re.compile(r"torch/profiler/|torch/autograd/profiler_util\.py$")
_PROFILER_FILE = "torch/autograd/profiler.py"
_NO_RECORDING = {"__init__", "__enter__", "__exit__"}
"""In that file these may be `record_function`'s: a mark in the source, cheap where no profiler runs."""
_TENSOR_FILES = ("torch/storage.py", "torch/_tensor_str.py", "torch/optim/swa_utils.py")
_MODULE_CALLS = {"_wrapped_call_impl", "_call_impl", "__call__"}
_IDLE = {
    "wait",
    "poll",
    "_poll",
    "_recv",
    "_recv_bytes",
    "recv_bytes",
    "select",
    "get",
    "accept",
    "_wait_for_tstate_lock",
}


def _parts(frame: Frame) -> list[str]:
    parts = frame.file.replace("\\", "/").split("/")
    return [*parts[:-1], parts[-1].removesuffix(".py")]


def _reads(frame: Frame) -> bool:
    parts = _parts(frame)
    if any(part in _READER_PARTS for part in parts) or any(f in "/".join(parts) for f in _READER_FOLDERS):
        return True
    return any(frame.func in functions for name, functions in _READER_FUNCTIONS.items() if name in parts)


def _collates(book: StackBook, sample: Sampled) -> bool:
    """A collate function by its name, by its place, torch's, or an object or lambda that torch's fetch calls.

    By its place since a stack holds few frames of libraries: below a tokenizer the fetch is not among them. Hotlap's
    own frame between the two (it times the collate function) is no part of a stack.
    """
    if any("collate" in frame.func or _parts(frame)[-1] == "collate" for frame in sample.frames):
        return True
    for file, function, first, last in book.collates:
        if any((f.file, f.func) == (file, function) and first <= f.line <= last for f in sample.frames):
            return True
    return any(
        above.func == "fetch" and in_loader(above) and below.user and below.func in ("__call__", "<lambda>")
        for above, below in pairwise(sample.frames)
    )


def in_loader(frame: Frame) -> bool:
    """Whether a frame is torch's data loader."""
    return "torch/utils/data" in frame.file.replace("\\", "/")


def loader_blame(sample: Sampled) -> Frame | None:
    """The user's innermost line called by the loader; the line that asked for the batch is not to blame."""
    depth = max((i for i, frame in enumerate(sample.frames) if in_loader(frame)), default=-1)
    return next((frame for frame in reversed(sample.frames[depth + 1 :]) if frame.user), None)


def is_idle(sample: Sampled) -> bool:
    """Whether a worker's stack waits for work rather than loads (a forked worker has its parent's lines below it)."""
    if not sample.frames:
        return True
    leaf = sample.frames[-1]
    waits = leaf.func in _IDLE and bool({"selectors", "queue", "threading"} & set(_parts(leaf)))
    return not leaf.user and (waits or "multiprocessing" in _parts(leaf))


def asks(text: str) -> bool:
    """Whether a line asks an iterator for more: it waits for the work, and does not do it."""
    return bool(_NEXT_TEXT.search(text)) and not _RANGE_TEXT.search(text)


def data_kind(book: StackBook, sample: Sampled) -> str:
    """``decode``, ``collate``, ``sleep``, ``storage`` (a decode or read line that touches files) or ``augment``."""
    blamed = loader_blame(sample)
    inner = sample.frames[sample.frames.index(blamed) + 1 :] if blamed is not None else sample.frames
    text = book.text(blamed) if blamed is not None else ""
    if _SLEEP_TEXT.search(text):
        return "sleep"
    if any(_reads(frame) for frame in inner):
        return "decode"
    if _collates(book, sample):
        return "collate"
    return "decode" if _DECODE_TEXT.search(text) and not works(sample) else "augment"


def works(sample: Sampled) -> bool:
    """Whether a library works on what was read, below the user's line."""
    return any(not _WORK_PARTS.isdisjoint(_parts(frame)) for frame in below(sample))


def in_reader(sample: Sampled) -> bool:
    """Whether a library that reads or decodes is at work below the blamed line: a witness that no wording can fool."""
    blamed = loader_blame(sample)
    inner = sample.frames[sample.frames.index(blamed) + 1 :] if blamed is not None else sample.frames
    return any(_reads(frame) for frame in inner)


def touches_storage(book: StackBook, sample: Sampled) -> bool:
    """Whether the blamed line, or a library below it, reads files or the network."""
    blamed = loader_blame(sample)
    if blamed is None:
        return any(_reads(frame) for frame in sample.frames)
    inner = sample.frames[sample.frames.index(blamed) + 1 :]
    return bool(_STORAGE_TEXT.search(book.text(blamed))) or any(_reads(frame) for frame in inner)


def is_logging(book: StackBook, sample: Sampled) -> bool:
    """Whether a host stack writes logs, metrics or figures (and is no checkpoint): the user's line, or a trainer."""
    if is_checkpoint(book, sample):
        return False
    if any(_LOGGING_TEXT.search(t) for t in book.user_texts(sample)):
        return True
    return draws(sample) or trainer_logs(sample)


def draws(sample: Sampled) -> bool:
    """Whether the user's line has a figure drawn, or an image written."""
    return any("matplotlib" in _parts(f) or ("PIL" in _parts(f) and f.func in ("save", "_save")) for f in below(sample))


def is_checkpoint(book: StackBook, sample: Sampled) -> bool:
    """Whether a host stack saves a checkpoint: by the user's line, or in a library whose trainer runs the loop."""
    if any(_CHECKPOINT_TEXT.search(t) for t in book.user_texts(sample)):
        return True
    return trainer_saves(sample)


def is_profiler(sample: Sampled) -> bool:
    """Whether torch's profiler gathers or sorts what it recorded, or a handler of the script's does that for it."""
    for frame in sample.frames:
        file = frame.file.replace("\\", "/")
        if _PROFILER_FILES.search(file) or (file.endswith(_PROFILER_FILE) and frame.func not in _NO_RECORDING):
            return True
    return False


def is_torch(sample: Sampled) -> bool:
    """Whether torch itself is at work: a loss called as a function, outside of any module's forward.

    Not where a module's own Python is: outside of forwards it walks over tensors (``state_dict``, ``parameters``). Nor
    where tensors are copied one by one, or written out as text.
    """
    frame = sample.frames[-1] if sample.frames else None
    if frame is None or frame.user or "/torch/" not in frame.file.replace("\\", "/"):
        return False
    return not any(_handles_tensors(f) for f in below(sample))


def _handles_tensors(frame: Frame) -> bool:
    file = frame.file.replace("\\", "/")
    if file.endswith(MODULE):
        return frame.func not in _MODULE_CALLS
    copies = frame.func == "__deepcopy__" or (file.endswith("/copy.py") and "copy" in frame.func)
    return copies or file.endswith(_TENSOR_FILES)


def is_next(book: StackBook, sample: Sampled, begins: Mapping[tuple[str, str], int]) -> bool:
    """Whether the script waits for an iterator: a user's line on the stack calls ``next`` or is the step's ``for``.

    ``begins``: the step's first line, by file and function of the user's that run it. Loops elsewhere, or further down,
    are loops within the step: over tensors, say. Where it is empty any ``for`` will do.
    """

    def waits(frame: Frame) -> bool:
        text = book.text(frame)
        if not asks(text):
            return False
        return not begins or not _FOR_TEXT.search(text) or frame.line < begins.get((frame.file, frame.func), 0)

    return any(waits(frame) for frame in sample.user)
