"""Tables of ratings with everything that people put into them, and what a recommender would release of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from curador.learn.plan import goal_of
from curador.learn.ratings import Ratings, Scale, ratings_of
from curador.learn.recommend.fits import learn, parts_of

SCALE = Scale(1.0, 5.0)
RANK = {"spectral": 3, "bias": None, "als": 3, "frank_wolfe": 2}


@dataclass
class Raw:
    """Rows as they come: users, items (some unknown), ratings (some no ratings at all)."""

    users: Any
    items: Any
    values: Any
    catalogue: int

    def ratings(self, without: int | None = None, *, shuffled: int | None = None) -> Ratings:
        """Return what is read of them; without one user, those after whom then have other numbers."""
        kept = self.users != without if without is not None else np.ones(len(self.users), bool)
        order = np.flatnonzero(kept)
        _, numbers = np.unique(self.users[order], return_inverse=True)
        many = int(numbers.max(initial=-1)) + 1
        if shuffled is not None:
            numbers = np.random.default_rng(shuffled).permutation(many)[numbers]
        return ratings_of(numbers, self.items[order], self.values[order], n_users=many, catalogue=self.catalogue, scale=SCALE)


def wild_table(seed, users=12, catalogue=40, most=60):
    """Ratings with duplicates, NaN, infinities, unknown items and values far out; users with one rating and with many."""
    draw = np.random.default_rng(seed)
    counts = draw.integers(1, most, users)
    counts[0], counts[-1] = 1, 4 * most
    owners = np.repeat(np.arange(users), counts)
    items = draw.integers(-1, catalogue + 1, len(owners))
    values = draw.choice([1.0, 2.0, 3.0, 4.0, 5.0, 4.37], len(owners))
    odd = draw.random(len(owners))
    values = np.where(
        odd < 0.05, np.nan, np.where(odd < 0.1, 1e300, np.where(odd < 0.15, -7.0, np.where(odd < 0.17, np.inf, values)))
    )
    extreme = owners == 1  # somebody who only knows ends
    values[extreme] = np.where(items[extreme] % 2 == 0, 5.0, 1.0)
    order = draw.permutation(len(owners))
    return Raw(owners[order], items[order], values[order], catalogue)


@dataclass
class Scripted:
    """Stands where a Releaser does: keeps what would be released, and says what a script says, whatever the data.

    script  what left in another run; empty: the exact sums with a little noise, as if there were hardly any
    """

    method: str
    script: list[Any] = field(default_factory=list)
    released: list[tuple[str, Any, int]] = field(default_factory=list)
    said: list[Any] = field(default_factory=list)

    @property
    def plan(self):
        """As much of a plan as a fit looks at."""
        parts = parts_of(self.method, RANK[self.method], components=True)
        return SimpleNamespace(goal=goal_of(1, 1e-6, "add_or_remove_one"), parts=parts)

    def noisy(self, name, integers, *, length, step):
        """Keep the integers; say what the script says, or nearly the truth."""
        self.released.append((name, integers, length))
        place = len(self.released) - 1
        truth = integers * step
        noise = np.random.default_rng(place).normal(size=integers.shape) * self.deviation(name, length=length, step=step)
        self.said.append(self.script[place] if self.script else truth + noise)
        return self.said[-1]

    def deviation(self, name, *, length, step):
        """Small, so that every method goes all of its way even with few users."""
        del name
        return 1e-3 * length * step


def fitted(ratings, method, script=(), users=12):
    """Return what a method learns of ratings, and the releaser that it learned from."""
    releaser = Scripted(method, list(script))
    return learn(ratings, SCALE, users, releaser, RANK[method]), releaser  # type: ignore[arg-type]


def too_far(before, after):
    """Return the releases of which neighbours differ by more than their length, in exact integers."""
    assert [name for name, _, _ in before] == [name for name, _, _ in after]
    found = []
    for (name, one, length), (_, other, same) in zip(before, after, strict=True):
        assert one.dtype == np.int64
        assert length == same
        if one.shape != other.shape or sum(int(x) ** 2 for x in (one - other).ravel() if x) > length**2:
            found.append(name)
    return found


def same(one, other):
    """Whether two fits learned the same, number for number."""
    pairs = [
        (one.model.biases, other.model.biases),
        (one.model.factors, other.model.factors),
        (one.popularity, other.popularity),
        (one.eigenvalues, other.eigenvalues),
        (one.model.gains, other.model.gains),
    ]
    alike = all(np.array_equal(left, right) for left, right in pairs)
    return alike and (one.model.mean, one.model.ridge, one.edge) == (other.model.mean, other.model.ridge, other.edge)


def replayed(raw, method, gone):
    """Return what is wrong between a table and the one without a user: too long a move, or more learned than was released."""
    whole, first = fitted(raw.ratings(), method)
    less, second = fitted(raw.ratings(without=gone), method, first.said)
    wrong = too_far(first.released, second.released)
    return wrong if same(whole, less) else [*wrong, "model"]
