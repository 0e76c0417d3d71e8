"""Checks an enclosure's round-off with 50 digits.

The error terms of the tilted sum rest on a model of floating-point libraries: elementary functions within a few ulps. Here
every node of one enclosure is computed again with mpmath, and the difference must lie within what the enclosure allowed for.
Sums of more than 2,000 nodes are checked on the first 400 (which carry the value) and 1,600 spread over the rest; sums over
mixtures, each node of which is an integral, on as many as 150,000 terms allow.
"""

from __future__ import annotations

import math
from functools import lru_cache, singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.errors import InvalidParameter, NumericalFailure
from curador.numerics.tilted.atoms import AtomSum
from curador.numerics.tilted.cutting import Ready, cut_delta, ready_at_delta, ready_at_epsilon
from curador.numerics.tilted.enclosure import Enclosure, Sum
from curador.numerics.tilted.fourier import FourierSum
from curador.numerics.tilted.lattice import LatticeSum
from curador.numerics.tilted.moments import Total
from curador.privacy.laws.cut_mixture import CutMixtureLaw
from curador.privacy.laws.discrete_gaussian import DiscreteGaussianLaw
from curador.privacy.laws.finite import FiniteLaw
from curador.privacy.laws.gaussian import GaussianLaw
from curador.privacy.laws.laplace import LaplaceLaw
from curador.privacy.laws.survival import SurvivalLaw
from curador.privacy.laws.three_points import ThreePointLaw

if TYPE_CHECKING:
    from collections.abc import Iterable

    from curador.privacy.numerical import NumericalReading

DIGITS = 50
_ALL, _FIRST = 2_000, 400
_MOST_TERMS = 150_000


def _mpmath() -> Any:
    try:
        import mpmath
    except ImportError:
        raise InvalidParameter("verify needs mpmath.\nHint: install curador[verify].") from None
    return mpmath.mp


def verify_epsilon(reading: NumericalReading, delta: float) -> None:
    """Check the sums that epsilon(δ) rests on; raise NumericalFailure where one left its stated round-off."""
    for enclosure in _distinct(reading):
        room = delta - enclosure.infinite.upper
        if room > 0.0 and enclosure.asks_to_be_cut:
            _verify_ready(ready_at_delta(enclosure, delta))
        elif room > 0.0 and enclosure.total.families:
            try:
                source, _, _ = enclosure.sum_at_delta(room)
            except NumericalFailure:
                continue  # nothing was claimed
            verify_sum(enclosure.total, source)


def verify_delta(reading: NumericalReading, epsilon: float) -> None:
    """Check the sums that delta(ε) rests on."""
    for enclosure in _distinct(reading):
        if enclosure.asks_to_be_cut:
            _verify_ready(ready_at_epsilon(enclosure, epsilon, max(cut_delta(enclosure, epsilon).lower, 1e-300)))
        elif enclosure.total.families:
            try:
                source = enclosure.sum_at_epsilon(epsilon)
            except NumericalFailure:
                continue
            verify_sum(enclosure.total, source)


def _verify_ready(ready: Ready | None) -> None:
    if ready is None:
        return  # nothing was claimed
    try:
        source = ready.summed()
    except NumericalFailure:
        return
    verify_sum(ready.enclosure.total, source)


def _distinct(reading: NumericalReading) -> Iterable[Enclosure]:
    seen: list[Enclosure] = []
    for enclosure in (*reading.above, *reading.below):
        if enclosure is not None and not any(enclosure is other for other in seen):
            seen.append(enclosure)
    return seen


def verify_sum(total: Total, source: Sum) -> None:
    """Check one sum, node by node."""
    match source:
        case FourierSum():
            _verify_line(total, source.plan.theta, source.plan.step, source.plan.size)
        case LatticeSum():
            step = 2.0 * math.pi / source.length
            _verify_line(total, source.theta, step, len(source.frequency))
        case AtomSum():
            _verify_atoms(source)
        case _:
            pass  # closed forms carry their own oracle tests


