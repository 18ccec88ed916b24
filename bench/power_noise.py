"""Noise for simulated comparisons: what step times of two arms that take turns look like on shared machines.

A model is the shape of one launch's windows (log step times in the order in which they were run) and how far launches
differ among each other. Some come from measurements: bench/results/honesty.json holds launches of equal arms, which are
drawn whole, and what their intervals say of how launches differ (Student's t over four launches, so each gives back its
deviation) is laid over made windows. ``--windows FOLDER`` takes the windows of real trials, as `hotlap speedup` leaves
them in a run folder.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import stdtrit

from hotlap.proof.speedup import pair_log_ratios
from hotlap.records import codec
from hotlap.records.errors import HotlapError
from hotlap.records.trials import Trial
from hotlap.trial import design

__all__ = ["HONESTY", "Noise", "drawn_whole", "equal_arms", "launch_deviation", "models", "real_launches", "real_pairs"]

HONESTY = Path(__file__).parent / "results" / "honesty.json"
LAUNCHES = 4
"""Pairs of launches behind each interval of honesty.json."""
BLOCK = 3
"""Neighbouring pairs of a real trial are drawn together: what binds them stays."""
LEAST_PAIRS = 5

Windows = Callable[[np.random.Generator, int], np.ndarray]
"""Log step times of so many windows in a row."""


@dataclass(frozen=True)
class Noise:
    """One kind of machine."""

    name: str
    windows: Windows
    launch_sd: float
    """Deviation of one arm's launch from the next, of the log step time."""
    two_modes: bool = False
    """Launches are in one of two modes, rather than anywhere."""
    whole_launches: bool = False
    """The windows are a launch's own, and hold what it is off by."""
    lost_frac: float = 0.15
    """Share of windows that neighbours spoil."""

    def launch(self, g: np.random.Generator) -> float:
        """What one launch of one arm is off by, for its whole life, beside what its windows hold."""
        if self.whole_launches:
            return 0.0
        if self.two_modes:
            return float(2 * self.launch_sd * (g.integers(0, 2) - 0.5))
        return float(self.launch_sd * g.standard_normal())


def _autoregressive(phi: float, deviation: float, heavy: bool = False, drift: float = 0.0) -> Windows:
    """AR(1) with a fresh ``deviation`` a window; ``heavy``: Student's t with 3 degrees; ``drift``: log a window."""

    def draw(g: np.random.Generator, n: int) -> np.ndarray:
        fresh = deviation * (g.standard_t(3, n) if heavy else g.standard_normal(n))
        out = np.empty(n)
        last = float(fresh[0]) / math.sqrt(1 - phi * phi)
        for i in range(n):
            last = phi * last + float(fresh[i])
            out[i] = last
        return out + drift * np.arange(n)

    return draw


def _blocks(row: np.ndarray, g: np.random.Generator) -> np.ndarray:
    at = int(g.integers(len(row) - BLOCK + 1))
    return row[at : at + BLOCK]


def _drawn(pairs: list[np.ndarray]) -> Windows:
    """Blocks of real pairs, of a random trial and in a random direction: of two equal arms neither is the better."""

    def draw(g: np.random.Generator, n: int) -> np.ndarray:
        values: list[float] = []
        while 2 * len(values) < n:
            values += list(_blocks(pairs[int(g.integers(len(pairs)))], g) * g.choice((-1.0, 1.0)))
        return _as_windows(values)[:n]

    return draw


def drawn_whole(launches: list[np.ndarray]) -> Windows:
    """A random real launch in a random direction, gone on with by blocks of its own where it was too short."""

    def draw(g: np.random.Generator, n: int) -> np.ndarray:
        row = launches[int(g.integers(len(launches)))] * g.choice((-1.0, 1.0))
        values = list(row)
        while 2 * len(values) < n:
            values += list(_blocks(row, g))
        return _as_windows(values)[:n]

    return draw


def _as_windows(log_ratios: list[float]) -> np.ndarray:
    """Windows whose pairs have these log ratios of throughput: the first of each two carries it."""
    out = np.zeros(2 * len(log_ratios))
    sign = [1.0 if design.order(2 * k) == "baseline" else -1.0 for k in range(len(log_ratios))]
    out[0::2] = np.multiply(sign, log_ratios)
    return out


def equal_arms(path: Path = HONESTY) -> dict[str, list[list[float]]]:
    """Real comparisons of equal arms: per script, the intervals (low, ratio, high)."""
    found: dict[str, list[list[float]]] = json.loads(path.read_text())["figures"]["intervals"]
    return found


def real_launches(path: Path = HONESTY) -> dict[str, list[np.ndarray]]:
    """Per script, the log ratios of the neighbouring windows of each pair of launches of equal arms."""
    found = json.loads(path.read_text())["figures"]["launches"]
    return {name: [np.array(row) for row in rows if len(row) >= BLOCK] for name, rows in found.items()}


def launch_deviation(intervals: list[list[float]], level: float) -> float:
    """Deviation of one arm's launches that such intervals of pairs rest on (what windows add is still in it)."""
    t = float(stdtrit(LAUNCHES - 1, 0.5 + level / 2))
    of_pairs = [math.log(high / ratio) * math.sqrt(LAUNCHES) / t for _, ratio, high in intervals]
    return math.sqrt(float(np.mean(np.square(of_pairs))) / 2)


def _trials(folder: Path) -> Iterator[Trial]:
    for path in sorted(folder.rglob("trials/*.json")):
        try:
            trial = codec.loads(Trial, path.read_text(encoding="utf-8"), str(path))
        except HotlapError as exc:
            print(f"left out: {exc}")
            continue
        if trial.status == "measured":
            yield trial


def real_pairs(folder: Path) -> list[np.ndarray]:
    """Log ratios of neighbouring windows within a launch, each launch's mean taken away, of all trials in ``folder``.

    Taking the mean away costs one degree of freedom, which is given back, so that the deviation is not too small.
    """
    found = []
    for trial in _trials(folder):
        for launch in sorted({w.launch for w in trial.windows}):
            row = np.array(pair_log_ratios([w for w in trial.windows if w.launch == launch], 0.0, 0.0))
            if len(row) >= LEAST_PAIRS:
                found.append((row - row.mean()) * math.sqrt(len(row) / (len(row) - 1)))
    return found


def models(pairs: list[np.ndarray], level: float) -> list[Noise]:
    """The machines that comparisons are simulated on."""
    known = {name: launch_deviation(intervals, level) for name, intervals in equal_arms().items()}
    healthy, restless = known["healthy"], known["restless"]
    found = [
        Noise("quiet", _autoregressive(0.3, 0.005), 0.002),
        Noise("AR(1), launches as of the healthy script", _autoregressive(0.6, 0.03), healthy),
        Noise("strongly bound windows", _autoregressive(0.95, 0.03), healthy),
        Noise("heavy tails", _autoregressive(0.3, 0.03, heavy=True), healthy),
        Noise("drift of 1 % a window", _autoregressive(0.6, 0.03, drift=0.01), healthy),
        Noise("launches as of the restless script", _autoregressive(0.6, 0.03), restless),
        Noise("launches of two modes, 28 % apart", _autoregressive(0.6, 0.03), 0.14, two_modes=True),
    ]
    for name, launches in real_launches().items():  # none of their windows is lost: those that were are not in them
        found.append(Noise(f"launches of the {name} script, drawn whole", drawn_whole(launches), known[name],
                           whole_launches=True, lost_frac=0.0))  # fmt: skip
    if pairs:
        found.append(Noise("windows of real trials", _drawn(pairs), healthy))
    return found
