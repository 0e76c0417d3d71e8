"""Lower bounds of ε from samples of two worlds, exact for every sample size.

An event S refutes a claim (ε, δ) if P[S] in one world is certainly above e^ε P[S] + δ of the other. The event is chosen on a
quarter of the samples and tested on the rest, so that the choice costs no confidence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from curador.numerics.rounding import FloatArray

IntArray: TypeAlias = NDArray[np.int64]

CELLS = 256
"""Cells that a score of many values is cut into for thresholds and single cells."""

RANKED = 16
"""Cells that are ranked by how much likelier they look in one world: few, or the ranking would learn the noise."""

POWER = 0.999
"""How surely a mechanism that is worse by the detectable factor is flagged."""

_REST = 3  # samples that an event is tested on, for each that it is chosen on
_OUTWARD = 2.0**-30  # dominates the error of the beta quantiles; the tests compare them with 50 digits


@dataclass(frozen=True, slots=True)
class Counts:
    """How often an event was seen in each of two worlds."""

    hits0: int
    size0: int
    hits1: int
    size1: int


@dataclass(frozen=True, slots=True)
class Bound:
    """What the samples prove: with the confidence asked, no ε below `epsilon` is true at δ.

    `event` says in words which event proves it, `counts` how often it was seen in the samples it was tested on.
    """

    epsilon: float
    event: str
    counts: Counts


def clopper_pearson(hits: Any, size: Any, alpha: float) -> tuple[FloatArray, FloatArray]:
    """Return bounds of a probability after `hits` of `size` trials, each wrong with probability at most alpha.

    Claim   P[p < lower] ≤ alpha and P[p > upper] ≤ alpha, for every p and size.
    Rounds  Outward.
    Source  [CP34]
    """
    from scipy.special import betainccinv, betaincinv

    hit, all_ = np.asarray(hits, np.float64), np.asarray(size, np.float64)
    miss = all_ - hit
    with np.errstate(all="ignore"):
        low = np.where(hit > 0, betaincinv(np.maximum(hit, 1), miss + 1, alpha), 0.0)
        high = np.where(miss > 0, betainccinv(hit + 1, np.maximum(miss, 1), alpha), 1.0)
    return low * (1 - _OUTWARD), np.minimum(high * (1 + _OUTWARD), 1.0)


def event_bound(hits_more: Any, size_more: int, hits_less: Any, size_less: int, delta: float, alpha: float) -> FloatArray:
    """Return ε such that P[S] ≤ e^ε P'[S] + δ is false below it, but for a probability of alpha.

    Claim   log((L − δ)/U) for Clopper–Pearson bounds L of P[S] and U of P'[S] at alpha/2 each; never below 0.
    Rounds  Down.
    """
    low, _ = clopper_pearson(hits_more, size_more, alpha / 2)
    _, high = clopper_pearson(hits_less, size_less, alpha / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = np.log((low - delta) / high) - 1e-12
    return np.where(low > delta, np.maximum(bound, 0.0), 0.0)


def both_ways(counts: Counts, delta: float, alpha: float) -> float:
    """Return the largest ε that one event proves by itself or its complement, in either direction.

    Claim   Wrong with probability at most alpha: the four tests share it evenly.
    """
    one, all_one, other, all_other = counts.hits0, counts.size0, counts.hits1, counts.size1
    share = alpha / 4
    return float(
        max(
            event_bound(one, all_one, other, all_other, delta, share),
            event_bound(other, all_other, one, all_one, delta, share),
            event_bound(all_one - one, all_one, all_other - other, all_other, delta, share),
            event_bound(all_other - other, all_other, all_one - one, all_one, delta, share),
        )
    )


def lower_bound(samples0: NDArray[Any], samples1: NDArray[Any], *, delta: float = 0.0, alpha: float = 1e-6) -> Bound:
    """Return a lower bound of ε at δ from scores drawn in two neighbouring worlds.

    Claim   If the outputs are independent and the mechanism is (ε, δ)-private, the bound exceeds ε with probability at most
            alpha. One event (a threshold, a cell or a union of cells, or the complement) and a direction are chosen on the
            first quarter of each world's samples and tested on the rest.
    Needs   Samples of one dimension in the order in which they were drawn.
    Source  [CP34] for the test; [DWWZK18] for choosing the event on other samples.
    """
    first0, rest0 = _split_samples(samples0)
    first1, rest1 = _split_samples(samples1)
    return test_event(_choose_event(first0, first1, delta, alpha), rest0, rest1, delta=delta, alpha=alpha)


def _split_samples(samples: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    quarter = len(samples) // (_REST + 1)
    return samples[:quarter], samples[quarter:]


@dataclass(frozen=True, slots=True)
class Event:
    """A set of cells of a score, and the world in which it should be likelier."""

    edges: NDArray[Any]
    member: NDArray[np.bool_]
    likelier: int
    words: str

    def hits(self, scores: NDArray[Any]) -> int:
        """Return how many of the scores lie in the event."""
        return int(np.count_nonzero(self.member[np.searchsorted(self.edges, scores, side="right")]))


def choose(samples0: NDArray[Any], samples1: NDArray[Any], *, delta: float, alpha: float) -> Event:
    """Return the event that proves most on these samples."""
    return _choose_event(samples0, samples1, delta, alpha)


def test_event(event: Event, samples0: NDArray[Any], samples1: NDArray[Any], *, delta: float, alpha: float) -> Bound:
    """Return what the event proves on samples that had no part in choosing it."""
    counts = Counts(event.hits(samples0), len(samples0), event.hits(samples1), len(samples1))
    more, less = (counts.hits1, counts.hits0) if event.likelier else (counts.hits0, counts.hits1)
    size_more, size_less = (counts.size1, counts.size0) if event.likelier else (counts.size0, counts.size1)
    return Bound(float(event_bound(more, size_more, less, size_less, delta, alpha)), event.words, counts)


def _choose_event(scores0: NDArray[Any], scores1: NDArray[Any], delta: float, alpha: float) -> Event:
    """The event that proves most on these samples; where none proves anything, the most on as many as will be tested."""
    found = _best(scores0, scores1, delta, alpha, times=1)
    return found[1] if found[0] > 0 else _best(scores0, scores1, delta, alpha, times=_REST)[1]


def _best(scores0: NDArray[Any], scores1: NDArray[Any], delta: float, alpha: float, *, times: int) -> tuple[float, Event]:
    found: list[tuple[float, Event]] = []
    sizes = (len(scores0) * times, len(scores1) * times)
    for cells, ranked in ((CELLS, False), (RANKED, True)):
        edges = _edges(scores0, scores1, cells)
        seen = [np.bincount(np.searchsorted(edges, s, side="right"), minlength=len(edges) + 1) for s in (scores0, scores1)]
        masks, words = _candidates(seen[0], seen[1], edges, ranked=ranked)
        hits = [masks @ counts * times for counts in seen]
        for likelier in (0, 1):
            other = 1 - likelier
            proved = event_bound(hits[likelier], sizes[likelier], hits[other], sizes[other], delta, alpha)
            place = int(np.argmax(proved))
            found.append((float(proved[place]), Event(edges, masks[place].astype(np.bool_), likelier, words[place])))
    return max(found, key=lambda pair: pair[0])


def _edges(scores0: NDArray[Any], scores1: NDArray[Any], cells: int) -> NDArray[Any]:
    """Cell i holds edges[i − 1] ≤ score < edges[i]: one value each where there are few, else equal shares of the samples."""
    values, counts = np.unique(np.concatenate([scores0, scores1]), return_counts=True)
    if len(values) <= cells:
        return values[1:]
    ends = np.cumsum(counts)
    places = np.searchsorted(ends, np.linspace(0, ends[-1], cells + 1)[1:-1], side="left")
    return values[np.unique(np.clip(places + 1, 1, len(values) - 1))]


def _candidates(
    seen0: NDArray[Any], seen1: NDArray[Any], edges: NDArray[Any], *, ranked: bool
) -> tuple[NDArray[np.int64], list[str]]:
    """Thresholds and single cells in the score's own order, or unions in the order of likelihood; with complements."""
    cells = len(seen0)
    if ranked:
        order = np.argsort((seen1 + 0.5) / (seen0 + 0.5), kind="stable")
        rank = np.empty(cells, np.int64)
        rank[order] = np.arange(cells)
        above = rank[None, :] >= np.arange(1, cells)[:, None]
        masks = above
        words = [f"the {cells - cut} cells likeliest in the second world" for cut in range(1, cells)]
    else:
        place = np.arange(cells)
        above = place[None, :] >= np.arange(1, cells)[:, None]
        masks = np.concatenate([above, np.eye(cells, dtype=np.bool_)])
        words = [f"score ≥ {edges[cut - 1]:.6g}" for cut in range(1, cells)] + [_cell(edges, i) for i in range(cells)]
    if not len(masks):  # one cell only: the certain event, which proves nothing
        masks, words = np.ones((1, cells), np.bool_), ["everything"]
    both = np.concatenate([masks, ~masks]).astype(np.int64)
    return both, words + [f"not: {text}" for text in words]


