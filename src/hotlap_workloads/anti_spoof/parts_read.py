"""The parts of the data as a training asks for them: found, checked, and without what was put in quarantine."""

from __future__ import annotations

from pathlib import Path

from hotlap_workloads.anti_spoof.clips import Clips
from hotlap_workloads.anti_spoof.layouts import Part, asv_scores_file, read_part
from hotlap_workloads.anti_spoof.made_data import make_data
from hotlap_workloads.anti_spoof.settings import SpoofSettings
from hotlap_workloads.anti_spoof.tandem import AsvErrors, read_asv_scores
from hotlap_workloads.engine.quarantine import quarantined
from hotlap_workloads.engine.task import Context
from hotlap_workloads.parts.audio_file import read_wave

__all__ = ["PartReader"]


class PartReader:
    """Reads parts below the folder that ``--data`` or ``database`` names, or of the set that it makes."""

    def __init__(self, s: SpoofSettings, context: Context) -> None:
        self._context = context
        self._seen: list[Path] = []
        named = context.data or s.database
        self._settings = s if named else SpoofSettings()
        self._folder = Path(named) if named else context.data_or_made(make_data)

    def clips(self, *parts: Part) -> list[Clips]:
        """The recordings of each part."""
        must_exist = not self._context.quarantine
        found = [read_part(self._settings, self._folder, part, must_exist) for part in parts]
        self._seen += [path for clips in found for path in clips.paths]
        bad = quarantined(self._seen, read_wave, self._context)  # with those of before: quarantine.txt stays complete
        return [clips.without(bad) for clips in found]

    def asv(self, part: Part) -> AsvErrors | None:
        """Errors of the speaker verification system whose scores come with the data."""
        file = asv_scores_file(self._settings, self._folder, part)
        return None if file is None else read_asv_scores(file)
