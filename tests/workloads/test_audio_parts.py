"""Features against an independent implementation; files that are whole, cut, or not what they should be."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import torch

from hotlap_workloads.engine.order import Draw, draw_seed
from hotlap_workloads.engine.ranks import Ranks
from hotlap_workloads.errors import DataError, WorkloadError
from hotlap_workloads.parts import flat_bank as flat_bank_module
from hotlap_workloads.parts.audio_file import FromFiles, Wave, read_wave
from hotlap_workloads.parts.class_order import ClassGroups
from hotlap_workloads.parts.crop import LongEnough, crop_at, even_crops
from hotlap_workloads.parts.fields import fields
from hotlap_workloads.parts.flat_bank import FlatBank, flat_bank
from hotlap_workloads.parts.phased_conv import PhasedConv2d
from hotlap_workloads.parts.spectrogram import LogMel, mel_filters


@pytest.mark.parametrize("bands", [40, 64, 80])
def test_mel_filters(bands: int) -> None:
    reference = pytest.importorskip("transformers.audio_utils").mel_filter_bank
    wanted = reference(257, bands, 0.0, 8000.0, 16_000, norm=None, mel_scale="htk").T
    np.testing.assert_allclose(mel_filters(bands, 257, 16_000).numpy(), wanted, atol=1e-5)


def test_log_mel_by_the_definition() -> None:
    wave = torch.randn(1, 4000, generator=torch.Generator().manual_seed(0))
    got = LogMel(40)(wave)[0].numpy()
    x = wave[0].numpy().astype(np.float64)
    x = x - 0.97 * np.concatenate([x[1:2], x[:-1]])
    x = np.pad(x, 256, mode="reflect")
    window = np.pad(0.54 - 0.46 * np.cos(2 * np.pi * np.arange(400) / 400), 56)
    frames = np.stack([np.abs(np.fft.rfft(x[i * 160 : i * 160 + 512] * window)) ** 2 for i in range(26)])
    logs = np.log(mel_filters(40, 257, 16_000).double().numpy() @ frames.T + 1e-6)
    wanted = (logs - logs.mean(1, keepdims=True)) / np.sqrt(logs.var(1, keepdims=True) + 1e-5)
    assert got.shape == (40, 26)
    np.testing.assert_allclose(got, wanted, atol=1e-3)


def test_features_stay_in_fp32_under_autocast() -> None:
    wave = torch.randn(2, 4000)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(LogMel(40)(wave), LogMel(40)(wave)) and LogMel(40)(wave).dtype == torch.float32


@pytest.mark.parametrize(("height", "width"), [(80, 404), (80, 403), (81, 41), (7, 8), (1, 1)])
@pytest.mark.parametrize(("kernel", "stride", "padding"), [(7, 2, 3), (3, 3, 1), (4, 2, 1), (5, 1, 0), (2, 4, 3)])
def test_gradients_by_phase(height: int, width: int, kernel: int, stride: int, padding: int) -> None:
    if min(height, width) + 2 * padding < kernel:
        pytest.skip("no output")
    torch.manual_seed(0)
    phased = PhasedConv2d(2, 8, kernel, stride, padding).double()
    plain = torch.nn.Conv2d(2, 8, kernel, stride, padding, bias=False).double()
    plain.load_state_dict(phased.state_dict())
    x = torch.randn(3, 2, height, width, dtype=torch.float64)
    by_phase, as_usual = x.clone().requires_grad_(), x.clone().requires_grad_()
    y, wanted = phased(by_phase), plain(as_usual)
    assert torch.equal(y, wanted) and torch.equal(phased(x), wanted)
    upstream = torch.randn_like(y)
    y.backward(upstream)
    wanted.backward(upstream)
    torch.testing.assert_close(by_phase.grad, as_usual.grad)
    torch.testing.assert_close(phased.weight.grad, plain.weight.grad)


def test_gradients_by_phase_under_autocast_and_compiled() -> None:
    torch.manual_seed(0)
    phased = PhasedConv2d(1, 8, 7, 2, 3).to(memory_format=torch.channels_last)
    x = torch.randn(2, 1, 40, 60, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        y = phased(x)
    assert y.dtype == torch.bfloat16
    y.sum().backward()
    assert x.grad is not None and x.grad.dtype == torch.float32
    plain = torch.nn.grad.conv2d_input(x.shape, phased.weight.detach(), torch.ones(y.shape), 2, 3)
    torch.testing.assert_close(x.grad, plain, atol=0.05, rtol=0.02)
    given = x.detach().clone().requires_grad_()
    torch.compile(phased, backend="eager", fullgraph=True)(given).sum().backward()
    torch.testing.assert_close(given.grad, plain)


def written(path: Path, seconds: float = 1.0, rate: int = 16_000, channels: int = 1) -> Path:
    sound = np.random.default_rng(0).uniform(-0.5, 0.5, (int(seconds * rate), channels))
    soundfile.write(str(path), sound, rate)
    return path


@pytest.mark.parametrize("kind", ["wav", "flac", "ogg"])
def test_a_file_is_read_whole_or_named(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path / f"a.{kind}")
    wave = read_wave(path)
    assert wave.dtype == np.int16 and wave.shape == (16_000,)
    path.write_bytes(path.read_bytes()[:-3000])
    with pytest.raises(DataError, match=f"a.{kind}"):
        read_wave(path)


def test_other_wrong_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"missing\.wav: cannot be read: No such file"):
        read_wave(tmp_path / "missing.wav")
    (tmp_path / "text.wav").write_text("no sound at all, but long enough")
    with pytest.raises(DataError, match=r"text\.wav: is no readable recording"):
        read_wave(tmp_path / "text.wav")
    with pytest.raises(DataError, match="has 8000 samples/s, 16000 are needed"):
        read_wave(written(tmp_path / "phone.wav", rate=8000))
    with pytest.raises(DataError, match="is empty"):
        read_wave(written(tmp_path / "empty.wav", seconds=0))
    assert read_wave(written(tmp_path / "stereo.wav", channels=2)).shape == (16_000,)


def test_crops() -> None:
    wave = np.arange(10, dtype=np.int16)
    assert crop_at(wave, 4, 0.0).tolist() == [0, 1, 2, 3] and crop_at(wave, 4, 0.9999).tolist() == [6, 7, 8, 9]
    assert crop_at(wave, 12, 0.5).tolist() == [*range(10), 0, 1]
    assert even_crops(wave, 4, 3)[:, 0].tolist() == [0, 3, 6] and even_crops(wave, 4, 1)[0, 0] == 3


def test_a_bank_cuts_a_batch_as_each_recording_is_cut(tmp_path: Path) -> None:
    paths = [written(tmp_path / f"{i}.wav", 0.1 * (i + 1)) for i in range(3)]
    read = LongEnough(FromFiles(paths), 2000)
    bank = flat_bank(tmp_path / "bank", paths, read, np.int16, Ranks())
    numbers, where = [2, 0, 1, 2, 2], [0.0, 0.7, 0.5, 1 - 2**-53, 0.3]
    wanted = [crop_at(read_wave(paths[i]), 2000, at) for i, at in zip(numbers, where, strict=True)]
    found = bank.stretches(numbers, where, 2000)
    assert found.dtype == np.int16 and np.array_equal(found, wanted)
    assert np.array_equal(found[3], read_wave(paths[2])[-2000:]) and not np.array_equal(found[4], found[0])
    with pytest.raises(ValueError, match="array 0 has 2000 values, not 3000"):
        bank.stretches([1, 0], [0.0, 0.0], 3000)


def test_a_draw_is_a_number_below_one() -> None:
    assert Draw(0, 0).uniform == 0.0 and Draw(0, (1 << 63) - 1).uniform == 1 - 2**-53
    numbers = np.array([Draw(row, draw_seed(1, 2, row)).uniform for row in range(4000)])
    assert np.histogram(numbers, 4, (0, 1))[0].min() > 900 and len(set(numbers)) == 4000


def test_a_bank_gives_what_the_files_hold_and_notices_a_changed_file(tmp_path: Path) -> None:
    paths = [written(tmp_path / f"{i}.wav", 0.1 * (i + 1)) for i in range(3)]

    def bank(read: Callable[[int], Wave], made: str = "waves") -> FlatBank[np.int16]:
        return flat_bank(tmp_path / "bank", paths, read, np.int16, Ranks(), made)

    def is_whole(found: FlatBank[np.int16]) -> bool:
        return all(np.array_equal(found(i), read_wave(path)) for i, path in enumerate(paths))

    def stops(number: int) -> Wave:
        if number == 1:
            raise RuntimeError("stopped")
        return np.zeros(5, np.int16)

    first = bank(FromFiles(paths))
    sent = pickle.dumps(first)
    assert is_whole(first) and len(sent) < 1000 and is_whole(pickle.loads(sent))
    assert is_whole(bank(stops))  # which nobody asked
    with pytest.raises(RuntimeError, match="stopped"):
        bank(stops, "other")
    assert is_whole(bank(FromFiles(paths)))  # begun again
    written(paths[1], 0.7)
    assert is_whole(bank(FromFiles(paths)))
    paths[2].unlink()
    with pytest.raises(DataError, match=r"2\.wav: cannot be read: No such file"):
        bank(FromFiles(paths))


def test_a_bank_stays_as_it_is_under_those_who_read_it(tmp_path: Path) -> None:
    """Another process makes it anew of other files; what a loading process opens later is not taken for it."""
    paths = [written(tmp_path / f"{i}.wav", 0.1 * (i + 1)) for i in range(3)]
    first = flat_bank(tmp_path / "bank", paths, FromFiles(paths), np.int16, Ranks())
    sent = pickle.dumps(first)
    assert np.array_equal(pickle.loads(sent)(2), read_wave(paths[2]))
    second = flat_bank(tmp_path / "bank", paths[1:], FromFiles(paths[1:]), np.int16, Ranks())
    for number in range(3):
        assert np.array_equal(first(number), read_wave(paths[number]))
    assert np.array_equal(second(0), read_wave(paths[1]))
    with pytest.raises(DataError, match=r"bank: was made anew by another process, of other files\."):
        pickle.loads(sent)


@pytest.mark.parametrize("killed", [False, True])
def test_two_processes_that_make_a_bank_at_once_both_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    """Each a whole one; and one that is killed with half its files in place leaves none that counts."""
    paths = [written(tmp_path / f"{i}.wav", 0.1 * (i + 1)) for i in range(2)]
    read, found, place = FromFiles(paths), [], os.replace

    def meanwhile(number: int) -> Wave:
        if number == 1:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(os, "getpid", lambda: 1)
                found.append(flat_bank(tmp_path / "bank", paths, read, np.int16, Ranks()))
        return np.zeros_like(read(number))

    def stops(new: Path, name: Path) -> None:
        if found and name.name == "shapes.npy":
            raise KeyboardInterrupt
        place(new, name)

    if killed:
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(os, "replace", stops)
            flat_bank(tmp_path / "bank", paths, meanwhile, np.int16, Ranks(), made="other")
    else:
        other = flat_bank(tmp_path / "bank", paths, meanwhile, np.int16, Ranks(), made="other")
        assert len(other(1)) == len(read(1)) and not other(0).any() and not other(1).any()
    found.append(flat_bank(tmp_path / "bank", paths, read, np.int16, Ranks()))
    assert all(np.array_equal(bank(i), read_wave(path)) for bank in found for i, path in enumerate(paths))
    assert sorted(file.name for file in (tmp_path / "bank").iterdir()) == ["files.json", "shapes.npy", "values.bin"]


def test_what_processes_that_are_gone_began_of_a_bank_is_removed(tmp_path: Path) -> None:
    """Among them one that had the number of this one, as in a container that is started again."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    (tmp_path / "bank").mkdir()
    for name in (f"values.bin.{gone.pid}.new", f"values.bin.{os.getpid()}.new", "files.json.new"):
        (tmp_path / "bank" / name).touch()
    paths = [written(tmp_path / "0.wav", 0.1)]
    flat_bank(tmp_path / "bank", paths, FromFiles(paths), np.int16, Ranks())
    assert sorted(file.name for file in (tmp_path / "bank").iterdir()) == ["files.json", "shapes.npy", "values.bin"]


