"""Records (a, b, y) as whole numbers with exact sums, and the slots of a pass that they are met in.

Margins a'Xb and sums Σ c·a·b' of records are exact, so that no record touches another.

A product of floats rounds differently when a row is gone, and then the coefficients of *other* records move. Here a and b are
whole numbers and a model is put on a grid before it meets them: every margin is one integer below 2⁵³, in whatever order it
is added up; what follows takes each number for itself. So a record's coefficient is a function of the record and of public
numbers.

Which record of a pass is met when, its slot, is drawn at the seam, and never released.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from curador.errors import Failed, require
from curador.learn.sums import Whole, cross, whole_numbers, whole_rows
from curador.mechanisms.seam import perform
from curador.privacy.adjacency import REPLACE_ONE
from curador.randomness.entropy import U64

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from curador.learn.nuclear.losses import ObjectiveLoss
    from curador.learn.sums import Floats, Integers
    from curador.privacy.adjacency import Adjacency
    from curador.randomness.entropy import Entropy


# ---- records ---------------------------------------------------------------------------------------------------------------


_FACTOR_BITS = 13
_LEAST_BITS = 12
_MODEL_BITS = 25
_VECTOR_BITS = 24
_SHARE_BITS = 13
_ALONG_BITS = 19
_MOST_OVER = 4
"""Sums have room for so many times the declared number of records."""


@dataclass(frozen=True, slots=True)
class DenseRecords:
    """Rows a and b, one of each a record.

    weights  one over the number of rows of a row's unit; None: every row is a unit
    units    the number of the row's unit; None: every row is one
    """

    left: Whole
    right: Whole
    targets: Floats
    weights: Floats | None = None
    units: Integers | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of a model."""
        return self.left.values.shape[1], self.right.values.shape[1]

    @property
    def limit(self) -> int:
        """The largest |a| |b| in grid steps."""
        return self.left.limit * self.right.limit

    @property
    def step(self) -> float:
        """What a grid step of a b' stands for."""
        return self.left.step * self.right.step

    def margins(self, model: Floats, radius: float) -> Floats:
        """Return a'Xb of each row, for X rounded to a grid of radius/2²⁵.

        Needs  The Frobenius norm of X is at most twice the radius (nuclear norms bound it, and their rounding).
        Claim  All sums are of whole numbers and below 2¹³ · 2¹³ · (2²⁶ + √(d₁d₂)) < 2⁵³ in absolute values: exact in any
               order.
        """
        placed = np.rint(model * ((1 << _MODEL_BITS) / radius))
        exact = ((self.left.values @ placed) * self.right.values).sum(axis=1)
        return exact * (self.step * radius / (1 << _MODEL_BITS))

    def margins_of_factors(self, left: Floats, right: Floats, shares: Floats, radius: float) -> Floats:
        """Return Σ_r share_r · (a'u_r)(b'v_r) · radius, for unit columns u_r, v_r and shares that add up to at most 1.

        Claim  a'u and b'v are exact (2¹³ · 2²⁴) and rounded one by one to 19 bits; Σ_r of 2¹⁹ · 2¹⁹ · 2¹³ is below 2⁵³.
        """
        ones = [
            np.rint(
                (rows.values @ np.rint(columns * (1 << _VECTOR_BITS))) * 2.0**_ALONG_BITS / ((1 << _VECTOR_BITS) * rows.limit)
            )
            for rows, columns in ((self.left, left), (self.right, right))
        ]
        exact = (ones[0] * ones[1] * np.floor(shares * (1 << _SHARE_BITS))).sum(axis=1)
        scale = self.step * self.limit * 2.0 ** (-2 * _ALONG_BITS - _SHARE_BITS)
        return exact * (scale * radius)

    def sums(self, coefficients: Whole) -> Integers:
        """Return Σ c·a·b', exactly. A record adds at most limit · coefficients.limit in the Frobenius norm."""
        return cross(self.left, self.right, coefficients)

    def along(self, vector: Floats, *, left: bool) -> Floats:
        """Return b'v (left: a'v) of each row, for a unit vector on a grid; exact, then scaled."""
        rows = self.left if left else self.right
        return (rows.values @ np.rint(vector * (1 << _VECTOR_BITS))) * (rows.step / (1 << _VECTOR_BITS))

    def side_sums(self, coefficients: Whole, *, left: bool) -> Integers:
        """Return Σ c·a (left) or Σ c·b, exactly. A record adds at most the product of the limits in l2."""
        return cross(self.left if left else self.right, coefficients)[:, 0]

    def side(self, *, left: bool) -> tuple[int, float]:
        """Return the limit and the grid step of a (left) or b."""
        rows = self.left if left else self.right
        return rows.limit, rows.step

    def contents(self) -> list[bytes]:
        """Return all that is known of each row but its number and its unit's. Private."""
        return _contents(self.left.values, self.right.values, self.targets, self.weights)

    def take(self, rows: NDArray[Any] | slice) -> DenseRecords:
        """Return some of the rows."""
        return DenseRecords(
            Whole(self.left.values[rows], self.left.step, self.left.limit),
            Whole(self.right.values[rows], self.right.step, self.right.limit),
            self.targets[rows],
            None if self.weights is None else self.weights[rows],
            None if self.units is None else self.units[rows],
        )


