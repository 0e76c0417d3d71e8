"""Error bars of smooth functions of several measurements: one linear form of their noises, and a remainder that is bounded.

Let f be a function of the measured integers x, x̃ = x + N what was released, and R so large that |N_i| ≤ R_i for all i but for
a small probability. By Taylor's theorem

    f(x̃) − f(x) = Σ ∂_i f(x) N_i + ½ Σ ∂_ij f(ξ) N_i N_j,   ξ between x and x̃.

The first sum is a linear form of independent noises whose coefficients are not random: the law of such forms is known
(`plan/error.py`), and its reach grows with each |coefficient|. Coefficients are not known, but where |N_i| ≤ R_i both x and
ξ lie in the box x̃ ± R, over which derivatives are enclosed. No normal law is assumed anywhere, and no estimate is put in the
place of the truth.

A function is followed by its value, its slopes and its bends over the box, in every row of the answer at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from curador.plan import enclosure as on
from curador.plan.enclosure import ColumnEnclosure
from curador.plan.error import ROUND_OFF, combined_reaches, own_reach

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from curador.numerics.rounding import FloatArray
    from curador.plan.price import Noise

_EXACT = 2.0**53

BOX_SHARE = Fraction(1, 20)
"""What the box may take of an interval's miss; as much goes to the interval by parts, which ends what is not smooth."""


@dataclass(frozen=True, slots=True, eq=False)
class Jet:
    """A function over a box of measurements, in every row.

    centre  its value where the box has its centre, but for rounding
    value   all of its values
    slopes  by measurement: all values of the first derivative
    bends   by pairs of measurements, the smaller first: no second derivative is larger than this, in absolute value
    """

    centre: ColumnEnclosure
    value: ColumnEnclosure
    slopes: Mapping[int, ColumnEnclosure]
    bends: Mapping[tuple[int, int], FloatArray]


Box: TypeAlias = "Mapping[int, Jet]"
"""Every measurement as a function: itself."""


def variable(index: int, centre: FloatArray, reach: float) -> Jet:
    """Return a measurement within a reach of what was released."""
    sure = np.zeros(len(centre), np.bool_)
    around = on.round_outward(centre - reach, centre + reach, sure)
    far = np.where(np.abs(centre) >= _EXACT, np.spacing(np.abs(centre)), 0.0)  # whole numbers that a double cannot hold
    middle = ColumnEnclosure(centre - far, centre + far, sure)
    return Jet(middle, around, {index: _known(np.ones(len(centre)))}, {})


def constant(value: Fraction, rows: int) -> Jet:
    """Return a number."""
    near = np.full(rows, float(value))
    held = _known(near) if Fraction(float(value)) == value else on.round_outward(near, near, np.zeros(rows, np.bool_))
    return Jet(held, held, {}, {})


def plus(one: Jet, other: Jet) -> Jet:
    """Return a + b."""
    slopes = {**one.slopes}
    for index, slope in other.slopes.items():
        slopes[index] = on.add(slopes[index], slope) if index in slopes else slope
    return Jet(on.add(one.centre, other.centre), on.add(one.value, other.value), slopes, _sum(one.bends, other.bends))


def minus(one: Jet, other: Jet) -> Jet:
    """Return a − b."""
    return plus(one, negative(other))


def negative(one: Jet) -> Jet:
    """Return −a."""
    slopes = {index: on.negative(slope) for index, slope in one.slopes.items()}
    return Jet(on.negative(one.centre), on.negative(one.value), slopes, one.bends)


def times(one: Jet, other: Jet) -> Jet:
    """Return a · b: (ab)′ = a′b + ab′, (ab)″ = a″b + 2a′b′ + ab″."""
    slopes = {index: on.multiply(slope, other.value) for index, slope in one.slopes.items()}
    for index, slope in other.slopes.items():
        own = on.multiply(slope, one.value)
        slopes[index] = on.add(slopes[index], own) if index in slopes else own
    crossed: dict[tuple[int, int], FloatArray] = {}
    for left, a in one.slopes.items():
        for right, b in other.slopes.items():
            size = _size(a) * _size(b) * (2 if left == right else 1)  # of a pair both orders come, of a square one does
            pair = (min(left, right), max(left, right))
            crossed[pair] = crossed.get(pair, 0.0) + size
    bends = _sum(_scaled(one.bends, _size(other.value)), _scaled(other.bends, _size(one.value)), crossed)
    return Jet(on.multiply(one.centre, other.centre), on.multiply(one.value, other.value), slopes, bends)


def over(one: Jet, other: Jet) -> Jet:
    """Return a / b; everything is unknown where b is not certainly above 0."""
    return times(one, reciprocal(other))


def reciprocal(one: Jet) -> Jet:
    """Return 1 / a, unknown where a is not certainly above 0."""
    unit = _known(np.ones(len(one.value.low)))

    def inverse(held: ColumnEnclosure) -> ColumnEnclosure:
        return on.divide(unit, _above(held))

    first = on.negative(inverse(on.multiply(_above(one.value), _above(one.value))))
    second = 2 / np.where(one.value.low > 0, one.value.low, np.nan) ** 3
    return _through(one, inverse(one.centre), inverse(one.value), first, second)