def test_a_bank_of_the_same_files_is_known_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "0.wav", 0.1)
    monkeypatch.chdir(tmp_path)
    for one in (Path("0.wav"), Path("../") / tmp_path.name / "0.wav", path):
        flat_bank(tmp_path / "bank", [one], FromFiles([one]), np.int16, Ranks())
        values = (tmp_path / "bank/values.bin").stat().st_ino
        monkeypatch.setattr(flat_bank_module, "_fill", None)
    assert (tmp_path / "bank/values.bin").stat().st_ino == values


@pytest.mark.parametrize(("grain", "batch"), [(1, 6), (2, 8), (1, 20)])
def test_a_speaker_stands_once_in_a_batch(grain: int, batch: int) -> None:
    labels = [row % 9 for row in range(90)] + [0] * 8
    order = ClassGroups(labels, 5, grain)
    rows = order.rows(0)
    batches = order.batches(rows, batch)
    assert sorted(row for b in batches for row in b) == sorted(rows) and len(set(rows)) == len(rows)
    assert order.rows(0) == rows != order.rows(1)
    assert [len(b) for b in batches] == sorted((len(b) for b in batches), reverse=True)
    most = -(-batch // grain // 9)
    for made in batches:
        firsts = [labels[row] for row in made[::grain]]
        assert max(firsts.count(label) for label in firsts) <= most
        assert all(labels[made[i]] == labels[made[i - i % grain]] for i in range(len(made)))


@pytest.mark.parametrize("subtype", ["FLOAT", "DOUBLE"])
def test_a_recording_of_floats_is_as_loud_as_one_of_whole_numbers(tmp_path: Path, subtype: str) -> None:
    sound = np.random.default_rng(0).uniform(-0.5, 0.5, 1600)
    sound[:2] = 1.5, -1.5
    soundfile.write(str(tmp_path / "floats.wav"), sound, 16_000, subtype)
    soundfile.write(str(tmp_path / "whole.wav"), sound, 16_000, "PCM_16")
    floats, whole = (read_wave(tmp_path / f"{name}.wav").astype(int) for name in ("floats", "whole"))
    assert np.abs(floats - whole).max() <= 1 and floats[:2].tolist() == [32767, -32767]
    sound[7] = np.nan
    soundfile.write(str(tmp_path / "none.wav"), sound, 16_000, subtype)
    with pytest.raises(DataError, match=r"none\.wav: holds samples that are no numbers"):
        read_wave(tmp_path / "none.wav")


def test_a_list_may_have_a_byte_order_mark_and_must_be_text(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_bytes(b"\xef\xbb\xbfanna a.wav\n")
    assert list(fields(tmp_path / "list.txt", "speaker path")) == [(1, ["anna", "a.wav"])]
    (tmp_path / "list.txt").write_bytes("Zoë a.wav\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"list\.txt: is no UTF-8 text: .* at byte 2"):
        list(fields(tmp_path / "list.txt"))


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        (n, spoil)
        for n in ("values.bin", "shapes.npy", "files.json")
        for spoil in (lambda b: b[:-2], lambda b: b"", None)
    ]
    + [(n, lambda b: b"\xff" + b[1:]) for n in ("shapes.npy", "files.json")],  # of values the number alone is known
)
def test_a_damaged_bank_is_made_again(tmp_path: Path, name: str, spoil: Callable[[bytes], bytes] | None) -> None:
    paths = [written(tmp_path / f"{i}.wav", 0.1 * (i + 1)) for i in range(3)]
    file = tmp_path / "bank" / name
    flat_bank(tmp_path / "bank", paths, FromFiles(paths), np.int16, Ranks())
    whole = file.read_bytes()
    if spoil is None:
        file.unlink()
    else:
        file.write_bytes(spoil(whole))
    bank = flat_bank(tmp_path / "bank", paths, FromFiles(paths), np.int16, Ranks())
    assert file.read_bytes() == whole and all(np.array_equal(bank(i), read_wave(p)) for i, p in enumerate(paths))


@pytest.mark.parametrize("name", ["values.bin", "shapes.npy"])
def test_a_disk_without_room_for_a_bank_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    paths = [written(tmp_path / "0.wav", 0.1)]

    def full(path: Path, how: str) -> Any:
        Path(path).touch()
        return open("/dev/full" if name in str(path) else path, "wb" if how == "xb" else how)

    monkeypatch.setattr(flat_bank_module, "open", full, raising=False)
    with pytest.raises(WorkloadError, match=r"bank cannot be written: No space left .*Make room, or set decode=each"):
        flat_bank(tmp_path / "bank", paths, FromFiles(paths), np.int16, Ranks())
    assert not list((tmp_path / "bank").iterdir()), "what was begun takes no room"
