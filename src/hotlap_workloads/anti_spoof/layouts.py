"""Where published sets keep their files: ASVspoof's protocols, folders and ASV scores; folders of real and fake."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from hotlap_workloads.anti_spoof.clips import BONA_FIDE, SPOOF, Clips, Row, read_protocol
from hotlap_workloads.anti_spoof.settings import SpoofSettings
from hotlap_workloads.errors import DataError

__all__ = ["Part", "asv_scores_file", "read_part"]

Part = Literal["train", "dev", "eval"]
ENDS = {"train": "train.trn", "dev": "dev.trl", "eval": "eval.trl"}
FOLDERS = {
    "fake_or_real": {"train": "training", "dev": "validation", "eval": "testing"},
    "scenefake": {"train": "train", "dev": "dev", "eval": "eval"},
}
KINDS = {"real": BONA_FIDE, "fake": SPOOF}
SUFFIXES = {".wav", ".flac", ".ogg", ".mp3"}


def read_part(s: SpoofSettings, data: Path, part: Part, must_exist: bool = True) -> Clips:
    """The recordings of a part. With ``must_exist``, one that a protocol names must be there."""
    if s.layout != "asvspoof":
        return read_folders(data, s.layout, part)
    chosen = {"train": s.train_protocol, "dev": s.dev_protocol, "eval": s.eval_protocol}[part]
    protocol = data / chosen if chosen else protocol_file(data, s.track, part)
    return read_protocol(protocol, audio_folder(data, s.track, part), must_exist=must_exist)


def protocol_file(data: Path, track: str, part: Part) -> Path:
    """By its published name, below ``data`` or ``data/TRACK``; or the only one of its kind in ``protocols/``."""
    if track == "DF" and part == "eval":
        names = ["keys/DF/CM/trial_metadata.txt", "keys/CM/trial_metadata.txt", "trial_metadata.txt"]
        return existing(base / name for base in bases(data, "DF") for name in names)
    t = "LA" if track == "DF" else track
    name = f"ASVspoof2019_{t}_cm_protocols/ASVspoof2019.{t}.cm.{ENDS[part]}.txt"
    own = sorted((data / "protocols").glob(f"*.cm.{ENDS[part]}.txt"))
    if len(own) > 1:
        setting = f"{part}_protocol=protocols/{own[0].name}"
        raise DataError(data / "protocols", f"holds {len(own)} protocols for {part}.", f"Choose: {setting}.")
    return existing([*(base / name for base in bases(data, t)), *own])


def audio_folder(data: Path, track: str, part: Part) -> Path:
    """The folder of the recordings: the published one, or ``flac/``."""
    t = "LA" if track == "DF" else track
    name = "ASVspoof2021_DF_eval" if (track, part) == ("DF", "eval") else f"ASVspoof2019_{t}_{part}"
    places = [base / name / "flac" for base in (*bases(data, t), *bases(data, track))]
    return existing([*places, data / "flac"])


def asv_scores_file(s: SpoofSettings, data: Path, part: Part) -> Path | None:
    """The ASV scores of a part, None where the set has none (t-DCF is then not measured)."""
    chosen = s.asv_scores if part == "dev" else s.heavy_asv_scores
    if chosen:
        return data / chosen
    if s.layout != "asvspoof" or (s.track == "DF" and part == "eval"):
        return None
    t = "LA" if s.track == "DF" else s.track
    name = f"ASVspoof2019_{t}_asv_scores/ASVspoof2019.{t}.asv.{part}.gi.trl.scores.txt"
    places = [base / name for base in bases(data, t)]
    places += sorted((data / "protocols").glob(f"*.asv.{part}.gi.trl.scores.txt"))
    return next((place for place in places if place.is_file()), None)


def read_folders(data: Path, layout: str, part: Part) -> Clips:
    """``PART/real`` and ``PART/fake``, below ``data`` or, as archives unpack, one or two folders deeper."""
    name = FOLDERS[layout][part]
    found = [path.parent for depth in ("", "*/", "*/*/") for path in sorted(data.glob(f"{depth}{name}/real"))]
    if len(found) != 1:
        which = ": " + ", ".join(str(path) for path in found) if found else ""
        raise DataError(data, f"holds {len(found)} folders {name}/real, not one{which}.", "Set --data or layout.")
    rows: list[Row] = []
    for kind, key in KINDS.items():
        for path in sorted(path for path in (found[0] / kind).rglob("*") if path.suffix.lower() in SUFFIXES):
            name = quote(path.relative_to(found[0]).with_suffix("").as_posix())  # no spaces in score files
            rows.append((name, path, "-" if key == BONA_FIDE else kind, key))
    return Clips.of(rows).of_both_kinds(found[0])


def bases(data: Path, track: str) -> tuple[Path, Path]:
    return data, data / track


def existing(places: Iterable[Path]) -> Path:
    """The first that exists, or an error that names the first that was expected."""
    tried = list(places)
    for place in tried:
        if place.exists():
            return place
    others = ", ".join(str(place) for place in tried[1:])
    raise DataError(tried[0], "does not exist.", f"Nor do {others}. --data names the folder of the set.")
