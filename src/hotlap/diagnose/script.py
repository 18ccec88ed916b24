"""What the script set up, from setting rows. Values come from other programs: a missing or odd key is None."""

from __future__ import annotations

from typing import Any

from hotlap.diagnose.stacks import user_where
from hotlap.records.findings import LoaderFacts, Script, Where
from hotlap.records.rows import Setting
from hotlap.records.timeline import Timeline

__all__ = ["conv2d_facts", "loader_facts", "model_facts", "optimizer_rows", "read_script", "setting"]


def setting(timeline: Timeline, name: str) -> Setting | None:
    """The last row of that name, or None."""
    return next((row for row in reversed(timeline.setting) if row.name == name), None)


def model_facts(timeline: Timeline) -> dict[str, Any]:
    """The model that trains: the one with most parameters, as last seen."""
    rows = [row.value for row in timeline.setting if row.name == "model"]
    latest = {(value.get("class"), value.get("parameters")): value for value in rows}
    largest: dict[str, Any] = max(latest.values(), key=lambda value: value.get("parameters") or 0, default={})
    return dict(largest)


def conv2d_facts(facts: dict[str, Any]) -> tuple[int | None, float | None]:
    """2-d convolutions of a network and their part of its parameters; of one seen before these were counted apart, all
    of its convolutions'."""
    return facts.get("conv2d_layers", facts.get("conv_layers")), facts.get("conv2d_frac", facts.get("conv_frac"))


def optimizer_rows(timeline: Timeline) -> list[Setting]:
    """One row per optimizer, as last seen."""
    rows = [row for row in timeline.setting if row.name == "optimizer"]
    return list({(r.value.get("class"), r.value.get("tensors"), r.value.get("parameters")): r for r in rows}.values())


def _int(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def loader_facts(timeline: Timeline) -> LoaderFacts | None:
    """The training loader: the one that trains, with most batches in an epoch when several do."""
    rows = [row for row in timeline.setting if row.name == "loader" and row.value.get("training") is not False]
    if not rows:
        return None
    latest = {row.value.get("id", i): row for i, row in enumerate(rows)}
    row = max(latest.values(), key=lambda r: _int(r.value.get("batches_per_epoch")) or 0)
    value = row.value
    return LoaderFacts(
        num_workers=_int(value.get("num_workers")) or 0,
        batch_size=_int(value.get("batch_size")),
        persistent_workers=bool(value.get("persistent_workers")),
        prefetch_factor=_int(value.get("prefetch_factor")),
        pin_memory=bool(value.get("pin_memory")),
        dataset=str(value.get("dataset") or ""),
        dataset_len=_int(value.get("dataset_len")),
        iterable=bool(value.get("iterable")),
        batches_per_epoch=_int(value.get("batches_per_epoch")),
        sample_bytes=_int(value.get("sample_bytes")),
        shuffled=bool(value.get("shuffled")),
        where=user_where(timeline, frame_id=row.frame),
    )


def _debug(timeline: Timeline) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    places = {}
    for row in timeline.setting:
        if row.name != "debug":
            continue
        where = user_where(timeline, frame_id=row.frame)
        for key, value in row.value.items():
            merged[key] = value
            if key in ("anomaly", "profiler") and value and where is not None:
                places[key] = f"{where.file}:{where.line}"
    return {**merged, "where": places} if places else merged


def read_script(timeline: Timeline, name: str, loader: LoaderFacts | None, forward: Where | None) -> Script:
    """The script's facts for the document."""
    header = timeline.header
    framework = setting(timeline, "framework")
    return Script(
        name=name,
        argv=list(header.argv),
        framework=str(framework.value.get("name") or "plain") if framework else "plain",
        device=timeline.device,
        loader=loader,
        model=model_facts(timeline),
        optimizers=[dict(row.value) for row in optimizer_rows(timeline)],
        debug=_debug(timeline),
        world_size=header.world,
        forward=forward,
    )