@dataclass(frozen=True, slots=True)
class EntryRecords:
    """Records (i, j, y): a and b are unit vectors, so nothing of them is rounded and nothing is as large as a row."""

    rows: Integers
    columns: Integers
    targets: Floats
    shape: tuple[int, int]
    weights: Floats | None = None
    units: Integers | None = None

    @property
    def limit(self) -> int:
        """The largest |a| |b| in grid steps."""
        return 1

    @property
    def step(self) -> float:
        """What a grid step of a b' stands for."""
        return 1.0

    def margins(self, model: Floats, radius: float) -> Floats:
        """Return the entries of the model."""
        del radius
        return model[self.rows, self.columns]

    def margins_of_factors(self, left: Floats, right: Floats, shares: Floats, radius: float) -> Floats:
        """Return Σ_r share_r u_r[i] v_r[j] · radius, each entry from one product after the other, in their order."""
        out = np.zeros(len(self.targets))
        for place, share in enumerate(shares.tolist()):
            out += left[self.rows, place] * right[self.columns, place] * (share * radius)
        return out

    def sums(self, coefficients: Whole) -> Integers:
        """Return Σ c at every entry, exactly."""
        _require_sum(coefficients)
        flat = np.zeros(self.shape[0] * self.shape[1], np.int64)
        np.add.at(flat, self.rows * self.shape[1] + self.columns, coefficients.values[:, 0].astype(np.int64))
        return flat.reshape(self.shape)

    def along(self, vector: Floats, *, left: bool) -> Floats:
        """Return the vector's entry of each record."""
        return vector[self.rows if left else self.columns]

    def side_sums(self, coefficients: Whole, *, left: bool) -> Integers:
        """Return Σ c by row (left) or by column, exactly."""
        _require_sum(coefficients)
        flat = np.zeros(self.shape[0 if left else 1], np.int64)
        np.add.at(flat, self.rows if left else self.columns, coefficients.values[:, 0].astype(np.int64))
        return flat

    def side(self, *, left: bool) -> tuple[int, float]:
        """Return the limit and the grid step of a (left) or b."""
        del left
        return 1, 1.0

    def contents(self) -> list[bytes]:
        """Return all that is known of each record but its number and its unit's. Private."""
        return _contents(self.rows, self.columns, self.targets, self.weights)

    def take(self, rows: NDArray[Any] | slice) -> EntryRecords:
        """Return some of the records."""
        return EntryRecords(
            self.rows[rows],
            self.columns[rows],
            self.targets[rows],
            self.shape,
            None if self.weights is None else self.weights[rows],
            None if self.units is None else self.units[rows],
        )


