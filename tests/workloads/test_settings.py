"""Settings from the command line and from files: the right type, or an error that names the key."""

from __future__ import annotations

import math
import os
import re
import sys
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hotlap_workloads import train
from hotlap_workloads.catalogue import NAMES, find_workload
from hotlap_workloads.engine import machine as engine_machine
from hotlap_workloads.engine.config_file import read_config
from hotlap_workloads.engine.machine import (
    Machine,
    _cpu_has_bf16,
    _is_installed,
    apply_process_wide,
    check_machine,
    read_machine,
    resolved,
)
from hotlap_workloads.engine.optimise import lr_factor, make_optimizer
from hotlap_workloads.engine.overrides import override, parse_pairs
from hotlap_workloads.engine.profiles import PROFILES, compiled, from_pack
from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.errors import SettingsError, ended
from hotlap_workloads.face_distill.settings import FaceSettings
from hotlap_workloads.session import Request, settings_of, settings_of_run
from hotlap_workloads.speaker_verify.settings import SpeakerSettings
from hotlap_workloads.tiny_detr.settings import TinySettings

P100 = Machine(4, (6, 0), "Tesla P100")
A100 = Machine(16, (8, 0), "A100")
CPU = Machine(2)


def test_values_get_the_type_of_their_field() -> None:
    pairs = parse_pairs(["batch_size=32", "lr=1e-2", "tf32=True", "precision=bf16", "trackers=wandb,mlflow"])
    s = override(EngineSettings(), pairs, "--set")
    assert (s.batch_size, s.lr, s.tf32, s.precision, s.trackers) == (32, 0.01, True, "bf16", ("wandb", "mlflow"))


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        ("batchsize=3", "no setting 'batchsize'. The nearest is 'batch_size'"),
        ("batch_size=many", "batch_size='many' is not a whole number"),
        ("batch_size=2.5", "not a whole number"),
        ("tf32=maybe", "not true or false"),
        ("precision=fp8", "not one of off, fp16, bf16"),
        ("trackers=tensorboard,excel", "each is one of tensorboard, wandb, mlflow"),
        ("lr", "is not key=value"),
    ],
)
def test_an_error_names_the_key_and_what_it_takes(pair: str, said: str) -> None:
    with pytest.raises(SettingsError) as err:
        override(EngineSettings(), parse_pairs([pair]), "--set")
    assert said in str(err.value) and err.value.exit_code == 2


