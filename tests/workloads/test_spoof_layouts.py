"""Protocols and folders as they are published, and what is wrong with those that are not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hotlap_workloads.anti_spoof.clips import read_protocol
from hotlap_workloads.anti_spoof.layouts import asv_scores_file, read_part
from hotlap_workloads.anti_spoof.settings import SpoofSettings
from hotlap_workloads.errors import DataError

S = SpoofSettings()


def put(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def asvspoof(root: Path, track: str, nested: bool) -> Path:
    base = root / track if nested else root
    for part, end in (("train", "train.trn"), ("dev", "dev.trl"), ("eval", "eval.trl")):
        name = f"{track}_{part[0].upper()}"
        lines = f"{track}_0079 {name}_1 - - bonafide\n{track}_0080 {name}_2 aaa A07 spoof\n\n"
        put(base / f"ASVspoof2019_{track}_cm_protocols/ASVspoof2019.{track}.cm.{end}.txt", lines)
        for number in (1, 2):
            put(base / f"ASVspoof2019_{track}_{part}/flac/{name}_{number}.flac")
    put(base / f"ASVspoof2019_{track}_asv_scores/ASVspoof2019.{track}.asv.eval.gi.trl.scores.txt")
    return base


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("track", ["LA", "PA"])
def test_asvspoof_2019(tmp_path: Path, track: str, nested: bool) -> None:
    base = asvspoof(tmp_path, track, nested)
    s = replace(S, track=track)  # type: ignore[arg-type]
    clips = read_part(s, tmp_path, "eval")
    assert clips.names == [f"{track}_E_1", f"{track}_E_2"] and clips.sources == ["-", "A07"] and clips.keys == [1, 0]
    assert clips.paths[1] == base / f"ASVspoof2019_{track}_eval/flac/{track}_E_2.flac"
    assert read_part(s, tmp_path, "train").names[0] == f"{track}_T_1"
    assert asv_scores_file(s, tmp_path, "dev") is None
    found = asv_scores_file(s, tmp_path, "eval")
    assert found is not None and found.name == f"ASVspoof2019.{track}.asv.eval.gi.trl.scores.txt"


def test_df_trains_on_la_and_is_evaluated_on_the_keys_of_2021(tmp_path: Path) -> None:
    asvspoof(tmp_path, "LA", True)
    lines = [
        "LA_0023 DF_E_2000011 nocodec asvspoof A14 spoof notrim progress traditional_vocoder - - - -",
        "TEF2 DF_E_2000013 low_m4a vcc2020 Task1-team20 spoof notrim eval neural_vocoder Task1 team20 FF E",
        "TGF1 DF_E_2000024 mp3m4a vcc2020 - bonafide notrim eval bonafide - - - -",
    ]
    put(tmp_path / "DF/keys/DF/CM/trial_metadata.txt", "\n".join(lines))
    for number in (2000013, 2000024):
        put(tmp_path / f"DF/ASVspoof2021_DF_eval/flac/DF_E_{number}.flac")
    s = replace(S, track="DF")
    assert read_part(s, tmp_path, "dev").names == ["LA_D_1", "LA_D_2"]
    clips = read_part(s, tmp_path, "eval")
    assert clips.sources == ["Task1-team20", "-"] and clips.keys == [0, 1]  # the progress subset is left out
    assert asv_scores_file(s, tmp_path, "eval") is None


def test_named_files_win_over_published_names(tmp_path: Path) -> None:
    put(tmp_path / "mine.txt", "s a - - bonafide\ns b - X spoof\n")
    put(tmp_path / "scores.txt")
    for name in "ab":
        put(tmp_path / f"flac/{name}.flac")
    s = replace(S, dev_protocol="mine.txt", asv_scores="scores.txt")
    assert read_part(s, tmp_path, "dev").names == ["a", "b"]
    assert asv_scores_file(s, tmp_path, "dev") == tmp_path / "scores.txt"


@pytest.mark.parametrize(
    ("layout", "parts"),
    [("fake_or_real", ("training", "validation", "testing")), ("scenefake", ("train", "dev", "eval"))],
)
@pytest.mark.parametrize("inside", ["", "for-2sec/for-2seconds"])
def test_folders_of_real_and_fake(tmp_path: Path, layout: str, parts: tuple[str, ...], inside: str) -> None:
    for part in parts:
        put(tmp_path / inside / part / "real/one two.wav")
        put(tmp_path / inside / part / "fake/sub/file1.wav_16k.wav")
        put(tmp_path / inside / part / "fake/notes.txt")
    s = replace(S, layout=layout)  # type: ignore[arg-type]
    for name in ("train", "dev", "eval"):
        clips = read_part(s, tmp_path, name)  # type: ignore[arg-type]
        assert clips.names == ["real/one%20two", "fake/sub/file1.wav_16k"]
        assert clips.keys == [1, 0] and clips.sources == ["-", "fake"] and all(path.is_file() for path in clips.paths)
    assert asv_scores_file(s, tmp_path, "dev") is None


def test_folders_that_are_not_one_set(tmp_path: Path) -> None:
    s = replace(S, layout="fake_or_real")
    with pytest.raises(DataError, match="holds 0 folders training/real, not one"):
        read_part(s, tmp_path, "train")
    for version in ("for-norm", "for-rerec"):
        put(tmp_path / version / "training/real/a.wav")
    with pytest.raises(DataError, match=r"holds 2 folders training/real, not one: .*for-norm.*for-rerec"):
        read_part(s, tmp_path, "train")
    with pytest.raises(DataError, match="has 1 bona fide recordings among 1: both kinds are needed"):
        read_part(s, tmp_path / "for-norm", "train")


GOOD = "s a - - bonafide\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD + "s b - spoof\n", "line 2 has 4 fields, not `SPEAKER UTT ENVIRONMENT ATTACK KEY`: 's b - spoof'"),
        (GOOD + "s b c d A07 spoof notrim eval\n", "line 2 has 8 fields, not `SPEAKER UTT ENVIRONMENT"),
        ("a\n", "line 1 has 1 fields"),
        (GOOD + "s b - A07 fake\n", "line 2: the key is 'fake', not bonafide or spoof"),
        (GOOD + "s a - A07 spoof\n", "line 2 lists a again, after line 1"),
        (GOOD + "s c - A07 spoof\n", "line 2 names .*c.flac, which does not exist"),
        (GOOD, "has 1 bona fide recordings among 1"),
        ("", "has 0 bona fide recordings among 0"),
    ],
)
def test_wrong_protocols_are_named(tmp_path: Path, text: str, said: str) -> None:
    for name in "ab":
        put(tmp_path / f"flac/{name}.flac")
    with pytest.raises(DataError, match=rf"x\.trl\.txt.*{said}"):
        read_protocol(put(tmp_path / "x.trl.txt", text), tmp_path / "flac")


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"ASVspoof2019\.LA\.cm\.train\.trn\.txt: does not exist"):
        read_part(S, tmp_path, "train")
    with pytest.raises(DataError, match=r"ASVspoof2019\.PA\.cm\.dev\.trl\.txt: does not exist"):
        read_part(replace(S, track="PA"), tmp_path, "dev")
    put(tmp_path / "protocols/A.cm.dev.trl.txt")
    with pytest.raises(DataError, match=r"ASVspoof2019_LA_dev/flac: does not exist. Nor do .*flac"):
        read_part(S, tmp_path, "dev")
    put(tmp_path / "protocols/B.cm.dev.trl.txt")
    with pytest.raises(DataError, match=r"holds 2 protocols for dev. Choose: dev_protocol=protocols/A"):
        read_part(S, tmp_path, "dev")
