"""Events that only a computer's numbers have: what the last bits of a released float say about the value it hides.

Noise added in floating point leaves the worlds distinguishable however good its law is: some floats cannot be reached from
one value [Mir12], and sums keep the spacing of the larger operand [HDH+22]. A release on a public grid has no such events.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from curador.audit.bounds import Counts, both_ways

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from curador.numerics.rounding import FloatArray

OFFSETS = (0, 1, 1000, 10**6)
"""True values near which released bits are looked at: spacings of floats differ there by a factor of 2²⁰."""

PLACES = 20
"""Binary digits of the number of grid steps that are looked at."""

MANTISSA = 8
"""Lowest digits of the float's own mantissa that are looked at."""

EVENTS = 2 * PLACES + 2 * MANTISSA + 4
"""How many events one pair of worlds is tested on."""


@dataclass(frozen=True, slots=True)
class Leak:
    """An event of bits that refutes the claim."""

    event: str
    epsilon: float
    counts: Counts


@dataclass(frozen=True, slots=True)
class ReleaseGrid:
    """The public grid 2^exponent of a release, and the noise's scale, which the reachable floats depend on."""

    exponent: int
    scale: float


def leaks(
    world0: FloatArray,
    world1: FloatArray,
    *,
    values: tuple[float, float],
    grid: ReleaseGrid,
    claim: float,
    alpha: float,
    delta: float,
) -> list[Leak]:
    """Return the events that refute the claim (ε, δ) for floats released in two worlds, each tested at alpha / EVENTS.

    Claim   Empty with probability at least 1 − alpha if the release is (claim, δ)-private and on its grid; a value off the
            grid is always reported.
    """
    found: list[Leak] = []
    for (name, hit0), (_, hit1) in zip(_events(world0, values, grid), _events(world1, values, grid), strict=True):
        counts = Counts(int(hit0.sum()), len(hit0), int(hit1.sum()), len(hit1))
        proved = both_ways(counts, delta, alpha / EVENTS)
        if proved > claim or (name == _OFF_GRID and counts.hits0 + counts.hits1):
            found.append(Leak(name, proved, counts))
    return found


_OFF_GRID = "not a multiple of the public grid"


def _events(outputs: FloatArray, values: tuple[float, float], grid: ReleaseGrid) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Every event as a name and who is in it; the same for both worlds, chosen before any output is seen."""
    steps = np.ldexp(outputs, -grid.exponent)
    yield _OFF_GRID, steps != np.floor(steps)
    yield "not a multiple of 2⁻⁵³", _fractional(np.ldexp(outputs, 53))
    low = np.remainder(np.floor(steps), 2.0**PLACES).astype(np.int64)
    for place in range(PLACES):
        yield f"digit {place} of the number of grid steps", (low >> place) & 1 == 1
        yield f"grid steps divisible by 2^{place + 1}", low & ((2 << place) - 1) == 0
    mantissa = np.ldexp(np.abs(np.frexp(outputs)[0]), 53).astype(np.int64)
    for place in range(MANTISSA):
        yield f"digit {place} of the mantissa", (mantissa >> place) & 1 == 1
        yield f"mantissa divisible by 2^{place + 1}", mantissa & ((2 << place) - 1) == 0
    for value in values:
        yield f"reachable from {value:g} by the logarithm of a float", _reachable(outputs, value, grid.scale)


def _fractional(values: FloatArray) -> NDArray[np.bool_]:
    return values != np.floor(values)


def _reachable(outputs: FloatArray, value: float, scale: float) -> NDArray[np.bool_]:
    """Whether value ± scale · log(u) is this very float for some u that is a multiple of 2⁻⁵³: Mironov's event."""
    side = np.sign(outputs - value)
    near = np.floor(np.ldexp(np.exp(-np.abs(outputs - value) / scale), 53))
    out = np.zeros(len(outputs), np.bool_)
    for step in range(-2, 3):
        uniform = np.ldexp(np.clip(near + step, 1, 2.0**53), -53)
        out |= value - side * scale * np.log(uniform) == outputs
    return out