def root(one: Jet) -> Jet:
    """Return √a, unknown where a is not certainly above 0."""
    above = _above(one.value)
    value = on.root(above)
    first = on.divide(_known(np.full(len(above.low), 0.5)), value)
    second = 0.25 / np.where(one.value.low > 0, one.value.low, np.nan) ** 1.5
    return _through(one, on.root(_above(one.centre)), value, first, second)


def _through(one: Jet, centre: ColumnEnclosure, value: ColumnEnclosure, first: ColumnEnclosure, second: FloatArray) -> Jet:
    """h(a), from the values of h, of h′ and of |h″| over a: h(a)′ = h′a′, h(a)″ = h′a″ + h″a′a′."""
    slopes = {index: on.multiply(first, slope) for index, slope in one.slopes.items()}
    sizes = {index: _size(slope) for index, slope in one.slopes.items()}
    bent = {(i, j): second * sizes[i] * sizes[j] for i in sizes for j in sizes if i <= j}
    return Jet(centre, value, slopes, _sum(_scaled(one.bends, _size(first)), bent))


# ---- intervals -----------------------------------------------------------------------------------------------------


def smooth_interval(
    made: Callable[[Box], Jet],
    measured: Mapping[int, FloatArray],
    noises: Sequence[Noise],
    miss: Fraction,
    rough: ColumnEnclosure,
) -> ColumnEnclosure:
    """Return where f of the numbers before noise lies, in every row; `rough` where f is not smooth over the box.

    Claim   In each row it is missed with probability at most `miss`: half of 2 · BOX_SHARE of that by the box, half by
            `rough`, the rest by the linear form. Where all three hold, the truth is in `rough` and in f(x̃) ± (reach + rest).
    Needs   `rough` misses with at most BOX_SHARE · miss. Noises are independent, and of integers.
    Rounds  Outward.
    Source  Taylor's theorem, as above; `combined_reaches`, which grows with each |coefficient|.
    """
    held = sorted(measured)
    reaches = {index: float(_reach(noises[index], BOX_SHARE * miss / len(held))) for index in held}
    with np.errstate(all="ignore"):
        jet = made({index: variable(index, measured[index], reaches[index]) for index in held})
        half = half_width(jet, reaches, noises, (1 - 2 * BOX_SHARE) * miss)
        low, high = np.nextafter(jet.centre.low - half, -np.inf), np.nextafter(jet.centre.high + half, np.inf)
        low, high = np.maximum(low, rough.low), np.minimum(high, rough.high)
        smooth = np.isfinite(half) & np.isfinite(low) & np.isfinite(high) & (low <= high)
    return ColumnEnclosure(
        np.where(smooth, low, rough.low), np.where(smooth, high, rough.high), rough.null & ~np.isfinite(half)
    )


def half_width(jet: Jet, reaches: Mapping[int, float], noises: Sequence[Noise], miss: Fraction) -> FloatArray:
    """Return the reach of the linear form and the bound of the rest; not finite where slopes or bends are not. Rounds: up."""
    held = sorted(jet.slopes)
    coefficients = np.stack([_size(jet.slopes[index]) for index in held], axis=-1)
    finite = np.all(np.isfinite(coefficients), axis=-1)
    sure = np.where(finite[:, None], coefficients, 0.0)
    linear = combined_reaches(held, sure, noises, miss)
    rest = np.zeros(len(linear))
    for (i, j), bend in jet.bends.items():
        rest = rest + bend * reaches[i] * reaches[j] * (0.5 if i == j else 1.0)
    return np.where(finite, (linear + rest) * ROUND_OFF, np.inf)


def _reach(noise: Noise, miss: Fraction) -> Fraction:
    if hasattr(noise, "point"):
        raise TypeError("a quantile has no additive noise")
    return own_reach(noise, miss)  # type: ignore[arg-type]


# ---- parts ---------------------------------------------------------------------------------------------------------


def _known(values: FloatArray) -> ColumnEnclosure:
    return ColumnEnclosure(values, values, np.zeros(len(values), np.bool_))


def _above(one: ColumnEnclosure) -> ColumnEnclosure:
    """What is certainly above 0; no number elsewhere, which everything made of it then is."""
    sure = one.low > 0
    return ColumnEnclosure(np.where(sure, one.low, np.nan), np.where(sure, one.high, np.nan), one.null)


def _size(one: ColumnEnclosure) -> FloatArray:
    return np.maximum(np.abs(one.low), np.abs(one.high))


def _scaled(bends: Mapping[tuple[int, int], FloatArray], size: FloatArray) -> dict[tuple[int, int], FloatArray]:
    return {pair: bend * size for pair, bend in bends.items()}


def _sum(*held: Mapping[tuple[int, int], FloatArray]) -> dict[tuple[int, int], FloatArray]:
    found: dict[tuple[int, int], FloatArray] = {}
    for bends in held:
        for pair, bend in bends.items():
            found[pair] = found[pair] + bend if pair in found else bend
    return found
