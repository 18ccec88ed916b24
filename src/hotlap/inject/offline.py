"""A trial stays off the network where the script's own arguments, not the environment, would send it there.

``wandb.init(mode="online")``, ``mlflow.set_tracking_uri("https://...")`` and ``push_to_hub`` win over every variable.
What a trial trains is half a model: it must not stand in anybody's project or repository.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import Future
from types import ModuleType
from typing import Any

from hotlap.probe.undo import Undo

__all__ = ["MLFLOW_HERE", "is_remote", "stay_offline"]

OnImport = Callable[[str, Callable[[ModuleType], None]], None]
MLFLOW_HERE = "file:/tmp/hotlap-mlruns"
"""Where runs for a tracking server of MLflow go instead."""
REMOTE = ("http://", "https://", "databricks", "uc:")
"""How addresses of a tracking server of MLflow begin; all others are folders or files, in the sandbox."""
PUSHES = ("create_commit", "upload_file", "upload_folder", "upload_large_folder")
CREATES = ("create_repo", "create_branch", "create_tag")


def is_remote(uri: object) -> bool:
    """Whether MLflow would ask a server for this address."""
    return str(uri).startswith(REMOTE)


def stay_offline(undo: Undo, on_import: OnImport) -> None:
    """Replace what sends runs and models to W&B, MLflow and the Hugging Face Hub, as soon as these are imported."""
    on_import("wandb", lambda module: _wandb(module, undo))
    on_import("mlflow", lambda module: _mlflow(module, undo))
    on_import("huggingface_hub.hf_api", lambda module: _hub(module, undo))


def _wandb(module: ModuleType, undo: Undo) -> None:
    started = module.init

    @functools.wraps(started)
    def init(*args: Any, **kwargs: Any) -> Any:
        settings = kwargs.get("settings")
        given = settings.get("mode") if isinstance(settings, dict) else getattr(settings, "mode", None)
        if kwargs.get("mode", given) not in (None, "disabled"):
            kwargs["mode"] = "offline"
        return started(*args, **kwargs)

    undo.replace(module, "init", init)


def _mlflow(module: ModuleType, undo: Undo) -> None:
    def near(uri: Any) -> Any:
        return MLFLOW_HERE if is_remote(uri) else uri

    set_uri, made = module.set_tracking_uri, module.MlflowClient.__init__

    @functools.wraps(set_uri)
    def set_tracking_uri(uri: Any) -> None:
        set_uri(near(uri))

    @functools.wraps(made)
    def __init__(self: Any, tracking_uri: Any = None, registry_uri: Any = None, **kwargs: Any) -> None:
        made(self, near(tracking_uri), near(registry_uri), **kwargs)

    undo.replace(module, "set_tracking_uri", set_tracking_uri)
    undo.replace(module.MlflowClient, "__init__", __init__)


def _hub(module: ModuleType, undo: Undo) -> None:
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
                undo.replace(owner, name, answer)


def _nothing(*_: Any, **__: Any) -> None:
    return
