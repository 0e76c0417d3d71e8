"""From ratings to a fitted recommender, by each of the methods; and what can be expected of it before.

The model is what is known of items, and what a user makes of it alone.

Everything here that is of items was released. A user's numbers are computed from that user's own ratings, given as an
argument, and go to nobody else: that is what a joint guarantee means.

The fit says what is released in which order, and what the rest of a budget is for.

The forecast says what a recommender can be expected to give, from declared numbers only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from curador.errors import require
from curador.learn.dry_run import DryRun
from curador.learn.plan import PlannedRelease
from curador.learn.recommend import als, frank_wolfe, spectral
from curador.learn.recommend.bias import (
    USER_RIDGE,
    BiasModel,
    bias_model,
    combine_tallies,
    release_tally,
    residuals,
    tally_noise,
    tally_variances,
)
from curador.learn.recommend.forecast import (
    MARGIN,
    Audience,
    Prospect,
    Worth,
    assumed_popularity,
    bias_error,
    prospect,
    usual_saving,
)
from curador.learn.recommend.frank_wolfe import Path, walk
from curador.learn.recommend.users import pair_length, per_user, ridge
from curador.learn.sums import sensitivity_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from curador.learn.ratings import Ratings, Scale
    from curador.learn.recommend.bias import BiasTally
    from curador.learn.release import Releaser
    from curador.learn.sums import Floats, Integers


# ---- model -----------------------------------------------------------------------------------------------------------------


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


def predict_ratings(model: ItemModel, folded: Floats, owners: Integers, items: Integers) -> Floats:
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
    guesses = predict_ratings(model, fold(model, known), held_out.owners, held_out.items)
    return math.sqrt(float(np.mean(np.square(guesses - held_out.values))))


# ---- fits ------------------------------------------------------------------------------------------------------------------


BIASES, SPARE, MOMENT, FACTORS = "biases", "biases or moment", "moment or factors", "factors"
LEFT, RIGHT, STEPS = "left sides", "right sides", "steps"

_SPECTRAL = (
    PlannedRelease(BIASES, 0.45),
    PlannedRelease(SPARE, 0.25),
    PlannedRelease(MOMENT, 0.17),
    PlannedRelease(FACTORS, 0.13),
)


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
class FittedRecommender:
    """What a fit gives: the model, the popularity of items as it was released, and what was found of components."""

    model: ItemModel
    popularity: Floats
    eigenvalues: Floats
    edge: float


def parts_of(method: str, rank: int | None, *, components: bool) -> tuple[PlannedRelease, ...]:
    """Return what a method releases. `components` False: no component can be expected, and everything is for biases."""
    match method:
        case "spectral" if components:
            return _SPECTRAL
        case "als":
            return (
                PlannedRelease(BIASES, 0.3),
                PlannedRelease(LEFT, 0.3, als.ROUNDS),
                PlannedRelease(RIGHT, 0.4, als.ROUNDS),
            )
        case "frank_wolfe":
            return (PlannedRelease(BIASES, 0.3), PlannedRelease(STEPS, 0.7, rank or frank_wolfe.STEPS))
        case _:
            return (PlannedRelease(BIASES),)


@dataclass(frozen=True, slots=True)
class _Start:
    """What every method begins with."""

    ratings: Ratings
    scale: Scale
    users: int
    releaser: Releaser
    tally: BiasTally

    def biases(self) -> BiasModel:
        """The bias model of the tally."""
        return bias_model(self.tally, self.scale, self.users)

    def more(self, parts: Sequence[str]) -> _Start:
        """The same with one more tally for each of these parts."""
        tally = self.tally
        for part in parts:
            tally = combine_tallies(tally, release_tally(self.ratings, self.scale, self.releaser, part))
        return replace(self, tally=tally)

    def audience(self, model: BiasModel) -> Audience:
        """What was released of whom the model is for."""
        return Audience(model.popularity, model.popularity_noise, model.per_user, self.scale.half)

    def noises(self, way: Way) -> list[float]:
        """The deviations of the sums of factors, round by round."""
        return [spectral.taste_noise(self.scale, self.releaser, part) for part in way.rounds]

    def bias_error(self, audience: Audience, *more: str) -> float:
        """The error of biases to be expected once these parts are spent on tallies, too."""
        variances = [(self.tally.likes_variance, self.tally.counts_variance)]
        variances += [tally_variances(self.scale, self.releaser, part) for part in more]
        return bias_error(audience, *(1 / np.reciprocal(variances).sum(axis=0)).tolist())  # precision adds up


def learn(ratings: Ratings, scale: Scale, users: int, releaser: Releaser, rank: int | None) -> FittedRecommender:
    """Fit as it was planned. `users`: declared; `rank`: None for the method's own."""
    start = _Start(ratings, scale, users, releaser, release_tally(ratings, scale, releaser, BIASES))
    planned = {part.name for part in releaser.plan.parts}
    if SPARE in planned:
        return _spectral(start, rank or spectral.MOST_COMPONENTS)
    if LEFT in planned:
        model = start.biases()
        factors, penalty = als.learn_als(
            ratings, model, scale, releaser, left=LEFT, right=RIGHT, rank=rank or als.RANK, rounds=als.ROUNDS
        )
        return _make_fit(scale, model, factors, penalty)
    if STEPS in planned:
        model = start.biases()
        steps = next(part.count for part in releaser.plan.parts if part.name == STEPS)
        head = _head(start, model, STEPS)
        if len(head.chosen) < 2:  # no item is popular enough to be seen: biases are all there is
            return _make_fit(scale, start.more([STEPS] * steps).biases(), np.zeros((ratings.catalogue, 0)), 1.0)
        path = frank_wolfe.learn_path(ratings, model, scale, head.chosen, releaser, STEPS, users=users, steps=steps)
        return _make_fit(scale, model, path.directions, 1.0, gains=path.gains)
    return _make_fit(scale, start.biases(), np.zeros((ratings.catalogue, 0)), 1.0)


