"""Closed forms to many digits, written from the definitions and apart from the code they judge."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import mpmath

if TYPE_CHECKING:
    from collections.abc import Callable

MP: Any = mpmath.mp.clone()  # a context of our own: nobody else's precision moves
MP.dps = 50

Real: TypeAlias = Any  # an mpf of MP; mpmath ships no types


def number(value: Any) -> Real:
    """The number that is meant: a float is the decimal it shows."""
    if isinstance(value, MP.mpf):
        return value
    exact = value if isinstance(value, Fraction) else Fraction(str(value))
    return MP.mpf(exact.numerator) / exact.denominator


def binary(value: float) -> Real:
    """The binary value of a result."""
    return MP.mpf(value)


# ---- Gaussian noise --------------------------------------------------------------------------------------------


def gaussian_log_delta(mu: Any, epsilon: Any) -> Real:
    """Log of Phi(mu/2 − eps/mu) − e^eps Phi(−mu/2 − eps/mu), with digits to spare for the difference."""
    m, e = number(mu), number(epsilon)
    extra = 60 + int(4 * abs(MP.log10(m))) if m < 1 else 60
    with MP.workdps(50 + extra + 2 * int(MP.log10(1 + e / m))):
        root = MP.sqrt(2)
        first, second = (MP.erfc((e / m + sign * m / 2) / root) / 2 for sign in (-1, 1))
        return MP.log(first - MP.exp(e) * second)


# ---- one Rényi order -------------------------------------------------------------------------------------------


def optimal_delta_of_order(alpha: Any, zeta: Any, epsilon: Any) -> Real:
    """max p − e^eps q over binary pairs with p^a q^(1−a) + (1−p)^a (1−q)^(1−a) ≤ e^((a−1)zeta), from inside.

    For each q the largest feasible p by bisection; over q, whose best value is concave, by golden sections.
    """
    a, budget, grow = number(alpha), number(zeta), MP.exp(number(epsilon))
    log_limit = (a - 1) * budget

    def feasible(log_p: Real, log_q: Real) -> bool:
        p, q = MP.exp(log_p), MP.exp(log_q)
        first = a * log_p + (1 - a) * log_q
        second = a * MP.log1p(-p) + (1 - a) * MP.log1p(-q) if p < 1 else -MP.inf
        larger = max(first, second)
        return larger + MP.log(MP.exp(first - larger) + MP.exp(second - larger)) <= log_limit

    def value(log_q: Real) -> Real:
        low, high = log_q, min(MP.mpf(0), log_q + (log_limit - log_q) / a)
        for _ in range(90):
            middle = (low + high) / 2
            low, high = (middle, high) if feasible(middle, log_q) else (low, middle)
        return MP.exp(low) - grow * MP.exp(log_q)

    return golden_section(value, -MP.mpf(a - 1) * (number(epsilon) + 4) - 60 / min(a - 1, 1), MP.mpf(-1e-12))


def golden_section(value: Callable[[Real], Real], low: Real, high: Real, *, steps: int = 50) -> Real:
    """The largest value of a unimodal function."""
    share = (MP.sqrt(5) - 1) / 2
    left, right = high - share * (high - low), low + share * (high - low)
    at_left, at_right = value(left), value(right)
    for _ in range(steps):
        if at_left < at_right:
            low, left, at_left = left, right, at_right
            right = low + share * (high - low)
            at_right = value(right)
        else:
            high, right, at_right = right, left, at_left
            left = high - share * (high - low)
            at_left = value(left)
    return max(at_left, at_right)


def optimal_delta_of_order_two(zeta: Any, epsilon: Any) -> Real:
    """(√((e^eps − 1)² + e^zeta − 1) − (e^eps − 1))/2 below 1/2, from where on the best pair has p = 1."""
    if number(epsilon) <= number(zeta) - MP.log(2):
        return -MP.expm1(number(epsilon) - number(zeta))
    with MP.workdps(700):
        rest = MP.expm1(number(epsilon))
        return (MP.sqrt(rest**2 + MP.expm1(number(zeta))) - rest) / 2


def cks_epsilon(alpha: Any, zeta: Any, delta: Any) -> Real:
    """The conversion of Canonne, Kamath and Steinke at one order."""
    a = number(alpha)
    return number(zeta) + MP.log((a - 1) / a) - (MP.log(number(delta)) + MP.log(a)) / (a - 1)


def cks_log_delta(alpha: Any, zeta: Any, epsilon: Any) -> Real:
    """The same, solved for log delta."""
    a = number(alpha)
    return (a - 1) * (number(zeta) - number(epsilon)) + a * MP.log(1 - 1 / a) - MP.log(a - 1)


def mironov_epsilon(alpha: Any, zeta: Any, delta: Any) -> Real:
    """zeta + log(1/delta)/(alpha − 1)."""
    return number(zeta) - MP.log(number(delta)) / (number(alpha) - 1)


def rho_epsilon(rho: Any, delta: Any) -> Real:
    """The least of `cks_epsilon` on the line zeta = rho alpha: bisection on the sign of the slope."""
    r, log_delta = number(rho), MP.log(number(delta))
    low, high = MP.mpf(-60), MP.mpf(400)  # log(alpha − 1)
    for _ in range(220):
        middle = (low + high) / 2
        less = MP.exp(middle)
        rising = r + (log_delta + MP.log1p(less)) / less**2 > 0
        low, high = (low, middle) if rising else (middle, high)
    less = MP.exp(low)
    return r * (1 + less) - MP.log1p(1 / less) - (log_delta + MP.log1p(less)) / less


# ---- composition -----------------------------------------------------------------------------------------------


def composed_log_delta(epsilon0: Any, count: int, epsilon: Any) -> Real:
    """Log of Σ C(k,i) e^(i e0)/(1+e^e0)^k (1 − e^(eps − l)) over l = (2i−k) e0 > eps, term by term from the first.

    Far terms are left out once they are below 1e-45 of the sum and decreasing; the start is at most 60 standard
    deviations below the mode.
    """
    e0, e = number(epsilon0), number(epsilon)
    first = int(MP.floor((e / e0 + count) / 2)) + 1
    if first > count:
        return -MP.inf
    share = 1 / (1 + MP.exp(-e0))
    deviation = MP.sqrt(count * share * (1 - share))
    start = max(first, int(count * share - 60 * deviation) - 10)
    log_first = MP.loggamma(count + 1) - MP.loggamma(start + 1) - MP.loggamma(count - start + 1)
    log_first += start * MP.log(share) - (count - start) * MP.log1p(MP.exp(e0))
    grow, decay = MP.exp(e0), MP.exp(-2 * e0)
    mass, left, total = MP.mpf(1), MP.exp(e - (2 * start - count) * e0), MP.mpf(0)
    for i in range(start, count + 1):
        term = mass * (1 - left)
        total += term
        ratio = MP.mpf(count - i) / (i + 1) * grow
        if ratio < 1 and term < total * MP.mpf(10) ** -45 and i > first:
            break
        mass, left = mass * ratio, left * decay
    return log_first + MP.log(total)


def laplace_folded_delta(epsilon0: Any, *, count: int, epsilon: Any) -> Real:
    """delta of `count` Laplace releases: the sum over m continuous losses, i atoms at e0 and j atoms at −e0.

    Each has weight multinomial(m, i, j) (1/2)^i (e^−e0/2)^j 4^−m and the integral over s > t = eps − (i−j) e0 of
    (1 − e^(t−s)) e^((s − m e0)/2) N_m(s), N_m the m-fold convolution of the indicator of (−e0, e0). Cancels about two
    digits a release.
    """
    with MP.workdps(60 + 4 * count):
        e0, e = number(epsilon0), number(epsilon)
        total = MP.mpf(0)
        for m in range(count + 1):
            for i in range(count - m + 1):
                j = count - m - i
                ways = MP.factorial(count) / (MP.factorial(m) * MP.factorial(i) * MP.factorial(j))
                weight = ways * MP.mpf(2) ** -i * (MP.exp(-e0) / 2) ** j / MP.mpf(4) ** m * MP.exp(-m * e0 / 2)
                total += weight * _excess(m, e - (i - j) * e0, e0)
        return +total


def _excess(m: int, t: Real, e0: Real) -> Real:
    """∫_{s>t} (1 − e^(t−s)) e^(s/2) N_m(s) ds; the atom at 0 for m = 0."""
    if m == 0:
        return max(MP.mpf(0), 1 - MP.exp(t))
    top = m * e0
    if t >= top:
        return MP.mpf(0)
    total = MP.mpf(0)
    for r in range(m + 1):
        knot = -top + 2 * e0 * r
        start = max(t, knot)
        if start >= top:
            continue
        sign = (-1) ** r * MP.binomial(m, r)
        grow = _power_integral(m - 1, knot, start, top, MP.mpf(1) / 2)
        fall = _power_integral(m - 1, knot, start, top, -MP.mpf(1) / 2)
        total += sign * (grow - MP.exp(t) * fall)
    return total


def _power_integral(n: int, knot: Real, low: Real, high: Real, rate: Real) -> Real:
    """∫_low^high e^(rate s) (s − knot)^n/n! ds by repeated parts."""

    def primitive(s: Real) -> Real:
        return MP.exp(rate * s) * MP.fsum(
            (-1) ** q * (s - knot) ** (n - q) / MP.factorial(n - q) / rate ** (q + 1) for q in range(n + 1)
        )

    return primitive(high) - primitive(low)
