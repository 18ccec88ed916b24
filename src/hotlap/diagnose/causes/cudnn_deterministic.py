"""cudnn-deterministic: deterministic algorithms were asked for, which are slower."""

from __future__ import annotations

from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "cudnn-deterministic"


def find(view: View) -> Finding | None:
    """A prior, on a device only. It is the user's choice: nothing turns it off by itself."""
    value = view.setting("backends")
    everywhere = bool(value.get("deterministic"))
    if not view.on_device or not (everywhere or value.get("cudnn_deterministic")):
        return None
    prior = view.policy.cudnn_deterministic_prior
    name = "torch.use_deterministic_algorithms" if everywhere else "torch.backends.cudnn.deterministic"
    evidence = {"deterministic": everywhere, "compute_s": view.compute_s, "basis": "prior", "prior": prior}
    return view.finding(
        CAUSE, view.compute_s * prior, f"Leave {name} off where runs need not repeat bit for bit.",
        view.forward_where(), detail=name.rpartition(".")[2], phase="forward", evidence=evidence,
    )  # fmt: skip