def _spectral(start: _Start, rank: int) -> FittedRecommender:
    """Components where they can be expected to save more than biases lose by them; else all of the budget is for biases.

    Claim   What is released next is decided by arithmetic on what was released before and on public numbers: by a forecast of
            the error after the first release, and by what stands out of the moment after that. Whatever is decided, a part of
            the plan pays for one release, of the length that is declared for it, so the plan's guarantee holds.
    Source  Composition of releases of which each may depend on those before (see `Plan`).
    """
    first = start.biases()
    audience = start.audience(first)
    way, head = _choose_way(start, first, audience, rank)
    start = start.more(way.tallies)
    model = start.biases()
    none = np.zeros((start.ratings.catalogue, 0))
    if not way.moment:
        return _make_fit(start.scale, model, none, 1.0, edge=head.edge)
    ratings, scale, releaser = start.ratings, start.scale, start.releaser
    moment, deviation = spectral.release_moment(ratings, model, scale, head.chosen, releaser, way.moment)
    found = spectral.factors_of(moment, deviation, model, head, users=start.users, rank=rank)
    count = found.items.shape[1]
    if not count:  # nothing stands out: the rest is for biases, too
        return _make_fit(scale, start.more(way.rounds).biases(), none, 1.0, edge=found.edge)
    left_over = residuals(ratings, model, scale)
    factors, penalty = found.items, found.ridge
    for part in way.rounds:
        own = ridge(ratings, left_over, factors, np.full(count, penalty))
        factors = spectral.refine_factors(ratings, left_over, own, model, scale, releaser, part, users=start.users)
        penalty = (scale.half / 2) ** 2
    return _make_fit(scale, model, factors, penalty, eigenvalues=found.eigenvalues, edge=found.edge)


def _choose_way(start: _Start, model: BiasModel, audience: Audience, rank: int) -> tuple[Way, Prospect]:
    """Return the way that leaves the least error by its forecast, and the items of its second moment."""
    least = start.bias_error(audience, *ONLY_BIASES.tallies)

    def weighed(way: Way) -> tuple[Worth, Way, Prospect]:
        head = _head(start, model, way.moment)
        saves = usual_saving(audience, head, start.noises(way), rank)
        return Worth(start.bias_error(audience, *way.tallies) - least, saves), way, head

    worth, way, head = max((weighed(way) for way in WAYS), key=lambda one: one[0].net)
    return way if worth.pays else ONLY_BIASES, head


def _head(start: _Start, model: BiasModel, part: str) -> Prospect:
    length = sensitivity_steps(pair_length(spectral.BITS), start.releaser.plan.goal.adjacency)
    noise = start.releaser.deviation(part, length=length, step=2.0 ** (-2 * spectral.BITS))
    return prospect(model.popularity, model.popularity_noise, users=start.users, per_user=model.per_user, noise=noise)


def _make_fit(
    scale: Scale,
    model: BiasModel,
    factors: Floats,
    penalty: float,
    *,
    gains: Floats | None = None,
    eigenvalues: Floats | None = None,
    edge: float = 0.0,
) -> FittedRecommender:
    items = ItemModel(scale, model.mean, model.items, factors, penalty, gains)
    return FittedRecommender(items, model.popularity, np.zeros(0) if eigenvalues is None else eigenvalues, edge)


# ---- outlook ---------------------------------------------------------------------------------------------------------------


_MOST_USERS = 1 << 40
SAVED, COST = "saved by components", "lost by biases"
FAR = 4.0
"""How far a forecast from usual popularity may be off, before the first release says what popularity is."""


