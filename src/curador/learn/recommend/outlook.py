"""What a recommender can be expected to give, from declared numbers only."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from curador.learn.dry_run import DryRun
from curador.learn.recommend.bias import tally_noise
from curador.learn.recommend.fits import BIASES, MOMENT, RIGHT, STEPS, parts_of
from curador.learn.recommend.forecast import Prospect, assumed_popularity, prospect

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST_USERS = 1 << 40


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
    # gradients are clipped, not stretched: what they add is shorter than it might be
    noise = 1 / math.sqrt(2) / parts[MOMENT] if method == "spectral" else 1 / 0.56 / parts[STEPS]

    def expected(many: int) -> Prospect:
        return prospect(assumed_popularity(items, many, rated), counts, users=many, per_user=rated, noise=noise)

    found = expected(users)
    needed = users
    while needed < _MOST_USERS and not found.worthwhile and not expected(needed).worthwhile:
        needed = math.ceil(needed * 1.2)
    numbers |= {
        "noise edge": found.edge,
        "largest expected eigenvalue": found.eigenvalue,
        "items in the second moment": float(len(found.chosen)),
        "users needed": float(needed),
    }
    return _told(found.strength, found.eigenvalue, found.edge, numbers, "components", "the second moment")


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
