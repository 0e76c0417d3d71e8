"""Checks an enclosure's round-off with balls of 50 digits.

The error terms of the tilted sum rest on a model of floating-point libraries: elementary functions within a few ulps. Here
every node of one enclosure is computed again as a ball that is proved to hold it, and the whole ball must lie within what the
enclosure allowed for; where 50 digits do not tell, more are taken. Sums of more than 2,000 nodes are checked on the first 400
(which carry the value) and 1,600 spread over the rest; sums over mixtures, each node of which is an integral, on as many as
150,000 values of an integrand allow.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache, lru_cache, singledispatch
from typing import TYPE_CHECKING

import numpy as np
from flint import acb, arb, ctx  # at the head: this module is loaded by verify=True alone

from curador.errors import NumericalFailure
from curador.numerics.balls import ball, raise_precision
from curador.numerics.tilted.enclosure import Enclosure, Ready, Sum, cut_delta, ready_at_delta, ready_at_epsilon
from curador.numerics.tilted.moments import Total
from curador.numerics.tilted.sums import AtomSum, FourierSum, LatticeSum
from curador.privacy.laws.finite import FiniteLaw, SurvivalLaw, ThreePointLaw
from curador.privacy.laws.gaussian import DiscreteGaussianLaw, GaussianLaw
from curador.privacy.laws.laplace import LaplaceLaw
from curador.privacy.laws.mixture import CutMixtureLaw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from curador.privacy.numerical import NumericalReading

BITS = 170
"""50 digits."""

_MOST_BITS = 8 * BITS
_ALL, _FIRST = 2_000, 400
_MOST_EVALUATIONS, _FEWEST_NODES = 150_000, 20


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
    """Check the moments on the line θ + iu.

    Claim   If nothing is raised, the moment at the tilt and those at the nodes looked at are within their stated round-off.
    Needs   The families' own moment functions are the right ones: those of the laws are checked against them.
    Rounds  Nothing: balls decide, and what stays undecided raises NumericalFailure.
    """
    transform = total.transform(theta, step, size)
    farthest = acb(theta, step * size)
    most = min([_ALL, *(_affordable(family, farthest) for family in total.families if isinstance(family, CutMixtureLaw))])
    first = most * _FIRST // _ALL
    nodes = range(size) if size <= most else [*range(first), *np.linspace(first, size - 1, most - first, dtype=int).tolist()]

    @cache
    def at_theta(bits: int) -> arb:
        del bits  # those at hand, by which the ball is kept
        return _moment_of_all(total, acb(theta)).real

    _require(
        lambda: abs(at_theta(ctx.prec).log() - transform.log_scale),
        transform.log_error + 1e-300,
        "the moment at the tilt is farther from its 50-digit value than its stated round-off",
    )
    for k in map(int, nodes):
        with np.errstate(over="ignore"):
            computed, largest = complex(np.exp(transform.value[k])), float(np.exp(transform.bound[k]))
        allowed = max(largest - abs(computed), 0.0) + 16 * 2.0**-53 * largest + 1e-300  # terms may underflow

        def away(k: int = k, computed: complex = computed) -> arb:
            truth = _moment_of_all(total, acb(theta, arb(step) * k)) / at_theta(ctx.prec)
            return abs(truth - acb(computed))

        _require(away, allowed, f"node {k} is farther from its 50-digit value than its stated round-off")


def _require(distance: Callable[[], arb], allowed: float, otherwise: str) -> None:
    """Raise unless the whole ball of a distance is allowed."""

    def decide() -> bool | None:
        found = distance()
        if found <= allowed:
            return True
        return False if found > allowed else None

    if not raise_precision(decide, fewest=BITS, most=_MOST_BITS):
        raise NumericalFailure(otherwise)


def _affordable(law: CutMixtureLaw, farthest: acb) -> int:
    """Nodes of a sum over mixtures that are checked: as many as some seconds allow, if each costs as much as the farthest."""
    asked = 0

    def count() -> None:
        nonlocal asked
        asked += 1

    def ask() -> bool:
        for index in range(len(law.pairs)):
            largest = _mixture_moment_at(law, index, float(farthest.real), ctx.prec)
            _mixture_moment(law, index, farthest, largest, count)
        return True

    raise_precision(ask, fewest=BITS, most=BITS)
    return max(_FEWEST_NODES, _MOST_EVALUATIONS // max(asked, 1))


def _verify_atoms(source: AtomSum) -> None:
    """Check that δ, as the sum over atoms encloses it, holds the ball of the same sum."""
    for share in (0.0, 0.3, 0.9):
        epsilon = share * float(source.law.losses[-1])
        pairs = [
            (Fraction(float(loss)), Fraction(float(mass)))
            for loss, mass in zip(source.law.losses, source.law.masses, strict=True)
            if loss > epsilon
        ]
        low, high = source.enclose(epsilon)

        def outside(
            pairs: list[tuple[Fraction, Fraction]] = pairs, epsilon: float = epsilon, low: float = low, high: float = high
        ) -> arb:
            truth = sum((-ball(mass) * ball(Fraction(epsilon) - loss).expm1() for loss, mass in pairs), ball(0))
            return (truth - high).max(low - truth)

        _require(outside, 0.0, "the sum over atoms is farther from its 50-digit value than its stated round-off")


# ---- moment functions as balls ----------------------------------------------------------------------------------------


def _moment_of_all(total: Total, s: acb) -> acb:
    return math.prod((moment(family, s) for family in total.families), start=s * 0 + 1)


@singledispatch
def moment(law: object, s: acb) -> acb:
    """M(s) of a whole family. A product of powers and not a sum of logarithms, whose cut a ball may straddle."""
    del s
    raise NumericalFailure(f"no 50-digit rule for {type(law).__name__}")


@moment.register
def _(law: GaussianLaw, s: acb) -> acb:
    return (_float(law.mu2) * s * (s + 1) / 2).exp()


@moment.register
def _(law: SurvivalLaw, s: acb) -> acb:
    return s * 0 + _float(law.log_mass).exp()


@moment.register
def _(law: FiniteLaw, s: acb) -> acb:
    terms = (_float(m) * (s * _float(x)).exp() for x, m in zip(law.losses, law.masses, strict=True))
    return sum(terms, s * 0) ** int(law.count)


@moment.register
def _(law: ThreePointLaw, s: acb) -> acb:
    product = s * 0 + 1
    for exact, categories, count in zip(law.exact, law.categories, law.count, strict=True):
        e, k = ball(exact), int(categories)
        product *= (((e * (s + 1)).exp() + (k - 2) + (-s * e).exp()) / (e.exp() + (k - 1))) ** int(count)
    return product


@moment.register
def _(law: LaplaceLaw, s: acb) -> acb:
    width, product = 2 * s + 1, s * 0 + 1
    for index, count in enumerate(law.count):
        if law.exact:
            scale, shift = law.exact[index]
            e, inverse = ball(shift / scale), ball(1 / scale)
            r, w = (-inverse).exp(), (-width * inverse).exp()
            body = w * (1 - (-width * (e - inverse)).exp()) * (1 - r) / (1 - w)
            value = (1 + (-width * e).exp() + body) / (1 + r)
        elif law.bounded_range[index]:
            e = _float(law.epsilon[index])
            value = (1 - (-width * e).exp()) / (width * (1 - (-e).exp()))
        else:
            e = _float(law.epsilon[index])
            value = (1 + (-width * e).exp()) / 2 + (1 - (-width * e).exp()) / (2 * width)
        product *= ((s * e).exp() * value) ** int(count)
    return product


@moment.register
def _(law: DiscreteGaussianLaw, s: acb) -> acb:
    """Jacobi's θ₃: Σ exp(−2π²σ²j² + 2πi j y), summed by Arb with its remainder."""
    product = s * 0 + 1
    for sigma2, shift, count in zip(law.sigma2, law.sensitivity, law.count, strict=True):
        tau = s.pi() * ball(2 * sigma2) * 1j
        series = [acb.modular_theta(s * y, tau)[2] for y in (int(shift), 0)]
        growth = (s * (s + 1) * ball(Fraction(int(shift)) ** 2 / (2 * sigma2))).exp()
        product *= (growth * series[0] / series[1]) ** int(count)
    return product