def forecast_fit(method: str, *, users: int, items: int, per_user: float, distance: float, half: float, rank: int) -> DryRun:
    """Return what can be expected of a fit.

    per_user  ratings of a user; never more than there are items
    distance  μ of the whole fit: two neighbours are as far apart as two normal laws at this distance
    half      half the width of the range of ratings
    """
    rated = min(max(per_user, 1.0), float(items))
    parts = {part.name: math.sqrt(part.share / part.count) * distance for part in parts_of(method, rank, components=True)}
    typical = float(assumed_popularity(items, users, rated).mean())
    likes, counts = tally_noise(half, parts[BIASES])
    numbers = {
        "users": float(users),
        "items": float(items),
        "ratings a user": rated,
        "noise of an item's bias": likes / typical,
    }
    if method == "bias":
        return _bias(likes / typical, half, numbers)
    if method == "als":
        noise = 0.6 * half / parts[RIGHT]
        signal = typical * math.sqrt(0.2) * half / 2 / rank
        numbers |= {"noise of an item's equation": noise, "expected size of it": signal}
        return _say_strength(signal / noise, signal, noise, numbers, "factors", "an item's equation")
    if method == "spectral":
        return _components(parts, users=users, items=items, per_user=rated, half=half, rank=rank, numbers=numbers)
    noise = 1 / 0.56 / parts[STEPS]  # gradients are clipped, not stretched: what they add is shorter than it might be

    def found(many: int) -> Prospect:
        return prospect(assumed_popularity(items, many, rated), counts, users=many, per_user=rated, noise=noise)

    now = found(users)
    numbers |= _of_moment(now, _users_needed(users, lambda many: found(many).strength >= 1.0))
    return _say_strength(now.strength, now.eigenvalue, now.edge, numbers, "components", "the second moment")


def _components(
    parts: Mapping[str, float], *, users: int, items: int, per_user: float, half: float, rank: int, numbers: dict[str, float]
) -> DryRun:
    """What the better way to components is worth, of items that are as popular as items usually are."""

    def tally(*names: str) -> list[float]:
        """The variances of likes and counts, of tallies that these parts pay for."""
        return np.square(tally_noise(half, math.sqrt(sum(parts[name] ** 2 for name in names)))).tolist()

    def weighed(way: Way, many: int) -> tuple[Prospect, Worth]:
        popularity = assumed_popularity(items, many, per_user)
        audience = Audience(popularity, 0.0, per_user, half)
        doubt, noise = math.sqrt(tally(BIASES)[1]), 1 / math.sqrt(2) / parts[way.moment]
        head = prospect(popularity, doubt, users=many, per_user=per_user, noise=noise)
        costs = bias_error(audience, *tally(BIASES, *way.tallies)) - bias_error(audience, *tally(*parts))
        noises = [spectral.expected_noise(half, parts[name]) for name in way.rounds]
        return head, Worth(costs, usual_saving(audience, head, noises, rank))

    def best(many: int) -> tuple[Prospect, Worth]:
        return max((weighed(way, many) for way in WAYS), key=lambda found: found[1].net)

    head, worth = best(users)
    numbers = numbers | _of_moment(head, _users_needed(users, lambda many: best(many)[1].pays))
    numbers |= {SAVED: worth.saves, COST: worth.costs}
    seen = f"{worth.saves:.2g} of the squared error saved, {worth.costs:.2g} lost by noisier biases"
    if worth.pays:
        return DryRun(True, f"Personal components can be expected: {seen}.", numbers)
    more = f"about {numbers['users needed']:,.0f} users would be needed"
    return DryRun(False, f"No personal components can be expected, predictions will be by biases: {seen}; {more}.", numbers)


def is_hopeless(forecast: DryRun) -> bool:
    """Whether components are so far from paying that the first release need not be asked: it would say the same."""
    return FAR * forecast.numbers[SAVED] < MARGIN * forecast.numbers[COST]


def _users_needed(users: int, enough: Callable[[int], bool]) -> int:
    while users < _MOST_USERS and not enough(users):
        users = math.ceil(users * 1.2)
    return users


def _of_moment(found: Prospect, needed: int) -> dict[str, float]:
    return {
        "noise edge": found.edge,
        "largest expected eigenvalue": found.eigenvalue,
        "items in the second moment": float(len(found.chosen)),
        "users needed": float(needed),
    }


def _bias(noise: float, half: float, numbers: Mapping[str, float]) -> DryRun:
    told = f"An item of average popularity has a bias known to about ±{noise:.2g}; biases differ by about {half / 4:.2g}."
    good = noise < half / 4
    return DryRun(good, told if good else f"{told} Only popular items will be told from the mean.", numbers)


def _say_strength(
    strength: float, signal: float, noise: float, numbers: Mapping[str, float], what: str, where: str
) -> DryRun:
    seen = f"{signal:.3g} in {where}, where noise reaches {noise:.3g}"
    if strength >= 1.0:
        return DryRun(True, f"Personal {what} can be expected: {seen}.", numbers)
    more = f"; about {numbers['users needed']:,.0f} users would be needed" if "users needed" in numbers else ""
    return DryRun(False, f"No personal {what} can be expected, predictions will be by biases: {seen}{more}.", numbers)
