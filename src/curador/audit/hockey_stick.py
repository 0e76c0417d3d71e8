"""A lower bound of δ at ε: how far some event is likelier in one world than e^ε times in the other.

δ(ε) of two worlds is the largest P[S] − e^ε Q[S] over all events S, the hockey-stick divergence. One event, learned on a part
of the samples, is counted in the rest, so that learning costs no confidence and no event has to be the right one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.audit.bounds import Counts, clopper_pearson
from curador.audit.partition import Parted, Partition, part_scores, partition
from curador.errors import require
from curador.numerics.exact import Number, at_least_zero, open_probability, probability
from curador.numerics.rounding import LIBM_ULPS, float_down, float_up, up
from curador.privacy.loss import Loss

if TYPE_CHECKING:
    from collections.abc import Iterator
    from fractions import Fraction

    from numpy.typing import NDArray

    from curador.numerics.rounding import FloatArray

CONFIDENCE = "0.999999"
"""How surely a lower bound of a tester holds, unless asked otherwise."""

LARGEST = 700
"""e^ε of a larger ε is no float; nothing that could be sampled shows it either."""

THRESHOLDS = 256
"""Cells of a score between which thresholds lie."""

RANKED = (4, 16, 64)
"""Cells of a score that are ranked by how much likelier they look in one world."""

_PARTITIONS = ((THRESHOLDS, False), *((cells, True) for cells in RANKED))
_CAUTION = 2e-3


@dataclass(frozen=True, slots=True)
class DeltaBound:
    """What the samples prove: with the confidence asked, no δ below `delta` is true at `epsilon`.

    `event` says in words which event proves it, `likelier` in which world it is likelier than it may be, `counts` how often
    it was seen in the samples it was tested on.
    """

    epsilon: float
    delta: float
    confidence: float
    event: str
    likelier: int
    counts: Counts

    def claimed(self, claim: Loss | Number) -> float:
        """Return the δ that a loss claims at this ε; a number is its own claim."""
        return claim.delta(self.epsilon) if isinstance(claim, Loss) else float_up(probability(claim, "claim"))

    def refutes(self, claim: Loss | Number) -> bool:
        """Whether a claim, a δ or a loss that has one at this ε, is refuted."""
        return self.delta > self.claimed(claim)

    def verdict(self, claim: Loss | Number) -> str:
        """Return one sentence: refuted or not, by what, and how surely."""
        said = f"the claim (ε, δ) = ({self.epsilon:.6g}, {self.claimed(claim):.4g})"
        if not self.refutes(claim):
            return f"{said} is not refuted: the samples prove no more than δ ≥ {self.delta:.4g}"
        seen = self.counts
        return (
            f"{said} is refuted: δ ≥ {self.delta:.4g} with confidence {self.confidence:.12g}, by the event {self.event!r}, "
            f"seen {seen.hits0:,} of {seen.size0:,} times in the first world, {seen.hits1:,} of {seen.size1:,} in the second"
        )


@dataclass(frozen=True, slots=True)
class Member:
    """An event: cells of a partition, and the world in which they should be likelier."""

    cells: Partition
    member: NDArray[np.bool_]
    likelier: int

    def counts(self, scores: tuple[NDArray[Any], NDArray[Any]]) -> Counts:
        """Return how often it happened in samples of both worlds."""
        hits = [int(self.cells.counts(world)[self.member].sum()) for world in scores]
        return Counts(hits[0], len(scores[0]), hits[1], len(scores[1]))


def hockey_stick(samples0: object, samples1: object, *, epsilon: Number, confidence: Number = CONFIDENCE) -> DeltaBound:
    """Return a lower bound of δ at ε from samples of a mechanism in two neighbouring worlds.

    Claim   If the mechanism is (ε, δ)-private, the bound exceeds δ with probability at most 1 − confidence: an event S and a
            direction are learned on the first quarter of each world's samples; on the rest P[S] ≥ L and Q[S] ≤ U, by
            Clopper–Pearson at half of the error each, and so δ ≥ P[S] − e^ε Q[S] ≥ L − e^ε U.
    Needs   In each world independent samples of one law, in the order in which they were drawn: numbers, or rows
            of numbers, for which a score is learned on the same quarter.
    Rounds  Down.
    Source  [CP34] for the counts; [DWWZK18] for choosing the event on other samples; [BBG18] for δ as the largest
            P[S] − e^ε Q[S].
    """
    exact, error = bounded_epsilon(epsilon), error_of(confidence)
    scores = part_scores(samples0, samples1)
    return delta_bound(scores, exact, error)


def delta_bound(scores: Parted, epsilon: Fraction, error: float) -> DeltaBound:
    """Return what `hockey_stick` does, of scores that are parted already."""
    factor = _factor(epsilon)
    event = learn_event(scores, factor, error)
    counts = event.counts(scores.tested)
    more, less = (counts.hits1, counts.hits0) if event.likelier else (counts.hits0, counts.hits1)
    sizes = (counts.size1, counts.size0) if event.likelier else (counts.size0, counts.size1)
    proved = float(_excess(np.array([more]), np.array([less]), sizes, factor, error)[0])
    words = event.cells.words(event.member)
    return DeltaBound(float(epsilon), max(proved, 0.0), float(1.0 - error), words, event.likelier, counts)


def bounded_epsilon(epsilon: object) -> Fraction:
    """Return ε as a rational, refused below 0 and where e^ε is no float."""
    exact = at_least_zero(epsilon, "epsilon")
    require(exact <= LARGEST, "epsilon", f"at most {LARGEST}", epsilon)
    return exact


def error_of(confidence: object) -> float:
    """Return 1 − confidence, rounded down so that no more is proved than was asked to be certain."""
    return float_down(1 - open_probability(confidence, "confidence"))


def _factor(epsilon: Fraction) -> float:
    """e^ε. Rounds: up."""
    return up(math.exp(float_up(epsilon)), LIBM_ULPS) if epsilon else 1.0


def _excess(more: NDArray[Any], less: NDArray[Any], sizes: tuple[int, int], factor: float, error: float) -> FloatArray:
    """L − e^ε U of every event. Rounds: down; the bounds of the counts are rounded by far more than this difference is."""
    low, _ = clopper_pearson(more, sizes[0], error / 2)
    _, high = clopper_pearson(less, sizes[1], error / 2)
    return low - factor * high


def learn_event(scores: Parted, factor: float, error: float) -> Member:
    """Return the event that should prove most: made on the first part, compared on the second.

    Compared by what the second part proves itself, with little confidence: of many events the luckiest is not the best. Where
    none proves anything, by what the same shares of the third part would.
    """
    found = [item for cells, ranked in _PARTITIONS for item in _events(scores, cells, ranked=ranked)]
    sizes = tuple(len(world) for world in scores.compared)
    cautious = [_best(item, sizes, (1.0, 1.0), factor, max(error, _CAUTION)) for item in found]
    if max(cautious)[0] <= 0.0:
        rest = tuple(len(world) for world in scores.tested)
        cautious = [_best(item, rest, (rest[0] / sizes[0], rest[1] / sizes[1]), factor, error) for item in found]
    place = max(range(len(found)), key=lambda item: cautious[item])
    chosen, (_, length) = found[place], cautious[place]
    member = np.zeros(chosen.cells.size, np.bool_)
    member[chosen.order[:length]] = True
    return Member(chosen.cells, member, chosen.likelier)


@dataclass(frozen=True, slots=True)
class _Events:
    """Cells in an order: every beginning of it is an event. `hits` of each in the second part, the likelier world first."""

    cells: Partition
    order: NDArray[np.int64]
    likelier: int
    hits: tuple[NDArray[np.int64], NDArray[np.int64]]


def _events(scores: Parted, cells: int, *, ranked: bool) -> Iterator[_Events]:
    cut = partition(*scores.learned, cells)
    seen = [cut.counts(world) for world in scores.learned]
    compared = [cut.counts(world) for world in scores.compared]
    for order in _orders(seen, ranked=ranked):
        hits = [np.concatenate([[0], np.cumsum(count[order])]) for count in compared]
        for likelier in (0, 1):
            yield _Events(cut, order, likelier, (hits[likelier], hits[1 - likelier]))


def _best(
    events: _Events, sizes: tuple[int, ...], times: tuple[float, ...], factor: float, error: float
) -> tuple[float, int]:
    """What the best beginning would prove, and how many cells it has."""
    more, less = (events.likelier, 1 - events.likelier)
    hits = (events.hits[0] * times[more], events.hits[1] * times[less])
    proved = _excess(*hits, (sizes[more], sizes[less]), factor, error)
    place = int(np.argmax(proved))
    return float(proved[place]), place


def _orders(seen: list[NDArray[np.int64]], *, ranked: bool) -> list[NDArray[np.int64]]:
    """Orders of the cells whose beginnings are events: the score's own both ways, or by likelihood both ways."""
    cells = len(seen[0])
    if not ranked:
        return [np.arange(cells), np.arange(cells)[::-1]]
    order = np.argsort((seen[1] + 0.5) / (seen[0] + 0.5), kind="stable")
    return [order, order[::-1]]