@moment.register
def _(law: CutMixtureLaw, s: acb) -> acb:
    product = s * 0 + 1
    for index, count in enumerate(law.pairs.count):
        largest = _mixture_moment_at(law, index, float(s.real), ctx.prec)
        value = s * 0 + largest if s.imag == 0 else _mixture_moment(law, index, s, largest)
        product *= value ** int(count)
    return product


@lru_cache(maxsize=256)
def _mixture_moment_at(law: CutMixtureLaw, index: int, theta: float, bits: int) -> arb:
    del bits  # those at hand, by which the ball is kept
    return _mixture_moment(law, index, acb(theta), None).real


def _mixture_moment(
    law: CutMixtureLaw, index: int, s: acb, largest: arb | None, count: Callable[[], None] = lambda: None
) -> acb:
    """∫ N A^(s+1) B^(−s) between the ends, by Arb's integration with its remainder; half of the bits are asked of it."""
    pairs = law.pairs
    twice, low, high = 2 * _float(pairs.sigma[index, 0]) ** 2, _float(law.low[index, 0]), _float(law.high[index, 0])
    above, below = (_balance_weights([float(one[index, 0]) for one in side]) for side in (pairs.above, pairs.below))

    def mixed(weights: list[arb], sign: int, x: acb) -> acb:
        return sum((w * ((2 * sign * j * x - j * j) / twice).exp() for j, w in enumerate(weights)), x * 0)

    def integrand(x: acb, analytic: bool) -> acb:  # noqa: FBT001 -- python-flint's own signature
        count()
        log_a = mixed(above, 1, x).log(analytic=analytic)
        log_b = mixed(below, pairs.sign, x).log(analytic=analytic)
        return (log_a + s * (log_a - log_b) - x * x / twice).exp()

    wanted, norm = arb(2) ** (-ctx.prec // 2), (twice * arb.pi()).sqrt()
    least = arb(0) if largest is None else wanted * (largest * norm).mid()
    return acb.integral(integrand, acb(low), acb(high), rel_tol=wanted, abs_tol=least) / norm


def _balance_weights(weights: list[float]) -> list[arb]:
    """The weights as they are meant: they add up to 1, and the largest gives way."""
    exact = [Fraction(weight) for weight in weights]
    largest = max(range(len(exact)), key=lambda place: exact[place])
    exact[largest] += 1 - sum(exact)
    return [ball(one) for one in exact]


def _float(value: float) -> arb:
    return ball(Fraction(float(value)))
