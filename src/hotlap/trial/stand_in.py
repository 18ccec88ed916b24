"""A file of the sandbox with other content than the real one, from before the command starts.

Loaded by the launcher without the package around it, beside ``layers.py``: standard library only.
"""

import importlib
from typing import Any


def put(layers: Any, target: str, source: str, real: list[str]) -> None:
    """Write the content of ``source`` over ``target`` in its layer.

    ``real``: paths that stay real. Raises ``layers.Impossible`` where writing would reach the real file.
    """
    module = importlib.import_module("layers")
    kept = next((path for path in real if module.inside(target, path)), None)
    problem = f"{target} lies in {kept}, which stays real" if kept else layers.problem(target)
    if problem:
        raise module.Impossible(f"{problem}, so its values cannot be changed for a trial alone")
    with open(source, "rb") as new:
        content = new.read()
    with open(target, "r+b") as file:
        file.truncate()
        file.write(content)
