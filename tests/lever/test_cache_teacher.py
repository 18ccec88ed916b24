"""A frozen network under cache-teacher: when its outputs are given from memory, and what ends that."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from hotlap.lever.catalog import cache_teacher, compile_model, teacher_inference
from hotlap.lever.contract import Refusal
from hotlap.lever.recalled import AGAIN, PROOFS, RAREST
from hotlap.testing.lever_kit import findings_of, machine_of
from hotlap.testing.lever_target import LocalTarget

MIB = 1 << 20
IMAGES = torch.randn(16, 3, 8, 8, generator=torch.Generator().manual_seed(1))


class Teacher(nn.Module):
    """Counts its forwards where no attribute of its own tells: in a list of the test's."""

    def __init__(self, calls: list[int]) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.counted = calls.append

    def forward(self, x: torch.Tensor) -> Any:
        self.counted(len(x))
        return self.norm(self.conv(x)).flatten(1).tanh()


@pytest.fixture
def calls() -> list[int]:
    return []


@pytest.fixture
def teacher(calls: list[int]) -> Teacher:
    torch.manual_seed(0)
    return Teacher(calls).requires_grad_(False).eval()


@pytest.fixture
def target(tmp_path: Path) -> Iterator[LocalTarget]:
    with LocalTarget(str(tmp_path)) as target:
        cache_teacher.apply(target, {"max_bytes": MIB})
        yield target
    assert target.problems == []