def test_configuration_files(tmp_path: Path) -> None:
    conf = tmp_path / "a.conf"
    conf.write_text('{"cudnn_benchmark_toggle": "True", "optim_config": {"base_lr": 0.5}, "tf32": "False"}')
    aliases = {"cudnn_benchmark_toggle": "cudnn_benchmark", "optim_config.base_lr": "lr"}
    s = override(EngineSettings(tf32=True), read_config(conf, aliases), str(conf))
    assert s.cudnn_benchmark is True and s.lr == 0.5 and s.tf32 is False
    yaml = tmp_path / "experiment_01.yaml"
    yaml.write_text("batch_size: 7\ntrackers: [mlflow]\nlr: 1\n")
    s = override(EngineSettings(), read_config(yaml, {}), str(yaml))
    assert (s.batch_size, s.trackers, s.lr) == (7, ("mlflow",), 1.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- 1\n", "holds a list"),
        ("a: [", "is not valid"),
        ("batch_size: '1'\nsize: 2\n", "both set 'batch_size'"),
        ("batch_size: true\n", "batch_size=True is not a whole number"),
        ("wrokers: 2\n", "The nearest is 'workers'"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(text)
    with pytest.raises(SettingsError, match=r"c\.yaml") as err:
        override(EngineSettings(), read_config(path, {"size": "batch_size"}), str(path))
    assert said in str(err.value)


@pytest.mark.parametrize(
    ("change", "machine", "said"),
    [
        ({"tf32": True}, P100, "Tesla P100 has no TF32. Set tf32=false; precision=fp16 is what is fast there"),
        ({"precision": "bf16"}, P100, "no bf16. Use precision=fp16"),
        ({"compile": True}, P100, "too old for Triton"),
        ({"precision": "fp16"}, CPU, "Use precision=bf16"),
        ({"search_batch_size": True}, CPU, "needs a GPU"),
        ({"device": "cpu", "tf32": True}, A100, "has no TF32"),
    ],
)
def test_a_machine_is_not_asked_for_what_it_cannot_do(change: dict[str, object], machine: Machine, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        check_machine(replace(EngineSettings(), **change), machine)  # type: ignore[arg-type]


def test_a_switch_picks_the_precision_of_the_machine(tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    for text, machine, wanted in (("true", A100, "bf16"), ("'True'", P100, "fp16"), ("off", A100, "off")):
        config.write_text(f"precision: {text}\n")
        s = override(EngineSettings(precision="fp16"), read_config(config, {}), str(config))
        assert resolved(s, machine).precision == wanted
    assert resolved(EngineSettings(precision="auto", device="cpu"), P100).precision == "bf16"


def test_the_end_of_the_cosine_and_the_moments_of_adam() -> None:
    s = EngineSettings(lr=0.1, lr_min=0.02, epochs=4, schedule="cosine", betas=(0.8, 0.9), amsgrad=True)
    factors = [lr_factor(s, 10)(step) * s.lr for step in (0, 20, 40, 50)]
    assert factors == pytest.approx([0.1, 0.06, 0.02, 0.02])
    for name in ("adam", "adamw"):
        group = make_optimizer(nn.Linear(2, 2), replace(s, optimizer=name)).param_groups[0]  # type: ignore[arg-type]
        assert group["betas"] == (0.8, 0.9) and group["amsgrad"]


def test_steps_of_the_rate_are_off_at_zero() -> None:
    s = EngineSettings(schedule="step", decay=0.5, decay_every_epochs=2.0)
    assert [lr_factor(s, 10)(step) for step in (19, 20, 45)] == [1, 0.5, 0.25]
    off = replace(s, decay_every_epochs=0.0)
    off.check()
    assert [lr_factor(off, 10)(step) for step in (0, 50)] == [1, 1]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("machine", [P100, A100, CPU])
def test_profiles_ask_every_machine_for_what_it_has(profile: str, machine: Machine) -> None:
    s = PROFILES[profile](EngineSettings(), machine)
    s.check()
    check_machine(s, machine)
    assert s.deterministic == (profile == "reproducible")


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        (EngineSettings, {"seed": -1}, "seed=-1 is negative"),
        (EngineSettings, {"momentum": -1.0}, "momentum=-1.0 is negative"),
        (
            EngineSettings,
            {"evaluate_every_epochs": math.inf},
            "evaluate_every_epochs=inf is no finite number. 0 is off",
        ),
        (EngineSettings, {"weight_decay": math.nan}, "weight_decay=nan is no finite number"),
        (EngineSettings, {"betas": (0.9, math.nan)}, "betas=(0.9, nan) is no finite number"),
        (SpeakerSettings, {"eval_crops": 0}, "eval_crops=0 is less than 1"),
        (SpeakerSettings, {"crop_s": 0.0}, "crop_s=0.0 is too short"),
        (
            SpeakerSettings,
            {"eval_crop_s": 0.024},
            "is too short. A window of the front end takes 0.025 s",
        ),
        (SpeakerSettings, {"rooms": -1}, "rooms=-1 is negative"),
        (TinySettings, {"dropout": 2.0}, "dropout=2.0 is not from 0 to below 1"),
        (FaceSettings, {"photos_per_identity": -1}, "photos_per_identity=-1 is negative"),
        (FaceSettings, {"batch_size": 1}, "batch_size=1: the norm of the embeddings takes two photos at least"),
        (EngineSettings, {"decay_every_epochs": -1.0}, "decay_every_epochs=-1.0 is negative. 0 is off"),
        (EngineSettings, {"persistent_workers": True}, "Set workers=1 or more, or persistent_workers=false."),
        (EngineSettings, {"lr_min": 0.1, "lr": 0.01}, "lr_min=0.1 is above lr=0.01"),
        (EngineSettings, {"lr_min": -0.1, "lr_for_samples": 8}, "lr_min=-0.1 is negative"),
    ],
)
def test_values_that_no_training_can_have(kind: type[EngineSettings], change: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(said)):
        kind(**change).check()


@pytest.mark.parametrize("name", NAMES)
def test_presets_choose_a_tracker_that_is_installed(tmp_path: Path, name: str) -> None:
    full, wanted = replace(CPU, trackers=("tensorboard", "wandb", "mlflow")), "tensorboard"
    wanted = "mlflow" if name == "tiny_detr" else wanted
    for preset in find_workload(name).presets:
        request = Request(name, tmp_path, preset)
        assert settings_of(request, full).trackers == (wanted,) and settings_of(request, CPU).trackers == ()
        assert settings_of(replace(request, values={"trackers": ""}), full).trackers == ()


def test_trackers_are_looked_for_without_importing_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "runs_of_some_tracker").mkdir()
    (tmp_path / "some_tracker.py").write_text("raise RuntimeError('imported')")
    assert _is_installed("some_tracker") and not _is_installed("no_tracker")
    assert not _is_installed("runs_of_some_tracker"), "W&B leaves a folder wandb/ where it ran"
    monkeypatch.setattr(engine_machine, "_is_installed", lambda name: name != "wandb")
    assert read_machine().trackers == ("tensorboard", "mlflow") == read_machine().cpu.trackers


def test_staging_wants_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["anti_spoof", "--out", str(tmp_path / "run"), "--set", f"stage_to={tmp_path}/local"]
    assert train.main(command) == 2
    assert "copies what --data names, and no --data is given" in capsys.readouterr().err


def test_contradictions() -> None:
    for wrong in (
        EngineSettings(deterministic=True, cudnn_benchmark=True),
        EngineSettings(persistent_workers=True),
        EngineSettings(batch_size=0),
        EngineSettings(memory_ceiling_frac=0.99),
        EngineSettings(lr_min=1.0),
        EngineSettings(betas=(0.9,)),
        EngineSettings(betas=(0.9, 1.0)),
    ):
        with pytest.raises(SettingsError):
            wrong.check()


@pytest.mark.parametrize("name", ["clip_norm", "weight_decay", "warmup_epochs", "evaluate_every_epochs", "max_steps"])
def test_what_is_below_nothing_is_no_switch(name: str) -> None:
    with pytest.raises(SettingsError, match=f"{name}=-1 is negative. 0 is off"):
        replace(EngineSettings(), **{name: -1}).check()  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match=r"decay=-0.1 is negative\.$"):
        EngineSettings(decay=-0.1).check()


