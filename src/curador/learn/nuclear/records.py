"""Records (a, b, y) as whole numbers; their margins a'Xb and sums Σ c·a·b' are exact, so that no record touches another.

A product of floats rounds differently when a row is gone, and then the coefficients of *other* records move. Here a and b are
whole numbers and a model is put on a grid before it meets them: every margin is one integer below 2⁵³, in whatever order it
is added up; what follows takes each number for itself. So a record's coefficient is a function of the record and of public
numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from curador.errors import Failed, require
from curador.learn.sums import Whole, cross, whole_numbers, whole_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from curador.learn.nuclear.losses import Loss
    from curador.learn.sums import Floats, Integers

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
    loss: Loss,
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
