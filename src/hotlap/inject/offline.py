"""A trial stays off the network where the script itself, not the environment it was given, would send it there.

``wandb.init(mode="online")``, ``mlflow.set_tracking_uri("https://...")`` and ``push_to_hub`` win over every variable,
and so do variables that the script sets (``load_dotenv()``). What a trial trains is half a model: it must not stand in
anybody's project or repository.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from concurrent.futures import Future
from types import ModuleType
from typing import Any

__all__ = ["MLFLOW_HERE", "is_remote", "stay_offline"]

OnImport = Callable[[str, Callable[[ModuleType], None]], None]
MLFLOW_HERE = "file:/tmp/hotlap-mlruns"
"""Where runs for a tracking server of MLflow go instead."""
REMOTE = ("http://", "https://", "databricks", "uc:")
"""How addresses of a tracking server of MLflow begin; all others are folders or files, in the sandbox."""
PUSHES = ("create_commit", "upload_file", "upload_folder", "upload_large_folder")
CREATES = ("create_repo", "create_branch", "create_tag", "preupload_lfs_files")
_asked = False


def is_remote(uri: object) -> bool:
    """Whether MLflow would ask a server for this address."""
    return str(uri).startswith(REMOTE)


def stay_offline(on_import: OnImport) -> None:
    """Replace what sends runs and models to W&B, MLflow and the Hugging Face Hub, as soon as these are imported.

    For the rest of the process, once however often it is asked: the script may import them before torch, and a program
    that only uploads imports no torch at all.
    """
    global _asked
    if _asked:
        return
    _asked = True
    for module, replace in _REPLACING.items():
        on_import(module, functools.partial(_guarded, replace))


def _guarded(replace: Callable[[ModuleType], None], module: ModuleType) -> None:
    """Another version may have other names; the script's import is not to fail for it."""
    try:
        replace(module)
    except Exception as err:
        why = f"{type(err).__name__}: {err}"  # into the trial's own log
        sys.stderr.write(f"hotlap: {module.__name__} is kept offline by its environment alone ({why}).\n")


def _wandb(module: Any) -> None:
    started = module.init

    @functools.wraps(started)
    def init(*args: Any, **kwargs: Any) -> Any:
        settings = kwargs.get("settings")
        given = settings.get("mode") if isinstance(settings, dict) else getattr(settings, "mode", None)
        mode = kwargs.get("mode") or given or os.environ.get("WANDB_MODE")
        kwargs["mode"] = "disabled" if mode == "disabled" else "offline"  # the script may have set the variable itself
        return started(*args, **kwargs)

    module.init = init


def _near(uri: Any) -> Any:
    return MLFLOW_HERE if is_remote(uri) else uri


def _mlflow(module: Any) -> None:
    set_uri, made = module.set_tracking_uri, module.MlflowClient.__init__

    @functools.wraps(set_uri)
    def set_tracking_uri(uri: Any) -> None:
        set_uri(_near(uri))

    @functools.wraps(made)
    def __init__(self: Any, tracking_uri: Any = None, registry_uri: Any = None, **kwargs: Any) -> None:
        made(self, _near(tracking_uri), _near(registry_uri), **kwargs)

    module.set_tracking_uri, module.MlflowClient.__init__ = set_tracking_uri, __init__


def _answering_near(name: str) -> Callable[[ModuleType], None]:
    """What MLflow asks where it is given no address: it reads the environment, which the script may have set."""

    def replace(module: ModuleType) -> None:
        asked = getattr(module, name)
        setattr(module, name, functools.wraps(asked)(lambda *args, **kwargs: _near(asked(*args, **kwargs))))

    return replace


def _hub(module: ModuleType) -> None:
    """Answers as of a server that took everything, so that the training goes on as it does with one."""
    commit = functools.partial(
        module.CommitInfo, commit_url="https://huggingface.co/none/none/commit/0", commit_message="",
        commit_description="", oid="0" * 40,
    )  # fmt: skip

    def pushed(*_: Any, run_as_future: bool = False, **__: Any) -> Any:
        if not run_as_future:
            return commit()
        done: Future[Any] = Future()
        done.set_result(commit())
        return done

    def create_repo(*args: Any, **kwargs: Any) -> Any:
        name = kwargs.get("repo_id") or next((arg for arg in args if isinstance(arg, str)), "none")
        return module.RepoUrl(f"https://huggingface.co/{name if '/' in name else f'none/{name}'}")

    for name in (*PUSHES, *CREATES):
        answer = create_repo if name == "create_repo" else pushed if name in PUSHES else _nothing
        for owner in (module, module.HfApi):
            if hasattr(owner, name):
                setattr(owner, name, answer)


def _nothing(*_: Any, **__: Any) -> None:
    return


_REPLACING: dict[str, Callable[[ModuleType], None]] = {
    "wandb": _wandb,
    "mlflow": _mlflow,
    "mlflow.tracking._tracking_service.utils": _answering_near("get_tracking_uri"),
    "mlflow.tracking._model_registry.utils": _answering_near("_resolve_registry_uri"),
    "huggingface_hub.hf_api": _hub,
}