@pytest.mark.parametrize(
    ("workload", "text", "setting"),
    [("face_distill", "warmup_epoch: -1\n", "warmup_epochs"), ("tiny_detr", "clip_max_norm: -0.1\n", "clip_norm")],
)
def test_what_published_files_switch_off_is_off(tmp_path: Path, workload: str, text: str, setting: str) -> None:
    config = tmp_path / "c.yaml"
    config.write_text(text)
    assert getattr(settings_of(Request(workload, tmp_path, "slow", config=config), CPU), setting) == 0


def test_a_cpu_beside_a_gpu_gets_the_settings_of_a_cpu(tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text("device: cpu\n")
    for how in ({"values": {"device": "cpu"}}, {"config": config}):
        s = settings_of(Request("anti_spoof", tmp_path, "fast", **how), A100)  # type: ignore[arg-type]
        assert not s.tf32 and s.precision == "bf16" and s.device == "cpu"
    with pytest.raises(SettingsError, match="tf32=true, and CPU has no TF32"):
        settings_of(Request("anti_spoof", tmp_path, "fast", values={"device": "cpu", "tf32": "true"}), A100)


def test_the_same_bits_need_the_workspace_of_cublas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", "own")
    try:
        apply_process_wide(EngineSettings(deterministic=True))
        assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == "own"
        del os.environ["CUBLAS_WORKSPACE_CONFIG"]
        apply_process_wide(EngineSettings(deterministic=True))
        assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8" and torch.are_deterministic_algorithms_enabled()
    finally:
        apply_process_wide(EngineSettings())


def test_a_configuration_may_have_a_byte_order_mark_and_must_be_text(tmp_path: Path) -> None:
    for name, text in (("a.yaml", "batch_size: 7\n"), ("a.conf", '{"batch_size": 7}')):
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + text.encode())
        assert read_config(tmp_path / name, {}) == {"batch_size": 7}
    (tmp_path / "a.yaml").write_bytes("seed: 1  # Zoë\n".encode("latin-1"))
    with pytest.raises(SettingsError, match=r"a\.yaml is no UTF-8 text: .* at byte 13"):
        read_config(tmp_path / "a.yaml", {})


@pytest.mark.parametrize(("cores", "wanted"), [(1, 0), (2, 0), (4, 1), (16, 2)])
def test_a_pack_is_read_by_processes_only_where_cores_are_to_spare(cores: int, wanted: int) -> None:
    for machine in (Machine(cores), Machine(cores, (8, 0), "A100")):
        found = from_pack(EngineSettings(workers=9, persistent_workers=True), machine)
        found.check()
        assert (found.workers, found.persistent_workers) == (wanted, wanted > 0)
        assert found.batches_ahead == (2 if machine.gpu and not wanted else 0), "a thread, where a GPU would wait"


