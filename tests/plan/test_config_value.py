"""One value of a configuration file changed in its text, and nothing else."""

from __future__ import annotations

import pytest

from hotlap.plan.config_value import coerced, read_value, write_value
from hotlap.records.errors import HotlapError
from hotlap.records.knob import Scalar

YAML = """# how we train
batch: &b 24   # fits the card
trainer: {test_interval: 1, batch: 24}
again: *b
stages:
  - lr: 1e-3
  - {lr: 0.5, name: 'two'}
long: |
  batch: 24
"""
JSON = '{\n\t"batch": 24, "inner": {"batch": 24, "on": true},\n\t"name": "batch: 24, \\"x\\""\n}\n'
TOML = """batch = 24 # batch = 24
name = 'a'
[trainer]
test_interval=1
batch = 24
deep = { batch = 24, on = false }
[trainer.more]
"batch" = 24
"""
INI = "[one]\nbatch = 24\n; batch = 24\n[Two]\nBatch: 24\npath = a b # c\n"


@pytest.mark.parametrize(
    ("text", "name", "key", "value", "old", "new"),
    [
        (YAML, "c.yaml", "trainer.test_interval", 3, "test_interval: 1", "test_interval: 3"),
        (YAML, "c.yml", "trainer.batch", 32, "1, batch: 24}", "1, batch: 32}"),
        (YAML, "c.yaml", "stages.0.lr", "2e-3", "lr: 1e-3", "lr: 2e-3"),
        (YAML, "c.yaml", "stages.1.name", "a: b", "name: 'two'", "name: 'a: b'"),
        (JSON, "c.json", "batch", 32, '"batch": 24, "i', '"batch": 32, "i'),
        (JSON, "c.json", "inner.batch", 32, '{"batch": 24', '{"batch": 32'),
        (JSON, "c.json", "inner.on", False, "true", "false"),
        (TOML, "c.toml", "batch", 32, "batch = 24 # ", "batch = 32 # "),
        (TOML, "c.toml", "trainer.batch", 32, "batch = 24\ndeep", "batch = 32\ndeep"),
        (TOML, "c.toml", "trainer.deep.batch", 32, "{ batch = 24", "{ batch = 32"),
        (TOML, "c.toml", "trainer.more.batch", 32, '"batch" = 24', '"batch" = 32'),
        (TOML, "c.toml", "name", 'b"c', "'a'", '"b\\"c"'),
        (INI, "c.ini", "one.batch", "32", "batch = 24\n;", "batch = 32\n;"),
        (INI, "c.cfg", "Two.Batch", "32", "Batch: 24", "Batch: 32"),
        (INI, "c.ini", "Two.path", "d", "a b # c", "d"),
    ],
)
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_one_value_changes(ends: str, text: str, name: str, key: str, value: Scalar, old: str, new: str) -> None:
    text, old, new = (part.replace("\n", ends) for part in (text, old, new))
    assert text.count(old) == 1
    changed = write_value(text, name, key, value)
    assert changed == text.replace(old, new)
    assert read_value(changed, name, key) == value


@pytest.mark.parametrize(
    ("text", "name", "key", "words"),
    [
        (YAML, "c.yaml", "batch", "by changing its text alone"),  # an alias would change with it
        (
            YAML,
            "c.yaml",
            "trainer.batches",
            "no key 'trainer.batches': 'batches' is missing. Keys there: test_interval",
        ),
        (YAML, "c.yaml", "trainer", "no single value"),
        (YAML, "c.yaml", "stages.7.lr", "'7' is missing"),
        ("a: [", "c.yaml", "a", "c.yaml cannot be read"),
        ('{"a": 1,}', "c.json", "a", "c.json cannot be read"),
        ("a = ", "c.toml", "a", "c.toml cannot be read"),
        ("a = 1", "c.ini", "a", "c.ini cannot be read"),
        ("", "c.yaml", "a", "Keys there: none"),
        ("a = 1", "c.py", "a", "c.py is no .yaml"),
    ],
)
def test_what_cannot_be_done_is_said(text: str, name: str, key: str, words: str) -> None:
    with pytest.raises(HotlapError) as caught:
        write_value(text, name, key, 32)
    assert words in str(caught.value) and caught.value.exit_code == 2


def test_words_take_the_kind_of_the_present_value() -> None:
    assert [coerced(word, 24) for word in ("32", "0.5", "1e-3", "true", "null", "auto")] == [
        32, 0.5, 0.001, True, None, "auto",
    ]  # fmt: skip
    assert coerced("32", "24") == "32" and coerced("1e-4", "1e-3") == "1e-4"
