"""Many numbers on a public grid, rounded up or down by chance so that means stay exact: the client's law, in arrays."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.randomness.entropy import U64

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from curador.randomness.entropy import Entropy, IntArray

_CHUNK = 1 << 15
_LARGEST_EXACT = 1 << 53
_SANE = 1e280
"""Between this and its inverse no product below overflows or loses bits to small numbers."""


def places(values: NDArray[Any], lower: Fraction, upper: Fraction, steps: int, source: Entropy) -> IntArray:
    """Return ⌊t + U⌋ for each clamped value's position t in steps from the lower bound, U uniform in [0, 1).

    Claim   Exactly t in the mean. Floats decide where their error cannot change the floor; else (about 2⁻²⁵ of the draws) the
            position is a rational and U is drawn bit by bit as far as it matters.
    """
    out = np.empty(len(values), np.int64)
    doubles = _as_doubles(values)
    factor, error = _scale(lower, upper, steps) if doubles is not None else (0.0, 1.0)
    for start in range(0, len(out), _CHUNK):
        part = out[start : start + _CHUNK]
        words = source.words(len(part), U64)
        if doubles is None or error >= 0.25:
            open_ones = np.arange(len(part))
        else:
            open_ones = _by_floats(part, doubles[start : start + _CHUNK], words, (float(lower), factor, error, steps))
        for place in open_ones.tolist():
            position = _position(values[start + place], lower, upper, steps)
            part[place] = _exactly(position, int(words[place]), source)
    return out


def _by_floats(
    out: IntArray, values: NDArray[np.float64], words: NDArray[np.uint64], numbers: tuple[float, float, float, int]
) -> IntArray:
    """Write what floats can decide and return the places of the rest."""
    lower, factor, error, steps = numbers
    with np.errstate(over="ignore"):  # far outside of the bounds: an infinity is clamped as well
        position = np.clip((values - lower) * factor, 0.0, float(steps))
    drawn = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53  # U, less than 2⁻⁵³ too small
    total = position + drawn
    down = np.floor(total - error)
    out[:] = down
    return np.flatnonzero(down != np.floor(total + error))


def _scale(lower: Fraction, upper: Fraction, steps: int) -> tuple[float, float]:
    """Return steps per unit as a float, and a bound of the error of position + U; 1 where floats cannot do it.

    Each of bound, difference, factor, product, sum and U is off by at most 2⁻⁵³ of itself (the bound and the difference of
    the larger bound, which the factor then scales); eight times that is more than all of them together.
    """
    largest = max(abs(lower), abs(upper), upper - lower)
    ratio = steps / (upper - lower)
    if not (largest < _SANE and 1 / Fraction(_SANE) < ratio < _SANE and largest * ratio < 1 << 50):
        return 0.0, 1.0
    return float(ratio), 8 * 2.0**-52 * (float(largest * ratio) + steps + 2)


def _as_doubles(values: NDArray[Any]) -> NDArray[np.float64] | None:
    """The values as doubles where that is exact."""
    if values.dtype.kind == "f":
        return values.astype(np.float64, copy=False)
    if values.dtype.kind in "iu" and (values.dtype.itemsize <= 4 or bool((np.abs(values) <= _LARGEST_EXACT).all())):
        return values.astype(np.float64)
    return None


def _position(value: Any, lower: Fraction, upper: Fraction, steps: int) -> Fraction:
    exact = value if isinstance(value, Fraction) else Fraction(value.item() if isinstance(value, np.generic) else value)
    return (min(max(exact, lower), upper) - lower) * steps / (upper - lower)


def _exactly(position: Fraction, word: int, source: Entropy) -> int:
    """⌊t + U⌋, U beginning with these 64 bits: up where U ≥ 1 − the fraction of t."""
    down, part = divmod(position.numerator, position.denominator)
    drawn, bits = word, 64
    while True:
        edge = Fraction((position.denominator - part) << bits, position.denominator)  # up where U 2^bits is at least this
        if drawn >= edge:
            return down + 1
        if drawn + 1 <= edge:
            return down
        drawn, bits = (drawn << 64) | source.bits(64), bits + 64