Records: TypeAlias = DenseRecords | EntryRecords


def _contents(left: NDArray[Any], right: NDArray[Any], targets: Floats, weights: Floats | None) -> list[bytes]:
    columns = [left, right, targets, *([] if weights is None else [weights])]
    return [b"".join(np.ascontiguousarray(column[row]).tobytes() for column in columns) for row in range(len(targets))]


def _require_sum(coefficients: Whole) -> None:
    if coefficients.limit * len(coefficients.values) >= 1 << 62:
        raise Failed("more records than 64-bit sums can hold exactly")


def dense_records(
    left: Floats,
    right: Floats,
    targets: Floats,
    loss: ObjectiveLoss,
    *,
    weights: Floats | None = None,
    units: Integers | None = None,
    bits: int = _FACTOR_BITS,
) -> DenseRecords:
    """Return records with a and b clipped to the loss's norms, on a grid; rows with NaN or infinities are zeros."""
    return DenseRecords(
        whole_rows(left, norm=loss.left_norm, bits=bits),
        whole_rows(right, norm=loss.right_norm, bits=bits),
        np.asarray(targets, np.float64),
        weights,
        units,
    )


def entry_records(
    rows: Integers,
    columns: Integers,
    targets: Floats,
    shape: tuple[int, int],
    *,
    weights: Floats | None = None,
    units: Integers | None = None,
) -> EntryRecords:
    """Return records of entries.

    Of those outside the shape no gradient is made, whatever their target; they are taken to stand at the first entry.
    """
    inside = (rows >= 0) & (rows < shape[0]) & (columns >= 0) & (columns < shape[1])
    values = np.where(inside, targets, np.nan)  # a coefficient of NaN is 0
    return EntryRecords(np.where(inside, rows, 0), np.where(inside, columns, 0), values, shape, weights, units)


def whole_coefficients(records: Records, coefficients: Floats, *, bound: float, bits: int) -> Whole:
    """Return coefficients, clipped to ±bound and weighted, as whole numbers; NaN is 0.

    Claim  Σ |values| over the rows of one record is at most 2^bits.
    """
    return whole_numbers(coefficients, bound=bound, weights=records.weights, bits=bits)


def require_room(records: Records, count: int) -> None:
    """Fail where there are so many more records than were declared that sums might not hold them."""
    if len(records.targets) > _MOST_OVER * count and records.weights is None:
        raise Failed("more records than 64-bit sums can hold exactly")