def test_bf16_is_for_what_computes_it_in_hardware(tmp_path: Path) -> None:
    old, new = Machine(2, cpu_bf16=False), Machine(2)
    assert (old.autocast, new.autocast, replace(A100, cpu_bf16=False).autocast) == ("off", "bf16", "bf16")
    for name in ("slow", "fast"):
        assert settings_of(Request("anti_spoof", tmp_path, name), old).precision == "off"
    assert settings_of(Request("anti_spoof", tmp_path, "fast"), new).precision == "bf16"
    assert replace(A100, cpu_bf16=False).cpu == Machine(16, cpu_bf16=False)
    for machine in (old, A100):
        assert settings_of(Request("anti_spoof", tmp_path, "fast"), machine).keep_freed_memory != machine.gpu
    (tmp_path / "cpuinfo").write_text("model name : EPYC\nflags : fpu avx2 avx512_bf16 sse\n")
    assert _cpu_has_bf16(tmp_path / "cpuinfo") and _cpu_has_bf16(tmp_path / "none")
    (tmp_path / "cpuinfo").write_text("model name : EPYC\nflags : fpu avx2\n")
    assert not _cpu_has_bf16(tmp_path / "cpuinfo")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{}", "does not say of which workload"),
        ("[1]", "does not say of which workload"),
        ('{"workload": "tiny_detr"}', "holds a run of tiny_detr, not of speaker_verify"),
        ("{", "cannot be read"),
    ],
)
def test_a_folder_that_holds_no_run_of_the_workload_is_named(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "settings.json").write_text(content)
    with pytest.raises(SettingsError, match=said):
        settings_of_run(Request("speaker_verify", tmp_path, "slow"))


def test_a_run_whose_batch_was_searched_is_evaluated_at_what_was_found(tmp_path: Path) -> None:
    content = '{"workload": "anti_spoof", "batch_size": 36, "search_batch_size": true}'
    (tmp_path / "settings.json").write_text(content)
    settings = settings_of_run(Request("anti_spoof", tmp_path))
    assert (settings.batch_size, settings.search_batch_size) == (36, False)


def test_nothing_is_compiled_where_no_compiler_is(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = P100.cpu
    for cxx, found in ((sys.executable, True), ("no-such-compiler", False)):
        monkeypatch.setenv("CXX", cxx)
        assert compiled(EngineSettings(), cpu, 5).compile is found
        assert not compiled(EngineSettings(), P100, 5).compile, "not measured on a GPU"
        asked = replace(EngineSettings(), compile=True)
        check_machine(asked, A100)
        with nullcontext() if found else pytest.raises(SettingsError, match="no-such-compiler is not found"):
            check_machine(asked, cpu)


@pytest.mark.parametrize("workload", ["anti_spoof", "tiny_detr"])
def test_a_folder_of_another_workload_is_refused_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], workload: str
) -> None:
    (tmp_path / "settings.json").write_text('{"workload": "speaker_verify"}')
    for data in ([], ["--data", str(tmp_path)]):
        assert train.main([workload, "--out", str(tmp_path), *data]) == 2
        assert f"holds a run of speaker_verify, not of {workload}. Name another --out." in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["settings.json"]


def test_made_data_of_another_workload_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "made_data/wav").mkdir(parents=True)
    assert train.main(["tiny_detr", "--out", str(tmp_path)]) == 1
    assert "made_data cannot be written: Directory not empty. Remove it, or name another" in capsys.readouterr().err


@pytest.mark.parametrize("out", ["a_file", "a_file/below", "/proc/nope"])
def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], out: str) -> None:
    (tmp_path / "a_file").touch()
    assert train.main(["speaker_verify", "--out", str(tmp_path / out)]) == 1
    error = capsys.readouterr().err
    assert f"{out} cannot be written" in error and error.endswith("--out names a folder to write in.\n")


@pytest.mark.parametrize(("name", "said"), [("none", "does not exist"), ("a_file", "is no folder")])
def test_data_that_are_not_there_are_named_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, said: str
) -> None:
    (tmp_path / "a_file").touch()
    command = ["speaker_verify", "--out", str(tmp_path / "out"), "--data", str(tmp_path / name)]
    assert train.main(command) == 2
    assert f"--data {tmp_path / name} {said}." in capsys.readouterr().err


def test_a_program_ends_with_a_code_and_at_most_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    def work(outcome: int | BaseException) -> int:
        if isinstance(outcome, int):
            return outcome
        raise outcome

    for outcome, code, line in (
        (7, 7, ""),
        (KeyboardInterrupt(), 130, "Stopped by Ctrl-C.\n"),
        (SettingsError("It is wrong.", "Mend it."), 2, "It is wrong. Mend it.\n"),
    ):
        assert ended(partial(work, outcome)) == code
        assert capsys.readouterr().err == line
