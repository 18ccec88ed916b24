"""What the syntax shows, loud beside silent."""

from __future__ import annotations

import ast
import textwrap

import pytest

from hotlap.records.code_shape import CodeShape
from hotlap.trial.code_shapes import find_shapes


def shapes(body: str) -> list[CodeShape]:
    source = "def forward(self, x):\n" + textwrap.indent(textwrap.dedent(body).strip(), "    ") + "\n"
    return find_shapes(ast.parse(source), source.split("\n"))


def in_function(body: str) -> list[CodeShape]:
    source = "def encode(self, x):\n" + textwrap.indent(textwrap.dedent(body).strip(), "    ") + "\n"
    return find_shapes(ast.parse(source), source.split("\n"))


def kinds(body: str) -> set[str]:
    return {s.kind for s in shapes(body)}


def test_attention_through_names() -> None:
    (found,) = shapes("""
        q, k, v = self.qkv(x).chunk(3, -1)
        attn = (q @ k.transpose(-2, -1)) * self.scale
        attn = attn + self.bias
        attn = attn.softmax(dim=-1)
        attn = self.drop(attn)
        return self.proj(attn @ v)
    """)
    assert found.kind == "attention-by-hand" and found.line == 5 and found.function == "forward"
    assert found.lines == {3, 4, 5, 6, 7} and found.text == "attn = attn.softmax(dim=-1)"


@pytest.mark.parametrize(
    "body",
    [
        "return torch.softmax(torch.matmul(q, k.mT) / 8, dim=-1) @ v",
        "return F.softmax(q.bmm(k), -1).bmm(v)",
        """
        s = torch.einsum("bhid,bhjd->bhij", q, k)
        if mask is not None:
            s = s.masked_fill(mask, -1e9)
        a = F.softmax(s, dim=-1)
        return torch.einsum("bhij,bhjd->bhid", a, v)
        """,
    ],
)
def test_attention_is_written_in_many_ways(body: str) -> None:
    assert kinds(body) == {"attention-by-hand"}


@pytest.mark.parametrize(
    "body",
    [
        "p = torch.softmax(x @ w, -1)\nreturn -(p * p.log()).sum()",  # an entropy
        "p = torch.softmax(self.linear(x), -1)\nreturn p @ self.centres",  # a mixture
        "s = q @ k\nreturn (s @ v).softmax(-1)",
        "a = (q @ k).softmax(-1)\na = torch.ones(3)\nreturn a @ v",  # another value by then
        "return F.scaled_dot_product_attention(q, k, v)",
    ],
)
def test_no_attention(body: str) -> None:
    assert kinds(body) == set()


def test_a_tensor_that_grows() -> None:
    (found,) = shapes("""
        for y in parts:
            self.seen = torch.cat([self.seen, y], 0)
    """)
    assert (found.kind, found.line, found.detail) == ("repeated-cat", 3, "self.seen")
    assert kinds("for y in ys:\n    seen = np.append(seen, y)") == {"repeated-cat"}
    assert kinds("for y in ys:\n    z = torch.cat([y, x])") == set()
    assert kinds("x = torch.cat([x, y])") == set(), "once is no loop"


def test_an_attribute_that_grows_with_each_call() -> None:
    (found,) = shapes("self.bank = torch.cat([self.bank, new.detach()])")
    assert (found.kind, found.detail) == ("repeated-cat", "self.bank")
    for cut in ("self.bank = torch.cat([self.bank, new])\nself.bank = self.bank[-1000:]",
                "self.bank = torch.cat([self.bank, new])[-1000:]"):  # fmt: skip
        assert kinds(cut) == {"repeated-cat"}, "cut to a length, and copied whole each time"
    assert kinds("self.bank = torch.cat([self.old, new])") == set()


