"""A fitted recommender: what is known of items, and what a user makes of it alone.

Everything here that is of items was released. A user's numbers are computed from that user's own ratings, given as an
argument, and go to nobody else: that is what a joint guarantee means.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from curador.errors import require
from curador.learn.recommend.bias import USER_RIDGE
from curador.learn.recommend.frank_wolfe import Path, walk
from curador.learn.recommend.grid import per_user
from curador.learn.recommend.local import ridge

if TYPE_CHECKING:
    from curador.learn.ratings import Ratings, Scale
    from curador.learn.sums import Floats, Integers


@dataclass(frozen=True, slots=True)
class ItemModel:
    """rating ≈ mean + biases[i] + the user's bias + factors[i]·(the user's factors).

    ridge  of a user's own factors; None: the user walks the steps of `gains`
    """

    scale: Scale
    mean: float
    biases: Floats
    factors: Floats
    ridge: float
    gains: Floats | None = None


def fold(model: ItemModel, ratings: Ratings) -> Floats:
    """Return the bias and the factors of each user, from own ratings."""
    above = np.clip(ratings.values, model.scale.low, model.scale.high) - (model.mean + model.biases[ratings.items])
    if model.gains is not None:
        bias = per_user(ratings, above) / (ratings.counts + USER_RIDGE)
        left_over = np.clip(above - bias[ratings.owners], -model.scale.half, model.scale.half)
        return np.column_stack([bias, walk(ratings, left_over, Path(model.factors, model.gains))])
    # the bias is one more factor, the same for all items
    constant = math.sqrt(model.ridge / USER_RIDGE)
    together = np.column_stack([np.full(len(model.biases), constant), model.factors])
    found = ridge(ratings, above, together, np.full(together.shape[1], model.ridge))
    found[:, 0] *= constant
    return found


def expected(model: ItemModel, folded: Floats, owners: Integers, items: Integers) -> Floats:
    """Return the rating that each owner (a row of `folded`) can be expected to give; an item of -1 is an unknown one."""
    known = items >= 0
    places = np.where(known, items, 0)
    above = model.biases[places] + np.einsum("ij,ij->i", folded[owners, 1:], model.factors[places])
    return np.clip(model.mean + folded[owners, 0] + np.where(known, above, 0.0), model.scale.low, model.scale.high)


def held_out_error(model: ItemModel, known: Ratings, held_out: Ratings) -> float:
    """Return the root mean square error of the ratings that were held out, of the same users.

    To measure with ratings that are yours to look at: what it returns is not private.
    """
    require(len(held_out.values) > 0, "held_out", "at least one rating", "none")
    guesses = expected(model, fold(model, known), held_out.owners, held_out.items)
    return math.sqrt(float(np.mean(np.square(guesses - held_out.values))))
