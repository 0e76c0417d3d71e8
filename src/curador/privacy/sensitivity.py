"""How far one record can move an answer.

A sensitivity is a number together with the norm and the adjacency it is proved for; the same query has
different ones (L1, L2):

query                                 add or remove one    replace one
count                                 1, 1                 1, 1
histogram of disjoint cells           1, 1                 2, √2
k counts, one record may hit all k    k, √k                k, √k
sum of x in [a, b]                    max(|a|, |b|)        b - a
mean of n public records in [a, b]    refused              (b - a)/n

√2 is no rational, so the square is stored. `brute_force` is the judge of a declared value: it looks at all
small databases and their neighbours.
"""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from fractions import Fraction
from typing import TypeAlias

from attrs import field, frozen

from curador.errors import InvalidParameter, NotPrivate, require
from curador.numerics.exact import AT_LEAST_ZERO, Number, rational, whole
from curador.numerics.rounding import float_up
from curador.privacy.adjacency import Adjacency, as_adjacency

Histogram: TypeAlias = tuple[int, ...]
"""How many records have each value of the universe, in its order."""

_MOST_DATABASES = 200_000
_ROOT_BITS = 128


class Norm(enum.Enum):
    """How the length of a change is measured: L1 sums the absolute values, L2 is Euclid's."""

    L1 = "l1"
    L2 = "l2"

    def __str__(self) -> str:
        return self.value


def as_norm(value: Norm | str, name: str = "norm") -> Norm:
    """Return the norm that the value names."""
    if isinstance(value, Norm):
        return value
    for norm in Norm:
        if isinstance(value, str) and value.lower() == norm.value:  # pyright: ignore[reportUnnecessaryIsInstance] -- callers without types
            return norm
    raise InvalidParameter.must_be(name, '"l1" or "l2"', value)


