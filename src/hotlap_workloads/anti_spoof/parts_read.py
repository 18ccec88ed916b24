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
        self._settings, self._context = s, context
        self._seen: list[Path] = []
        named = context.data or s.database
        self._made = not named
        self.folder = Path(named) if named else context.data_or_made(make_data)

    def listed(self, part: Part) -> Clips:
        """The recordings of a part by their lists alone; those that cannot be read too."""
        settings = SpoofSettings() if self._made else self._settings
        return read_part(settings, self.folder, part, must_exist=not self._context.quarantine)

    def clips(self, part: Part) -> Clips:
        """The recordings of a part."""
        context = self._context
        clips = self.listed(part)
        if context.quarantine and not self._made:
            self._seen += clips.paths
            bad = quarantined(self._seen, read_wave, context)
            clips = clips.without(bad).of_both_kinds(self.folder)
        return clips

    def asv(self, part: Part) -> AsvErrors | None:
        """Errors of the speaker verification system whose scores come with the data."""
        settings = SpoofSettings() if self._made else self._settings
        file = asv_scores_file(settings, self.folder, part)
        return None if file is None else read_asv_scores(file)
