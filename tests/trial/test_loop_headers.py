"""Lines that loops repeat."""

from __future__ import annotations

import ast
import textwrap

import pytest

from hotlap.trial.loop_headers import loops_of


def headers(body: str) -> list[str]:
    source = textwrap.dedent(body).strip() + "\n"
    return [text for _, _, text in loops_of(ast.parse(source), source.split("\n"))]


def test_a_comprehension_reads_like_a_loop() -> None:
    found = headers("y = torch.stack([self.head(x[:, t]) for t in range(n)], 1)")
    assert found == ["for t in range(n)"]
    found = headers("y = {i: f(a, b) for i, a in enumerate(xs) for b in ys}")
    assert found == ["for i, a in enumerate(xs) for b in ys"]


@pytest.mark.parametrize(
    "loop",
    [
        "for block in self.transformer.h:\n    x = block(x)",
        "for i in range(12):\n    x = F.relu(self.convs[i](x, edges))",
        "for conv, norm in zip(self.convs, self.norms):\n    x = x + F.relu(norm(conv(x)))",
        "for block in self.blocks:\n    y = block(x)\n    x = x + y",
        "for block in self.blocks:\n    x = x + block.attention(block.norm(x))",
        "for block in self.blocks:\n    x = checkpoint(block, x)",
        "for i in range(12):\n    x = getattr(self, f'block{i}')(x)",
        "for layer in self.layers:\n    x, weights = layer(x, mask)\n    kept.append(weights)",
    ],
)
def test_layers_one_after_another_are_no_loop(loop: str) -> None:
    assert headers(loop) == []


@pytest.mark.parametrize(
    "loop",
    [
        "for t in range(n):\n    h = self.cell(x[:, t], h)",
        "for x_t in x.unbind(1):\n    h = x_t.add(h)\n    h = self.cell(x_t, h)",
        "for head in self.heads:\n    outs.append(head(x))",
        "for k, expert in enumerate(self.experts):\n    out = out + gate[:, k] * expert(x)",
        "while t < n:\n    h = self.cell(x[:, t], h)",
    ],
)
def test_other_loops_are(loop: str) -> None:
    assert headers(loop) == [loop.split("\n")[0]]


def test_the_loop_around_layers_counts() -> None:
    found = headers("""
        for t in range(n):
            for cell in self.cells:
                h = cell(h)
    """)
    assert found == ["for t in range(n):"]