def distil(teacher: nn.Module, epochs: int, change: Callable[[Any], Any] = lambda x: x) -> list[float]:
    """Losses of a student that learns from the teacher, over shuffled batches of four of 16 images."""
    torch.manual_seed(0)
    student = nn.Sequential(nn.Flatten(), nn.Linear(192, 144))
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    losses = []
    for _ in range(epochs):
        for (images,) in DataLoader(TensorDataset(IMAGES), batch_size=4, shuffle=True):
            loss = nn.functional.mse_loss(student(images), teacher(change(images)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def passes(teacher: nn.Module, times: int, images: torch.Tensor = IMAGES) -> list[torch.Tensor]:
    return [teacher(images) for _ in range(times)]


def test_outputs_are_computed_once_proved_and_then_given(target: LocalTarget, teacher: Teacher, calls: Any) -> None:
    want = teacher.norm(teacher.conv(IMAGES)).flatten(1).tanh()
    found = passes(teacher, 12)
    assert len(calls) == 1 + PROOFS
    for output in found:  # the same convolution may round otherwise where its input lies elsewhere
        torch.testing.assert_close(output, want, rtol=0, atol=1e-6)
    assert all(torch.equal(given, found[0]) for given in found[1 + PROOFS :])
    assert len({f.data_ptr() for f in found}) == 12, "each call has tensors of its own"
    found[-1].zero_()
    assert torch.equal(teacher(IMAGES), found[0]), "what the script does to an output stays its own"
    assert target.changes == 1 and target.reasons == []


def test_shuffled_batches_train_the_same_student(tmp_path: Path, teacher: Teacher, calls: list[int]) -> None:
    expected = distil(teacher, 5)
    calls.clear()
    with LocalTarget(str(tmp_path)) as target:
        cache_teacher.apply(target, {"max_bytes": MIB})
        losses = distil(teacher, 5)
    assert losses == pytest.approx(expected, rel=1e-5) and len(calls) == 4 + PROOFS and target.changes == 1


def mirrored(images: torch.Tensor) -> torch.Tensor:
    turned = torch.rand(len(images)) < 0.5
    return torch.where(turned[:, None, None, None], images.flip(3), images)


def test_pictures_that_are_mirrored_at_random_are_computed_twice(
    tmp_path: Path, teacher: Teacher, calls: list[int]
) -> None:
    expected = distil(teacher, 12, mirrored)
    calls.clear()
    with LocalTarget(str(tmp_path)) as target:
        cache_teacher.apply(target, {"max_bytes": MIB})
        losses = distil(teacher, 12, mirrored)
    assert losses == pytest.approx(expected, rel=1e-5) and target.changes == 1 and target.reasons == []
    assert 32 + 4 * PROOFS <= sum(calls) <= 32 + 4 * (PROOFS + 8), "each side once, the proofs, and what was new then"
    assert len(calls) < 24 < len(losses)


class Distiller(nn.Module):
    """A student with its teacher inside, as one network."""

    def __init__(self, teacher: nn.Module) -> None:
        super().__init__()
        self.student, self.teacher = nn.Sequential(nn.Flatten(), nn.Linear(192, 144)), teacher

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            wanted = self.teacher(images)
        return nn.functional.mse_loss(self.student(images), wanted)


def test_a_teacher_inside_of_a_compiled_network_is_remembered_too(
    tmp_path: Path, calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))

    def losses(levers: bool) -> list[float]:
        calls.clear()
        torch.manual_seed(0)
        net = Distiller(Teacher(calls).requires_grad_(False).eval())
        net.student.train()
        found = []
        with LocalTarget(str(tmp_path)) as target:
            if levers:
                cache_teacher.apply(target, {"max_bytes": MIB})
                compile_model.apply(target, {})
            optimizer = torch.optim.SGD(net.student.parameters(), lr=0.1)
            for _ in range(12):
                loss = net(IMAGES)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                found.append(loss.item())
            assert target.problems == [] and target.changes == (2 if levers else 0)
        return found

    expected = losses(levers=False)
    assert len(calls) == 12
    assert losses(levers=True) == pytest.approx(expected, rel=1e-5) and len(calls) == 1 + PROOFS


class Whole(Teacher):
    def forward(self, x: torch.Tensor) -> Any:
        if len(x) != 8:
            raise ValueError("eight at a time")
        return super().forward(x)


class Beside(Teacher):
    """Is given a table of as many rows as there are samples, and takes the first of them."""

    def forward(self, x: torch.Tensor, table: Any) -> Any:
        return super().forward(x) * table[0]


@pytest.mark.parametrize("kind", [Whole, Beside])
def test_a_network_of_whole_batches_gets_them(kind: type[Teacher], target: LocalTarget, calls: list[int]) -> None:
    torch.manual_seed(0)
    teacher = kind(calls).requires_grad_(False).eval()
    images = torch.randn(64, 3, 8, 8, generator=torch.Generator().manual_seed(2))
    more: tuple[Any, ...] = (torch.arange(3.0, 11.0),) if kind is Beside else ()
    scale = 3.0 if kind is Beside else 1.0
    known = list(range(8))
    mixed = [[*range(4), *range(at, at + 4)] for at in range(8, 60, 4)]  # half of each is known, at the same places
    for part in [*[known] * (1 + PROOFS), *mixed, known]:
        want = teacher.norm(teacher.conv(images[part])).flatten(1).tanh() * scale
        torch.testing.assert_close(teacher(images[part], *more), want, rtol=0, atol=1e-5)
    assert target.reasons == [] and target.changes == 1, "batches that are known as a whole are given"


def test_it_is_gone_afterwards(tmp_path: Path, teacher: Teacher, calls: list[int]) -> None:
    with LocalTarget(str(tmp_path)) as target:
        cache_teacher.apply(target, {"max_bytes": MIB})
        passes(teacher, 6)
    before = len(calls)
    teacher(IMAGES)
    assert len(calls) == before + 1 and "forward" not in vars(teacher)


def test_random_augmentation_ends_it_with_the_reason(target: LocalTarget, teacher: Teacher, calls: list[int]) -> None:
    distil(teacher, 4, lambda x: x + 0.01 * torch.randn_like(x))
    assert len(calls) == 16 and target.changes == 0 and "augmentation" in target.reasons[0]


def moving_average(teacher: Teacher) -> None:
    """As many scripts do it: behind the back of torch's version counter."""
    teacher.conv.weight.data.mul_(0.9).add_(0.1)


def one_number(teacher: Teacher) -> None:
    teacher.norm.running_mean.numpy()[2] += 1e-3  # type: ignore[union-attr]


def other_weights(teacher: Teacher) -> None:
    teacher.load_state_dict({k: v.clone() for k, v in Teacher([]).state_dict().items()})


@pytest.mark.parametrize("change", [moving_average, one_number, other_weights], ids=lambda f: f.__name__)
def test_weights_that_change_are_seen_at_once(
    target: LocalTarget, teacher: Teacher, change: Callable[[Teacher], None]
) -> None:
    passes(teacher, 6)
    change(teacher)
    want = teacher.norm(teacher.conv(IMAGES)).flatten(1).tanh()
    assert torch.equal(teacher(IMAGES), want) and "weights changed" in target.reasons[0] and target.changes == 0


class Tempered(Teacher):
    def __init__(self, calls: list[int]) -> None:
        super().__init__(calls)
        self.temperature, self.settings, self.head = 1.0, {"bias": 0.0}, nn.Identity()

    def forward(self, x: torch.Tensor) -> Any:
        return self.head(super().forward(x) / self.temperature + self.settings["bias"])


def hotter(teacher: Any) -> None:
    teacher.temperature = 4.0


def another_entry(teacher: Any) -> None:
    teacher.settings["bias"] = 1.0


def another_part(teacher: Any) -> None:
    teacher.head = nn.Hardtanh().eval()


def another_attribute_of_a_part(teacher: Any) -> None:
    teacher.conv.padding = (1, 1)


@pytest.mark.parametrize(
    "change", [hotter, another_entry, another_part, another_attribute_of_a_part], ids=lambda f: f.__name__
)
def test_an_attribute_that_the_script_sets_is_seen_at_once(
    target: LocalTarget, calls: list[int], change: Callable[[Teacher], None]
) -> None:
    torch.manual_seed(0)
    teacher = Tempered(calls).requires_grad_(False).eval()
    passes(teacher, 6)
    change(teacher)
    want = type(teacher).forward(teacher, IMAGES)
    assert torch.equal(teacher(IMAGES), want) and "attribute" in target.reasons[0] and target.changes == 0


def test_an_attribute_that_is_set_to_what_it_was_changes_nothing(target: LocalTarget, calls: list[int]) -> None:
    teacher = Tempered(calls).requires_grad_(False).eval()
    for _ in range(8):
        teacher.temperature = float("1.5")  # another object each time
        handle = teacher.register_forward_hook(lambda *a: None)
        teacher.eval()(IMAGES)
        handle.remove()
    assert len(calls) == 1 + PROOFS and target.reasons == []


def test_a_network_that_is_unfrozen_trains(target: LocalTarget, teacher: Teacher) -> None:
    passes(teacher, 6)
    teacher.requires_grad_(True)
    teacher(IMAGES).sum().backward()
    assert teacher.conv.weight.grad is not None and "gradients" in target.reasons[0]


def test_gradients_that_pass_through_it_are_left_alone(target: LocalTarget, teacher: Teacher, calls: Any) -> None:
    passes(teacher, 6)
    images = IMAGES.clone().requires_grad_()
    teacher(images).sum().backward()
    assert images.grad is not None
    before = len(calls)
    teacher(IMAGES)
    assert len(calls) == before and target.reasons == [], "such a call ends nothing"


class Noisy(Teacher):
    def forward(self, x: torch.Tensor) -> Any:
        return super().forward(x) + torch.randn(1)


class Keeping(Teacher):
    def forward(self, x: torch.Tensor) -> Any:
        self.features = super().forward(x)
        return self.features * 2


class Collecting(Teacher):
    def __init__(self, calls: list[int]) -> None:
        super().__init__(calls)
        self.all: list[Any] = []

    def forward(self, x: torch.Tensor) -> Any:
        self.all.append(x)
        return super().forward(x)


class Mixing(Teacher):
    """Each sample's output depends on the whole batch."""

    def forward(self, x: torch.Tensor) -> Any:
        out = super().forward(x)
        return out - out.mean(0)


class Summing(Teacher):
    def forward(self, x: torch.Tensor) -> Any:
        return super().forward(x).sum(0)


class Through(Teacher):
    def forward(self, x: torch.Tensor) -> Any:
        super().forward(x)
        return x


class Naming(Teacher):
    def forward(self, x: torch.Tensor) -> Any:
        return {"out": super().forward(x), "by": object()}


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (Noisy, "random numbers"),
        (Keeping, "attribute"),
        (Collecting, "attribute"),
        (Mixing, "another output"),
        (Summing, "no row for each sample"),
        (Through, "part of its input"),
        (Naming, "a object"),
    ],
)
def test_what_cannot_be_kept(kind: type[Teacher], reason: str, tmp_path: Path, calls: list[int]) -> None:
    torch.manual_seed(0)
    teacher = kind(calls).requires_grad_(False).eval()
    batches = [IMAGES[:8], IMAGES[8:], IMAGES[4:12], IMAGES[4:12], IMAGES[4:12], IMAGES[4:12]]
    with LocalTarget(str(tmp_path)) as target:
        cache_teacher.apply(target, {"max_bytes": MIB})
        for images in batches:
            teacher(images)
    assert len(calls) == len(batches) and target.changes == 0 and reason in target.reasons[0]