def test_what_outlives_a_call_grows_whatever_holds_it() -> None:
    assert kinds("self.buf['x'] = torch.cat([self.buf['x'], new])") == {"repeated-cat"}
    assert kinds("batch['x'] = torch.cat([batch['x'], new])") == set(), "a dictionary of this call's"
    pair = "self.f, self.y = torch.cat([self.f, f]), torch.cat([self.y, y])"
    assert (
        kinds(pair) == {"repeated-cat"} and kinds(pair.replace("[self.f,", "[f,").replace("[self.y,", "[y,")) == set()
    )
    assert kinds("global bank\nbank = torch.cat([bank, new])") == {"repeated-cat"}


def test_what_is_put_together_and_used_up_does_not_grow() -> None:
    assert kinds("for s in skips:\n    x = torch.cat([x, s], 1)\n    x = self.block(x)") == set()
    assert kinds("for layer in self.layers:\n    x = torch.cat([x, layer(x)], 1)") == set(), "densely connected"
    assert kinds("for y in ys:\n    x = torch.cat([x, self.net(y)])") == {"repeated-cat"}


PUSH = "def push(bank, x):\n    return torch.cat([bank, x])\n"


@pytest.mark.parametrize(
    ("source", "grows"),
    [
        (PUSH + "for x in xs:\n    bank = push(bank, x)", True),
        (PUSH + "for x in xs:\n    bank = push(x=x, bank=bank)", True),
        (PUSH.replace("return", "bank =") + "    return bank\nfor x in xs:\n    bank = push(bank, x)", True),
        (PUSH + "def keep(self, x):\n    self.bank = push(self.bank, x)", True),
        (PUSH.replace("x])", "x])[-SIZE:]") + "def keep(self, x):\n    self.bank = push(self.bank, x)", True),
        (PUSH + "for x in xs:\n    bank = push(old, x)", False),
        (PUSH + "bank = push(bank, x)", False),
        (PUSH + "for s in skips:\n    x = push(x, s)\n    x = block(x)", False),
        (PUSH + "for x in xs:\n    bank = pull(bank, x)", False),
        (PUSH.replace("    ret", "    bank = up(bank)\n    ret") + "for x in xs:\n    bank = push(bank, x)", False),
    ],
)
def test_what_is_handed_through_a_function_grows(source: str, grows: bool) -> None:
    found = find_shapes(ast.parse(source), source.split("\n"))
    assert [(s.line, s.function, s.detail) for s in found] == ([(2, "push", "bank")] if grows else [])


@pytest.mark.parametrize(
    "head", ["for i in range(x.shape[0]):", "for i in range(x.size(0)):", "n = len(x)\nfor i in range(n):",
             "b, t, c = x.shape\nfor i in range(b):"],
)  # fmt: skip
def test_loops_over_samples(head: str) -> None:
    assert kinds(f"{head}\n    out.append(self.net(x[i]))") == {"samples-loop"}
    assert kinds(f"{head}\n    out.append(self.net(x[i : i + 1, 0]))") == {"samples-loop"}
    assert kinds(f"{head}\n    x = self.net(x)") == set(), "it does not look at one sample"


def test_other_loops_are_no_samples() -> None:
    assert kinds("b, t, c = x.shape\nfor i in range(t):\n    h = self.cell(x[i], h)") == set()
    assert kinds("for layer in self.layers:\n    x = layer(x)") == set()


@pytest.mark.parametrize(
    "body",
    [
        "return torch.stack([self.net(x[i]) for i in range(len(x))])",
        "B, N = x.shape[:2]\nfor b in range(B):\n    outs.append(self.net(x[b]))",
        "for b, n in enumerate(lengths):\n    outs.append(x[b, :n].mean(0))",
        "for sample in batch:\n    losses.append(crit(model(sample['image'][None]), sample['label']))",
        "return sum(crit(out[i : i + 1], y[i : i + 1]) for i in range(x.size(0)))",
        "for image, truth in zip(images, truths):\n    loss += crit(model(image[None]), truth)",
        "for i, image in enumerate(images):\n    loss = loss + crit(model(image.unsqueeze(0)), truths[i])",
        "for image in images:\n    out = model(image[None, :])\n    outs.append(out)",
        "return [self.net(image.unsqueeze(dim=0)) for image in images]",
        "for i in range(len(x)):\n    out = torch.cat([out, self.net(x[i])])",
        "for i in range(len(x)):\n    (crit(net(x[i]), y[i]) / 8).backward()",
    ],
)
def test_samples_by_comprehension_and_by_themselves(body: str) -> None:
    assert "samples-loop" in kinds(body)


