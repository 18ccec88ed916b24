"""What a trial may cost and how sure it has to be. Every number that decides is here."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Budget"]


@dataclass(frozen=True)
class Budget:
    """Limits of one comparison. Start-up and warm-up come on top of ``seconds``, within limits of their own."""

    seconds: float = 30.0
    """Measuring time, both arms together."""
    patience: float = 0.8
    """Share of ``seconds`` that a comparison may go on for: neighbours spoiled too many windows, or a gain that looks
    worth having is not certain yet. To go on costs less than to launch and warm up once more."""
    promising: float = 1.03
    """A gain that looks worth having."""
    stop_early: bool = True
    """Whether an interval may end the comparison; otherwise all of ``seconds`` is used."""
    precision: float = 0.02
    """Stop when the interval's half-width over its ratio is at most this."""
    epsilon: float = 0.01
    """Stop early when the interval lies above 1 + epsilon, or below 1."""
    futile_pairs: int = 6
    """With so many windows in each arm and a ratio that is not above 1, the candidate is given up."""
    min_pairs: int = 4
    """Windows that must count in each arm before any decision."""
    max_pairs: int = 40
    window_s: float = 1.5
    """Shortest window."""
    window_steps: int = 6
    """Fewest steps of a window, the dropped ones not counted."""
    cycle_steps: int = 1
    """A window holds a multiple of so many steps: its pauses come round after them (:mod:`hotlap.trial.pauses`)."""
    drop_steps: int = 2
    """Steps left out after a thaw. The loader's queue holds what it held: its processes stand still, too."""
    first_step_s: float = 180.0
    """Launch to first step; an arm that takes longer has failed."""
    second_step_s: float = 0.0
    """First step to second, while it computes (a compiler that begins there); ``first_step_s`` if that is longer."""
    warmup_s: float = 30.0
    """First step to steady; after that the arm counts as warm, with a note."""
    warmup_steps: int = 5
    """Fewest steps of warm-up."""
    candidate_warmup_steps: int = 0
    """Fewest steps of the candidate's warm-up, where its levers need more (a cache: one epoch)."""
    warmup_least_s: float = 2.0
    """Shortest warm-up: caches, allocator and page cache settle."""
    hang_s: float = 30.0
    """Shortest time without a step that counts as a hang."""
    hang_steps: float = 20.0
    """As many step times without a step count as a hang."""
    neighbour_cores: float = 0.15
    """Cores that others may take during a window before it is dropped."""
    restarts: int = 6
    """How often an arm whose script ends may be started again."""
    candidate_first: bool = False
    """The candidate is launched, warmed up and measured first. Who is first does not fare the same: its first window
    follows a long freeze. Between two equal arms, the later one was ahead by 1 %: 1.009x, the median of ten trials."""
    one_at_a_time: bool = False
    """The arm whose turn it is not is ended rather than frozen: both do not fit into memory. Each arm's two turns in a
    row are a launch of its own, whose start comes on top of ``seconds``."""
    poll_s: float = 0.2
    """How often the timelines are looked at."""

    def hang_limit_s(self, step_s: float) -> float:
        """Longest time without a step for an arm whose steps take ``step_s``."""
        return max(self.hang_s, self.hang_steps * step_s)
