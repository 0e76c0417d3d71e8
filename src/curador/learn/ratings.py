"""Who rated what, and how: ratings as a recommender reads them, files of them, and made-up ones.

users, items, values ──► ratings_of: known items only, one rating for each (user, item), within the declared range ──► Ratings

The catalogue of items is public and declared. What is rated but not in it is dropped: an item that were added because
somebody rated it would say that somebody did.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.errors import InvalidParameter, require
from curador.numerics.exact import rational, whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from curador.learn.sums import Floats, Integers

_MOST_ITEMS = 1 << 24
_FAR = 1e100
"""What ratings are held within before a mean of several is taken: no sum of them overflows."""

_MOST_ID = 2.0**53


@dataclass(frozen=True, slots=True)
class Scale:
    """The declared range of ratings: what lies beyond is moved to its end."""

    low: float
    high: float

    @property
    def centre(self) -> float:
        """The middle of the range."""
        return self.low / 2 + self.high / 2

    @property
    def half(self) -> float:
        """Half the width of the range."""
        return self.high / 2 - self.low / 2


def scale_of(rating_range: Any) -> Scale:
    """Return the range that a parameter states."""
    rule = "a pair (low, high) of numbers within ±1e9, low below high by at least 1e-6"
    if rating_range is None:
        hint = "the least and the greatest rating that can be given; it must not be taken from the data"
        raise InvalidParameter.must_be("rating_range", rule, "nothing", hint)
    try:
        low, high = (float(rational(end, "rating_range")) for end in rating_range)
    except (TypeError, ValueError, OverflowError):
        raise InvalidParameter.must_be("rating_range", rule, rating_range) from None
    require(high - low >= 1e-6 and max(abs(low), abs(high)) <= 1e9, "rating_range", rule, rating_range)
    return Scale(low, high)


# ---- the catalogue ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The items that there are, whole numbers or texts, in the order of the model's rows. Public."""

    ids: NDArray[Any]

    def codes(self, given: Any) -> Integers:
        """Return the place of each item in the catalogue; -1 where it is not there. Total: no value is an error."""
        asked = np.ma.filled(given.astype(object), None) if isinstance(given, np.ma.MaskedArray) else np.asarray(given)
        if asked.ndim != 1:
            asked = asked.reshape(-1)
        if self.ids.dtype.kind == "i" and asked.dtype.kind in "iuf":
            return self._numbers(asked)
        places = {one: place for place, one in enumerate(self.ids.tolist())}
        return np.fromiter((places.get(_key(one), -1) for one in asked.tolist()), np.int64, len(asked))

    def _numbers(self, asked: NDArray[Any]) -> Integers:
        if asked.dtype.kind == "f":
            usable = np.abs(asked) < 2.0**53  # and not NaN
            whole_ones = np.where(usable, asked, 0.0).astype(np.int64)
            usable &= whole_ones == asked
        else:
            usable = asked <= np.iinfo(np.int64).max
            whole_ones = np.where(usable, asked, 0).astype(np.int64)
        order = np.argsort(self.ids, kind="stable")
        ordered = self.ids[order]
        if ordered[-1] - ordered[0] == len(ordered) - 1:  # no gaps: no search
            places = np.clip(whole_ones, ordered[0], ordered[-1]) - ordered[0]
        else:
            places = np.minimum(np.searchsorted(ordered, whole_ones), len(ordered) - 1)
        return np.where(usable & (ordered[places] == whole_ones), order[places], -1)


