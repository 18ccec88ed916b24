"""Bytes that were valid once: cut, overwritten, doubled, as a crash or an editor leaves them."""

from __future__ import annotations

from hypothesis import strategies as st

__all__ = ["damaged"]

_JUNK = st.sampled_from(
    [b"", b"\n", b"\x00", b"\xff", b"[" * 3000, b"9" * 5000, b"null", b"-1", b"1e999", b"NaN", b'"', b"{}", b"[]",
     b"\\ud800"]
) | st.binary(max_size=4)  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """``whole`` with up to three places cut out and filled with something else."""
    data = whole
    for _ in range(draw(st.integers(1, 3))):
        begin = draw(st.integers(0, len(data)))
        end = min(len(data), begin + draw(st.integers(0, 40)))
        filling = draw(_JUNK | st.just(data[begin:end] * 2))
        data = data[:begin] + filling + data[end:]
    return data
