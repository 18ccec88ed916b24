"""One word per thing: names and prose keep to the project's vocabulary.

Names are those that the source *defines* (a call of torch's ``item`` or a ``DataLoader``'s own keyword is not ours).
Prose is docstrings, comments and the documentation.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
DOCS = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])

NAMES = {
    "iteration": "step",
    "iterations": "steps",
    "iters": "steps",
    "latency": "step time",
    "preprocess": "decode, augment or collate",
    "preprocessing": "decode, augment or collate",
    "upload": "h2d",
    "fwd": "forward",
    "bwd": "backward",
    "stall": "sync or data wait",
    "utilisation": "busy",
    "utilization": "busy",
    "burnin": "warm-up",
    "recipe": "plan",
    "trick": "lever",
    "faster_pct": "speedup",
}
"""Part of a name (between underscores, or a camel-case word) and the word to use instead."""

PROSE = {
    r"training iterations?": "step",
    r"per iteration": "per step",
    r"latency": "step time",
    r"input wait": "data wait",
    r"pre-?processing": "decode, augment or collate",
    r"\bfwd\b|\bbwd\b": "forward, backward",
    r"burn-in": "warm-up",
    r"\butili[sz]ation\b": "device busy",
    r"\d ?(%|percent) faster": "speedup 1.42x",
    r"pass/fail": "proved, not proved, refuted",
    r"\brecipes?\b|\btricks?\b": "plan, lever",
    r"iterations? per second|it/s\b": "samples/s or steps/s",
}
"""Regular expression (case is ignored) and the words to use instead."""

QUOTED = re.compile(r"`[^`]*`|\"[^\"\n]*\"|https?://\S+")
"""Code, titles and addresses belong to somebody else."""


def defined_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id


def words(name: str) -> list[str]:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().split("_")


def prose(path: Path) -> Iterator[tuple[int, str]]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        fenced = False
        for number, line in enumerate(text.splitlines(), 1):
            fenced ^= line.lstrip().startswith("```")
            if not fenced:
                yield number, line
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and token.string.endswith('"""')):
            for offset, line in enumerate(token.string.strip('"').splitlines()):
                yield token.start[0] + offset, line


def test_names() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line} {name}: say {NAMES[word]}"
        for path in SOURCES
        for line, name in defined_names(ast.parse(path.read_text(encoding="utf-8")))
        for word in words(name)
        if word in NAMES
    ]
    assert not wrong, "\n".join(wrong)


def test_prose() -> None:
    wrong = []
    for path in [*SOURCES, *(d for d in DOCS if d.exists())]:
        for line, text in prose(path):
            for pattern, instead in PROSE.items():
                if found := re.search(pattern, QUOTED.sub("", text), re.IGNORECASE):
                    wrong.append(f"{path.relative_to(ROOT)}:{line} {found[0]!r}: say {instead}")
    assert not wrong, "\n".join(wrong)


def test_units_for_people_live_in_the_report_alone() -> None:
    """Numbers are rounded and given their percent, ms and GiB in one place."""
    shown = re.compile(r"\{[^{}]*:[^{}]*%\}|\} ?(ms|GiB|MiB|GB|MB)\b|\} ?%")
    wrong = []
    for path in SOURCES:
        if path.is_relative_to(ROOT / "src/hotlap/report"):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if re.search(r"\bf[\"']", line) and shown.search(line):
                wrong.append(f"{path.relative_to(ROOT)}:{number} {line.strip()}")
    assert not wrong, "\n".join(wrong)


def test_no_path_of_this_machine_is_written_down() -> None:
    machine_path = re.compile("|".join(re.escape(f"{path}/") for path in {ROOT, Path.home()} if path != Path("/")))
    wrong = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in [*SOURCES, *(d for d in DOCS if d.exists())]
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if machine_path.search(line)
    ]
    assert not wrong, "\n".join(wrong)


def test_the_test_sees_what_it_is_for() -> None:
    assert words("bwd_s") == ["bwd", "s"] and words("IterationCount")[0] == "iteration"
    tree = ast.parse("def f(n_iters):\n    fwd_time = loader.preprocess()\n")
    assert [name for _, name in defined_names(tree) if set(words(name)) & set(NAMES)] == ["n_iters", "fwd_time"]
    assert any(re.search(p, "It is 20 % faster per iteration") for p in PROSE)
