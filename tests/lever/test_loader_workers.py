"""What loader-workers offers by cause."""

from __future__ import annotations

from hotlap.lever.catalog import loader_workers
from hotlap.lever.contract import Refusal
from hotlap.testing.lever_kit import findings_of, machine_of


def test_uneven_batches_get_a_longer_queue_and_the_same_workers() -> None:
    findings = findings_of("prefetch-depth", num_workers=2, persistent_workers=True, prefetch_factor=2)
    finding = loader_workers.evidence(findings)
    assert finding is not None
    offered = loader_workers.settings(finding, findings, machine_of())
    assert not isinstance(offered, Refusal)
    assert [(s["workers"], s["prefetch"], s["torch_threads"]) for s in offered] == [(2, 8, None), (2, 16, None)]
    gain = loader_workers.gain(finding, findings, offered[0])
    assert gain.high_s > 0
