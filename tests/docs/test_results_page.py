"""docs/results.md is made of what was measured, and says loudly what was not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from result_tellers import told
from result_values import rows, value
from results_page import FOLDERS, benchmarks, page

MACHINE = {"cpu": "Some CPU", "cores": 2, "memory_bytes": 8 << 30, "accelerators": [], "torch": "2", "python": "3",
           "system": "Linux"}  # fmt: skip


def made(folder: Path, sources: dict[str, str], results: dict[str, Any]) -> str:
    """The page of some made-up benchmarks, whose results are figures by file name."""
    bench, saved = folder / "bench", folder / "bench" / "results"
    saved.mkdir(parents=True)
    for name, text in sources.items():
        (bench / f"{name}.py").write_text(text)
    for name, figures in results.items():
        document = {"date": "2026-01-02", "machine": MACHINE, "figures": figures}
        (saved / f"{name}.json").write_text(json.dumps(document))
    return page(bench, saved)


def test_what_has_no_results_is_told_as_not_measured(tmp_path: Path) -> None:
    sources = {"slow": '"""Is it slow?\n\nMore."""\nsave("slow", {})\n', "big": '"""How big?"""\nsave("big", {})\n'}
    text = made(tmp_path, sources, {"slow": {"step_s": [0.1, 0.2, 0.4]}})
    assert "1 of 2 benchmarks have results. **Not measured: big.**" in text
    assert "| [slow](#slow) | Is it slow? | 2026-01-02 |" in text
    assert "| [big](#big) | How big? | **NOT MEASURED** |" in text
    assert "## big\n\nHow big?\n\n**NOT MEASURED.** There is no `bench/results/big.json`" in text
    assert "Measured on 2026-01-02: Some CPU, 2 cores, 8.0 GiB of memory, no GPU" in text
    assert "| step\\_s | 200 ms [100 ms, 400 ms] in 3 runs |" in text


def test_names_that_the_run_decides_and_reference_trainings_without_a_file(tmp_path: Path) -> None:
    source = '"""Which?"""\nname = f"race_{args.workload}_{where}"\nsave(name, {})\n'
    text = made(tmp_path, {"race": source}, {"race_speaker_verify_cpu": {"steps": 3}})
    assert "### race_speaker_verify_cpu" in text
    assert "**NOT MEASURED: anti_spoof, face_distill, tiny_detr, twin_verify.**" in text


def test_results_that_no_benchmark_saves_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="saves stray"):
        made(tmp_path, {"slow": '"""Is it slow?"""\nsave("slow", {})\n'}, {"stray": {}})


def test_every_benchmark_of_the_table_that_saves_is_known() -> None:
    known = {benchmark.name for benchmark in benchmarks(FOLDERS[0])}
    assert {"demo", "faults", "ladder", "loader", "overhead", "quality", "timeline_size"} <= known
    assert all(benchmark.question for benchmark in benchmarks(FOLDERS[0]))


@pytest.mark.parametrize(
    ("name", "found", "words"),
    [
        ("step_s", 0.0021, "2.10 ms"),
        ("samples_per_s", [100.0, 300.0, 200.0], "200 [100, 300] in 3 runs"),
        ("peak_bytes", 3 << 30, "3.0 GiB"),
        ("error_frac", 0.034, "3.4 %"),
        ("speedup", {"ratio": 1.5, "low": 1.4, "high": 1.6, "level": 0.98, "launches": 4},
         "1.5x [1.4, 1.6], level 0.98, 4 launches"),
        ("share", {"median": 0.9, "lowest": 0.8, "highest": 1.0}, "90 % [80 %, 100 %]"),
        ("quality", None, "not measured"),
        ("differences", [], "none"),
        ("held", False, "no"),
        ("rows", [{}] * 30, "30 entries, in the file"),
        ("commits", {str(n): "x" for n in range(90)}, "90 entries, in the file"),
    ],
)  # fmt: skip
def test_values_carry_unit_and_spread(name: str, found: Any, words: str) -> None:
    assert value(name, found) == words


def test_nothing_is_left_out_and_what_was_wanted_stands_beside() -> None:
    figures = {"asked": {"cause": 0.95}, "score": {"cause": 0.9, "scripts": 40}, "threads": "1"}
    assert told("size", {"figures": figures}).rows == [
        ("score · cause", "90 % (wanted: 95 %)"),
        ("score · scripts", "40"),
        ("threads", "1"),
    ]
    assert [name for name, _ in rows({"a": {"b": {"c": 1}, "d": 2}})] == ["a · b · c", "a · d"]


def test_a_wrong_cause_is_told_as_one() -> None:
    slow = {"findings": [{"cause": "decode"}], "cause": False, "line": True, "herring": False, "share": 0.9,
            "speedup": {"ratio": 1.8, "kept": ["cache-decode"]}, "by_hand": {"ratio": 2.0}}  # fmt: skip
    score = {"cause": 0.0, "line": 1.0, "herrings_taken": 0, "alone": 0.0, "recovered": 0.9, "treated": 1,
             "traceml_phase": None, "traceml_judged": 0}  # fmt: skip
    asked = {"cause": 0.95, "line": 0.9, "alone": 1.0, "recovered": 0.9}
    there = {"machine": {"cpu": "Xeon"}}
    scripts = {"clips": slow | there, "fine": {"findings": [], "alone": False} | there}
    said = told("faults", {"figures": {"score": score, "asked": asked, "scripts": scripts, "not_run": ["late"]}})
    words = dict(said.rows)
    assert words["clips"] == "decode: WRONG; line right; 1.80x (cache-decode) beside 2.00x by hand"
    slow["speedup"] |= {"ratio": 1.0, "interval": None}
    again = told("faults", {"figures": {"score": score, "asked": asked, "scripts": scripts, "not_run": []}})
    unproved = "1.00x (cache-decode, which the proof could not tell from the script) beside 2.00x by hand"
    assert dict(again.rows)["clips"].endswith(unproved)
    assert words["fine"] == "NOT LEFT ALONE" and said.after == "2 scripts: 2 by Xeon. **Not measured: late.**"
    assert words["of the speedup by hand, without touching the code"].endswith("of 1 scripts (wanted: 90 %)")


def test_parts_of_a_benchmark_that_were_measured_stand_in_the_index(tmp_path: Path) -> None:
    source = '"""Fast?"""\nsave(f"feed_{args.kind}", {})\n'
    text = made(tmp_path, {"feed": source}, {"feed_images": {"steps": 3}, "feed_audio": {"steps": 3}})
    assert "| [feed](#feed) | Fast? | 2026-01-02 (audio, images) |" in text


def test_the_loader_beside_its_rivals() -> None:
    row = {"samples_per_s": 9000.0, "cpu_s_per_1000": 0.2, "first_batch_s": 0.1, "epoch_start_s": 0.004,
           "anonymous_bytes": 1 << 28, "turns": 5}  # fmt: skip
    ratio = {"median": 2.5, "lowest": 2.4, "highest": 2.75}
    tier = {"ours": "hotlap.pack kernel", "best_rival": "FFCV", "of memcpy": {**ratio, "median": 0.8},
            **{f"{key}_ratio": ratio for key in ("samples_per_s", "cpu_s_per_1000", "anonymous_bytes")}}  # fmt: skip
    figures = {"count": 100, "kind": "images", "kernel": "ready", "summary": {"decoded": tier}, "ways": {"FFCV": row},
               "failed": {"WebDataset": "too slow"}, "rivals": {"FFCV": {"version": "1.0.2"},
               "Mosaic": {"version": "not installed (No module named 'streaming')"}}}  # fmt: skip
    said = dict(told("loader_feed_images", {"figures": figures}).rows)
    assert said["decoded: hotlap.pack kernel, samples/s over it"] == "2.50x [2.40x, 2.75x]"
    assert said["decoded: of memcpy"].startswith("80 %") and said["FAILED: WebDataset"] == "too slow"
    assert said["FFCV"].startswith("9,000 samples/s in 5 turns, 200 ms of CPU per 1,000, first batch after 100 ms")
    assert said["versions"] == "FFCV 1.0.2" and said["not installed, so not measured"] == "Mosaic"


def test_slow_downs_found_late_or_for_a_wrong_cause_are_told() -> None:
    row = {"kind": "leak", "changed_at": 9, "found": True, "right": True, "cause": "memory-leak", "after_s": 12.4,
           "after_steps": 90, "false_alarms": 0}  # fmt: skip
    kinds = [row, {**row, "kind": "swap", "found": False, "right": False, "false_alarms": 2},
             {**row, "kind": "gone", "found": False, "right": False, "cause": ""},
             {**row, "kind": "steady", "changed_at": None, "cause": ""}]  # fmt: skip
    said = dict(told("drift", {"figures": {"kinds": kinds, "not_measured": {"worker": "no root"}}}).rows)
    assert said["found in time with the right cause"] == "1 of 3 kinds" and said["false alarms"] == "2 in 4 runs"
    assert said["leak"] == "memory-leak after 12 s, 90 steps"
    assert said["swap"].endswith("late, WRONG cause, 2 false alarms") and said["gone"] == "no warning"
    assert said["worker: not measured"] == "no root"
    day = {"hours": 24.0, "steps": 1000, "stretches": 30, "alarms": [{"at_step": 7, "cause": "throttling"}]}
    said = dict(told("steady_day", {"figures": day}).rows)
    assert said["false warnings"].startswith("1 in 24 hours") and said["at step 7"] == "throttling"


def test_quality_is_told_with_each_metric_over_the_seeds() -> None:
    def run(wall_s: float, eer: float) -> dict[str, Any]:
        return {"wall_s": wall_s, "samples": 900, "evaluations": [{"at_s": 1.0, "step": 9, "eer": eer, "a_std": 0.1}]}

    figures: dict[str, Any] = {
        "data": "faces", "set": ["size=64"], "wall_factor": 2.5,
        "verdict": {"verdict": "not proved", "worse": 0.002, "lower": -0.004, "upper": 0.007, "margin": 0.001,
                    "how": "h"},
        "time_to_quality": {"slow_s": [8.0, 9.0], "fast_s": [4.0, None], "factor": None},
        "runs": {"slow": [run(10.0, 0.05), run(12.0, 0.07)], "fast": [run(4.0, 0.06), run(4.4, 0.06)]},
    }  # fmt: skip
    found = dict(told("quality", {"figures": figures}).rows)
    assert found["fast is worse by"] == "+0.20 [-0.40, +0.70] points, margin 0.1 points: not proved (h)"
    assert found["eer, slow"] == "0.060 [0.050, 0.070] over 2 seeds" and "a_std, slow" not in found
    assert found["runs of fast that reach slow's quality"] == "1 of 2"
    assert found["fast over slow, wall time of a whole run"] == "2.50x" and found["set for both alike"] == "size=64"
    assert found["trained on"] == "faces, 900 samples a run"


def test_loops_are_told_with_their_ratio_and_whether_losses_agree() -> None:
    loop = {"samples_per_s": 35.0, "samples_per_s_range": [34.0, 36.0], "turns": 3}
    over = {"median": 1.03, "lowest": 1.0, "highest": 1.18, "equal_bits": True, "largest_relative_difference": 0.0}
    row = {
        "loops": {"ours": loop},
        "ours_over": {
            "Lightning": over,
            "Accelerate": over | {"equal_bits": False, "largest_relative_difference": 0.01},
        },
        "failed": {"Fabric": "not installed"},
    }
    found = dict(told("loops", {"figures": {"workloads": {"face_distill": row}}}).rows)
    assert found["face_distill: ours over Lightning"] == "1.03x [1.00x, 1.18x], the same losses to the last bit"
    assert "losses differ by 1 % at most" in found["face_distill: ours over Accelerate"]
    assert found["face_distill: ours"] == "35.0 samples/s [34.0, 36.0] in 3 turns"
    assert found["FAILED face_distill: Fabric"] == "not installed"


def test_a_single_run_is_told_as_one() -> None:
    assert "single run" in told("size", {"figures": {"added_mb": 13.8}}).after
    assert told("size", {"figures": {"added_mb": [13.8, 14.0]}}).after == ""


def test_a_simulated_device_is_never_told_as_measured() -> None:
    row = {"name": "slow", "samples_per_s": 10.0, "of_roof": 0.5, "steps_of_roof": 0.6, "turns": 1}
    row |= {key: {"median": 1.0, "lowest": 1.0, "highest": 1.0} for key in ("factor", "cumulated")}
    figures = {"rows": [row], "presets": [], "failed": {}, "simulated": True, "about": "SIMULATED A100: …"}
    said = told("ladder_x_a100_simulated", {"figures": figures})
    assert said.after.startswith("**SIMULATED device, not measured on one.**")
    first = "10.0 samples/s, 50 % of its roof, 60 % without evaluations, checkpoints and epochs' starts"
    assert said.rows == [("slow", first)]
    fast = {**row, "name": "fast", "cumulated": {"median": 2.0, "lowest": 1.5, "highest": 2.5}}
    one, three = (
        told("ladder_x_cpu", {"figures": {**figures, "rows": [row, {**fast, "turns": turns}]}}).rows[1][1]
        for turns in (1, 3)
    )
    assert one.startswith("2.00x of slow in one round, so no spread is known, 10.0 samples/s")
    assert three.startswith("2.00x [1.50x, 2.50x] of slow in 3 rounds, 10.0 samples/s")


def test_parts_of_the_gpu_bench_say_how_they_ended() -> None:
    parts = {"phases": {"status": "done", "date": "2026-01-02", "told": ["a", "b"]},
             "overhead": {"status": "failed", "why": "it ended with 1", "told": ["round 1", "too few"]},
             "ladder": {"status": "not measured"}}  # fmt: skip
    device = {"cuda": "13.0", "driver": ["Some GPU, 580"]}
    found = told("gpu", {"figures": {"device": device, "parts": parts}})
    assert found.lines[0].startswith("Some GPU, 580 (driver") and found.rows == []
    assert found.lines[2:5] == ["phases: done, 2026-01-02", "a", "b"]
    assert found.lines[6:8] == ["overhead: failed: it ended with 1", "too few"]
    assert found.lines[-1] == "ladder: NOT MEASURED"
