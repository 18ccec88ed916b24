"""What the pages show, of good runs and of bad ones: a run that cannot be read is listed with its reason."""

from __future__ import annotations

import json
import os
import pickle
import re
import time
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest
from ui_client import Client

from hotlap.records.findings import Where
from hotlap.records.guard import Alarm, GuardRecord
from hotlap.records.plan import Plan
from hotlap.records.proof import Proof, Quality
from hotlap.records.run import RunRecord
from hotlap.records.run_folder import RunFolder
from hotlap.records.seed_proof import SeedProof, Stop
from hotlap.records.trials import Interval
from hotlap.testing.run_folders import made_findings, made_run, made_timeline
from hotlap.testing.timelines import cpu_machine

NAME = "20260301-101500-train"
OTHER = "20260308-093000-train"
MARKUP = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&"


def record(kind: str = "diagnose", status: str = "finished", **more: object) -> RunRecord:
    command = ["python", "train.py", "--data", "clips"]
    return RunRecord(kind, command, "2026-03-01 10:15:00", status=status, **more)  # type: ignore[arg-type]


def two_runs(root: Path) -> tuple[RunFolder, RunFolder]:
    a = made_run(root, NAME, record(), made_findings(step_s=0.1))
    later = RunRecord("diagnose", ["python", "train.py", "--data", "clips"], "2026-03-08 09:30:00", status="finished")
    return a, made_run(root, OTHER, later, made_findings(step_s=0.3))


def _same(root: Path) -> str:
    """One more run like the first."""
    return made_run(root, "20260302-000000-train", record(), made_findings(step_s=0.1)).path.name


def test_the_list_is_newest_first_with_numbers_in_words(client: Client) -> None:
    two_runs(client.root)
    made_run(client.root, "20260401-000000-fast",
             RunRecord("speedup", ["python", "fast.py"], "2026-04-01 00:00:00", status="finished"),
             made_findings())  # fmt: skip
    text = client.page("/")
    links = re.findall(r'<a href="/run/([^"]+)">', text)
    assert links == ["20260401-000000-fast", OTHER, NAME]
    assert "107" in text and "320" in text and "samples/s" in text  # 32 samples a step of 0.3 s and of 0.1 s
    assert "800" in text and "2.5x [2.4, 2.6]" in text and "83 %" in text  # proved: of the plan
    own = client.page("/run/20260401-000000-fast")
    assert "800 samples/s, 83 % of the roof" in own and "2.5x [2.4, 2.6]" in own and "320 samples/s" in own
    assert "33 %" in text and "--data clips" in text and ">finished<" in text


def test_a_speedup_that_is_not_proved_and_a_check_that_is_refuted_are_not_shown_as_results(client: Client) -> None:
    tried = made_run(client.root, "20260401-000000-tried", record("speedup"))
    quality = Quality("proved", "bits", "Losses are equal bit for bit.")
    tried.write("proof.json", Proof(Interval(1.1, 0.9, 1.3), quality, claimed=False))
    made_run(client.root, "20260402-000000-check", record("check")).write("check.json", {"verdict": "refuted"})
    text = client.page("/")
    assert "finished, not proved" in text and "finished, refuted" in text and ">finished<" not in text
    own = client.page("/run/20260401-000000-tried")
    assert "1.1x [0.9, 1.3], not proved" in own and ">finished, not proved<" in own
    own = client.page("/run/20260402-000000-check")
    assert 's-warn" role="status">finished, refuted<' in own and "s-good" not in own


def test_a_plan_that_breaks_the_script_is_refuted_without_a_speedup(client: Client) -> None:
    quality = Quality("refuted", "bits", "The plan crashed.")
    proof = SeedProof(
        verdict="refuted", speedup=None, speedup_of="whole run", steady=None, speed_verdict="not proved",
        quality=quality, metric=None, time_to_quality=None, more=[], command=["python", "train.py"],
        seeded_by="offset", plan=Plan([]), preserves="bits", machine=cpu_machine(), asked_seeds=3, stop=Stop(),
    )  # fmt: skip
    made_run(client.root, NAME, record("prove")).write("proof.json", proof)
    for path in ("/", f"/run/{NAME}"):
        text = client.page(path)
        assert ">finished, refuted<" in text and "s-good" not in text, path


