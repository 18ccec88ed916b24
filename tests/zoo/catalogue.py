"""The zoo's list: how each animal is started, and what of it may differ between two bare runs."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["ANIMALS", "Animal"]


@dataclass(frozen=True)
class Animal:
    """One awkward training. ``command`` runs in a folder that holds a copy of ``animals/``."""

    name: str
    command: tuple[str, ...]
    exit_code: int = 0
    env: dict[str, str] = field(default_factory=dict)
    stdin: str | None = None
    """Name of the file given on standard input, or literal text when no such file exists."""
    needs: tuple[str, ...] = ()
    """Modules without which the animal is skipped."""
    volatile: tuple[str, ...] = ()
    """Files that differ between two bare runs (pickles of memory addresses, ...)."""
    loose_stderr: bool = False
    """Its stderr differs between two bare runs (process ids, clocks)."""
    watchable: bool = True
    """False: no optimizer step can be seen, so that Hotlap says so and exits with 1 where the script exits with 0."""
    slow: bool = False
    """Left to bench/harmless.py by default: it takes long, is a cousin of another one, or a part of one that runs several."""


def _script(name: str, *args: str, **kw: object) -> Animal:
    return Animal(name, ("python", f"{name}.py", *args), **kw)  # type: ignore[arg-type]


ANIMALS: tuple[Animal, ...] = (
    _script("plain_loop", slow=True),
    Animal("module", ("python", "-m", "pkg.train", "--steps", "12")),
    Animal("shell", ("sh", "shell.sh"), exit_code=7),
    Animal("from_stdin", ("python", "-", "--", "-m"), stdin="from_stdin.py", slow=True),
    Animal("interrupts_from_stdin", ("python", "-", "--", "-m"), stdin="interrupts_itself.py", exit_code=-2),
    Animal("dash_c", ("python", "-c", "import runpy; runpy.run_path('plain_loop.py', run_name='__main__')"), slow=True),
    Animal(
        "isolated",
        ("python", "-I", "-c", "import sys; sys.path.insert(0, ''); import plain_loop"),
        watchable=False,
        slow=True,
    ),
    Animal("optimised", ("python", "-OO", "-W", "error::FutureWarning", "-X", "utf8", "accumulation.py"), slow=True),
    Animal(
        "torchrun",
        ("torchrun", "--standalone", "--nproc-per-node", "2", "torchrun_ddp.py"),
        loose_stderr=True,
        slow=True,
    ),
    Animal(
        "accelerate_launch",
        (
            "accelerate",
            "launch",
            "--cpu",
            "--num_processes",
            "1",
            "--num_machines",
            "1",
            "--mixed_precision",
            "no",
            "--dynamo_backend",
            "no",
            "accelerate_loop.py",
        ),
        needs=("accelerate",),
        loose_stderr=True,
        slow=True,
    ),
    _script("accelerate_loop", needs=("accelerate",), slow=True),
    _script("lightning_trainer", needs=("lightning",), loose_stderr=True, slow=True),
    _script("hf_trainer", needs=("transformers", "accelerate"), volatile=("hf/*",), slow=True),
    _script("gan", slow=True),
    _script("accumulation", slow=True),
    _script("grad_scaler", slow=True),
    _script("while_loop", slow=True),
    _script("by_hand_update", watchable=False, slow=True),
    _script("generator", slow=True),
    _script("spawned_workers", slow=True),
    _script("forked_workers"),
    _script("lbfgs", slow=True),
    _script("exit_three", exit_code=3, slow=True),
    _script("raises", exit_code=1, slow=True),
    _script("exit_in_thread", slow=True),
    _script("reads_own_source", "-c", "--json", "x y", slow=True),
    _script("tee_around_own_source", "-c", "--json", "x y", exit_code=120),
    _script("execs_config", slow=True),
    _script("env_before_torch", slow=True),
    _script("menagerie", volatile=("model.pickle",)),
    _script("uses_alarm", slow=True),
    _script("own_sitecustomize", env={"PYTHONPATH": "site"}, slow=True),
    _script("reexec", "--runs", "a", slow=True),
    _script("mp_spawn", slow=True),
    _script("os_write", slow=True),
    _script("replaced_stdout", exit_code=120, slow=True),
    _script("compiled_eager", slow=True),
    _script("tensor_subclass", slow=True),
    _script("loader_subclass", slow=True),
    _script("autocast_user", slow=True),
    _script("stays_in_eval", slow=True),
    _script("optimizer_recreated", slow=True),
    _script("copies_and_pickles", volatile=("model.pickle",), slow=True),
    _script("jit_script", slow=True),
    _script("weird_getattr", slow=True),
    _script("own_patches", slow=True),
    _script("debuggers_on", slow=True),
    _script("reads_stdin", stdin="0.05\nmore words\n", slow=True),
    _script("atexit_files", exit_code=1),
    _script("subprocess_helpers", slow=True),
    _script("os_exit", exit_code=9, slow=True),
    _script("interrupts_itself", exit_code=-2, slow=True),
    _script("killed", exit_code=143, slow=True),
    _script("dies_by_signal", exit_code=-9, slow=True),
    _script("in_asyncio", slow=True),
    _script("no_torch", watchable=False),
)