@pytest.mark.parametrize(
    "body",
    [
        "for i in range(len(self.layers)):\n    y = self.layers[i](x)",
        "for i in range(len(layers)):\n    y = layers[i](x) + skips[i]",
        "for k in range(self.query.shape[0]):\n    outs.append(x @ self.query[k])",
        "for t in range(x.shape[0]):\n    h = self.cell(x[t], h)",
        "for t in range(x.shape[0]):\n    g = self.wx(x[t]) + self.wh(h)\n    h = torch.tanh(g)",
        "for x_t in x:\n    out, h = self.gru(x_t.unsqueeze(0), h)",
        "for i in range(len(batches)):\n    loss = net(batches[i])\n    loss.backward()\n    opt.step()",
        "for x, y in samples:\n    crit(net(x[None]), y[None]).backward()\n    opt.step()",
        "for i in range(len(x) // 8):\n    out.append(net(x[i]))",
        "for i, layer in enumerate(self.layers):\n    x = layer(x[i])",
        "for i, f in enumerate(features):\n    outs.append(self.heads[i](f))",
        "return torch.cat([image[None] for image in images])",
        "for image in images:\n    out.append(image.unsqueeze(0))",
        "return [x[i] for i in range(len(x))]",
    ],
)
def test_layers_steps_and_batches_are_no_samples(body: str) -> None:
    assert "samples-loop" not in kinds(body)


def test_tensors_made_on_the_host() -> None:
    assert kinds("mask = torch.zeros(3, 3).to(x.device)") == {"host-tensors"}
    assert kinds("mask = torch.zeros(3, 3, device=x.device)") == set()
    assert kinds("x = self.net(x).to(device)") == set()
    outside = "mask = torch.zeros(3).cuda()\nfor x in loader:\n    w = torch.tensor([1.0]).cuda()\n"
    assert [s.line for s in find_shapes(ast.parse(outside), outside.split("\n"))] == [3]


def test_options_by_which_a_framework_is_told() -> None:
    found = shapes("""
        trainer = L.Trainer(
            max_steps=100,
            val_check_interval=5,
            detect_anomaly=True,
        )
        TrainingArguments(save_steps=2)
        CSVLogger("logs", flush_logs_every_n_steps=1)
    """)
    assert [(s.kind, s.line, s.text) for s in found] == [
        ("validation-cadence", 4, "val_check_interval=5,"),
        ("autograd-debug", 5, "detect_anomaly=True,"),
        ("checkpoint-blocking", 7, "TrainingArguments(save_steps=2)"),
        ("logging-blocking", 8, 'CSVLogger("logs", flush_logs_every_n_steps=1)'),
    ]
    assert kinds("Trainer(max_steps=100, logger=None, detect_anomaly=False, check_val_every_n_epoch=None)") == set()


def test_a_window_that_is_rolled_entry_by_entry() -> None:
    (found,) = shapes("""
        for key in keys:
            self.bank = torch.cat([self.bank[1:], key.unsqueeze(0)])
    """)
    assert (found.kind, found.line, found.detail) == ("repeated-cat", 3, "self.bank")
    assert kinds("self.bank = torch.cat([self.bank[len(keys):], keys])") == set(), "once per call it is one copy"


def test_batches_filled_up_to_one_length() -> None:
    (found,) = in_function("""
        ids = torch.full((len(rows), self.longest), PAD)
        for i, row in enumerate(rows):
            ids[i, : len(row)] = row
        total = torch.zeros(3)
        for i in range(3):
            total[i] = 1
    """)
    assert (found.kind, found.line, found.detail) == ("padding", 2, "ids")