def test_training_mode_and_hooks_inside(tmp_path: Path, teacher: Teacher, calls: list[int]) -> None:
    seen: list[Any] = []

    def hook() -> None:
        teacher.eval()
        teacher.conv.register_forward_hook(lambda *a: seen.append(1))

    for change, reason in ((teacher.norm.train, "training mode"), (hook, "hooked into a Conv2d")):
        change()
        with LocalTarget(str(tmp_path)) as target:
            cache_teacher.apply(target, {"max_bytes": MIB})
            passes(teacher, 6)
        assert target.changes == 0 and reason in target.reasons[0]
    assert len(seen) == 6 and len(calls) == 12


def test_memory_that_does_not_suffice(tmp_path: Path, teacher: Teacher, calls: list[int]) -> None:
    with LocalTarget(str(tmp_path)) as target:
        cache_teacher.apply(target, {"max_bytes": 16 * 144 * 4})
        passes(teacher, 6)
    assert len(calls) == 6 and "do not fit" in target.reasons[0] and target.changes == 0


def test_a_proof_is_repeated_more_and_more_rarely(target: LocalTarget, teacher: Teacher, calls: list[int]) -> None:
    passes(teacher, 1 + PROOFS + AGAIN)
    assert len(calls) == 1 + PROOFS
    teacher(IMAGES)
    assert len(calls) == 2 + PROOFS
    apart = AGAIN
    for number in range(5):
        apart = min(2 * apart, RAREST)
        passes(teacher, apart)
        assert len(calls) == 2 + PROOFS + number
        teacher(IMAGES)
        assert len(calls) == 3 + PROOFS + number
    assert apart == RAREST


