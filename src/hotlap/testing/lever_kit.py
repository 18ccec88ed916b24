"""Conformance kit for levers: inherit :class:`LeverConformance`, give it a lever, get every behavioural check.

::

    class TestMyLever(LeverConformance):
        @pytest.fixture
        def lever(self):
            return my_lever_module
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import random
from typing import Any

import pytest

from hotlap.lever.contract import Gain, Lever, Refusal, Setting
from hotlap.records.causes import CAUSES
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings, LoaderFacts, Script, StepModel, Throughput, Where
from hotlap.records.machine import Accelerator, Machine
from hotlap.records.plan import PRESERVES
from hotlap.testing.lever_target import LocalTarget
from hotlap.testing.lever_training import bare_training, full_training, ranks_training

__all__ = ["HEADINGS", "LeverConformance", "findings_of", "machine_for", "machine_of"]

HEADINGS = ("Evidence:", "Gain:", "Runtime:", "Source:", "Risk:")

_TORCHS_OWN = {"Adam._init_group", "Module.__init__", "Module.__setstate__"}
"""What torch.compile itself replaces for good when it is first used."""


def machine_of(**changes: Any) -> Machine:
    """Two cores, bf16, a compiler, tcmalloc; ``changes`` replace fields."""
    gib = 1 << 30
    machine = Machine("Linux", "a CPU", 2, 24 * gib, 20 * gib, ["avx2", "avx512f", "avx512_bf16"], "3.11", "2.13",
                      compiler="g++", shm_bytes=8 * gib, shm_free_bytes=8 * gib,
                      allocators=["/usr/lib/libtcmalloc.so.4"])  # fmt: skip
    return dataclasses.replace(machine, **changes)


def machine_for(lever: Lever) -> Machine:
    """:func:`machine_of`, with an A100 for a lever that is for accelerators alone."""
    if getattr(lever, "DEVICE", "") != "cuda":
        return machine_of()
    return machine_of(accelerators=[Accelerator("NVIDIA A100-SXM4-40GB", 40 << 30, "8.0", True, True, True, True)])


def findings_of(*causes: str, **loader: Any) -> Findings:
    """Findings of a 100 ms step, half of it data wait, with the given causes; ``loader`` replaces loader facts."""
    where = Where("train.py", 12, "main")
    facts = LoaderFacts(0, 4, False, None, False, "Files", 16, False, 4, 1200, where)
    found = [Finding(cause, 0.3, 0.03, False, [where], CAUSES[cause], evidence={}) for cause in causes]
    model = {"conv_layers": 3, "dtype": "float32", "autocast": "fp16" if "emulated-dtype" in causes else None}
    return Findings(
        script=Script("train.py", ["train.py"], "plain", "cpu", dataclasses.replace(facts, **loader),
                      model=model, optimizers=[{"class": "Adam", "tensors": 9}]),
        throughput=Throughput(40.0, 10.0, 0.1, 0.09, 4.0, 100, 10),
        phases={"data_wait": 0.5, "forward": 0.1, "backward": 0.1, "optimizer": 0.05, "validation": 0.1},
        step_model=StepModel(0.1, 0.05, 0.03, 0.005, 0.015, 0.01, 0.004, 0.001, load_s=0.05, decode_s=0.03,
                             collate_s=0.005, io_wait_s=0.0, cores=2, torch_threads=2),
        findings=found,
    )  # fmt: skip


def _offer(lever: Lever) -> tuple[Finding, Findings, list[Setting]]:
    findings = findings_of(*lever.TREATS, dataset="Subset")  # of whatever
    machine = machine_for(lever)
    if machine.has_gpu:
        script = dataclasses.replace(findings.script, device=machine.accelerators[0].name)
        findings = dataclasses.replace(findings, script=script)
    finding = lever.evidence(findings)
    assert finding is not None, f"{lever.ID} sees no evidence in findings of {list(lever.TREATS)}"
    settings = lever.settings(finding, findings, machine)
    if getattr(lever, "ADVICE", False):
        assert isinstance(settings, Refusal) and "train.py:12" in settings.reason, "advice says where"
        return finding, findings, [{}]
    assert not isinstance(settings, Refusal), settings
    assert settings, f"{lever.ID} offers no setting and gives no reason"
    return finding, findings, settings


class LeverConformance:
    """What every lever owes. Override ``lever`` (a fixture), and ``train`` for a lever that treats something else."""

    @pytest.fixture
    def lever(self) -> Lever:
        raise NotImplementedError("give the kit a lever: override the `lever` fixture")

    @pytest.fixture(autouse=True)
    def quick_compile(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Compile without generating code: what is tested is the lever, not the compiler."""
        import torch

        real = torch.compile
        monkeypatch.setattr(torch, "compile", lambda *a, **k: real(*a, **{**k, "backend": "eager"}))

    @pytest.fixture(autouse=True)
    def strict(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The process asks for deterministic algorithms: one more sin."""
        import torch

        monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)

    def train(self, folder: str) -> list[float]:
        """A training in which the lever finds something to change; the loss of each step."""
        return full_training(folder)

    def train_bare(self) -> list[float]:
        """A training in which the lever finds nothing to change."""
        return bare_training()

    def test_names(self, lever: Lever) -> None:
        assert lever.ID.lower() == lever.ID and " " not in lever.ID
        assert set(lever.TREATS) <= set(CAUSES) and lever.TREATS
        assert lever.PRESERVES in PRESERVES
        assert lever.ID not in lever.CONFLICTS and isinstance(lever.NUMERIC, bool)

    def test_headings(self, lever: Lever) -> None:
        text = lever.__doc__ or ""
        places = [text.find("\n" + heading) for heading in HEADINGS]
        assert -1 not in places and places == sorted(places), f"wanted in order: {HEADINGS}"
        assert text.strip().split("\n")[0].endswith("."), "the first line says in one sentence what it does"

    def test_healthy_training_is_left_alone(self, lever: Lever) -> None:
        assert lever.evidence(findings_of("nothing-to-gain")) is None
        assert lever.evidence(findings_of()) is None

    def test_settings_are_json_and_pass_check(self, lever: Lever) -> None:
        _, _, settings = _offer(lever)
        for setting in settings:
            assert json.loads(json.dumps(setting)) == setting
            assert lever.check(setting, machine_for(lever)) is None
            assert all(isinstance(v, str) for v in lever.environment(setting).values())
        assert len({json.dumps(s, sort_keys=True) for s in settings}) == len(settings)

    def test_check_rejects(self, lever: Lever) -> None:
        _, _, settings = _offer(lever)
        good = settings[0]
        assert lever.check({**good, "no such key": 1}, machine_for(lever))
        for key in good:
            wrongs: list[Any] = ["nonsense", -7, [], 3.5]
            for wrong in wrongs:
                assert lever.check({**good, key: wrong}, machine_for(lever)), f"{key}={wrong!r} passed"
            missing = {k: v for k, v in good.items() if k != key}
            assert lever.check(missing, machine_for(lever)), f"{key} may be missing"

    def test_gain_is_an_interval(self, lever: Lever) -> None:
        finding, findings, settings = _offer(lever)
        for setting in settings:
            gain = lever.gain(finding, findings, setting)
            assert isinstance(gain, Gain) and gain.basis in ("measured", "modelled", "prior")
            assert all(math.isfinite(v) for v in (gain.low_s, gain.high_s, gain.startup_s))
            assert 0 <= gain.low_s <= gain.high_s <= findings.throughput.step_s

    def test_edits_are_data(self, lever: Lever) -> None:
        finding, _, settings = _offer(lever)
        edits = lever.edits(finding, settings[0])
        assert edits and all(isinstance(e, Edit) and e.file == "train.py" and e.line == 12 for e in edits)
        assert all(e.code or e.keywords or e.advice for e in edits)

    def test_apply_changes_and_leaves_no_trace(
        self, lever: Lever, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import torch

        if getattr(lever, "IDLE_ON_CPU", False) and not torch.cuda.is_available():
            pytest.skip(f"{lever.ID} has something to change beside an accelerator alone")
        if getattr(lever, "AT_LAUNCH", False):
            pytest.skip(f"{lever.ID} works from a process's first moment: tests of its own launch one")
        if getattr(lever, "ADVICE", False):
            return self._apply_says_that_it_is_advice(lever, str(tmp_path))
        folder = tmp_path / "data"
        folder.mkdir()
        train = ranks_training if getattr(lever, "RANKS", False) else self.train
        expected = train(str(folder))
        for setting in _offer(lever)[2][:2]:
            before = _fingerprint()
            scratch = tmp_path / f"scratch-{random.getrandbits(32):x}"
            scratch.mkdir()
            for name, value in lever.environment(setting).items():
                monkeypatch.setenv(name, value)
            with LocalTarget(str(scratch)) as target:
                lever.apply(target, setting)
                losses = train(str(folder))
            assert target.changes > 0, f"{lever.ID} {setting} found nothing to change"
            assert target.problems == []
            after = _fingerprint()
            left = sorted(k for k in {*after, *before} - _TORCHS_OWN if after.get(k) != before.get(k))
            assert not left, f"not put back: {left}"
            assert len(losses) == len(expected) and all(math.isfinite(v) for v in losses)
            if lever.PRESERVES == "bits":
                assert losses == expected
            if lever.PRESERVES == "maths":
                assert losses == pytest.approx(expected, rel=0.1)
        assert train(str(folder)) == expected, "the process trains differently after the lever is gone"

    def _apply_says_that_it_is_advice(self, lever: Lever, folder: str) -> None:
        with LocalTarget(folder) as target:
            before = _fingerprint()
            lever.apply(target, {})
            assert _fingerprint() == before
        assert target.changes == 0 and "by hand" in target.reasons[0]

    def test_no_effect_is_no_change(self, lever: Lever, tmp_path: Any) -> None:
        expected = self.train_bare()
        with LocalTarget(str(tmp_path)) as target:
            lever.apply(target, _offer(lever)[2][0])
            losses = self.train_bare()
        assert losses == expected
        # a lever on the process itself (its allocator) has something to change in any training
        assert target.changes == 0 or getattr(lever, "PROCESS_WIDE", False)


def _fingerprint() -> dict[str, Any]:
    """What a lever could leave behind in this process."""
    import builtins
    import gc
    import threading

    import numpy
    import torch
    from torch.utils.data import DataLoader

    owners: dict[str, Any] = {
        "torch": torch, "os": os, "numpy": numpy, "builtins": builtins, "autograd": torch.autograd,
    }  # fmt: skip
    found: dict[str, Any] = {
        f"{n}.{k}": id(v) for n, o in owners.items() for k, v in list(vars(o).items()) if callable(v)
    }
    wrapper = torch.nn.parallel.DistributedDataParallel
    for kind in (torch.nn.Module, DataLoader, torch.optim.Optimizer, torch.optim.Adam, wrapper):
        found.update({f"{kind.__name__}.{k}": id(v) for k, v in vars(kind).items() if callable(v)})
    found["threads"] = torch.get_num_threads()
    found["benchmark"] = torch.backends.cudnn.benchmark
    found["deterministic"] = (torch.backends.cudnn.deterministic, torch.are_deterministic_algorithms_enabled())
    found["fp32"] = torch.get_float32_matmul_precision()
    found["flushes"] = torch.tensor(1e-40).mul(1.0).view(torch.int32).item() == 0
    found["anomaly"] = torch.is_anomaly_enabled()
    found["collector"] = (gc.get_threshold(), gc.get_freeze_count() > 0, gc.isenabled())
    found["collect"] = id(gc.collect)
    found["ours"] = sorted(t.name for t in threading.enumerate() if t.name.startswith("hotlap"))
    found["abilities"] = len(os.supports_dir_fd)
    return found
