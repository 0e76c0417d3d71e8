"""Forecasts of components: whether they can be told from noise, and whether they are worth their part of the budget.

Worth   two forecasts of the error, of which the smaller is taken.

    popularity + noise of biases, with components and without ──► what components cost: biases that are known less well
    popularity + noise of factors + what tastes explain       ──► what components save

All of it is arithmetic on what was declared or released, so that it may decide what is released next.

Prospect   whether components can be told from noise, and of which items: from popularity, released or
           assumed, and public numbers.

The second moment of m items has noise that reaches 2σ√m. A component of taste adds an eigenvalue that grows with the sum
of the squares of popularity. Few popular items stand out sooner than all of them: the head is chosen so that the first
component is expected at twice the noise, of as many items as allow it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.learn.sums import Floats, Integers


# ---- worth -----------------------------------------------------------------------------------------------------------------


MARGIN = 2.0
"""How many times its cost a saving must be that is forecast from usual tastes: a saving may be less, a cost is sure."""

TASTE = 0.05
"""The part of the variance of residuals that the first component is taken to explain. Public."""

_FALL = 0.7
"""What each further component is taken to explain of what the one before it does. Public."""

_LEFT = 0.8
"""The variance of residuals, of that of ratings spread over half of the range."""


@dataclass(frozen=True, slots=True)
class Audience:
    """Whom a model is for, as far as it is known: how popular items are, how much users rate, and half the range.

    popularity  Σ over users of 1/√(ratings of the user), by item, at least 0; doubt: the deviation of its noise
    """

    popularity: Floats
    doubt: float
    per_user: float
    half: float

    @property
    def believed(self) -> Floats:
        """Popularity less what is likely to be noise: errors are weighed by it."""
        squares = np.maximum(np.square(self.popularity), 1e-300)
        return self.popularity * np.maximum(1.0 - self.doubt**2 / squares, 0.0)


@dataclass(frozen=True, slots=True)
class Worth:
    """Two forecasts, in mean squared error: what a smaller part for biases costs, and what components save."""

    costs: float
    saves: float

    @property
    def net(self) -> float:
        """By how much components make the error smaller."""
        return self.saves - self.costs

    @property
    def pays(self) -> bool:
        """Whether that can be relied upon: `MARGIN` times what it costs is saved."""
        return self.saves > MARGIN * self.costs


def bias_error(audience: Audience, likes: float, counts: float) -> float:
    """Return the mean squared error of items' biases, over ratings. likes, counts: the variances of the noise in a tally.

    It is what `bias_model` leaves of biases whose deviation is a quarter of half the range, around a mean that is as far from
    the centre.
    """
    seen, typical = audience.believed, audience.half / 2
    prior = typical**2 / 4
    spread = likes + prior * counts + seen * typical**2 / math.sqrt(max(audience.per_user, 1.0))
    doubt = counts + spread / prior
    return _mean(prior * doubt / (np.square(seen) + doubt), seen)


def taste_saving(audience: Audience, head: Integers, shares: Floats, cosines: Floats, noises: Sequence[float]) -> float:
    """Return what components save of the mean squared error, over ratings.

    head     the items whose factors are known before the first round
    shares   what each component explains of the variance of residuals
    cosines  squared, of the directions that were found with the true ones
    noises   the deviations of an item's sums in `refine`, round by round

    A component helps as far as items' factors and a user's own are known. Items' are sums over users, with noise, along what
    was known of users in that round; a user's come from the ratings of items whose factors were known.
    """
    seen, rank = audience.believed, len(shares)
    rated = max(audience.per_user, 1.0)
    residual = _LEFT * (audience.half / 2) ** 2
    total = float(seen.sum())
    covered = float(seen[head].sum()) / total if total > 0 else 0.0
    saved = 0.0
    for share, cosine in zip(shares.tolist(), cosines.tolist(), strict=True):
        size = share * residual
        known = covered * cosine  # of the factors of items, as users meet them
        for noise in noises:
            signal = np.square(seen) / rank * size * _own(rated * share * known)
            chance = noise**2 + seen / rank * residual / math.sqrt(rated)
            known = _mean(signal / np.maximum(signal + chance, 1e-300), seen)
        saved += size * known * _own(rated * share * known)
    return saved


def _own(signal: float) -> float:
    """How much of a user's factor that user's ratings tell, of noise 1."""
    return signal / (signal + 1.0)


def usual_saving(audience: Audience, head: Prospect, noises: Sequence[float], most: int) -> float:
    """Return what components can be expected to save where nothing is known of tastes but what they usually explain.

    head  the items of the second moment, with the eigenvalue of the first component there; most: of components
    """
    if head.eigenvalue <= 0:
        return 0.0
    falls = _FALL ** np.arange(most)
    cosines = 1.0 - np.square(head.edge / (2 * head.eigenvalue * falls))
    found = cosines > 0
    return taste_saving(audience, head.chosen, np.minimum(TASTE * falls[found], 1.0), cosines[found], noises)


def _mean(values: Floats, weights: Floats) -> float:
    total = float(weights.sum())
    return float((values * weights).sum()) / total if total > 0 else 0.0


# ---- forecast --------------------------------------------------------------------------------------------------------------


MOST_ITEMS = 4096
"""No more items than these are in the second moment."""

_WANTED = 2.0
_FEWEST = 32
_SKEW = 1.3
"""How popularity is assumed to vary where it is not known: by factors of e^±1.3, as that of films about does."""


@dataclass(frozen=True, slots=True)
class Prospect:
    """Which items the second moment should have.

    strength  the expected first eigenvalue over the noise's largest
    stretch   how many of a user's ratings there are for each one of a chosen item
    """

    chosen: Integers
    strength: float
    stretch: float
    eigenvalue: float
    edge: float


def prospect(popularity: Floats, doubt: float, *, users: int, per_user: float, noise: float) -> Prospect:
    """Return what can be expected of the second moment of the most popular items.

    popularity  Σ over users of 1/√(ratings of the user), by item; doubt: the deviation of its noise
    noise       the deviation of an entry of the moment
    """
    order = np.argsort(-popularity, kind="stable")[:MOST_ITEMS]
    order = order[popularity[order] > 2 * doubt]
    if len(order) < _FEWEST:
        return Prospect(np.sort(order), 0.0, 1.0, 0.0, 2 * noise * math.sqrt(max(len(order), 1)))
    mass = popularity[order]
    # a user's moment is of length 1 whatever part of the ratings is of chosen items: what is left out is not wasted
    stretch = np.minimum(popularity.sum() / np.cumsum(mass), max(per_user, 1.0))
    eigenvalues = TASTE * np.cumsum(mass**2) * stretch / users
    edges = 2 * noise * np.sqrt(np.arange(1, len(order) + 1))
    strength = eigenvalues / edges
    strength[: _FEWEST - 1] = 0.0
    enough = np.flatnonzero(strength >= _WANTED)
    last = int(enough[-1]) if len(enough) else int(np.argmax(strength))
    return Prospect(
        np.sort(order[: last + 1]),
        float(strength[last]),
        float(stretch[last]),
        float(eigenvalues[last]),
        float(edges[last]),
    )


def assumed_popularity(items: int, users: int, per_user: float) -> Floats:
    """Return what `prospect` needs, where nothing is known but how much is rated: popularity as it usually varies."""
    from scipy.special import ndtri

    ranks = (np.arange(items) + 0.5) / items
    shape = np.exp(-_SKEW * np.asarray(ndtri(ranks), np.float64))
    return np.minimum(shape / shape.sum() * users * math.sqrt(per_user), users / math.sqrt(per_user))