def _cell(edges: NDArray[Any], place: int) -> str:
    if place == 0:
        return f"score < {edges[0]:.6g}" if len(edges) else "everything"
    if place == len(edges):
        return f"score ≥ {edges[-1]:.6g}"
    return f"{edges[place - 1]:.6g} ≤ score < {edges[place]:.6g}"


def detectable(bound: Bound, claim: float, *, delta: float = 0.0, alpha: float = 1e-6) -> float:
    """Return the smallest factor f such that a mechanism f times as telling would be flagged with 99.9 % power.

    f times as telling: the ε that the bound's event shows, log((p − δ)/p'), is f times what it is, both probabilities moved
    by the same shift of log-odds; where one world never shows the event, that it is f times as likely in the other. Flagged:
    the counts that are unlucky by 0.05 % on each side still prove more than the claim. So a weak pair of worlds has a large
    factor, and f = 2 finds noise of half the scale. +∞ beyond 64.
    """
    counts = bound.counts
    p0 = (counts.hits0 + 0.5) / (counts.size0 + 1)
    p1 = (counts.hits1 + 0.5) / (counts.size1 + 1)
    more, less, size_more, size_less = (p1, p0, counts.size1, counts.size0)
    if p0 > p1:
        more, less, size_more, size_less = (p0, p1, counts.size0, counts.size1)
    never = min(counts.hits0, counts.hits1) == 0
    shows = math.log((more - delta) / less) if more > delta else 0.0

    def flagged(factor: float) -> bool:
        high, low = (min(factor * more, 1.0), 0.0) if never else _sharpen_pair(more, less, factor * shows, delta)
        return _unlucky(high, low, size_more, size_less, delta, alpha) > claim

    if not (never or shows > 0) or not flagged(64.0):
        return math.inf
    lower, upper = 0.5, 64.0
    while upper - lower > 1e-4 * upper:
        middle = math.sqrt(lower * upper)
        lower, upper = (lower, middle) if flagged(middle) else (middle, upper)
    return max(upper, 1.0)