def test_what_else_decides_the_output_is_part_of_the_key(target: LocalTarget, teacher: Teacher) -> None:
    passes(teacher, 6)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        low = passes(teacher, 6)[-1]
    assert torch.equal(teacher(IMAGES), teacher.norm(teacher.conv(IMAGES)).flatten(1).tanh())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(low, teacher.norm(teacher.conv(IMAGES)).flatten(1).tanh())
    assert target.reasons == []


def test_forms_layouts_and_other_arguments(target: LocalTarget, calls: list[int]) -> None:
    class Two(Teacher):
        def forward(self, x: torch.Tensor, scale: float = 1.0, *, mask: Any = None) -> Any:
            self.counted(len(x))
            return {"maps": [self.conv(x) * scale], "sums": (self.conv(x).sum((1, 2, 3)), None)}

    torch.manual_seed(0)
    two = Two(calls).requires_grad_(False).eval().to(memory_format=torch.channels_last)
    images = IMAGES.contiguous(memory_format=torch.channels_last)
    with torch.no_grad():
        want = {scale: two.conv(images) * scale for scale in (1.0, 2.0)}
    for _ in range(8):
        for scale in (1.0, 2.0):
            found = two(images, scale, mask=None)
            assert torch.equal(found["maps"][0], want[scale]) and found["sums"][1] is None
            assert found["maps"][0].is_contiguous(memory_format=torch.channels_last)
            assert torch.allclose(found["sums"][0], two.conv(images).sum((1, 2, 3)))
    assert len(calls) == 2 + PROOFS, "both share the proofs" and target.reasons == []


