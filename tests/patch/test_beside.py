"""A save is put off only where nothing in the file may look for what it writes."""

from __future__ import annotations

import pytest

from hotlap.patch.patch import Patched, Wanted, patch_file
from hotlap.records.edits import Edit

pytest.importorskip("libcst")


def saved_beside(call: str) -> Patched:
    edit = Edit("replace_call", "s.py", 2, target="torch.save", code="save_later({arguments})")
    return patch_file("s.py", f"import torch\ntorch.save(a, 'x')\n{call}\n".encode(), [Wanted(edit, "a-lever")])


def test_the_place_of_the_reason_is_told() -> None:
    done = saved_beside("b = torch.load('x')")
    assert done.before == done.after and "torch.load (line 3)" in done.by_hand[0].text


@pytest.mark.parametrize(
    "call",
    [
        "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)", "from signal import raise_signal as r\nr(15)",
        "import torch.distributed\ntorch.distributed.barrier()", "from torch.distributed import barrier as b\nb()",
        "import torch.distributed as d\nd.barrier()", "Path('x').exists()", "from torch import load\nb = load('x')",
        "from os.path import isfile as there\nthere('x')", "accelerator.wait_for_everyone()",
        "boto3.client('s3').upload_file('x', 'bucket', 'x')", "s3.upload_fileobj(f, 'bucket', 'x')",
        "blob.upload_from_filename('x')", "s3.put_object(Body=body)", "fs.put('x', 'there/x')",
        "from up import upload\nupload(x)",
        "run.save_artifact('x')", "with open('x', 'rb') as f: sha(f)", "open(path)", "open(path, mode='r')",
        "open(path, mode)", "Path('x').open()", "path.open('rb')",
    ],
)  # fmt: skip
def test_a_save_is_not_put_off_where_its_file_may_be_awaited(call: str) -> None:
    done = saved_beside(call)
    assert done.before == done.after and "may look for the file" in done.by_hand[0].text


@pytest.mark.parametrize(
    "call",
    [
        "open(path, 'w').write(text)", "open(path, 'ab')", "open(path, mode=\"w\")", "path.open('w')",
        "Image.open(path)",
        "open('config.yaml')", "open(os.path.join(folder, 'labels.txt'))", "queue.put(item)", "archive.open('x')",
    ],
)  # fmt: skip
def test_other_files_are_no_reason(call: str) -> None:
    assert saved_beside(call).written == ["a-lever"]