@pytest.mark.parametrize(
    "body",
    [
        "return torch.tensor(ids + [PAD] * (MAX - len(ids)))",
        "missing = max(0, MAX - len(ids))\nids = [PAD] * missing + ids",
        "ids += [PAD] * (MAX - len(ids))",
        "ids.extend([PAD] * (MAX - len(ids)))",
        "row = torch.zeros(MAX, dtype=torch.long)\nn = len(ids)\nrow[:n] = ids",
        "row = ids.new_full((MAX,), PAD)\nrow[-len(ids):] = ids",
        "wave = F.pad(wave, (0, MAX - wave.shape[-1]))",
        "return np.pad(wave, (0, MAX - len(wave)))",
        "return tokenizer(text, truncation=True, padding='max_length', max_length=128)",
        "return data.map(lambda row: tokenizer(row['text'], padding='max_length'))",
        "return nn.utils.rnn.pad_sequence(rows, batch_first=True)",
        "ids = torch.cat([ids, torch.zeros(MAX - len(ids), dtype=torch.long)])",
        "short = MAX - len(ids)\nids = np.concatenate((ids, np.full(short, PAD)))",
        "row = [PAD] * MAX\nrow[:len(ids)] = ids",
        "while len(ids) < MAX:\n    ids.append(PAD)",
        "return list(zip_longest(*rows, fillvalue=PAD))",
    ],
)
def test_samples_filled_up_to_one_length(body: str) -> None:
    found = in_function(body)
    lines = [body.split("\n")[s.line - 2] for s in found]
    assert {s.kind for s in found} == {"padding"}, found
    assert any(word in line for line in lines for word in ("PAD", "zeros", "pad", "while"))
    assert kinds(body) == set(), "a model's forward pads for its own sake"


@pytest.mark.parametrize(
    "body",
    [
        "sizes = [3] + [64] * depth",
        "sizes = [3] + [64] * (depth - 1) if depth else []",
        "total = torch.zeros(3)\ntotal[1:3] = x",
        "seen = np.zeros(9)\nseen[:4] = 1",
        "return nn.Conv2d(3, 8, 3, padding=1)",
        "a = b + 2 * (c - d)",
        "while len(rows) < n:\n    row = next(rest)\n    rows.append(row)",
        "x = torch.cat([x, torch.zeros(1, 3)])",
        "counts = [0] * classes",
    ],
)
def test_nothing_is_filled_up(body: str) -> None:
    assert in_function(body) == []


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("os.environ['OMP_NUM_THREADS'] = '16'", "thread-contention"),
        ('os.environ.setdefault("MKL_NUM_THREADS", str(n))', "thread-contention"),
        ("gc.set_threshold(10, 2, 2)", "gc"),
        ("sys.setprofile(watch)", "profiler-left-on"),
        ("sys.settrace(None)", ""),
        ("handles.append(layer.register_forward_hook(record))", "hook"),
        ("p.register_hook(lambda grad: grads.append(grad))", "hook"),
        ("model.bert.gradient_checkpointing_enable()", "activation-checkpointing"),
        ("TrainingArguments('out', gradient_checkpointing=True)", "activation-checkpointing"),
        ("TrainingArguments('out', gradient_checkpointing=False)", ""),
        ("TrainingArguments('out', bf16=True)", "emulated-dtype"),
        ("TrainingArguments('out', fp16=False)", ""),
        ("Trainer(precision='bf16-mixed')", "emulated-dtype"),
        ("Trainer(precision='32-true')", ""),
        ("Accelerator(mixed_precision='no')", ""),
        ("os.environ['CUDA_VISIBLE_DEVICES'] = '0'", ""),
    ],
)
def test_switches(body: str, kind: str) -> None:
    assert kinds(body) == ({kind} if kind else set())


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("net = build(3).double()", True),
        ("torch.set_default_dtype(torch.float64)", True),
        ("net.to(dtype=torch.double)", True),
        ("x = torch.zeros(3, dtype=torch.float64)", False),
        ("net = build(3).to(torch.float32)", False),
    ],
)
def test_double_precision(body: str, found: bool) -> None:
    assert ("precision" in kinds(body)) == found
