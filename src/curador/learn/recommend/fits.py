"""From ratings to a model, by each of the methods: what is released in which order, and what the rest of a budget is for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from curador.learn.plan import Part
from curador.learn.recommend import als, frank_wolfe, refine, spectral
from curador.learn.recommend.bias import BiasModel, bias_model, combined, release_tally, residuals
from curador.learn.recommend.forecast import Prospect, prospect
from curador.learn.recommend.grid import pair_length
from curador.learn.recommend.local import ridge
from curador.learn.recommend.model import ItemModel
from curador.learn.sums import moved

if TYPE_CHECKING:
    from curador.learn.ratings import Ratings, Scale
    from curador.learn.recommend.bias import Tally
    from curador.learn.release import Releaser
    from curador.learn.sums import Floats

BIASES, MOMENT, FACTORS, LEFT, RIGHT, STEPS = "biases", "second moment", "factors", "left sides", "right sides", "steps"
MOMENT_SHARE = 0.4

_SPECTRAL = (Part(BIASES, 0.25), Part(MOMENT, MOMENT_SHARE), Part(FACTORS, 0.35, refine.ROUNDS))


@dataclass(frozen=True, slots=True)
class Fitted:
    """What a fit gives: the model, the popularity of items as it was released, and what was found of components."""

    model: ItemModel
    popularity: Floats
    eigenvalues: Floats
    edge: float


def parts_of(method: str, rank: int | None, *, components: bool) -> tuple[Part, ...]:
    """Return what a method releases. `components` False: no component can be expected, and everything is for biases."""
    match method:
        case "spectral" if components:
            return _SPECTRAL
        case "als":
            return (Part(BIASES, 0.3), Part(LEFT, 0.3, als.ROUNDS), Part(RIGHT, 0.4, als.ROUNDS))
        case "frank_wolfe":
            return (Part(BIASES, 0.3), Part(STEPS, 0.7, rank or frank_wolfe.STEPS))
        case _:
            return (Part(BIASES),)


@dataclass(frozen=True, slots=True)
class _Start:
    """What every method begins with."""

    ratings: Ratings
    scale: Scale
    users: int
    releaser: Releaser
    tally: Tally

    def biases(self, *more: str) -> BiasModel:
        """The bias model of the tally and of one more tally for each named part."""
        tally = self.tally
        for part in more:
            tally = combined(tally, release_tally(self.ratings, self.scale, self.releaser, part))
        return bias_model(tally, self.scale, self.users)


def learn(ratings: Ratings, scale: Scale, users: int, releaser: Releaser, rank: int | None) -> Fitted:
    """Fit as it was planned. `users`: declared; `rank`: None for the method's own."""
    start = _Start(ratings, scale, users, releaser, release_tally(ratings, scale, releaser, BIASES))
    planned = {one.name for one in releaser.plan.parts}
    if MOMENT in planned:
        return _spectral(start, rank or spectral.MOST_COMPONENTS)
    if LEFT in planned:
        model = start.biases()
        factors, penalty = als.learn_als(
            ratings, model, scale, releaser, left=LEFT, right=RIGHT, rank=rank or als.RANK, rounds=als.ROUNDS
        )
        return _fitted(scale, model, factors, penalty)
    if STEPS in planned:
        model = start.biases()
        steps = next(one.count for one in releaser.plan.parts if one.name == STEPS)
        head = _head(start, model, STEPS)
        if len(head.chosen) < 2:  # no item is popular enough to be seen: biases are all there is
            return _fitted(scale, start.biases(*[STEPS] * steps), np.zeros((ratings.catalogue, 0)), 1.0)
        path = frank_wolfe.learn_path(ratings, model, scale, head.chosen, releaser, STEPS, users=users, steps=steps)
        return _fitted(scale, model, path.directions, 1.0, gains=path.gains)
    return _fitted(scale, start.biases(), np.zeros((ratings.catalogue, 0)), 1.0)


def _spectral(start: _Start, rank: int) -> Fitted:
    """Components where they can be expected, by what was released of popularity; what they do not need is for biases."""
    model = start.biases()
    none = np.zeros((start.ratings.catalogue, 0))
    head = _head(start, model, MOMENT)
    if not head.worthwhile:
        return _fitted(start.scale, start.biases(MOMENT, *[FACTORS] * refine.ROUNDS), none, 1.0, edge=head.edge)
    ratings, scale, releaser = start.ratings, start.scale, start.releaser
    moment, noise = spectral.release_moment(ratings, model, scale, head.chosen, releaser, MOMENT)
    found = spectral.factors_of(moment, noise, model, head, users=start.users, rank=rank)
    count = found.items.shape[1]
    if not count:
        return _fitted(scale, start.biases(*[FACTORS] * refine.ROUNDS), none, 1.0, edge=found.edge)
    left_over = residuals(ratings, model, scale)
    factors, penalty = found.items, found.ridge
    for _ in range(refine.ROUNDS):
        own = ridge(ratings, left_over, factors, np.full(count, penalty))
        factors = refine.refined(ratings, left_over, own, model, scale, releaser, FACTORS, users=start.users)
        penalty = (scale.half / 2) ** 2
    return _fitted(scale, model, factors, penalty, eigenvalues=found.eigenvalues, edge=found.edge)


def _head(start: _Start, model: BiasModel, part: str) -> Prospect:
    length = moved(pair_length(spectral.BITS), start.releaser.plan.goal.adjacency)
    noise = start.releaser.deviation(part, length=length, step=2.0 ** (-2 * spectral.BITS))
    return prospect(model.popularity, model.popularity_noise, users=start.users, per_user=model.per_user, noise=noise)


def _fitted(
    scale: Scale,
    model: BiasModel,
    factors: Floats,
    penalty: float,
    *,
    gains: Floats | None = None,
    eigenvalues: Floats | None = None,
    edge: float = 0.0,
) -> Fitted:
    items = ItemModel(scale, model.mean, model.items, factors, penalty, gains)
    return Fitted(items, model.popularity, np.zeros(0) if eigenvalues is None else eigenvalues, edge)
