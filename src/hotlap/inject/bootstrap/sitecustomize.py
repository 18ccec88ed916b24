"""Runs in every Python process below ``hotlap … -- CMD``: it stands first on PYTHONPATH.

It chains to the user's own sitecustomize, hides its folder from ``sys.path`` and waits for ``import torch``; a trial's
trackers are kept offline whether torch comes or not.
A failure in here must never reach the script: it is kept in the run folder.
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _chain() -> None:
    """Run the sitecustomize that would have run without us, as the module ``sitecustomize``."""
    import importlib.machinery
    import importlib.util

    sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != _HERE]
    ours = sys.modules.pop("sitecustomize", None)
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        if ours is not None:
            sys.modules["sitecustomize"] = ours
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def _wait_for_torch() -> None:
    if "HOTLAP_CALL" not in os.environ:
        return
    import importlib.util
    import json

    root = os.path.dirname(os.path.dirname(_HERE))
    if "hotlap" not in sys.modules:  # the script's environment may not have Hotlap, or another version of it
        spec = importlib.util.spec_from_file_location(
            "hotlap", os.path.join(root, "__init__.py"), submodule_search_locations=[root]
        )
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["hotlap"] = module
        spec.loader.exec_module(module)
    from hotlap.inject.on_import import on_import

    def attach(_torch: object) -> None:
        from hotlap.inject.guest import attach_from_environment

        attach_from_environment()

    on_import("torch", attach)
    with open(os.environ["HOTLAP_CALL"]) as call:
        offline = json.load(call).get("offline", False)
    if offline:
        from hotlap.inject.offline import stay_offline

        stay_offline(on_import)


try:
    _wait_for_torch()
except Exception as err:  # the script goes on as if we were not there; the host reads why
    try:
        with open(os.environ["HOTLAP_CALL"] + f".{os.getpid()}.error", "w") as out:
            out.write(f"{type(err).__name__}: {err}\n")
    except OSError:
        print(f"hotlap: could not attach: {err}", file=sys.stderr)
_chain()
