"""``hotlap pack`` and ``hotlap stage`` as a person calls them; and the loader without the rest of Hotlap."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pack_support import jpeg

from hotlap.cli.main import main
from hotlap.pack.manifest import read_json, write_json
from hotlap.pack.ways import _turn


def test_pack_inspect_verify_stage(pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = str(tmp_path / "p.pack")
    assert main(["pack", str(pictures), target, "--processes", "1"]) == 0
    assert "6 rows" in capsys.readouterr().out
    assert main(["pack", "inspect", target]) == 0
    shown = capsys.readouterr().out
    assert "uint8" in shown and "3 x 24 x 32" in shown and "classes: ['cat', 'dog']" in shown
    assert main(["pack", "verify", target]) == 0
    assert main(["stage", target, str(tmp_path / "q.pack")]) == 0
    part = next((tmp_path / "q.pack").glob("*.arrow"))
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)
    capsys.readouterr()
    assert main(["pack", "verify", str(tmp_path / "q.pack")]) == 1
    assert part.name in capsys.readouterr().out


def test_packing_imports_no_more_than_it_needs(pictures: Path, tmp_path: Path) -> None:
    """Each of these takes longer to import than a packing process needs for hundreds of images."""
    asked = "from hotlap.cli.main import main; import sys; main(sys.argv[1:]); print(sorted(sys.modules))"
    command = [sys.executable, "-c", asked, "pack", str(pictures), str(tmp_path / "p"), "--processes", "1"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert "'pyarrow'" in said
    for name in ("torch", "pandas", "hotlap.report.pages", "hotlap.lap.options"):
        assert f"'{name}'" not in said, name


def test_quarantine_is_told(pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (pictures / "cat" / "1.jpg").write_bytes(b"")
    command = ["pack", str(pictures), str(tmp_path / "p"), "--processes", "1"]
    assert main(command) == 1
    assert "cat/1.jpg is empty" in capsys.readouterr().err.replace("\n", " ")
    assert not (tmp_path / "p" / "pack.json").exists()
    assert main([*command[:2], str(tmp_path / "q"), "--on-error", "quarantine"]) == 0
    assert "left out: 1" in capsys.readouterr().out


def test_bench_compares(pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for k in range(20):
        (pictures / "dog" / f"x{k}.jpg").write_bytes(jpeg(k))
    main(["pack", str(pictures), str(tmp_path / "p"), "--processes", "1"])
    assert main(["pack", "bench", str(tmp_path / "p"), "--batch", "4", "--budget", "1", "--crop", "16x16"]) == 0
    shown = capsys.readouterr().out
    assert "hotlap.pack, inline" in shown and "DataLoader, sample by sample" in shown


@pytest.mark.parametrize("arguments", [
    ["nowhere", "p"], [".", "p", "--size", "0x5"], ["inspect", "nowhere"], ["verify", "nowhere"], ["bench", "nowhere"],
    [".", "p", "--processes", "0"], ["bench", "p", "--batch", "0"], ["bench", "p", "--clip", "0"],
    ["bench", "p", "--budget", "0"], ["", "p"], [".", ""], ["verify", ""], [" ", "p"], [".", "p", "--append"],
])  # fmt: skip
def test_bad_calls(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if arguments[0] == "bench" and len(arguments) > 2:
        monkeypatch.setattr("hotlap.pack.Pack", lambda folder: pytest.fail("refused before anything is opened"))
    try:
        code = main(["pack", *arguments])
    except SystemExit as err:
        code = int(str(err.code))
    assert code in (1, 2)
    assert list(tmp_path.iterdir()) == []


def test_verify_tells_damage_from_what_is_no_whole_pack(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "p"
    main(["pack", str(pictures), str(target), "--processes", "1"])
    document = read_json(target / "pack.json")
    (tmp_path / "part" / ".packing").mkdir(parents=True)
    (tmp_path / "part" / ".packing" / "plan.json").write_text("{}")
    write_json(target / "pack.json", document | {"version": 2})
    for folder, told in ((target, "version 2"), (tmp_path / "part", "interrupted"), (tmp_path / "x", "not exist")):
        capsys.readouterr()
        assert main(["pack", "verify", str(folder)]) == 1
        shown = capsys.readouterr()
        assert told in shown.err and "damaged" not in shown.out + shown.err
    (target / "pack.json").write_text("{")
    assert main(["pack", "verify", str(target)]) == 1
    assert "p: damaged" in capsys.readouterr().out


def test_stage_names_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").write_text("a")
    for arguments in (["", "x"], ["a", ""]):
        with pytest.raises(SystemExit):
            main(["stage", *arguments])
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


ALONE = """
import sys
from hotlap.pack import Loader, Image, pack, open_source
import hotlap.pack.augment, hotlap.pack.ways
rooms = {m.split(".")[1] for m in sys.modules if m.startswith("hotlap.")}
assert rooms <= {"pack", "records"}, rooms
assert not {"rich", "yaml", "scipy", "psutil", "jinja2"} & set(sys.modules), "only torch and numpy"
assert "pyarrow" not in sys.modules, "reading needs no Arrow library"
"""


def test_usable_alone() -> None:
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_packing_processes_do_without_torch() -> None:
    code = "import sys, hotlap.pack.packer, hotlap.pack.sources.listed; assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_a_turn_of_no_time_reads_a_batch() -> None:
    assert _turn(iter([4, 4]), 0.0)[0] > 0
