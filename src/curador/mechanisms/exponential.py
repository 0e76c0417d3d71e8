"""The exponential mechanism: a candidate with probability growing in its score."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from attrs import frozen

from curador.mechanisms.grid import as_array, refusal_of_value
from curador.mechanisms.scores import Chooser, Steps, are_near, deficits_of, draw_below_each, failure_of, steps_for
from curador.mechanisms.seam import perform
from curador.numerics.exact import Number, whole
from curador.numerics.rounding import FloatArray, Interval, float_up, log_up
from curador.privacy.loss import Loss
from curador.privacy.losses import BoundedRange
from curador.randomness.choice import Choice
from curador.randomness.entropy import Entropy, IntArray

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

T = TypeVar("T")

CELLS = 1 << 48
"""A choice between two real numbers falls into one of so many equal cells."""


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