def catalogue_of(items: Any) -> Catalogue:
    """Return the catalogue that a parameter declares: an array of items, or how many, which are then numbered from 0."""
    rule = "the catalogue: an array of distinct whole numbers or texts, or how many items there are"
    if items is None:
        hint = "items that are not declared must not appear because somebody rated them"
        raise InvalidParameter.must_be("items", rule, "nothing", hint)
    if isinstance(items, (int, np.integer)) and not isinstance(items, bool):
        require(2 <= int(items) <= _MOST_ITEMS, "items", "at least 2", items)
        return Catalogue(np.arange(int(items), dtype=np.int64))
    several: Any = items
    require(not isinstance(items, (str, bytes)), "items", rule, items)
    try:
        found = np.asarray(several if hasattr(several, "dtype") else list(several))
    except (TypeError, ValueError):
        raise InvalidParameter.must_be("items", rule, items) from None
    if found.dtype.kind == "O" and all(isinstance(one, str) for one in found.ravel().tolist()):
        found = found.astype(str)
    kind = found.dtype.kind
    require(found.ndim == 1 and kind in "iuU" and 2 <= len(found) <= _MOST_ITEMS, "items", rule, items)
    if kind == "u":
        require(int(found.max()) <= np.iinfo(np.int64).max, "items", rule, items)
    found = found if kind == "U" else found.astype(np.int64)
    require(len(np.unique(found)) == len(found), "items", rule, "an item twice")
    return Catalogue(found)


def _key(value: Any) -> Any:
    return value if isinstance(value, (str, int, float)) else None


# ---- ratings ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ratings:
    """The ratings of each user, in rows: those of user u are items[starts[u]:starts[u + 1]], and values beside them.

    Claim  What becomes of a user's ratings depends on that user's alone. Each has at most one of an item, within the range.
    """

    starts: Integers
    items: Integers
    values: Floats
    catalogue: int

    @property
    def users(self) -> int:
        """How many users there are, some of whom may have no rating."""
        return len(self.starts) - 1

    @property
    def counts(self) -> Integers:
        """How many ratings each user has."""
        return np.diff(self.starts)

    @property
    def owners(self) -> Integers:
        """The user of each rating."""
        return np.repeat(np.arange(self.users), self.counts)

    def of(self, user: int) -> tuple[Integers, Floats]:
        """Return the items that a user rated and how."""
        part = slice(int(self.starts[user]), int(self.starts[user + 1]))
        return self.items[part], self.values[part]

    def only(self, kept: NDArray[np.bool_]) -> Ratings:
        """Return the ratings that are kept, of the same users."""
        counts = np.bincount(self.owners[kept], minlength=self.users)
        return Ratings(_starts(counts), self.items[kept], self.values[kept], self.catalogue)

    def matrix(self, numbers: NDArray[Any]) -> Any:
        """Return a sparse matrix, users by items, with these numbers in the place of the ratings."""
        from scipy.sparse import csr_array

        return csr_array((numbers, self.items, self.starts), shape=(self.users, self.catalogue))


def _starts(counts: Integers) -> Integers:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])


def ratings_of(users: Integers, items: Integers, values: Floats, *, n_users: int, catalogue: int, scale: Scale) -> Ratings:
    """Return ratings of users 0 … n_users-1 and items 0 … catalogue-1; a negative user or item is nobody's and nothing's.

    What is no finite number is no rating. Several ratings of one item by one user are one, their mean; then it is clipped.
    """
    kept = (users >= 0) & (users < n_users) & (items >= 0) & (items < catalogue) & np.isfinite(values)
    places = users[kept].astype(np.int64) * catalogue + items[kept]
    order = np.argsort(places, kind="stable")
    places = places[order]
    first = np.ones(len(places), bool)
    first[1:] = places[1:] != places[:-1]
    group = np.cumsum(first) - 1
    # bincount adds the ratings of one group in their order, whatever else there is: no other user moves a rounding
    sums = np.bincount(group, weights=np.clip(values[kept][order], -_FAR, _FAR), minlength=0)
    means = sums / np.bincount(group) if len(places) else np.zeros(0)
    owners, which = np.divmod(places[first], catalogue)
    starts = _starts(np.bincount(owners, minlength=n_users))
    return Ratings(starts, which, np.clip(means, scale.low, scale.high), catalogue)


def _missing(value: Any) -> bool:
    """Whether a user is nobody: None, NaN or a missing value of its library."""
    same: Any = value == value  # noqa: PLR0124 -- NaN is not itself
    return value is None or type(same) is not bool or not same


