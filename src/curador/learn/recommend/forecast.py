"""Whether components can be told from noise, and of which items: from popularity, released or assumed, and public numbers.

The second moment of m items has noise that reaches 2σ√m. A component of taste adds an eigenvalue that grows with the sum
of the squares of popularity. Few popular items stand out sooner than all of them: the head is chosen so that the first
component is expected at twice the noise, of as many items as allow it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from curador.learn.recommend import worth

if TYPE_CHECKING:
    from curador.learn.sums import Floats, Integers

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
    eigenvalues = worth.TASTE * np.cumsum(mass**2) * stretch / users
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
