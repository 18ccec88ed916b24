"""The host's side of the door: the call file and the environment that opens it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from hotlap.inject.offline import MLFLOW_HERE, is_remote
from hotlap.lever.registry import levers
from hotlap.records.call import ENV, Call
from hotlap.records.codec import dumps
from hotlap.records.run_folder import write_atomic

__all__ = ["BOOTSTRAP", "environment"]

BOOTSTRAP = Path(__file__).parent / "bootstrap"

OFFLINE = {
    "WANDB_MODE": "offline",
    "WANDB_SILENT": "true",
    "COMET_START_ONLINE": "0",
    "COMET_AUTO_LOG_DISABLE": "1",
    "COMET_OFFLINE_DIRECTORY": "/tmp/hotlap-comet",
    "NEPTUNE_MODE": "offline",
    "CLEARML_OFFLINE_MODE": "1",
    "MLFLOW_ALLOW_FILE_STORE": "true",  # its present versions refuse a folder without it
    "HF_HUB_DISABLE_TELEMETRY": "1",
}
"""What keeps the known trackers off the network during a trial; files they write stay in the sandbox."""


def environment(call: Call, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """Write ``call`` beside its timelines and return the environment for the user's command.

    ``base`` defaults to ``os.environ``. Raises HotlapError when the call file cannot be written.
    """
    env = dict(os.environ if base is None else base)
    path = Path(call.timeline_dir) / "call.json"
    write_atomic(path, dumps(call))
    env[ENV] = str(path)
    before = env.get("PYTHONPATH")
    env["PYTHONPATH"] = str(BOOTSTRAP) + (os.pathsep + before if before else "")
    if call.offline:
        env.update(OFFLINE)
        if (base or os.environ).get("WANDB_MODE") == "disabled":  # as the user has it: quieter than offline
            env["WANDB_MODE"] = "disabled"
        for name in ("MLFLOW_TRACKING_URI", "MLFLOW_REGISTRY_URI"):
            if is_remote(env.get(name, "")):
                env[name] = MLFLOW_HERE
    known = levers()
    for move in call.moves:
        env.update(known[move.lever].environment(move.setting))
    return env
