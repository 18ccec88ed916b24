"""What a run starts with: code, packages, variables. Read before the command starts, in some hundredths of a second.

Whatever cannot be read is left out and said in a note: no run fails for it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path

from hotlap.machine.packages import find_sites, read_packages
from hotlap.machine.repository import Repository, read_repository
from hotlap.records.origin import Origin
from hotlap.records.plan import Move

__all__ = ["VARIABLES", "read_origin"]

VARIABLES = (
    "CUBLAS_WORKSPACE_CONFIG", "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_LAUNCH_BLOCKING", "CUDA_VISIBLE_DEVICES",
    "GOMP_CPU_AFFINITY", "KMP_AFFINITY", "KMP_BLOCKTIME", "LD_PRELOAD", "MALLOC_ARENA_MAX", "MALLOC_CONF",
    "MKL_NUM_THREADS", "NCCL_ALGO", "NCCL_PROTO", "NCCL_P2P_DISABLE", "NUMEXPR_NUM_THREADS", "NVIDIA_TF32_OVERRIDE",
    "OMP_NUM_THREADS", "OMP_PROC_BIND", "OMP_WAIT_POLICY", "OPENBLAS_NUM_THREADS", "PYTHONMALLOC",
    "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "TOKENIZERS_PARALLELISM", "TORCHDYNAMO_DISABLE",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "TORCH_DISTRIBUTED_DEBUG", "TORCH_SHOW_CPP_STACKTRACES",
)  # fmt: skip
"""Variables that change the speed of a training, and hold no secrets."""
MOST_FILES = 100
"""Texts that are digested: more changed files than this are a branch in the making."""
MOST_BYTES = 2**20
"""Larger files are no source."""
MOST_ENTRIES = 5000
"""Entries of a folder without a repository that are looked at."""
DIGITS = 12
"""Of a SHA-256, to tell two texts of one file apart."""


def read_origin(
    command: Sequence[str], moves: Sequence[Move] = (), environment: Mapping[str, str] | None = None
) -> Origin:
    """The origin of a run of ``command``, started from here. Never raises: what went wrong is among its notes."""
    variables = os.environ if environment is None else environment
    chosen = {name: variables[name] for name in VARIABLES if variables.get(name)}
    try:
        script = _script(command)
        folder = script.parent if script is not None else Path.cwd()
        repository = read_repository(folder, script)
        packages = read_packages(find_sites(command)) or None
        texts = _texts(script, folder, repository)
    except Exception as err:  # the run is worth more than the record of where it came from
        return Origin(variables=chosen, moves=list(moves), notes=[f"Its origin could not be read: {err!r}."])
    if repository is None:
        return Origin(_name(script), texts=texts, packages=packages, variables=chosen, moves=list(moves))
    return Origin(
        script=_name(script),
        repository=str(repository.top),
        commit=repository.commit,
        branch=repository.branch,
        changed=repository.changed,
        tracked=repository.tracked,
        texts=texts,
        packages=packages,
        variables=chosen,
        moves=list(moves),
        notes=[repository.note] if repository.note else [],
    )


def _script(command: Sequence[str]) -> Path | None:
    """The first word that is a Python file, also behind ``torchrun`` or ``accelerate launch``."""
    named = (Path(word) for word in command if word.endswith(".py"))
    return next((path.resolve() for path in named if path.is_file()), None)


def _name(script: Path | None) -> str | None:
    return str(script) if script is not None else None


def _texts(script: Path | None, folder: Path, repository: Repository | None) -> dict[str, str]:
    top = repository.top if repository is not None else folder
    files: list[Path] = [script] if script is not None else []
    if repository is not None:
        files += [top / name for name in repository.changed or []]
    if repository is None or repository.tracked is False:
        files += _beside(folder)
    return _digests(dict.fromkeys(files), top)


def _beside(folder: Path) -> list[Path]:
    """Python files here; of a folder with a million images only the first entries are looked at."""
    with os.scandir(folder) as entries:
        return sorted(Path(entry.path) for entry in islice(entries, MOST_ENTRIES) if entry.name.endswith(".py"))


def _digests(files: Iterable[Path], top: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in list(files)[:MOST_FILES]:
        name = path.relative_to(top).as_posix() if path.is_relative_to(top) else path.name
        try:
            if path.is_file() and path.stat().st_size <= MOST_BYTES:
                found[name] = hashlib.sha256(path.read_bytes()).hexdigest()[:DIGITS]
        except OSError:  # removed or unreadable in the meantime: it has no text to compare
            continue
    return found
