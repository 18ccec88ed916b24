"""A lap's arms keep out of each other's way."""

from __future__ import annotations

import json
from pathlib import Path

from hotlap.lap.options import Options, Silent
from hotlap.lap.session import Session
from hotlap.records.call import ENV
from hotlap.records.run_folder import RunFolder
from hotlap.testing.timelines import cpu_machine


def test_each_arm_has_a_scratch_folder_of_its_own(tmp_path: Path) -> None:
    options = Options(["python", "train.py"], sandbox=False)
    with Session(options, cpu_machine(), RunFolder.create("train", tmp_path), Silent()) as session:
        one, two = session.arm("baseline"), session.arm("cache")
        first, second = (Path(json.loads(Path(arm.spec.env[ENV]).read_text())["scratch"]) for arm in (one, two))
        assert first != second and first.is_dir() and second.is_dir() and first.parent == second.parent
        (second / "used").write_text("by this arm")
        session.discard(two)
        assert first.is_dir() and not second.exists()
    assert not first.parent.exists()