def factor_bits(records: int) -> int:
    """Return how fine a and b may be for sums of this many records: 13 bits, fewer from a million on."""
    found = min(_FACTOR_BITS, (_room(records) - _LEAST_BITS) // 2)
    require(found >= 6, "the number of records", "one that 64-bit sums can hold exactly", records)
    return found


def coefficient_bits(records: int, limit: int, *, most: int = 14) -> int:
    """Return how fine coefficients may be for sums of this many records, and four times as many, to stay below 2⁶²."""
    found = min(most, _room(records) - math.ceil(math.log2(limit)))
    require(found >= 10, "the number of records", "one that 64-bit sums can hold exactly", records)
    return found


def _room(records: int) -> int:
    return 61 - math.ceil(math.log2(_MOST_OVER)) - math.ceil(math.log2(max(records, 2)))


# ---- slots -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Members:
    """The units of a table, in their order. Private; a draw looks at how many there are, a replay at who they are.

    count  of units, those without a row included
    """

    records: Records
    count: int

    def contents(self) -> list[bytes]:
        """Return all that is known of each unit: equal where two tables hold the same one."""
        held: list[list[bytes]] = [[] for _ in range(self.count)]
        units = range(self.count) if self.records.units is None else self.records.units.tolist()
        for unit, row in zip(units, self.records.contents(), strict=True):
            held[unit].append(row)
        return [b"\0".join(sorted(rows)) for rows in held]


@dataclass(frozen=True, slots=True)
class Slots:
    """How units come into slots.

    total     the size of all slots together
    permuted  whether the draw is an order of all rows; else each unit draws a number below `total` for itself
    Claim     Releases nothing: who adds up a slot's records releases the sum, and answers for it. A neighbour's units fall
              into the same slots, but for one (`coupled`).
    """

    total: int
    permuted: bool

    def draw(self, value: Members, source: Entropy, size: int | None = None) -> Integers:
        """Draw an order of the rows, or a number for each unit."""
        if size is not None:
            return np.array([self.draw(value, source) for _ in range(size)])
        words = source.words(value.count, U64)
        if self.permuted:
            return np.argsort(words, kind="stable").astype(np.int64)
        return (words % np.uint64(self.total)).astype(np.int64)  # the remainder's bias is not the data's

    def within(self, one: Members, other: Members) -> bool:
        """Whether the tables differ by one unit at most: one that is gone, or is another."""
        partners = _partners(one.contents(), other.contents())
        met = int((partners >= 0).sum())
        return max(one.count, other.count) - met <= 1 and (one.count == other.count or not self.permuted)

    def coupled(self, value: Members, output: Integers, other: Members) -> Integers:
        """Return the neighbour's draw: units that both tables hold have the same place in both, whatever their numbers.

        Claim   A coupling. Draws of units are alike and independent, and an order of rows at random is so whatever the
                rows are called. A unit that is one more draws 0, as it may.
        """
        partners = _partners(value.contents(), other.contents())
        spare = iter(np.setdiff1d(np.arange(value.count), partners).tolist())
        for unit in np.flatnonzero(partners < 0).tolist():  # whoever has nobody takes the place of one who is gone
            partners[unit] = next(spare, -1)
        if not self.permuted:
            return np.where(partners >= 0, output[partners], 0) if value.count else np.zeros(other.count, np.int64)
        if other.count != value.count:  # how many there are is public: `within` says that they differ
            return np.arange(other.count)
        return np.argsort(partners)[output]


def _partners(one: Sequence[bytes], other: Sequence[bytes]) -> Integers:
    """For each of the others, the number of an equal one, each of which is given once; −1 where there is none."""
    held: defaultdict[bytes, list[int]] = defaultdict(list)
    for place, content in enumerate(one):
        held[content].append(place)
    places: dict[bytes, Iterator[int]] = {content: iter(numbers) for content, numbers in held.items()}
    return np.array([next(places.get(content, iter(())), -1) for content in other], np.int64)


def in_slots(records: Records, sizes: Sequence[int], adjacency: Adjacency) -> tuple[Any, Any]:
    """Return an order of the rows and where each slot ends in it: every unit in one slot, or in none.

    sizes   of the slots, in records: public
    Claim   A neighbour's rows fall into the same slots, but for one unit's, which all lie in one slot.
    Proof   Where records are replaced and each is a row, rows are permuted at random, without a look at them; the record in a
            place is another, the places are the same. Elsewhere each unit draws its slot for itself, with chances
            proportional to the sizes; draw the same for the units that both tables share (a coupling; and losses are jointly
            convex, so that what holds for every draw holds for the mixture).
    """
    many = len(records.targets)
    ends = np.cumsum(np.asarray(sizes, np.int64))
    permuted = adjacency is REPLACE_ONE and records.units is None
    count = many if records.units is None else int(records.units.max(initial=-1)) + 1
    drawn: Integers = perform(Slots(int(ends[-1]), permuted), Members(records, count))
    if permuted:
        return drawn, np.minimum(ends, many)
    units = np.arange(many) if records.units is None else records.units
    slots = np.searchsorted(ends, drawn, side="right")[units]
    order = np.argsort(slots, kind="stable").astype(np.int64)
    return order, np.searchsorted(slots[order], np.arange(len(ends)), side="right").astype(np.int64)
