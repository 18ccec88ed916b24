"""Which calls of file readers a patch may let keep what they decoded."""

from __future__ import annotations

import pytest

from hotlap.patch.patch import Patched, Wanted, patch_file
from hotlap.records.edits import Edit

pytest.importorskip("libcst")


def kept(call: str) -> Patched:
    edit = Edit("replace_call", "s.py", 2, target="readers", code="decode_once(9, {function}, {arguments})")
    return patch_file("s.py", f"import numpy as np\nx = {call}\n".encode(), [Wanted(edit, "a-lever")])


@pytest.mark.parametrize("call", ["np.load(p)", "np.load(p, None, True)", "np.load(p, allow_pickle=True)"])
def test_what_a_reader_decodes_is_kept(call: str) -> None:
    assert f"x = decode_once(9, np.load, {call[8:-1]})\n".encode() in kept(call).after


@pytest.mark.parametrize(
    "call", ["np.load(p, 'r')", "np.load(p, mode)", "np.load(p, mmap_mode='r')", "np.load(p, *more)"]
)
def test_an_open_file_is_not(call: str) -> None:
    done = kept(call)
    assert done.after == done.before and "no call of a well-known reader" in done.by_hand[0].text


def test_an_opened_sound_is_told_with_what_to_do() -> None:
    edit = Edit("replace_call", "s.py", 3, target="readers", code="decode_once(9, {function}, {arguments})")
    text = b"import soundfile as sf\nwith sf.SoundFile(p) as f:\n    x = f.read()\n"
    done = patch_file("s.py", text, [Wanted(edit, "a-lever")])
    assert done.after == text and "read them whole first, by soundfile.read" in done.by_hand[0].text


IMAGES = Edit("replace_call", "s.py", 3, target="readers", code="decode_once(9, {function}, {arguments})")


@pytest.mark.parametrize(
    "use",
    ["{}.convert('RGB')", "np.array({})", "np.asarray({}, dtype='f4')", "asarray({})", "np.array({}.convert('L'))"],
)
def test_an_image_that_is_read_at_once_is_kept(use: str) -> None:
    text = f"import numpy as np\nfrom PIL import Image\nfrom numpy import asarray\nx = {use.format('Image.open(p)')}\n"
    done = patch_file("s.py", text.encode(), [Wanted(IMAGES, "a-lever")])
    assert f"x = {use.format('decode_once(9, Image.open, p)')}\n".encode() in done.after


@pytest.mark.parametrize(
    "use",
    [
        "{}",
        "{}.getexif()",
        "tuple({}.getdata())",
        "read({})",
        "{}.convert",
        "other.array({})",
        "np.array([{}.n_frames])",
    ],
)
def test_an_image_that_may_be_asked_for_more_is_not(use: str) -> None:
    text = f"import numpy as np\nfrom PIL import Image\nx = {use.format('Image.open(p)')}\n".encode()
    done = patch_file("s.py", text, [Wanted(IMAGES, "a-lever")])
    assert done.after == text and ".convert" in done.by_hand[0].text
