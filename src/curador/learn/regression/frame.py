"""Rows in a public frame: features scaled by declared bounds, then whole numbers whose lengths are bounded exactly.

    x ──► z = (x − centre)/scale, |z_j| ≤ 1 ──► [rows shortened to `row_norm`] ──► whole numbers u = (z, 1)·2^bits

What one unit adds to a sum is bounded in integers: its largest entry, its l1 norm, its squared l2 norm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from curador.errors import InvalidParameter

if TYPE_CHECKING:
    from curador.learn.sums import Floats

BITS = 15
"""Numbers in [-1, 1] are whole multiples of 2⁻¹⁵."""

TOP = 1 << BITS
INWARD = 1.0 - 2.0**-30
"""What is shortened to a norm is shorter than it by this, which is more than all rounding of its scaling."""


@dataclass(frozen=True, slots=True)
class FeatureFrame:
    """Where features are measured from and in what. Public.

    low, high  what features are clamped to
    centre     what is 0 afterwards, and what a missing value is taken for
    scale      what is 1 afterwards
    row_norm   what rows are shortened to, after scaling; None: they are only in a box
    order      1 or 2: of the norm
    """

    low: Floats
    high: Floats
    centre: Floats
    scale: Floats
    row_norm: float | None = None
    order: int = 2

    @property
    def features(self) -> int:
        """How many there are."""
        return len(self.scale)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much one unit can add, in whole numbers: for rows u scaled by roots of weights that add up to 1.

    top     bounds √Σ u_j², for every j, where the sum is over the rows of the unit
    one     bounds Σ|u| of a row of weight 1; of any row: √weight times this
    square  bounds Σ|u|² over the rows of the unit
    box     whether every feature is bounded by itself
    cube    how many features there are, where nothing but `top` bounds them; else 0
    """

    top: int
    one: int
    square: int
    box: bool = True
    cube: int = 0


@dataclass(frozen=True, slots=True)
class Design:
    """Rows of whole numbers (held as floats) with what bounds them; a row stands for values/TOP."""

    values: Floats
    sizes: Sizes


def frame_of(low: Floats, high: Floats, *, centred: bool, row_norm: object, pure: bool) -> FeatureFrame:
    """Return the frame of declared bounds.

    centred   whether the middle of a feature's bounds may become 0: where there is an intercept
    row_norm  None, or what the norm of a scaled row is at most: in l2 where noise is Gaussian, in l1 where privacy is pure.
              Rows beyond are shortened. A feature with a bound at 0 is then measured from there
    """
    if row_norm is None and centred:
        return FeatureFrame(low, high, low / 2 + high / 2, high / 2 - low / 2)
    # what starts or ends at 0 is often 0, as categories are: it stays there, and short rows stay short
    kept = (low == 0.0) | (high == 0.0) if centred else np.ones(len(low), bool)
    centre = np.where(kept, 0.0, low / 2 + high / 2)
    scale = np.where(kept, np.maximum(np.abs(low), np.abs(high)), high / 2 - low / 2)
    if row_norm is None:
        return FeatureFrame(low, high, centre, scale)
    if isinstance(row_norm, bool) or not isinstance(row_norm, (int, float, np.number)) or not 0 < float(row_norm) < math.inf:
        raise InvalidParameter.must_be("row_norm", "a number above 0", row_norm)
    greatest = float(len(scale)) if pure else math.sqrt(len(scale))
    norm = float(row_norm)
    return FeatureFrame(low, high, centre, scale, None if norm >= greatest else norm, 1 if pure else 2)


def frame_rows(rows: Floats, frame: FeatureFrame) -> Floats:
    """Return rows clamped and scaled; missing is 0. Each row by itself: total, and no value is an error."""
    with np.errstate(invalid="ignore"):
        clamped = np.clip(rows, frame.low, frame.high)
        found = np.clip((clamped - frame.centre) / frame.scale, -1.0, 1.0)
    found = np.nan_to_num(found, copy=False, nan=0.0)
    if frame.row_norm is None:
        return found
    sums = np.zeros(len(found))
    for column in found.T:  # one after the other, so that a row's norm depends on that row only, to the last bit
        sums += np.abs(column) if frame.order == 1 else np.square(column)
    lengths = sums if frame.order == 1 else np.sqrt(sums)
    return found * np.minimum(1.0, frame.row_norm / np.maximum(lengths, frame.row_norm))[:, None]


def sizes_of(frame: FeatureFrame, *, intercept: bool) -> Sizes:
    """Return what bounds a unit's rows in this frame, with or without a last column of ones.

    Rounds  Up.
    """
    one, square = frame.features * TOP, frame.features * TOP * TOP
    if frame.row_norm is not None:
        norm = math.ceil(frame.row_norm * TOP)
        if frame.order == 1:
            one, square = min(one, norm), min(square, norm * min(norm, TOP))
        else:
            square = min(square, norm * norm)
            one = min(one, math.isqrt(frame.features * square) + 1)
    if intercept:
        one, square = one + TOP, square + TOP * TOP
    box = frame.row_norm is None
    return Sizes(TOP, one, square, box, frame.features if box else 0)


def design_of(rows: Floats, frame: FeatureFrame, *, intercept: bool, roots: Floats | None = None) -> Design:
    """Return rows as whole numbers, each times the root of its weight.

    roots   of weights that add up to at most 1 in a unit; None: 1
    Claim   Sizes hold, exactly. In a box every entry is clamped to the whole number below TOP·root, so squares of a unit's
            entries add up to at most TOP². A row with a norm is shortened to (1 − 2⁻³⁰) of it, more than the roundings of its
            norm (of at most 2²⁰ numbers: 2⁻³²) and of its scaling, and is rounded towards zero, which lengthens nothing.
    Needs   Roots rounded down.
    """
    found = frame_rows(rows, frame)
    size = np.ones(len(found)) if roots is None else roots
    ends = np.floor(size * TOP)
    if frame.row_norm is None:
        whole = np.rint(found * (size * TOP)[:, None])
    else:
        whole = np.trunc(found * (size * (TOP * INWARD))[:, None])
    np.clip(whole, -ends[:, None], ends[:, None], out=whole)
    if intercept:
        whole = np.concatenate([whole, ends[:, None]], axis=1)
    return Design(whole, sizes_of(frame, intercept=intercept))
