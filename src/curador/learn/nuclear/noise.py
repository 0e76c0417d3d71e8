"""The noise of a whole pass: one release that leaves in pieces, and decaying sums whose noise is correlated.

Pieces.   One release that leaves in pieces is for sequences in which each number may depend on those that left before it.

Correlated noise.   It is made by decaying sums in integers, by shifts alone.

What is wanted of a stream of matrices g_0, g_1, … are the decaying sums D_t = Σ_s (1−η)^(t−s) g_s, that is A g with A lower
triangular. For any lower triangular C with an inverse, A g is a fixed linear map of C g: release C g + Z, and the rest is
post-processing, D̃ = A C⁻¹ (C g + Z) = A g + A C⁻¹ Z. A record that enters g at one s only moves C g by the length of a
column of C. C = 1 is noise on every g_s, C = A noise on every D_t; best is about the root of A, whose entries are
(1−η)^k · c_k, c_k = c_(k−1) (2k−1)/(2k) ≈ 1/√(πk): both the noise and the column are then of the order of log(1/η).

The ladder. 1/√k is a sum of exponentials with rates 4^−j and weights 2^−j, but for a ripple of 0.3 %. So is

    C[t, s] = ω(t−s),   ω(k) = [k = 0] + Σ_(j=1..J) 2^−j (1 − 4^−j − η)^k + 2^−J (1 − η)^k,   η = p/2^q,

within 1 % of the root's noise, and its sums need J + 1 ≈ log₄(1/η) matrices, each decaying by shifts of integers:

    S_j ← S_j − (S_j >> 2j) − p (S_j >> q) + (g >> j),      (C g)_t = g_t + Σ_j S_j.

No product is rounded anywhere, no history is kept, and the matrix that is released is one of exact integers plus integer
noise.

Sensitivity.   Two runs whose g differ by v at one s, the rest of g alike. Shifts round down, so S >> i = S/2^i − f with f in
[0, 1), and the differences e_j of the sums obey e_j ← (1 − 4^−j − η) e_j + 2^−j v + r, |r| < p + 2 in every entry. Hence at
t ≥ s the released matrices differ by ω(t−s) v and at most R = Σ_j (p + 2)/(4^−j + η) in every entry, and over all t, in l2,
by at most |v| √(Σ ω(k)²) + √(m d₁ d₂) R.   For the plain decaying sum, J = 0 and C = A, the same with R = (p + 1)/η.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from curador.learn.release import Releaser
    from curador.learn.sums import Floats, Integers


# ---- noise -----------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class ReleaseSequence:
    """A sequence y_0, y_1, … of integer vectors that is accounted as one release, begun when its first numbers leave.

    Claim   That of `mechanisms/gaussian.py`: it costs one release of the part, if a neighbour moves y_t by at most fixed l_t,
            whatever left before, with Σ l_t² ≤ length².
    Needs   Integers that are exact. δ > 0: Laplace noise does not add up by squares.

    total   how many numbers there will be
    step    what a grid step stands for, for the card
    """

    releaser: Releaser
    name: str
    length: int
    total: int
    step: float
    _release: Callable[[Integers], Integers] | None = None

    def noisy(self, exact: Integers) -> Integers:
        """Return the next integers of the sequence with their noise: the one way out."""
        if self._release is None:
            self._release = self.releaser.sequence(self.name, length=self.length, numbers=self.total, step=self.step)
        return self._release(exact)


# ---- ladder ----------------------------------------------------------------------------------------------------------------


_ROUNDING = 1.0 + 2.0**-30
"""More than what floats lose in a sum of positive numbers of a million terms by pairs."""

_NUMERATOR = 16
_SHOWN = 1 << 16


@dataclass(frozen=True, slots=True)
class Ladder:
    """C, by the shifts of its sums; rungs = 0: C = A.

    numerator, places  η = numerator/2^places
    """

    rungs: int
    numerator: int
    places: int

    @property
    def decay(self) -> float:
        """η."""
        return self.numerator / 2.0**self.places

    @property
    def shifts(self) -> Integers:
        """2j of each sum but the slowest, which only η makes decay."""
        return np.array([2 * j for j in range(1, self.rungs + 1)], np.int64)

    @property
    def weights(self) -> Integers:
        """J of the weights 2^−J."""
        return np.array([*range(1, self.rungs + 1), self.rungs], np.int64)

    @property
    def impulse(self) -> int:
        """Whether g itself is added to the sums."""
        return 1 if self.rungs else 0

    @property
    def rates(self) -> Floats:
        """4^−j + η of each sum: exact floats."""
        fast = [0.25**j for j in range(1, self.rungs + 1)] + [0.0]
        return np.asarray(fast) + self.decay

    def column(self, steps: int) -> Floats:
        """Return ω(0), …, ω(steps − 1)."""
        out = np.zeros(steps)
        out[0] = self.impulse
        powers = np.arange(steps)
        for weight, rate in zip(self.weights.tolist(), self.rates.tolist(), strict=True):
            out += 2.0**-weight * np.exp(powers * math.log1p(-rate))
        return out

    def column_norm(self, steps: int) -> float:
        """Return √Σ ω(k)² over k < steps: how far one record moves C g, in its own length. Rounds: up."""
        return float(np.sqrt(np.square(self.column(steps)).sum())) * _ROUNDING

    def rounding(self, steps: int, numbers: int) -> float:
        """Return the most that shifts of integers can add to that, over all steps and numbers, in grid steps. Rounds: up."""
        each = (self.numerator + 2) * float((1.0 / self.rates).sum())
        return math.sqrt(float(steps) * numbers) * each * _ROUNDING

    def length(self, longest: int, steps: int, numbers: int) -> int:
        """Return how far C g moves in l2 when one g_s moves by `longest`, in grid steps. Rounds: up."""
        return math.ceil((longest * self.column_norm(steps) + self.rounding(steps, numbers)) * _ROUNDING)

    def noise_norm(self, steps: int) -> float:
        """Return √Σ b(k)², b the entries of A C⁻¹: the noise of the last D̃ over that of Z. To display and to compare.

        Of long runs the first 2¹⁶ entries: the others add a few parts in a hundred.
        """
        if not self.rungs:
            return 1.0
        steps = min(steps, _SHOWN)
        inverse = _inverse(self.column(steps))
        kept = np.exp(np.arange(steps) * math.log1p(-self.decay))
        width = 1 << steps.bit_length() + 1
        row = np.fft.irfft(np.fft.rfft(inverse, width) * np.fft.rfft(kept, width), width)[:steps]
        return float(np.sqrt(np.square(row).sum()))


def ladder_for(decay: float, *, root: bool = True) -> Ladder:
    """Return the ladder of about this η, with p of five bits; root=False: C = A."""
    places = math.floor(math.log2((2 * _NUMERATOR - 1) / decay))
    numerator = max(1, round(decay * 2**places))
    return Ladder(max(1, math.ceil(math.log(1 / decay, 4)) + 1) if root else 0, numerator, places)


class Sums:
    """The running sums of C g, in exact integers. Private: they are the data."""

    def __init__(self, ladder: Ladder, shape: tuple[int, int]) -> None:
        self.state = np.zeros((ladder.rungs + 1, *shape), np.int64)
        self._fast = ladder.shifts.reshape(-1, 1, 1)
        self._weights = ladder.weights.reshape(-1, 1, 1)
        self._numerator, self._places, self._impulse = ladder.numerator, ladder.places, ladder.impulse

    def add(self, matrix: Integers) -> Integers:
        """Return (C g)_t after g_t."""
        state = self.state
        loss = (state >> self._places) * self._numerator
        loss[:-1] += state[:-1] >> self._fast  # the slowest decays by η alone
        state -= loss
        state += matrix >> self._weights
        return state.sum(axis=0) + matrix if self._impulse else state.sum(axis=0)


class Undone:
    """A C⁻¹, step by step, of what was released: floats, and post-processing."""

    def __init__(self, ladder: Ladder, shape: tuple[int, int]) -> None:
        self.ladder = ladder
        self.total = np.zeros(shape)
        self._state = np.zeros((ladder.rungs + 1, shape[0] * shape[1]))
        self._kept = (1.0 - ladder.rates)[:, None]
        self._weights = 2.0 ** -ladder.weights.astype(np.float64)
        self._first = ladder.impulse + float(self._weights.sum())

    def add(self, released: Floats) -> Floats:
        """Return D̃_t from the t-th release."""
        if not self.ladder.rungs:
            self.total = released
            return released
        self._state *= self._kept
        step = (released.ravel() - self._weights @ self._state) / self._first
        self._state += step
        self.total = self.total * (1.0 - self.ladder.decay) + step.reshape(self.total.shape)
        return self.total


def _inverse(series: Floats) -> Floats:
    """1 over a power series, by Newton's iteration on its first numbers."""
    size, out = 1, np.array([1.0 / series[0]])
    while size < len(series):
        size = min(2 * size, len(series))
        width = 1 << (3 * size).bit_length()
        square = np.fft.rfft(out, width) ** 2
        product = np.fft.irfft(square * np.fft.rfft(series[:size], width), width)[:size]
        out = 2 * np.pad(out, (0, size - len(out))) - product
    return out
