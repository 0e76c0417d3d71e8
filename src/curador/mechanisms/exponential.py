"""A candidate with probability growing in its score: the exponential mechanism, and permute-and-flip.

Permute-and-flip chooses by coins and is never worse for the same ε.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from attrs import frozen

from curador.errors import require
from curador.mechanisms.grid import as_array, refusal_of_value
from curador.mechanisms.scores import (
    Chooser,
    Steps,
    are_near,
    choose_evenly,
    deficits_of,
    draw_below_each,
    failure_of,
    split_size,
    steps_for,
)
from curador.mechanisms.seam import perform
from curador.numerics.exact import Number, whole
from curador.numerics.rounding import FloatArray, Interval, float_down, float_up, log_up, up
from curador.privacy.loss import Loss
from curador.privacy.losses import BoundedRange, Pure
from curador.randomness.choice import Choice, bernoulli_exp
from curador.randomness.entropy import Entropy, IntArray

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

T = TypeVar("T")

CELLS = 1 << 48
"""A choice between two real numbers falls into one of so many equal cells."""

_MOST_SHOWN = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """A score that is constant on pieces of 0 … CELLS − 1: scores[i] on ends[i] ≤ cell < ends[i + 1]."""

    ends: IntArray
    scores: Steps

    @property
    def lengths(self) -> IntArray:
        """How many cells each piece has."""
        return np.diff(self.ends)

    def at(self, cells: IntArray) -> Steps:
        """Return the score of each cell."""
        return self.scores[np.searchsorted(self.ends, cells, side="right") - 1]


@frozen(repr=False)
class Exponential(Chooser):
    """Candidate r with probability ∝ exp(ε score(r) / (2 sensitivity)); without the 2 where scores are monotone.

    Scores are rounded to a power-of-two grid of about sensitivity/2³⁰; the choice itself is exact, in integers.

    Claim   The log-ratio of probabilities spans at most ε over the candidates, so it is ε-bounded-range: ε-private,
            ε²/8-zCDP, and cheaper than ε-private mechanisms in general when composed.
            log P(r)/P'(r) = rate (s_r − s'_r) + a constant, and s_r − s'_r lies in [−Δ, Δ]: an interval of length 2Δ, with
            rate = ε/(2Δ). Monotone: all s_r − s'_r lie in [0, Δ] or all in [−Δ, 0], of length Δ, with rate = ε/Δ.
    Needs   No score moves by more than `sensitivity` between neighbours. monotone=True: between any two neighbours all
            scores move the same way (counts of records, when one record comes or goes; never when one is replaced).
    Rounds  The sensitivity in grid steps up.
    Source  [MT07]; [DDR20]
    """

    @staticmethod
    def _loss_of(epsilon: Fraction) -> Loss:
        return BoundedRange(epsilon=epsilon)

    def probabilities(self, scores: ArrayLike) -> FloatArray:
        """Return the probability of each candidate, as floats: for the eye and for tests, never to draw from."""
        return shares(deficits_of(self._on_grid(scores)), self.rate)

    # ---- a real number ----------------------------------------------------------------------------------------------

    def release_between(self, edges: ArrayLike, scores: ArrayLike) -> float:
        """Return a number with density ∝ exp(rate · scores[i]) on edges[i] ≤ x < edges[i + 1].

        Claim   As private as a choice. The outer edges are public; cut into 2⁴⁸ equal cells, they fix the outputs. A cell c
                takes the score of the piece i with r(edges[i]) ≤ c < r(edges[i + 1]), r the rounding of an edge to a cell.
                r is non-decreasing, so that is the piece which holds x(c) = the largest float with r(x) ≤ c, a point fixed
                by c alone: the score of c is the score function at a public point, and moves no more than it does.
        Needs   The score, as a function of x, moves by at most `sensitivity` at each x between neighbours. Inner edges may
                be data. Pieces shorter than half a cell may vanish; pieces of no length are never drawn.
        """
        pieces, lower, upper = self._pieces(edges, scores)
        return float(_middles_of_cells(perform(self, pieces), lower, upper))

    def release_between_many(self, edges: ArrayLike, scores: ArrayLike, size: int) -> FloatArray:
        """Return `size` independent numbers. Each is a release and costs `loss`."""
        pieces, lower, upper = self._pieces(edges, scores)
        return _middles_of_cells(perform(self, pieces, whole(size, "size")), lower, upper)

    def probabilities_between(self, edges: ArrayLike, scores: ArrayLike) -> FloatArray:
        """Return the probability of each piece, as floats."""
        pieces, _, _ = self._pieces(edges, scores)
        lengths = pieces.lengths
        deficits = np.zeros(len(lengths), np.int64)
        deficits[lengths > 0] = deficits_of(pieces.scores[lengths > 0])
        return shares(deficits, self.rate, lengths)

    def _pieces(self, edges: ArrayLike, scores: ArrayLike) -> tuple[Pieces, float, float]:
        exact = self._on_grid(scores)
        ends = _edges(edges)
        if len(ends) != len(exact) + 1:
            raise refusal_of_value("edges", "one more than the scores", "another number of edges")
        lower, upper = float(ends[0]), float(ends[-1])
        span = upper - lower
        if not 1e-300 < span < 1e300:
            raise refusal_of_value("edges", "between 1e-300 and 1e300 apart from the first to the last", "another distance")
        if (np.diff(ends) < 0).any():
            raise refusal_of_value("edges", "in ascending order", "a step down")
        # Differences and products are rounded by IEEE 754 monotonically, and so is the whole map from edge to cell.
        cells = np.rint((ends - lower) * (1.0 / span) * CELLS)
        places = np.clip(cells, 0, CELLS).astype(np.int64)
        places[0], places[-1] = 0, CELLS
        return Pieces(places, exact), lower, upper

    # ---- the seam ---------------------------------------------------------------------------------------------------

    def draw(self, value: Steps | Pieces, source: Entropy, size: int | None = None) -> IntArray:
        """Return the place chosen for integer scores, or the cell for pieces; `size` independent ones if given."""
        many = 1 if size is None else size
        if isinstance(value, Pieces):
            out = _drawn_cells(value, self.rate, many, source)
        else:
            out = Choice(deficits_of(value), self.rate).draw(many, source)
        return out if size is not None else out[0]

    def within(self, one: Steps | Pieces, other: Steps | Pieces) -> bool:
        """Whether no score moves by more than the sensitivity (all the same way, if monotone)."""
        if isinstance(one, Pieces) and isinstance(other, Pieces):
            cells = np.unique(np.concatenate([one.ends[:-1], other.ends[:-1]]))  # where either score may change
            cells = cells[cells < CELLS]  # an inner edge at the upper one begins an empty piece
            return are_near(one.at(cells), other.at(cells), self.steps, monotone=self.monotone)
        if isinstance(one, Pieces) or isinstance(other, Pieces):
            return False
        return are_near(one, other, self.steps, monotone=self.monotone)

    # ---- error and calibration --------------------------------------------------------------------------------------

    def interval(self, confidence: Number = "0.95", *, candidates: Number) -> Interval:
        """Return [0, t]: with at least this probability the score chosen is at most t below the best one.

        Claim   With β = 1 − confidence, P[deficit ≥ T] ≤ (k − 1)e^(−rate T)/(1 + (k − 1)e^(−rate T)): the best candidate
                weighs 1 and at most k − 1 weigh at most e^(−rate T) each. That is β at T = log((k − 1)(1 − β)/β)/rate, with
                equality where the k − 1 others are T behind. Rounding two scores to the grid adds a step at most.
        Rounds  Up.
        """
        beta, k = failure_of(confidence), whole(candidates, "candidates")
        if k == 1:
            return Interval(0.0, 0.0)
        return Interval(0.0, float_up(steps_for(log_up((k - 1) * (1 - beta) / beta), self.rate) * self.grid))


def _drawn_cells(pieces: Pieces, rate: Fraction, size: int, source: Entropy) -> IntArray:
    """A piece by weight and length, then one of its cells, evenly."""
    lengths = pieces.lengths
    held = lengths > 0
    deficits = np.zeros(len(lengths), np.int64)
    deficits[held] = deficits_of(pieces.scores[held])
    piece = Choice(deficits, rate, lengths).draw(size, source)
    return pieces.ends[piece] + draw_below_each(lengths[piece], source)


def _middles_of_cells(cells: IntArray, lower: float, upper: float) -> FloatArray:
    """The middle of the cell, kept between the outer edges."""
    return np.clip(lower + (upper - lower) * ((cells + 0.5) * (1.0 / CELLS)), lower, upper)


def shares(deficits: IntArray, rate: Fraction, lengths: IntArray | None = None) -> FloatArray:
    """Return length · e^(−deficit rate) over its sum, in floats."""
    weight = np.exp(-deficits.astype(np.float64) * float(rate))
    if lengths is not None:
        weight = weight * lengths
    return weight / weight.sum()


def _edges(values: ArrayLike) -> FloatArray:
    """Return the edges as floats; data may be among them, so that a refusal says what is wrong, never with which."""
    array = as_array(values, "edges")
    if array.ndim != 1:
        raise refusal_of_value("edges", "a list of numbers", f"an array of {array.ndim} dimensions")
    try:
        return array.astype(np.float64)  # to nearest, which keeps their order
    except OverflowError:
        raise refusal_of_value("edges", "within the range of a float", "a larger number") from None


# ---- permute and flip ------------------------------------------------------------------------------------------------------


@frozen(repr=False)
class PermuteAndFlip(Chooser):
    """In random order, flip a coin of probability exp(ε (score − best) / (2 sensitivity)) for each; the first heads wins.

    All coins are flipped at once and one of the heads is taken evenly, which is the same law: the order is independent of the
    coins, and the first heads of a uniform order is uniform among the heads. The best candidate always shows heads.

    Claim   ε-private. P(i) = p_i ∫₀¹ Π_{j≠i} (1 − p_j t) dt with p_j = e^(−rate d_j), d_j the distance to the best: a coin's
            place among the heads is 1/(1 + others) = ∫ t^others dt on average. With t = e^(−rate (n − d_i)) the same integral
            is P[N_i ≥ max_{j≠i} (s_j + N_j) − s_i] for independent exponential N_j of mean 1/rate. Others' noise fixed, that
            threshold moves by at most 2Δ between neighbours (Δ where all scores move the same way), and
            P[N ≥ t] ≤ e^(rate c) P[N ≥ t + c] for c ≥ 0: a factor of e^ε with rate = ε/(2Δ), or ε/Δ if monotone.
            NOT ε-bounded-range: its log-ratios span more than ε, so that ε²/8-zCDP would under-account it.
    Needs   No score moves by more than `sensitivity` between neighbours; monotone=True: and all move the same way.
    Rounds  Scores to a grid of about sensitivity/2³⁰, the sensitivity in grid steps up.
    Source  [MS20]; [DKS+21] for the exponential noise.
    """

    @staticmethod
    def _loss_of(epsilon: Fraction) -> Loss:
        return Pure(epsilon=epsilon)

    def probabilities(self, scores: ArrayLike) -> FloatArray:
        """Return the probability of each of at most 1000 candidates, as floats: for the eye and for tests.

        Rounds  The integrand is a polynomial of degree k − 1, which Gauss's rule with ⌈k/2⌉ nodes integrates exactly.
        """
        exact = self._on_grid(scores)
        require(len(exact) <= _MOST_SHOWN, "scores", f"at most {_MOST_SHOWN}", f"{len(exact)} of them")
        heads = np.exp(-deficits_of(exact).astype(np.float64) * float(self.rate))
        nodes, weights = np.polynomial.legendre.leggauss((len(exact) + 1) // 2 + 1)
        misses = 1.0 - 0.5 * (nodes[:, None] + 1.0) * heads  # above 0 at every node
        whole_product = np.exp(np.log(misses).sum(axis=1, keepdims=True))
        return heads * (0.5 * weights @ (whole_product / misses))

    def draw(self, value: Steps, source: Entropy, size: int | None = None) -> IntArray:
        """Return the place chosen for integer scores; `size` independent ones if given."""
        deficits = deficits_of(value)
        parts = [self._some(deficits, rows, source) for rows in split_size(len(deficits), 1 if size is None else size)]
        out = np.concatenate(parts)
        return out if size is not None else out[0]

    def _some(self, deficits: IntArray, rows: int, source: Entropy) -> IntArray:
        coins = bernoulli_exp(np.tile(deficits, rows), self.rate, source)
        return choose_evenly(coins.reshape(rows, len(deficits)), source)

    def within(self, one: Steps, other: Steps) -> bool:
        """Whether no score moves by more than the sensitivity (all the same way, if monotone)."""
        return are_near(one, other, self.steps, monotone=self.monotone)

    def interval(self, confidence: Number = "0.95", *, candidates: Number) -> Interval:
        """Return [0, t]: with at least this probability the score chosen is at most t below the best one.

        Claim   The chance that a candidate T or more behind wins is at most E[B/(1 + B)] for B ~ Binomial(k − 1, x),
                x = e^(−rate T): the best shows heads, fewer than k others are so far behind, and B/(1 + B) grows with B.
                That is 1 − (1 − (1 − x)^k)/(kx), with equality where the k − 1 others are T behind, and at most (k − 1)x/2.
        Rounds  Up.
        """
        beta, k = failure_of(confidence), whole(candidates, "candidates")
        if k == 1:
            return Interval(0.0, 0.0)
        odds = largest_heads(k, float_down(beta))
        log_odds = up(-math.log(odds), 8) if odds < 1.0 else 0.0
        return Interval(0.0, float_up(steps_for(log_odds, self.rate) * self.grid))


def largest_heads(k: int, beta: float) -> float:
    """Return the largest x ≤ 1, to ten digits, with 1 − (1 − (1 − x)^k)/(kx) ≤ beta. Rounds: down."""
    low, high = min(2.0 * beta / (k - 1) * (1.0 - 1e-15), 1.0), 1.0
    for _ in range(60):
        middle = math.sqrt(low * high)
        lost = math.expm1(k * math.log1p(-middle)) if middle < 1.0 else -1.0
        if 1.0 + lost / (k * middle) + 1e-14 <= beta:  # the sum cancels; each term is at most 1
            low = middle
        else:
            high = middle
    return low