@frozen
class Sensitivity:
    """The largest change of an answer between neighbours, by the exact square of its length."""

    value_squared: Fraction = field(converter=AT_LEAST_ZERO)
    norm: Norm = field(converter=as_norm)
    adjacency: Adjacency = field(converter=as_adjacency)

    @property
    def exact(self) -> Fraction | None:
        """The value, where it is rational."""
        square = self.value_squared
        root = Fraction(math.isqrt(square.numerator), math.isqrt(square.denominator))
        return root if root**2 == square else None

    @property
    def value(self) -> float:
        """The value as a float. Rounds: up."""
        if self.exact is not None:
            return float_up(self.exact)
        square = self.value_squared
        # Enough bits that the root, cut to an integer, has at least _ROOT_BITS of them.
        bits = max(0, _ROOT_BITS + (square.denominator.bit_length() - square.numerator.bit_length()) // 2 + 1)
        return float_up(Fraction(math.isqrt(math.floor(square * 4**bits)) + 1, 2**bits))


def count(adjacency: Adjacency | str, norm: Norm | str) -> Sensitivity:
    """Return the sensitivity of a number of records. Claim: one record counts 1 at most. Rounds: exact."""
    return Sensitivity(1, norm, adjacency)


def histogram(adjacency: Adjacency | str, norm: Norm | str) -> Sensitivity:
    """Return the sensitivity of the counts of cells that are disjoint and fixed in advance.

    Claim   A record is in one cell. Coming or going, it moves one count by 1; replaced, it leaves one cell
            and enters another, which moves two.
    Needs   The cell of a record depends on that record alone.
    Rounds  Exact.
    """
    cells = 2 if as_adjacency(adjacency) is Adjacency.REPLACE_ONE else 1
    return Sensitivity(cells**2 if as_norm(norm) is Norm.L1 else cells, norm, adjacency)


def counts(k: Number, *, adjacency: Adjacency | str, norm: Norm | str) -> Sensitivity:
    """Return the sensitivity of k counts of which one record may move all.

    Claim   Each count moves by at most 1, whichever the adjacency.
    Rounds  Exact.
    """
    exact = whole(k, "k")
    return Sensitivity(exact**2 if as_norm(norm) is Norm.L1 else exact, norm, adjacency)


def bounded_sum(lower: Number, upper: Number, *, adjacency: Adjacency | str, norm: Norm | str) -> Sensitivity:
    """Return the sensitivity of a sum of numbers in [lower, upper].

    Claim   Coming or going, a record moves the sum by max(|lower|, |upper|) at most; replaced, by
            upper - lower at most.
    Needs   Every number is clamped to the bounds, and the bounds do not depend on the data.
    Rounds  Exact.
    """
    low, high = _bounds(lower, upper)
    replaced = as_adjacency(adjacency) is Adjacency.REPLACE_ONE
    return Sensitivity((high - low if replaced else max(abs(low), abs(high))) ** 2, norm, adjacency)


def bounded_mean(lower: Number, upper: Number, size: Number, *, adjacency: Adjacency | str, norm: Norm | str) -> Sensitivity:
    """Return the sensitivity of the mean of `size` numbers in [lower, upper].

    Claim   One replaced number moves the mean by (upper - lower)/size at most.
    Needs   As for the sum; the size is public, so neighbours have the same: records may not come or go.
    Rounds  Exact.
    """
    low, high = _bounds(lower, upper)
    records = whole(size, "size")
    if as_adjacency(adjacency) is not Adjacency.REPLACE_ONE:
        raise NotPrivate(
            f"the mean of {records} records has a sensitivity under replace_one only; got {adjacency}.",
            hint="release a noisy sum and a noisy count, and divide.",
        )
    return Sensitivity(((high - low) / records) ** 2, norm, adjacency)


def norm_squared(vector: Iterable[Number], *, norm: Norm | str) -> Fraction:
    """Return the square of the vector's length. Rounds: exact."""
    entries = [rational(entry, "entry") for entry in vector]
    if as_norm(norm) is Norm.L1:
        return sum((abs(entry) for entry in entries), Fraction(0)) ** 2
    return sum((entry**2 for entry in entries), Fraction(0))


def histogram_of(records: Iterable[Hashable], universe: Sequence[Hashable]) -> Histogram:
    """Return how many of the records have each value of the universe."""
    places = {value: place for place, value in enumerate(universe)}
    require(len(places) == len(universe), "universe", "a sequence of different values", tuple(universe))
    tally = [0] * len(universe)
    for record in records:
        require(record in places, "every record", "a value of the universe", record)
        tally[places[record]] += 1
    return tuple(tally)


def distance(first: Histogram, second: Histogram) -> int:
    """Return the L1 distance of two databases: 1 where a record comes or goes, 2 where one is replaced."""
    lengths = (len(first), len(second))
    require(lengths[0] == lengths[1], "the lengths of the two histograms", "equal", lengths)
    return sum(abs(x - y) for x, y in zip(first, second, strict=True))


def brute_force(
    function: Callable[[Histogram], Number | Iterable[Number]],
    universe: Sequence[Hashable],
    size: int,
    *,
    adjacency: Adjacency | str,
    norm: Norm | str,
) -> Sensitivity:
    """Return the largest change of the function between neighbours among all small databases.

    Claim   Exact over the databases of `size` records (replace one) or of at most `size` (add or remove
            one); so a declared sensitivity below the result is wrong. One above it is not thereby proved.
    Needs   The function depends on the histogram alone and returns a number or numbers.
    Rounds  Exact; a float that the function returns is taken as the decimal it shows.
    """
    cells, records, near = len(universe), whole(size, "size"), as_adjacency(adjacency)
    require(cells >= 1, "universe", "a sequence of at least one value", tuple(universe))
    databases = math.comb(records + cells, cells)
    hint = "a smaller universe or size shows the same faults"
    require(databases <= _MOST_DATABASES, "databases", f"at most {_MOST_DATABASES}", databases, hint)
    answers: dict[Histogram, tuple[Fraction, ...]] = {}

    def answer(database: Histogram) -> tuple[Fraction, ...]:
        if database not in answers:
            answers[database] = _numbers(function(database))
        return answers[database]

    largest = Fraction(0)
    for one, other in _neighbours(cells, records, near):
        change = (x - y for x, y in zip(answer(one), answer(other), strict=True))
        largest = max(largest, norm_squared(change, norm=norm))
    return Sensitivity(largest, norm, near)


def _neighbours(cells: int, size: int, adjacency: Adjacency) -> Iterable[tuple[Histogram, Histogram]]:
    """Yield each pair of neighbours once or twice: both are a smaller database and one record more."""
    replaced = adjacency is Adjacency.REPLACE_ONE
    for records in [size - 1] if replaced else range(size):
        for choice in itertools.combinations_with_replacement(range(cells), records):
            rest = histogram_of(choice, range(cells))
            grown = [_with_one_more(rest, cell) for cell in range(cells)]
            yield from itertools.combinations(grown, 2) if replaced else ((rest, more) for more in grown)


def _with_one_more(database: Histogram, cell: int) -> Histogram:
    return (*database[:cell], database[cell] + 1, *database[cell + 1 :])


def _numbers(result: Number | Iterable[Number]) -> tuple[Fraction, ...]:
    if isinstance(result, Iterable) and not isinstance(result, str):
        return tuple(rational(entry, "the function's result") for entry in result)
    return (rational(result, "the function's result"),)


def _bounds(lower: Number, upper: Number) -> tuple[Fraction, Fraction]:
    low, high = rational(lower, "lower"), rational(upper, "upper")
    require(low <= high, "lower", f"at most upper ({upper})", lower)
    return low, high
