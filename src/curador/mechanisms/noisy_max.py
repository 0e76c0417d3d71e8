"""Report noisy max: which scores are the largest after noise; how far ahead for free, how large for a second charge."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from attrs import field, frozen

from curador.errors import require
from curador.mechanisms.grid import MOST_FLOAT, decimal_text, power_of_two, refusal_of_value, steps_of, to_float
from curador.mechanisms.scores import (
    REACH,
    WIDEST,
    Steps,
    are_near,
    calibrate_epsilon,
    deficits_of,
    failure_of,
    monotone_text,
    noise_exponent,
    score_steps,
    split_size,
    stack_parts,
)
from curador.mechanisms.seam import perform
from curador.numerics.exact import FLAG, POSITIVE, WHOLE, Number, positive, reads_maybe, whole
from curador.numerics.rounding import FloatArray, Interval, float_down, float_up
from curador.privacy.loss import Loss
from curador.privacy.losses import DiscreteLaplaceLoss, Pure
from curador.randomness.entropy import Entropy, IntArray
from curador.randomness.noise import laplace

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """What was chosen: indices, best first; gaps to the next one and noisy values where they were asked for.

    One row for a single release is a plain list of length `top`; `release_many` has a first axis of its size.
    """

    indices: IntArray
    gaps: FloatArray | None
    values: FloatArray | None


class Drawn(NamedTuple):
    """The same in grid steps, as it leaves the seam."""

    indices: IntArray
    gaps: IntArray | None
    values: Steps | None


@frozen(kw_only=True)
class NoisyMax:
    """The indices of the `top` largest scores after discrete Laplace noise of scale 2 · top · sensitivity/ε.

    The scale is top · sensitivity/ε where scores are monotone. Ties go to the smaller index, which is public.

    Claim   ε-private. Let s, s' be neighbouring scores on the grid, Δ their sensitivity in steps. Candidate i stands before j
            iff s_i + N_i ≥ s_j + N_j + [j < i]. Keep the losers' noise and add δ + s_i − s'_i to each winner's: winners'
            noisy scores all move by δ. Losers' move by at most δ = Δ, so every winner stays before every loser, in the
            same order. The shift lies in [0, 2Δ] (monotone: rising scores with δ = Δ, falling ones with δ = 0, in [0, Δ]),
            and P[N = n] ≤ e^(c/scale) P[N = n + c] for each of `top` winners: e^ε in all.
            gap=True also releases, for free, how far each winner is before the next, [j < i] counted. With i the last
            winner and t = max over losers j of s_j + N_j + [j < i], take δ = t' − t, a function of the losers' noise: all
            gaps stay the same, and |δ| ≤ Δ, so that shifts are within 2Δ (Δ if monotone: δ and s − s' have opposite signs).
            A winner's noisy score itself is NOT free (k equal scores that rise together would lose kε): value_epsilon pays
            for fresh noise of scale top · sensitivity/value_epsilon on each winner's score.
    Needs   No score moves by more than `sensitivity` between neighbours; monotone=True: and all move the same way (counts,
            when one record comes or goes; never when one is replaced).
    Rounds  Scores to a power-of-two grid, the sensitivity in grid steps up; the scale follows it, so that ε is exact.
    Source  [DR14, Claim 3.9]; [DWZK19] for the gaps.
    """

    epsilon: Fraction = field(converter=POSITIVE)
    sensitivity: Fraction = field(converter=POSITIVE)
    monotone: bool = field(default=False, converter=FLAG)
    top: int = field(default=1, converter=WHOLE)
    gap: bool = field(default=False, converter=FLAG)
    value_epsilon: Fraction | None = field(default=None, converter=reads_maybe(positive))

    def __attrs_post_init__(self) -> None:
        hint = "no score can be heard above such noise"
        require(self.noise_scale <= WIDEST, "epsilon", "at least top/2⁴⁹", self.epsilon, hint)
        if self.value_epsilon is not None:
            require(self.value_scale <= WIDEST, "value_epsilon", "at least top · epsilon/2¹⁰", self.value_epsilon)

    def __repr__(self) -> str:
        more = f", top={self.top}" if self.top > 1 else ""
        more += ", gap=True" if self.gap else ""
        more += "" if self.value_epsilon is None else f", value_epsilon={decimal_text(self.value_epsilon)}"
        more = monotone_text(self.monotone) + more
        return f"NoisyMax(epsilon={decimal_text(self.epsilon)}, sensitivity={decimal_text(self.sensitivity)}{more})"

    @property
    def _exponent(self) -> int:
        factor = self.top * (1 if self.monotone else 2)
        return noise_exponent(factor * self.sensitivity / self.epsilon, self.sensitivity)

    @property
    def grid(self) -> Fraction:
        """The step of the grid that scores and noise live on."""
        return power_of_two(self._exponent)

    @property
    def steps(self) -> int:
        """The sensitivity in grid steps, rounded up."""
        return steps_of(self.sensitivity**2, self._exponent)

    @property
    def noise_scale(self) -> Fraction:
        """The scale of the noise in grid steps."""
        return self.top * (1 if self.monotone else 2) * self.steps / self.epsilon

    @property
    def value_scale(self) -> Fraction:
        """The scale of the fresh noise on a winner's score, in grid steps; 0 where no value is released."""
        return Fraction(0) if self.value_epsilon is None else self.top * self.steps / self.value_epsilon

    @property
    def loss(self) -> Loss:
        """What one choice costs, values included."""
        choice = Pure(epsilon=self.epsilon)
        if self.value_epsilon is None:
            return choice
        return choice + self.top * DiscreteLaplaceLoss(scale=self.value_scale, sensitivity=self.steps)

    @property
    def _plain(self) -> bool:
        return not self.gap and self.value_epsilon is None

    # ---- releases ---------------------------------------------------------------------------------------------------

    def release(self, scores: ArrayLike) -> int | Selection:
        """Return the index of the winner, or a Selection where more than that is wanted."""
        drawn: Drawn = perform(self, self._on_grid(scores))
        return int(drawn.indices[0]) if self._plain and self.top == 1 else self._presented(drawn)

    def release_many(self, scores: ArrayLike, size: int) -> IntArray | Selection:
        """Return `size` independent choices, the first axis. Each is a release and costs `loss`."""
        drawn: Drawn = perform(self, self._on_grid(scores), whole(size, "size"))
        return drawn.indices[:, 0] if self._plain and self.top == 1 else self._presented(drawn)

    def _presented(self, drawn: Drawn) -> Selection:
        return Selection(drawn.indices, *(in_units(one, self._exponent) for one in (drawn.gaps, drawn.values)))

    def _on_grid(self, scores: ArrayLike) -> Steps:
        exact = score_steps(scores, self._exponent)
        least = self.top + self.gap
        if len(exact) < least:
            raise refusal_of_value(
                "scores", f"at least {least} for top={self.top}" + ", gap=True" * self.gap, str(len(exact))
            )
        return exact

    def draw(self, value: Steps, source: Entropy, size: int | None = None) -> Drawn:
        """Return winners, gaps and values in grid steps for integer scores; `size` independent rows if given."""
        behind = deficits_of(value, REACH)
        parts = [self._some(value, behind, rows, source) for rows in split_size(len(value), 1 if size is None else size)]
        if size is None:
            winners, gaps, values = parts[0]
            return Drawn(winners[0], None if gaps is None else gaps[0], None if values is None else values[0])
        return Drawn(
            np.concatenate([part.indices for part in parts]),
            stack_parts([part.gaps for part in parts]),
            stack_parts([part.values for part in parts]),
        )

    def _some(self, value: Steps, behind: IntArray, rows: int, source: Entropy) -> Drawn:
        noisy = laplace(self.noise_scale).several(rows * len(behind), source).reshape(rows, -1) - behind
        wanted = self.top + self.gap
        places = _leaders(noisy, wanted)
        winners, gaps, values = places[:, : self.top], None, None
        if self.gap:
            height = np.take_along_axis(noisy, places, axis=1)
            gaps = height[:, :-1] - height[:, 1:] - (places[:, 1:] < places[:, :-1])
        if self.value_epsilon is not None:
            fresh = laplace(self.value_scale).several(winners.size, source).reshape(winners.shape)
            values = value[winners] + fresh
        return Drawn(winners, gaps, values)

    def within(self, one: Steps, other: Steps) -> bool:
        """Whether no score moves by more than the sensitivity (all the same way, if monotone)."""
        return are_near(one, other, self.steps, monotone=self.monotone)

    # ---- law, error, calibration ------------------------------------------------------------------------------------

    def probabilities(self, scores: ArrayLike) -> FloatArray:
        """Return the probability of each candidate to be the first, as floats: for the eye and for tests.

        Rounds  Noise is taken as continuous, which is right to about (number of candidates)/(scale in steps).
        """
        behind = deficits_of(self._on_grid(scores), REACH)
        return _first_place(behind.astype(np.float64) / float(self.noise_scale))

    def interval(self, confidence: Number = "0.95", *, candidates: Number) -> Interval:
        """Return [0, t]: with at least this probability no winner's score is more than t below the `top`-th best one.

        Claim   If a winner i is T or more steps behind the `top`-th best score, one of the `top` best, j, is no winner, so
                N_i − N_j ≥ T: at most top · (k − top) pairs. By the exact tail of a difference that is
                top (k − top) r^T/(1 + r)² ((T + 1)(1 − r) + r + 2r²/(1 + r)), r = e^(−1/scale). Or, for any 0 ≤ a ≤ T, one
                of the `top` best has N_j < −a, or a pair fails with N_j ≥ −a:
                top r^(a+1)/(1 + r) + top (k − top) c r^T/(1 + r) (a + 1/(1 − r²)), c = (1 − r)/(1 + r). The less of both.
        Rounds  Up.
        """
        beta, k = float_down(failure_of(confidence)), whole(candidates, "candidates", least=self.top)
        if k == self.top:
            return Interval(0.0, 0.0)
        scale = self.noise_scale
        low, high = 0, 1
        while _behind(high, scale, self.top, k - self.top) > beta:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            if _behind(middle, scale, self.top, k - self.top) > beta:
                low = middle
            else:
                high = middle
        return Interval(0.0, float_up(high * self.grid))

    @classmethod
    def calibrate(
        cls,
        *,
        sensitivity: Number,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        count: Number = 1,
        monotone: bool = False,
        top: Number = 1,
        gap: bool = False,
    ) -> Self:
        """Return the sharpest mechanism that releases no value within the privacy goal after `count` choices."""
        one = calibrate_epsilon(lambda e: Pure(epsilon=e), epsilon=epsilon, delta=delta, rho=rho, count=count)
        return cls(epsilon=one, sensitivity=sensitivity, monotone=monotone, top=top, gap=gap)


def in_units(steps: Steps | None, exponent: int) -> FloatArray | None:
    """Return steps of 2^exponent as floats, the largest float where they are beyond all floats. Rounds: to nearest."""
    if steps is None:
        return None
    if steps.dtype.kind == "O":
        return np.array([to_float(one, exponent) for one in steps.ravel().tolist()], np.float64).reshape(steps.shape)
    with np.errstate(all="ignore"):
        return np.clip(np.ldexp(steps.astype(np.float64), exponent), -MOST_FLOAT, MOST_FLOAT)


def _leaders(noisy: IntArray, wanted: int) -> IntArray:
    """The places of the `wanted` largest in each row, largest first, ties to the smaller place."""
    if wanted == 1:
        return noisy.argmax(axis=1)[:, None]
    if wanted * 8 >= noisy.shape[1]:
        return np.argsort(-noisy, axis=1, kind="stable")[:, :wanted]
    rest, rows = noisy.copy(), np.arange(len(noisy))
    out = np.empty((len(noisy), wanted), np.int64)
    for place in range(wanted):
        out[:, place] = rest.argmax(axis=1)
        rest[rows, out[:, place]] = np.iinfo(np.int64).min
    return out


def _behind(reach: int, scale: Fraction, top: int, others: int) -> float:
    """The bound of `interval` on P[a winner is `reach` or more steps behind]. Rounds: up."""
    inverse = 1.0 / float(scale)
    tau = float(reach / scale)
    if tau > 700.0:
        return 0.0
    ratio, lost = math.exp(-inverse), -math.expm1(-inverse)
    far = math.exp(-tau)
    pair = far / (1 + ratio) ** 2 * ((reach + 1) * lost + ratio + 2 * ratio**2 / (1 + ratio))
    apart = min(max(reach - math.ceil(math.log(max(others / 2, 1.0)) * float(scale)), 0), reach)
    each = lost / (1 + ratio) * far / (1 + ratio) * (apart + 1 / (lost * (1 + ratio)))
    split = math.exp(-(apart + 1) * inverse) / (1 + ratio) + others * each
    return min(others * pair, split) * top * (1 + 1e-12)


def _first_place(behind: FloatArray) -> FloatArray:
    """P[each is the largest] under Laplace noise of scale 1, by Gauss's rule between the kinks of the integrand."""
    nodes, weights = np.polynomial.legendre.leggauss(48)
    kinks = np.unique(np.concatenate([-behind[behind < 60.0], [-60.0, 60.0]]))
    cuts = np.unique(np.concatenate([np.linspace(a, b, max(2, math.ceil((b - a) / 4) + 1)) for a, b in _pairs(kinks)]))
    total = np.zeros(len(behind))
    for left, right in _pairs(cuts):
        x = 0.5 * (left + right) + 0.5 * (right - left) * nodes
        away = x[:, None] + behind
        below = np.where(away < 0, 0.5 * np.exp(np.minimum(away, 0)), 1 - 0.5 * np.exp(-np.maximum(away, 0)))
        density = 0.5 * np.exp(-np.abs(away))
        logs = np.log(np.maximum(below, 1e-300))
        others = np.exp(logs.sum(axis=1, keepdims=True) - logs)
        total += 0.5 * (right - left) * (weights @ (density * others))
    return total


def _pairs(points: FloatArray) -> list[tuple[float, float]]:
    values: list[float] = points.tolist()
    return list(itertools.pairwise(values))