def test_a_lap_that_kept_nothing_is_finished_and_no_more(client: Client) -> None:
    quality = Quality("proved", "bits", "No lever was kept: the training is as it was.")
    folder = made_run(client.root, NAME, record("speedup"))
    folder.write("proof.json", Proof(Interval(1.0, 1.0, 1.0, 1.0), quality, claimed=False))
    for path in ("/", f"/run/{NAME}"):
        text = client.page(path)
        assert ">finished<" in text and "not proved" not in text and "1.00x" not in text, path


def test_where_samples_are_unknown_the_plans_steps_stand_beside_its_share_of_the_roof(client: Client) -> None:
    found = made_findings(step_s=0.1)
    found = replace(found, throughput=replace(found.throughput, samples_per_s=None))
    folder = made_run(client.root, NAME, record("speedup"), found)
    quality = Quality("proved", "bits", "Losses are equal bit for bit.")
    folder.write("proof.json", Proof(Interval(2.5, 2.4, 2.6), quality, True, None, 0.83))
    text = client.page("/")
    assert '25.0 <span class="unit">steps/s' in text and "83 %" in text
    own = client.page(f"/run/{NAME}")
    assert "25.0 steps/s, 83 % of the roof" in own and ">10.0 steps/s<" in own


def test_a_guarded_run_tells_its_throughput_when_it_has_ended(client: Client) -> None:
    folder = made_run(client.root, NAME, record("run", "running"))
    folder.write("guard.json", GuardRecord(500, 4000, 10.0))
    assert "400" not in client.page("/"), "what an alarm left is from before it"
    folder.write("run.json", record("run", "finished"))
    assert "400" in client.page("/")


def test_the_filter_of_the_server_looks_in_command_kind_and_status(client: Client) -> None:
    two_runs(client.root)
    made_run(client.root, "20260401-000000-other", RunRecord("run", ["python", "other.py"], "2026-04-01 00:00:00"))
    assert re.findall(r'"/run/([^"]+)"', client.page("/?q=OTHER+run")) == ["20260401-000000-other"]
    assert "No run matches" in client.page("/?q=nothing")
    assert "1 of 3" in client.page("/?q=other")


def test_the_filter_of_the_server_looks_in_the_status_that_is_shown(client: Client) -> None:
    two_runs(client.root)
    made_run(client.root, "20260401-000000-ended", record("run", exit_code=3))
    assert re.findall(r'"/run/([^"]+)"', client.page("/?q=exit")) == ["20260401-000000-ended"]
    silent = made_run(client.root, "20260402-000000-killed", record("run", "running"))
    for name in ("run.json", "machine.json"):
        os.utime(silent.path / name, (1.0, 1.0))
    assert re.findall(r'"/run/([^"]+)"', client.page("/?q=silent")) == ["20260402-000000-killed"]