def _verify_line(total: Total, theta: float, step: float, size: int) -> None:
    mp = _mpmath()
    transform = total.transform(theta, step, size)
    most = min([_ALL, *(_affordable(family, step * size) for family in total.families if isinstance(family, CutMixtureLaw))])
    first = most * _FIRST // _ALL
    nodes = range(size) if size <= most else [*range(first), *np.linspace(first, size - 1, most - first, dtype=int).tolist()]
    with mp.workdps(DIGITS):
        at_theta = mp.fsum(log_moment(family, mp.mpf(theta)) for family in total.families)
        if abs(at_theta - transform.log_scale) > transform.log_error + 1e-300:
            raise NumericalFailure("the moment at the tilt is farther from its 50-digit value than its stated round-off")
        for k in nodes:
            node = mp.mpc(theta, mp.mpf(step) * int(k))
            truth = mp.exp(mp.fsum(log_moment(family, node) for family in total.families) - at_theta)
            with np.errstate(over="ignore"):
                computed, most = complex(np.exp(transform.value[k])), float(np.exp(transform.bound[k]))
            allowed = max(most - abs(computed), 0.0) + 16 * 2.0**-53 * most + 1e-300  # terms may underflow
            if abs(truth - mp.mpc(computed)) > allowed:
                raise NumericalFailure(f"node {int(k)} is farther from its 50-digit value than its stated round-off")