def number_users(users: Any) -> tuple[Integers, int]:
    """Return users as 0, 1, 2, … and how many there are; NaN and None are nobody: -1."""
    given = np.ma.filled(users.astype(object), None) if isinstance(users, np.ma.MaskedArray) else np.asarray(users)
    if given.dtype.kind == "O":
        seen: dict[Any, int] = {}
        try:
            nobody = [_missing(one) for one in given.tolist()]
            pairs = zip(nobody, given.tolist(), strict=True)
            return np.array([-1 if no else seen.setdefault(one, len(seen)) for no, one in pairs], np.int64), len(seen)
        except TypeError:
            raise InvalidParameter.must_be("users", "numbers or texts", "something that cannot be compared") from None
    known = np.isfinite(given) if given.dtype.kind == "f" else np.ones(len(given), bool)
    if given.dtype.kind == "f" and bool((np.abs(given[known]) >= _MOST_ID).any()):
        hint = "floats beyond it stand for several users each; give whole numbers or texts"
        raise InvalidParameter.must_be("users", "below 2⁵³ where they are floats", "a larger one", hint)
    ids, places = np.unique(given[known], return_inverse=True)
    codes = np.full(len(given), -1, np.int64)
    codes[known] = places.reshape(-1)
    return codes, len(ids)


# ---- files --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RatingFile:
    """What a file of ratings says: one row a rating. `catalogue`: the items of the file beside it, where there is one."""

    users: Integers
    items: Integers
    ratings: Floats
    catalogue: Integers | None


_FILES = {"u.data": ("\t", "u.item", "|"), "ratings.dat": ("::", "movies.dat", "::"), "ratings.csv": (",", "movies.csv", ",")}


def read_movielens(path: str | Path) -> RatingFile:
    """Return the ratings of a MovieLens file that you have: `u.data`, `ratings.dat` or `ratings.csv`, or the folder of it.

    Its licence forbids handing it on: none comes with this project.
    """
    given = Path(path)
    rule = "a MovieLens folder, or its u.data, ratings.dat or ratings.csv"
    found = next((given / name for name in _FILES if (given / name).is_file()), None) if given.is_dir() else given
    if found is None or found.name not in _FILES or not found.is_file():
        raise InvalidParameter.must_be("path", rule, str(path))
    separator, beside, mark = _FILES[found.name]
    try:
        users, items, ratings = _columns(found.read_bytes(), separator, header=found.suffix == ".csv")
        films = found.with_name(beside)
        catalogue = _first_numbers(films.read_bytes(), mark, header=films.suffix == ".csv") if films.is_file() else None
        return RatingFile(users.astype(np.int64), items.astype(np.int64), ratings, catalogue)
    except (OSError, ValueError) as problem:
        raise InvalidParameter.must_be("path", rule, str(path), str(problem).partition("\n")[0]) from None


def _columns(content: bytes, separator: str, *, header: bool) -> list[Floats]:
    import pyarrow as pa
    from pyarrow import csv

    text = content.replace(b"::", b"\t") if separator == "::" else content
    names = ["user", "item", "rating", "time"]
    reader: Any = csv
    table: Any = reader.read_csv(
        pa.BufferReader(text),
        read_options=reader.ReadOptions(column_names=names, skip_rows=int(header)),
        parse_options=reader.ParseOptions(delimiter="," if separator == "," else "\t"),
        convert_options=reader.ConvertOptions(column_types=dict.fromkeys(names, pa.float64())),
    )
    return [np.asarray(table[name], np.float64) for name in names[:3]]


def _first_numbers(content: bytes, mark: str, *, header: bool) -> Integers:
    """The first number of each line; titles may hold anything, in any encoding."""
    lines = content.split(b"\n")[int(header) :]
    return np.array([int(line.partition(mark.encode())[0]) for line in lines if line.strip()], np.int64)


# ---- made up ------------------------------------------------------------------------------------------------------------


