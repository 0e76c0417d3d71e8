"""What a recommender can be expected to give, from declared numbers only."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from curador.learn.dry_run import DryRun
from curador.learn.recommend import refine
from curador.learn.recommend.bias import tally_noise
from curador.learn.recommend.fits import BIASES, RIGHT, STEPS, WAYS, Way, parts_of
from curador.learn.recommend.forecast import Prospect, assumed_popularity, prospect
from curador.learn.recommend.worth import MARGIN, Audience, Worth, bias_error, usual_saving

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_MOST_USERS = 1 << 40
SAVED, COST = "saved by components", "lost by biases"
FAR = 4.0
"""How far a forecast from usual popularity may be off, before the first release says what popularity is."""


def outlook(method: str, *, users: int, items: int, per_user: float, distance: float, half: float, rank: int) -> DryRun:
    """Return what can be expected of a fit.

    per_user  ratings of a user; never more than there are items
    distance  μ of the whole fit: two neighbours are as far apart as two normal laws at this distance
    half      half the width of the range of ratings
    """
    rated = min(max(per_user, 1.0), float(items))
    parts = {one.name: math.sqrt(one.share / one.count) * distance for one in parts_of(method, rank, components=True)}
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
        return _told(signal / noise, signal, noise, numbers, "factors", "an item's equation")
    if method == "spectral":
        return _components(parts, users=users, items=items, per_user=rated, half=half, rank=rank, numbers=numbers)
    noise = 1 / 0.56 / parts[STEPS]  # gradients are clipped, not stretched: what they add is shorter than it might be

    def found(many: int) -> Prospect:
        return prospect(assumed_popularity(items, many, rated), counts, users=many, per_user=rated, noise=noise)

    now = found(users)
    numbers |= _of_moment(now, _needed(users, lambda many: found(many).strength >= 1.0))
    return _told(now.strength, now.eigenvalue, now.edge, numbers, "components", "the second moment")


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
        noises = [refine.expected_noise(half, parts[name]) for name in way.rounds]
        return head, Worth(costs, usual_saving(audience, head, noises, rank))

    def best(many: int) -> tuple[Prospect, Worth]:
        return max((weighed(way, many) for way in WAYS), key=lambda found: found[1].net)

    head, worth = best(users)
    numbers = numbers | _of_moment(head, _needed(users, lambda many: best(many)[1].pays))
    numbers |= {SAVED: worth.saves, COST: worth.costs}
    seen = f"{worth.saves:.2g} of the squared error saved, {worth.costs:.2g} lost by noisier biases"
    if worth.pays:
        return DryRun(True, f"Personal components can be expected: {seen}.", numbers)
    more = f"about {numbers['users needed']:,.0f} users would be needed"
    return DryRun(False, f"No personal components can be expected, predictions will be by biases: {seen}; {more}.", numbers)


def hopeless(forecast: DryRun) -> bool:
    """Whether components are so far from paying that the first release need not be asked: it would say the same."""
    return FAR * forecast.numbers[SAVED] < MARGIN * forecast.numbers[COST]


def _needed(users: int, enough: Callable[[int], bool]) -> int:
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


def _told(strength: float, signal: float, noise: float, numbers: Mapping[str, float], what: str, where: str) -> DryRun:
    seen = f"{signal:.3g} in {where}, where noise reaches {noise:.3g}"
    if strength >= 1.0:
        return DryRun(True, f"Personal {what} can be expected: {seen}.", numbers)
    more = f"; about {numbers['users needed']:,.0f} users would be needed" if "users needed" in numbers else ""
    return DryRun(False, f"No personal {what} can be expected, predictions will be by biases: {seen}{more}.", numbers)