def _affordable(law: CutMixtureLaw, frequency: float) -> int:
    """Nodes of a sum over mixtures that are checked: as many as a minute or so allows, and never fewer than 20."""
    return max(20, _MOST_TERMS // (10 * _fineness(law, frequency) * len(law.pairs)))


def _verify_atoms(source: AtomSum) -> None:
    mp = _mpmath()
    with mp.workdps(DIGITS):
        for share in (0.0, 0.3, 0.9):
            epsilon = share * float(source.law.losses[-1])
            pairs = [(loss, mass) for loss, mass in zip(source.law.losses, source.law.masses, strict=True) if loss > epsilon]
            truth = mp.fsum(mp.mpf(float(mass)) * -mp.expm1(mp.mpf(epsilon) - mp.mpf(float(loss))) for loss, mass in pairs)
            low, high = source.enclose(epsilon)
            if not low <= truth <= high:
                raise NumericalFailure("the sum over atoms is farther from its 50-digit value than its stated round-off")


# ---- moment functions with 50 digits ----------------------------------------------------------------------------------


@singledispatch
def log_moment(law: object, s: Any) -> Any:
    """log M(s) of a whole family, s an mpmath number."""
    del s
    raise NumericalFailure(f"no 50-digit rule for {type(law).__name__}")


@log_moment.register
def _(law: GaussianLaw, s: Any) -> Any:
    return _mpmath().mpf(law.mu2) * s * (s + 1) / 2


@log_moment.register
def _(law: SurvivalLaw, s: Any) -> Any:
    del s
    return _mpmath().mpf(law.log_mass)


@log_moment.register
def _(law: FiniteLaw, s: Any) -> Any:
    mp = _mpmath()
    return law.count * mp.log(
        mp.fsum(mp.mpf(float(m)) * mp.exp(s * mp.mpf(float(x))) for x, m in zip(law.losses, law.masses, strict=True))
    )


@log_moment.register
def _(law: ThreePointLaw, s: Any) -> Any:
    mp = _mpmath()
    total = mp.mpf(0)
    for exact, categories, count in zip(law.exact, law.categories, law.count, strict=True):
        e, k = mp.mpf(exact.numerator) / exact.denominator, int(categories)
        total += int(count) * mp.log((mp.exp(e * (s + 1)) + k - 2 + mp.exp(-s * e)) / (mp.exp(e) + k - 1))
    return total


@log_moment.register
def _(law: LaplaceLaw, s: Any) -> Any:
    mp = _mpmath()
    width, total = 2 * s + 1, mp.mpf(0)
    for index, count in enumerate(law.count):
        if law.exact:
            scale, shift = law.exact[index]
            inverse = mp.mpf(scale.denominator) / scale.numerator
            e = shift * inverse
            r, w = mp.exp(-inverse), mp.exp(-width * inverse)
            body = w * (1 - mp.exp(-width * (e - inverse))) * (1 - r) / (1 - w)
            value = (1 + mp.exp(-width * e) + body) / (1 + r)
        elif law.bounded_range[index]:
            e = mp.mpf(float(law.epsilon[index]))
            value = (1 - mp.exp(-width * e)) / (width * (1 - mp.exp(-e)))
        else:
            e = mp.mpf(float(law.epsilon[index]))
            value = (1 + mp.exp(-width * e)) / 2 + (1 - mp.exp(-width * e)) / (2 * width)
        total += int(count) * (s * e + mp.log(value))
    return total


@log_moment.register
def _(law: DiscreteGaussianLaw, s: Any) -> Any:
    mp = _mpmath()
    total = mp.mpf(0)
    for sigma2, shift, count in zip(law.sigma2, law.sensitivity, law.count, strict=True):
        s2 = mp.mpf(sigma2.numerator) / sigma2.denominator
        centre = -int(mp.nint(mp.im(s) * shift / (2 * mp.pi * s2)))

        def series(y: Any, middle: int, s2: Any = s2) -> Any:
            return mp.fsum(mp.exp(-2 * mp.pi**2 * s2 * j * j + 2j * mp.pi * j * y) for j in range(middle - 12, middle + 13))

        total += int(count) * (
            s * (s + 1) * shift * shift / (2 * s2) + mp.log(series(s * shift, centre)) - mp.log(series(mp.mpf(0), 0))
        )
    return total


@log_moment.register
def _(law: CutMixtureLaw, s: Any) -> Any:
    """Double-exponential sums between the ends, no panels."""
    mp = _mpmath()
    total = mp.mpf(0)
    for index, count in enumerate(law.pairs.count):
        rows = _mixture_rows(law, index, _fineness(law, abs(float(mp.im(s)))))
        total += int(count) * mp.log(mp.fsum(weight * mp.exp(s * loss) for weight, loss in rows))
    return total


def _fineness(law: CutMixtureLaw, frequency: float) -> int:
    """Nodes per unit of the double-exponential sum; a power of four of the smallest, so that few tables serve all nodes."""
    wanted = 0.4 * frequency * law.steepest
    return 16 * 4 ** max(0, math.ceil(math.log(max(wanted, 1.0) / 16.0, 4.0)))


@lru_cache(maxsize=256)
def _mixture_rows(law: CutMixtureLaw, index: int, fineness: int) -> list[tuple[Any, Any]]:
    """(P-mass, loss) at the nodes x = low + (high − low)/(1 + e^(−sinh u)), u equally spaced."""
    mp = _mpmath()
    pairs = law.pairs
    sigma, low, high = (mp.mpf(float(one[index, 0])) for one in (pairs.sigma, law.low, law.high))
    above, below = (_balanced([float(one[index, 0]) for one in side]) for side in (pairs.above, pairs.below))
    s2 = sigma * sigma

    def mixed(weights: list[Any], sign: int, x: Any) -> Any:
        return mp.fsum(w * mp.exp((2 * sign * j * x - j * j) / (2 * s2)) for j, w in enumerate(weights))

    rows: list[tuple[Any, Any]] = []
    for k in range(-5 * fineness, 5 * fineness + 1):
        u = mp.mpf(k) / fineness
        share = 1 / (1 + mp.exp(-mp.sinh(u)))
        x = low + (high - low) * share
        a, b = mixed(above, 1, x), mixed(below, pairs.sign, x)
        weight = (high - low) * share * (1 - share) * mp.cosh(u) / fineness
        rows.append((weight * mp.exp(-x * x / (2 * s2)) / mp.sqrt(2 * mp.pi * s2) * a, mp.log(a) - mp.log(b)))
    return rows


def _balanced(weights: list[float]) -> list[Any]:
    """The weights as they are meant: they add up to 1, and the largest gives way."""
    mp = _mpmath()
    exact = [mp.mpf(one) for one in weights]
    largest = max(range(len(exact)), key=lambda place: exact[place])
    exact[largest] += 1 - mp.fsum(exact)
    return exact