def synthetic_ratings(
    users: int = 10_000, items: int = 500, *, seed: int = 0, per_user: float = 54.5, pattern: str = "even"
) -> tuple[Ratings, Ratings]:
    """Return made-up ratings from 1 to 5, nine of ten to train with and one of ten to test with, of the same users.

    A rating is 3.5 + what the user and the item are inclined to + a product of tastes + noise; what is rated does not depend
    on taste.
    pattern  "even": who rates much rates up to ten times as much as who rates little, and the popularity of items varies as
             much; six tastes of about the same strength
             "films": popularity falls as a power of an item's rank, nobody rates fewer than 20 some hundreds, popular
             items are liked more, ratings are whole, and few tastes are strong. 6,040 users, 3,706 items and 165.6 ratings a
             user are about as hard as the set of films of that size: without privacy biases leave 0.91, factors 0.86
    """
    users, items = whole(users, "users", least=1), whole(items, "items", least=2)
    require(pattern in {"even", "films"}, "pattern", "'even' or 'films'", pattern)
    draw = np.random.default_rng(seed)
    made = _even(draw, users, items, per_user) if pattern == "even" else _films(draw, users, items, per_user)
    owners_list: list[Integers] = []
    items_list: list[Integers] = []
    for start in range(0, users, 1000):
        some = made.wanted[start : start + 1000]
        # the items that win exponential races at the rates of their popularity: draws without putting back
        races = draw.exponential(size=(len(some), items)) / made.popularity
        order = np.argsort(races, axis=1)
        taken = np.arange(items) < some[:, None]
        owners_list.append(np.repeat(np.arange(start, start + len(some)), some))
        items_list.append(order[taken])
    owners, which = np.concatenate(owners_list), np.concatenate(items_list)
    taste = np.einsum("ij,ij->i", made.left[owners], made.right[which])
    values = 3.5 + made.inclined[owners] + made.liked[which] + taste + draw.normal(scale=made.noise, size=len(owners))
    if pattern == "films":
        values = np.rint(values)
    tested = draw.random(len(owners)) < 0.1
    scale = Scale(1.0, 5.0)

    def part(kept: NDArray[np.bool_]) -> Ratings:
        return ratings_of(owners[kept], which[kept], values[kept], n_users=users, catalogue=items, scale=scale)

    return part(~tested), part(tested)


@dataclass(frozen=True, slots=True)
class _MadeUp:
    """What made-up ratings are made of: users' and items' tastes and inclinations, what is popular, who rates how much."""

    left: Floats
    right: Floats
    inclined: Floats
    liked: Floats
    popularity: Floats
    wanted: Integers
    noise: float


def _even(draw: np.random.Generator, users: int, items: int, per_user: float) -> _MadeUp:
    left, right = _tastes(draw, users, items, many=6, variance=0.24, fall=0.25)
    inclined = draw.normal(scale=0.41, size=users)
    liked = draw.normal(scale=0.47, size=items)
    popularity = np.exp(draw.normal(scale=0.7, size=items))
    popularity /= popularity.sum()
    wanted = np.clip(per_user * np.exp(draw.normal(scale=0.5, size=users) - 0.125), 5, items * 0.8)
    return _MadeUp(left, right, inclined, liked, popularity, wanted.round().astype(np.int64), 0.89)


def _films(draw: np.random.Generator, users: int, items: int, per_user: float) -> _MadeUp:
    left, right = _tastes(draw, users, items, many=12, variance=0.16, fall=0.6)
    inclined = draw.normal(scale=0.42, size=users)
    rank = np.arange(items) / items
    popularity = (1 + 20 * rank) ** -1.2 * np.exp(-3 * rank)
    popularity /= popularity.sum()
    logs = np.log(popularity)
    liked = draw.normal(scale=0.5, size=items) + 0.25 * (logs - logs.mean()) / logs.std()
    liked += 0.1 - float(liked @ popularity)  # so that the mean of ratings is near 3.6
    wanted = np.clip(20 + (per_user - 20) * np.exp(draw.normal(size=users) - 0.5), 20, items * 0.6)
    return _MadeUp(left, right, inclined, liked, popularity, wanted.round().astype(np.int64), 0.855)


def _tastes(
    draw: np.random.Generator, users: int, items: int, *, many: int, variance: float, fall: float
) -> tuple[Floats, Floats]:
    """The tastes of users and of items; their products have this variance, and each taste e^-fall of the one before."""
    parts = np.exp(-fall * np.arange(many))
    return draw.normal(size=(users, many)) * np.sqrt(variance * parts / parts.sum()), draw.normal(size=(items, many))