def test_a_frozen_trunk_in_a_trained_model_and_its_copies(target: LocalTarget, teacher: Teacher, calls: Any) -> None:
    model = nn.Sequential(teacher, nn.Linear(144, 2))
    for _ in range(7):
        model.train()
        teacher.eval()
        model(IMAGES).sum().backward()
    assert len(calls) == 1 + PROOFS and target.changes == 1
    for other in (copy.deepcopy(model), copy.deepcopy(copy.deepcopy(model))):
        assert other[0].forward.__self__ is other[0], "a copy computes with its own weights"
        other[0].conv.weight.zero_()
        other[0].conv.bias.zero_()
        assert not torch.equal(other(IMAGES), model(IMAGES))


def test_a_pickled_network_is_plain(target: LocalTarget) -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten()).requires_grad_(False).eval()
    passes(network, 6)
    data = pickle.dumps(network)
    assert b"hotlap" not in data
    other = pickle.loads(data)
    assert other.forward.__self__ is other and torch.equal(other(IMAGES), network(IMAGES))


def test_beside_the_lever_that_runs_it_for_inference(tmp_path: Path, teacher: Teacher, calls: list[int]) -> None:
    def shown(*levers: Any) -> list[torch.Tensor]:
        with LocalTarget(str(tmp_path)) as target:
            for lever, setting in levers:
                lever.apply(target, setting)
            return passes(teacher, 7)

    inference = (teacher_inference, {"dtype": "bf16", "channels_last": True})
    cache = (cache_teacher, {"max_bytes": MIB})
    want = shown(inference)
    for order in ((inference, cache), (cache, inference)):
        calls.clear()
        found = shown(*order)
        assert len(calls) == 2 + PROOFS, "the first call is the script's own, in its own type"
        assert all(torch.equal(a, b) for a, b in zip(found, want, strict=True))
        assert found[-1].dtype is torch.float32


def test_streams_have_no_length(target: LocalTarget, teacher: Teacher) -> None:
    class Stream(IterableDataset[Any]):
        def __iter__(self) -> Iterator[torch.Tensor]:
            return iter(IMAGES)

    for _ in range(5):
        for images in DataLoader(Stream(), 8):
            teacher(images)
    assert target.reasons == [] and target.changes == 1


def test_refusals() -> None:
    def offered(**known: Any) -> Any:
        findings = findings_of("frozen-subnetwork")
        findings.findings[0].evidence.update(known)
        return cache_teacher.settings(findings.findings[0], findings, machine_of())

    assert offered(network_s=0.02) == [{"max_bytes": 5 << 30}]
    for known, reason in (({"frozen": False}, "requires_grad_"), ({"asked": True}, "Gradients"),
                          ({"training": True}, "eval()")):  # fmt: skip
        found = offered(**known)
        assert isinstance(found, Refusal) and reason in found.reason
