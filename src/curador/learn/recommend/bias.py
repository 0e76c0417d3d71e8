"""How items are liked: the floor of every recommender, from one noisy sum of all users.

rating ≈ mean + item's bias + user's bias. The mean and the items' are learned here; a user's own is that user's to compute.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from curador.learn.recommend.users import grid_step, item_sums, per_user, whole_vectors
from curador.learn.sums import sensitivity_steps

if TYPE_CHECKING:
    from curador.learn.ratings import Ratings, Scale
    from curador.learn.release import Releaser
    from curador.learn.sums import Floats, Integers

BITS = 18
_REACH = 0.75
"""A user's vector is clipped to this part of the longest that it may be: few are longer, and noise shrinks by as much."""

_LENGTH = math.isqrt((5 << 2 * BITS) // 4) + 1
USER_RIDGE = 5.0
"""How many ratings of a user weigh as much as knowing nothing of that user. Public."""


@dataclass(frozen=True, slots=True)
class BiasTally:
    """Noisy sums of a bias release, and the variance of the noise in each.

    likes   Σ over users of w·(rating - centre), by item, where w = 1/√(number of the user's ratings)
    counts  Σ over users of w, by item: how popular it is
    """

    likes: Floats
    counts: Floats
    likes_variance: float
    counts_variance: float


@dataclass(frozen=True, slots=True)
class BiasModel:
    """What is known of items: all of it made of releases.

    popularity  noisy, at least 0; with the standard deviation of its noise
    per_user    about how many ratings a user has
    """

    mean: float
    items: Floats
    popularity: Floats
    popularity_noise: float
    per_user: float


def bias_integers(ratings: Ratings, scale: Scale) -> tuple[Integers, int]:
    """Return what is released, likes then counts, exactly; and the length of what one user adds to it.

    Claim  A user's weights are 1/√k, so that user's counts have length at most 1 and likes at most `_REACH` of half the
           range, by clipping. On the grid: 2^BITS for likes and half of that for counts: √(5/4)·2^BITS together.
    """
    weights = 1.0 / np.sqrt(np.maximum(ratings.counts, 1)[ratings.owners])
    likes = whole_vectors(ratings, weights * (ratings.values - scale.centre), norm=_REACH * scale.half, bits=BITS)
    counts = whole_vectors(ratings, weights, norm=1.0, bits=BITS - 1)
    return np.concatenate([item_sums(ratings, likes), item_sums(ratings, counts)]), _LENGTH


def release_tally(ratings: Ratings, scale: Scale, releaser: Releaser, part: str) -> BiasTally:
    """Release likes and counts as one vector."""
    integers, length = bias_integers(ratings, scale)
    unit = 1.0 / (1 << BITS)
    noisy = releaser.noisy(part, integers, length=sensitivity_steps(length, releaser.plan.goal.adjacency), step=unit)
    likes_step, counts_step = (step / unit for step in _steps(scale))
    items = ratings.catalogue
    return BiasTally(noisy[:items] * likes_step, noisy[items:] * counts_step, *tally_variances(scale, releaser, part))


def tally_variances(scale: Scale, releaser: Releaser, part: str) -> tuple[float, float]:
    """Return the variances of likes and of counts in a tally that this part would pay for. Public."""
    length = sensitivity_steps(_LENGTH, releaser.plan.goal.adjacency)
    likes, counts = (releaser.deviation(part, length=length, step=step) ** 2 for step in _steps(scale))
    return likes, counts


def _steps(scale: Scale) -> tuple[float, float]:
    """What one step of the grid is in likes and in counts."""
    return grid_step(_REACH * scale.half, BITS), grid_step(1.0, BITS - 1)


def tally_noise(half: float, distance: float) -> tuple[float, float]:
    """Return the deviations of likes and of counts in a tally that costs μ = distance: to decide with."""
    length = math.sqrt(1.25) / distance
    return length * _REACH * half, length * 2


def combine_tallies(first: BiasTally, second: BiasTally) -> BiasTally:
    """Return two tallies of the same ratings as one with less noise."""
    share = first.likes_variance / (first.likes_variance + second.likes_variance)  # of the second; the same for counts
    return BiasTally(
        first.likes * (1 - share) + second.likes * share,
        first.counts * (1 - share) + second.counts * share,
        first.likes_variance * (1 - share),
        first.counts_variance * (1 - share),
    )


def bias_model(tally: BiasTally, scale: Scale, users: int) -> BiasModel:
    """Return the model that a tally makes likely. Post-processing: reads releases and public numbers only.

    An item's bias is its expectation given the noisy sums, where biases are normal around the mean. Their variance is what
    the tally shows beyond its noise, the variance of a rating is that of ratings spread over half of the range.
    """
    noise = math.sqrt(tally.counts_variance)
    whole = float(tally.counts.sum())
    counts = np.maximum(tally.counts, 0.0)
    typical = scale.half / 2
    if whole <= 3 * noise * math.sqrt(len(counts)):  # nothing is known, not even the mean
        return BiasModel(scale.centre, np.zeros(len(counts)), counts, noise, 1.0)
    mean = float(np.clip(tally.likes.sum() / whole, -scale.half, scale.half))
    root = min(max(whole / users, 1.0), math.sqrt(len(counts)))
    rest = tally.likes - mean * tally.counts
    spread = tally.likes_variance + mean**2 * tally.counts_variance + counts * typical**2 / root
    seen = tally.counts > 3 * noise
    variance = typical**2 / 4
    if int(seen.sum()) >= 10:
        found = float((rest[seen] ** 2 - spread[seen]).sum() / (tally.counts[seen] ** 2 - tally.counts_variance).sum())
        variance = float(np.clip(found, typical**2 / 100, typical**2))
    items = rest * counts / (counts**2 + tally.counts_variance + spread / variance)
    return BiasModel(scale.centre + mean, np.clip(items, -scale.half, scale.half), counts, noise, root**2)


def user_biases(ratings: Ratings, model: BiasModel) -> Floats:
    """Return each user's own bias. Never released: each is of its user's ratings."""
    above = ratings.values - (model.mean + model.items[ratings.items])
    return per_user(ratings, above) / (ratings.counts + USER_RIDGE)


def residuals(ratings: Ratings, model: BiasModel, scale: Scale) -> Floats:
    """Return what the bias model leaves of each rating, within half the range."""
    expected = model.mean + model.items[ratings.items] + user_biases(ratings, model)[ratings.owners]
    return np.clip(ratings.values - expected, -scale.half, scale.half)