def _sharpen_pair(more: float, less: float, epsilon: float, delta: float) -> tuple[float, float]:
    """The two probabilities after the shift of log-odds that makes log((more − δ)/less) equal to ε."""

    def moved(shift: float) -> tuple[float, float]:
        return _odds(math.log(more / (1 - more)) + shift), _odds(math.log(less / (1 - less)) - shift)

    low, high = -30.0, 300.0
    for _ in range(60):
        middle = (low + high) / 2
        one, other = moved(middle)
        if one <= delta or (other > 0 and math.log((one - delta) / other) < epsilon):
            low = middle
        else:
            high = middle
    return moved(high)


def _odds(logit: float) -> float:
    return 1 / (1 + math.exp(-logit)) if logit > -700 else 0.0


def _unlucky(more: float, less: float, size_more: int, size_less: int, delta: float, alpha: float) -> float:
    """The bound proved by counts that are as unlucky as one time in a thousand."""
    from scipy.special import bdtrik

    tail = (1 - POWER) / 2
    few = max(0, math.floor(_number(bdtrik(tail, size_more, min(more, 1 - 1e-15)))))
    many = size_less - max(0, math.floor(_number(bdtrik(tail, size_less, 1 - max(less, 1e-300)))))
    if less * size_less < 1e-4:  # none is seen
        many = 0
    return float(event_bound(min(few, size_more), size_more, min(many, size_less), size_less, delta, alpha))


def _number(value: Any) -> float:
    return 0.0 if math.isnan(float(value)) else float(value)
