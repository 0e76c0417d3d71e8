"""From ratings to a model, by each of the methods: what is released in which order, and what the rest of a budget is for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from curador.learn.plan import Part
from curador.learn.recommend import als, frank_wolfe, refine, spectral
from curador.learn.recommend.bias import BiasModel, bias_model, combined, release_tally, residuals, tally_variances
from curador.learn.recommend.forecast import Prospect, prospect
from curador.learn.recommend.grid import pair_length
from curador.learn.recommend.local import ridge
from curador.learn.recommend.model import ItemModel
from curador.learn.recommend.worth import Audience, Worth, bias_error, usual_saving
from curador.learn.sums import moved

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.learn.ratings import Ratings, Scale
    from curador.learn.recommend.bias import Tally
    from curador.learn.release import Releaser
    from curador.learn.sums import Floats

BIASES, SPARE, MOMENT, FACTORS = "biases", "biases or moment", "moment or factors", "factors"
LEFT, RIGHT, STEPS = "left sides", "right sides", "steps"

_SPECTRAL = (Part(BIASES, 0.45), Part(SPARE, 0.25), Part(MOMENT, 0.17), Part(FACTORS, 0.13))


@dataclass(frozen=True, slots=True)
class Way:
    """What the parts of "spectral" pay for after the first one: more tallies, the second moment, rounds of factors."""

    tallies: tuple[str, ...]
    moment: str = ""
    rounds: tuple[str, ...] = ()


ONLY_BIASES = Way((SPARE, MOMENT, FACTORS))
WAYS = (Way((SPARE,), MOMENT, (FACTORS,)), Way((), SPARE, (MOMENT, FACTORS)))
"""Where biases are in doubt most of the budget is theirs; where they are not, it is for components."""


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

    def biases(self) -> BiasModel:
        """The bias model of the tally."""
        return bias_model(self.tally, self.scale, self.users)

    def more(self, parts: Sequence[str]) -> _Start:
        """The same with one more tally for each of these parts."""
        tally = self.tally
        for part in parts:
            tally = combined(tally, release_tally(self.ratings, self.scale, self.releaser, part))
        return replace(self, tally=tally)

    def audience(self, model: BiasModel) -> Audience:
        """What was released of whom the model is for."""
        return Audience(model.popularity, model.popularity_noise, model.per_user, self.scale.half)

    def noises(self, way: Way) -> list[float]:
        """The deviations of the sums of factors, round by round."""
        return [refine.taste_noise(self.scale, self.releaser, part) for part in way.rounds]

    def bias_error(self, audience: Audience, *more: str) -> float:
        """The error of biases to be expected once these parts are spent on tallies, too."""
        variances = [(self.tally.likes_variance, self.tally.counts_variance)]
        variances += [tally_variances(self.scale, self.releaser, part) for part in more]
        return bias_error(audience, *(1 / np.reciprocal(variances).sum(axis=0)).tolist())  # precision adds up


def learn(ratings: Ratings, scale: Scale, users: int, releaser: Releaser, rank: int | None) -> Fitted:
    """Fit as it was planned. `users`: declared; `rank`: None for the method's own."""
    start = _Start(ratings, scale, users, releaser, release_tally(ratings, scale, releaser, BIASES))
    planned = {one.name for one in releaser.plan.parts}
    if SPARE in planned:
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
            return _fitted(scale, start.more([STEPS] * steps).biases(), np.zeros((ratings.catalogue, 0)), 1.0)
        path = frank_wolfe.learn_path(ratings, model, scale, head.chosen, releaser, STEPS, users=users, steps=steps)
        return _fitted(scale, model, path.directions, 1.0, gains=path.gains)
    return _fitted(scale, start.biases(), np.zeros((ratings.catalogue, 0)), 1.0)


def _spectral(start: _Start, rank: int) -> Fitted:
    """Components where they can be expected to save more than biases lose by them; else all of the budget is for biases.

    Claim   What is released next is decided by arithmetic on what was released before and on public numbers: by a forecast of
            the error after the first release, and by what stands out of the moment after that. Whatever is decided, a part of
            the plan pays for one release, of the length that is declared for it, so the plan's guarantee holds.
    Source  Composition of releases of which each may depend on those before (see `Plan`).
    """
    first = start.biases()
    audience = start.audience(first)
    way, head = _chosen(start, first, audience, rank)
    start = start.more(way.tallies)
    model = start.biases()
    none = np.zeros((start.ratings.catalogue, 0))
    if not way.moment:
        return _fitted(start.scale, model, none, 1.0, edge=head.edge)
    ratings, scale, releaser = start.ratings, start.scale, start.releaser
    moment, deviation = spectral.release_moment(ratings, model, scale, head.chosen, releaser, way.moment)
    found = spectral.factors_of(moment, deviation, model, head, users=start.users, rank=rank)
    count = found.items.shape[1]
    if not count:  # nothing stands out: the rest is for biases, too
        return _fitted(scale, start.more(way.rounds).biases(), none, 1.0, edge=found.edge)
    left_over = residuals(ratings, model, scale)
    factors, penalty = found.items, found.ridge
    for part in way.rounds:
        own = ridge(ratings, left_over, factors, np.full(count, penalty))
        factors = refine.refined(ratings, left_over, own, model, scale, releaser, part, users=start.users)
        penalty = (scale.half / 2) ** 2
    return _fitted(scale, model, factors, penalty, eigenvalues=found.eigenvalues, edge=found.edge)


def _chosen(start: _Start, model: BiasModel, audience: Audience, rank: int) -> tuple[Way, Prospect]:
    """Return the way that leaves the least error by its forecast, and the items of its second moment."""
    least = start.bias_error(audience, *ONLY_BIASES.tallies)

    def weighed(way: Way) -> tuple[Worth, Way, Prospect]:
        head = _head(start, model, way.moment)
        saves = usual_saving(audience, head, start.noises(way), rank)
        return Worth(start.bias_error(audience, *way.tallies) - least, saves), way, head

    worth, way, head = max((weighed(way) for way in WAYS), key=lambda one: one[0].net)
    return way if worth.pays else ONLY_BIASES, head


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
