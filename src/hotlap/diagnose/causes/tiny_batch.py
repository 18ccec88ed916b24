"""tiny-batch: steps are so short that Python and dispatch, which a batch of any size costs once, take most of them."""

from __future__ import annotations

from hotlap.diagnose.script import model_facts
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "tiny-batch"


def find(view: View) -> Finding | None:
    """Forward and backward that take little longer than calling the model's modules does with next to no numbers.

    Silent where a compiler has taken the modules' calls away, and where samples cannot be counted. On a device the
    same holds where the host never waits: then launching is all that the step does.
    """
    facts, batch = model_facts(view.timeline), view.times.samples
    modules = facts.get("modules")
    if not isinstance(modules, int) or facts.get("compiled") or not batch or view.compute_s <= 0.0:
        return None
    waits_s = view.seconds("sync") + view.seconds("h2d")  # a copy from pageable memory waits for the device, too
    if view.on_device and view.share(waits_s) > view.policy.tiny_wait_share:
        return None
    costly = min(modules, 2 * (facts.get("conv_layers") or 0))  # a convolution usually comes with a norm
    each_s = costly * view.policy.conv_call_s + (modules - costly) * view.policy.module_call_s
    calls_s = min(view.compute_s, view.times.micro * each_s)
    if calls_s < view.policy.tiny_calls_frac * view.compute_s:
        return None
    update_s = view.seconds("optimizer") + view.seconds("zero_grad")
    where = view.loader_where() or view.forward_where()
    sizes = f"{2 * batch:.0f},{4 * batch:.0f}"
    evidence = {
        "batch": batch, "modules": modules, "calls_s": calls_s, "compute_s": view.compute_s, "update_s": update_s,
        "basis": "prior", "prior": view.policy.larger_batch_prior,
    }  # fmt: skip
    return view.finding(
        CAUSE, (calls_s + update_s) * view.policy.larger_batch_prior,
        "A larger batch costs a step hardly more, but is another training: have it tried by naming the script's "
        f"option, `hotlap speedup --allow goal --knob 'batch=--batch-size {{{sizes}}}' -- ...`.", where,
        detail=f"{batch:.0f} samples are too few for {modules} modules", phase="forward", evidence=evidence,
    )  # fmt: skip