def test_two_hundred_runs_and_the_second_look_reads_none_again(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(200):
        made_run(client.root, f"20260301-{n:06d}-train", record(), made_findings())
    assert client.page("/").count("<tr data-text") == 200
    from hotlap.ui import line

    read: list[str] = []
    monkeypatch.setattr(line, "_read", lambda folder: read.append(folder.path.name))
    os.utime(client.root / "20260301-000007-train" / "run.json", ns=(1, 1))
    with pytest.raises(AssertionError):  # the made reader gives no line: the page of a mistake is a 500
        client.page("/")
    assert read == ["20260301-000007-train"] and "AttributeError" in client.told[0]


BROKEN = {
    "empty": b"",
    "half": b'{"kind": "run", "comm',
    "no object": b"[1, 2]",
    "bytes": b"\xff\xfe\x00",
    "deep": b"[" * 100_000,
    "long number": b'{"kind": ' + b"9" * 5000 + b"}",
    "unknown key": b'{"kind": "run", "command": ["x"], "started": "", "schema": "hotlap.run/1", "more": 1}',
    "wrong type": b'{"kind": "run", "command": "python train.py", "started": ""}',
    "pickle": pickle.dumps({"kind": "run"}),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("document", ["run.json", "findings.json", "guard.json", "timelines/run/1.jsonl"])
def test_a_broken_document_is_told_and_hides_no_other_run(client: Client, name: str, document: str) -> None:
    bad, _ = two_runs(client.root)
    file = bad.path / document
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(BROKEN[name] + b"\n")
    text = client.page("/")
    assert text.count("<tr data-text") == 2
    if document != "timelines/run/1.jsonl":
        assert 'class="problem"' in text
    own = client.page(f"/run/{NAME}")
    assert Path(document).name in own and "Hotlap made a mistake" not in own
    json.loads(client.page(f"/run/{NAME}/now"))
    client.page(f"/run/{NAME}/report")
    client.page(f"/compare?run={NAME}&run={OTHER}")
    assert client.told == []


def test_a_name_that_is_no_text_is_a_run_like_any_other(client: Client) -> None:
    name = os.fsdecode(b"20260301-\xff\xfe ?#%2f")
    made_run(client.root, name, record(), made_findings())
    link = re.findall(r'href="(/run/[^"]+)"', client.page("/"))[0]
    assert "Where a step goes" in client.page(link) and client.told == []


def test_numbers_that_nobody_can_say_are_told_at_their_run(client: Client) -> None:
    bad, _ = two_runs(client.root)
    found = json.loads((bad.path / "findings.json").read_text())
    for number in (10**400, -1, 0, float("nan"), float("inf"), 1e308):
        found["throughput"] |= {"samples_per_s": number, "steps_per_s": number, "step_s": number}
        found["roof"]["share"] = number
        (bad.path / "findings.json").write_text(json.dumps(found))
        assert client.page("/").count("<tr data-text") == 2
        for path in (f"/run/{NAME}", f"/run/{NAME}/now", f"/run/{NAME}/report", f"/compare?run={NAME}&run={OTHER}"):
            client.page(path)
    assert client.told == []


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (EVIL_FOLDER,)


EVIL_FOLDER = ""


def test_nothing_is_unpickled(client: Client, tmp_path: Path) -> None:
    global EVIL_FOLDER
    EVIL_FOLDER = str(tmp_path / "unpickled")
    bad, _ = two_runs(client.root)
    for name in ("run.json", "findings.json", "proof.json", "report.html", "plan.yaml", "x.pkl", "x.pt"):
        (bad.path / name).write_bytes(pickle.dumps(Evil()))
        for path in (
            "/",
            f"/run/{NAME}",
            f"/run/{NAME}/now",
            f"/run/{NAME}/report",
            f"/compare?run={NAME}&run={OTHER}",
        ):
            assert client.ask(path)[0] in (200, 404)
    assert not (tmp_path / "unpickled").exists()


PATHS = (
    "/run/..", "/run/../secret", "/run/..%2fsecret", "/run/%2e%2e/report", "/run/%2e%2e%2fsecret/report", "/run/.",
    "/run/", "/run//etc", "/run/%00", f"/run/{NAME}/..", f"/run/{NAME}/run.json", f"/run/{NAME}/../../secret",
    f"/{NAME}", "/etc/passwd", "/run/%2fetc", "/run/linked", "/run/linked/report", "/run/plain", "/run/plain.txt",
    "/ui.css/..", "/templates/list.html", "//etc/passwd", "http://127.0.0.1/run/plain", "*",
)  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_no_path_leads_out_of_the_folder(client: Client, tmp_path: Path, path: str) -> None:
    two_runs(client.root)
    secret = made_run(tmp_path, "secret", record(), made_findings(detail="the secret"))
    (secret.path / "report.html").write_text("the secret")
    (client.root / "linked").symlink_to(secret.path)
    (client.root / "plain").mkdir()
    (client.root / "plain.txt").write_text("the secret")
    status, _, text = client.ask(path)
    assert status in (400, 403, 404) and "the secret" not in text
    assert "linked" in client.page("/") and "/run/linked" not in client.page("/")


@pytest.mark.parametrize("name", ["run.json", "findings.json", "report.html", "proof.json", "timelines/run/9.jsonl",
                                  "timelines/run", "trials/1.json"])  # fmt: skip
def test_a_link_in_a_runs_folder_is_refused_and_said(client: Client, tmp_path: Path, name: str) -> None:
    bad, _ = two_runs(client.root)
    made_timeline(bad, 20)
    target = tmp_path / "target"
    target.write_text('{"the": "secret"}')
    file = bad.path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.is_dir():
        file.rename(tmp_path / "moved")
        target = tmp_path / "moved"
    file.unlink(missing_ok=True)
    file.symlink_to(target)
    for path in (f"/run/{NAME}", f"/run/{NAME}/now", f"/run/{NAME}/report", f"/compare?run={NAME}&run={OTHER}"):
        text = client.page(path)
        assert "secret" not in text
        assert "link" in text or "Too many levels" in text, path


def test_a_runs_folder_that_is_none_is_told(client: Client) -> None:
    client.root.write_text("a file")
    assert "Cannot read the folder" in client.page("/")
    assert client.ask(f"/run/{NAME}")[0] == 200 and client.told == []


def test_a_pipe_that_nobody_writes_to_does_not_hang(client: Client) -> None:
    bad, _ = two_runs(client.root)
    (bad.path / "findings.json").unlink()
    os.mkfifo(bad.path / "findings.json")
    assert "neither a file nor a folder" in client.page("/")
    assert "neither a file nor a folder" in client.page(f"/run/{NAME}")


def test_markup_of_the_users_is_text_everywhere(client: Client) -> None:
    found = made_findings(cause=MARKUP, file=f"/x/{MARKUP}.py", detail=MARKUP)
    name = f"20260301-101500-{MARKUP.replace('/', '-')}"
    run = RunRecord("run", ["python", f"{MARKUP}.py", MARKUP], MARKUP, status="running", notes=[MARKUP])
    folder = made_run(client.root, name, run, found)
    made_timeline(folder, 30)
    where = [Where(MARKUP, 3, MARKUP)]
    alarm = Alarm(5, 9, 1.0, 1.0, 0.1, 0.2, MARKUP, False, MARKUP, where, MARKUP)
    folder.write("guard.json", GuardRecord(30, 0, 1.0, [alarm], [MARKUP]))
    two_runs(client.root)
    link = quote(name, safe="")
    for path in ("/", f"/?q={quote(MARKUP)}", f"/run/{link}", f"/run/{link}/report",
                 f"/compare?run={link}&run={NAME}", f"/run/{quote(MARKUP, safe='')}"):  # fmt: skip
        text = client.ask(path)[2]
        assert "<img" not in text and "<script>alert" not in text and "onerror=alert(2)>" not in text, path
    assert "&lt;img" in client.page(f"/run/{link}")


def test_a_run_shows_its_numbers_while_it_goes_on(client: Client) -> None:
    folder = made_run(client.root, NAME, record("run", "running"))
    made_timeline(folder, 90)
    text = client.page(f"/run/{NAME}")
    assert "Throughput lately" in text and "samples/s" in text and 'data-ended="no"' in text
    before = json.loads(client.page(f"/run/{NAME}/now"))
    facts = {key: value for key, _, value in before["facts"]}
    assert facts["steps"] == "90" and facts["memory"] == "2.0 GiB" and "<svg" in before["chart"]
    assert [s["name"] for s in before["segments"]] == ["data wait", "forward", "backward", "optimizer"]
    made_timeline(folder, 120)
    alarm = Alarm(60, 90, 1.0, 1.0, 0.06, 0.12, "data_wait", False, "decode", [], "Cache it.")
    folder.write("guard.json", GuardRecord(120, 0, 9.0, [alarm]))
    after = json.loads(client.page(f"/run/{NAME}/now"))
    assert {key: value for key, _, value in after["facts"]}["steps"] == "120"
    assert "Cache it." in after["alarms"][0] and after["results"] != before["results"] and not after["ended"]
    folder.write("run.json", record("run", "finished", exit_code=3))
    ended = json.loads(client.page(f"/run/{NAME}/now"))
    assert ended["ended"] and ended["status"] == "finished, exit code 3, 1 drift"


def test_a_run_that_was_killed_is_told_to_be_silent(client: Client) -> None:
    folder = made_run(client.root, NAME, record("run", "running"))
    for path in (folder.path / "run.json", folder.path / "machine.json"):
        os.utime(path, (1.0, 1.0))
    assert "running, silent for" in client.page("/") and "running, silent for" in client.page(f"/run/{NAME}")
    week, now = 7 * 86400, time.time()
    os.utime(folder.path / "run.json", (now - week, now - week))
    for quiet_s, told in ((600, False), (1800, True)):  # after a week, the recorder's telemetry is minutes apart
        os.utime(folder.path / "machine.json", (now - quiet_s, now - quiet_s))
        assert ("silent" in client.page("/")) == told


def test_the_status_of_a_silent_run_is_the_same_two_seconds_later(client: Client) -> None:
    """It is read aloud whenever it changes."""
    folder = made_run(client.root, NAME, record("run", "running"))
    told = []
    for quiet_s in (70, 72):
        for name in ("run.json", "machine.json"):
            os.utime(folder.path / name, (time.time() - quiet_s,) * 2)
        told.append(json.loads(client.page(f"/run/{NAME}/now"))["status"])
    assert told == ["running, silent for 1 min"] * 2


def test_the_report_is_shown_as_it_lies_or_made_and_is_a_stranger_to_the_page(client: Client) -> None:
    folder, _ = two_runs(client.root)
    status, headers, text = client.ask(f"/run/{NAME}/report")
    assert (
        status == 200 and "Where a step goes" in text and "sandbox allow-scripts" in headers["content-security-policy"]
    )
    assert not (folder.path / "report.html").exists()
    (folder.path / "report.html").write_text("<p>as it lies</p>")
    assert client.page(f"/run/{NAME}/report") == "<p>as it lies</p>"


def test_two_runs_are_compared_the_earlier_as_a(client: Client) -> None:
    two_runs(client.root)
    text = client.page(f"/compare?run={OTHER}&run={NAME}")
    assert text.index(NAME) < text.index(OTHER) and "B is slower" in text
    assert "data wait" in text and "decode" in text and 'class="slower"' in text
    assert f"/compare?run={NAME}&amp;run={OTHER}" in client.page(f"/run/{OTHER}")
    assert 'no clear change">~</abbr>' in client.page(f"/compare?run={NAME}&run={_same(client.root)}")
    for query in ("", f"?run={NAME}", f"?run={NAME}&run={NAME}", f"?run={NAME}&run={OTHER}&run=x"):
        assert client.ask(f"/compare{query}")[0] == 400
    assert client.ask(f"/compare?run={NAME}&run=x")[0] == 404


def test_a_run_is_not_compared_with_a_comparison(client: Client) -> None:
    made_run(client.root, "20260301-000000-lap", replace(record("speedup"), started="2026-03-01 00:00:00"))
    for kind, day in (("prove", "02"), ("check", "03"), ("run", "04")):
        run = replace(record(kind), started=f"2026-03-{day} 00:00:00")
        made_run(client.root, f"202603{day}-000000-{kind}", run)
    own = client.page("/run/20260304-000000-run")
    assert "/compare?run=20260301-000000-lap&amp;run=20260304-000000-run" in own
    for name in ("20260302-000000-prove", "20260303-000000-check"):
        assert "/compare?" not in client.page(f"/run/{name}")
