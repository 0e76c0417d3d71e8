"""The exact privacy curve of Gaussian noise, as floats on a known side of the truth.

With mu = sensitivity/sigma, the thresholds x1 = eps/mu − mu/2 and x2 = eps/mu + mu/2, the normal density phi
and Mills' ratio R(x) = (1 − Phi(x))/phi(x), the curve is delta = Phi(−x1) − e^eps Phi(−x2). Because
e^eps phi(x2) = phi(x1),

    x1 ≥ −1              delta = phi(x1) D, D = R(x1) − R(x2): no e^eps, no underflow in the logarithm
    x1 ≥ −1, mu ≤ 1/10   D = 2 Σ_{j odd} (mu/2)^j I_j(eps/mu), I_j(c) = ∫ t^j/j! e^(−ct − t²/2) dt:
                         all terms are positive
    x1 < −1              delta = 1 − phi(x1) (R(−x1) + R(x2)): what is subtracted stays below 0.32

Every function works with log delta and carries an absolute error of it. The parameters count as known within
half an ulp each, so that the bounds hold for the decimal a float shows and for the float itself.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from curador.errors import NotPrivate, NumericalFailure
from curador.numerics.exact import Number, at_least_zero, open_probability, positive, probability
from curador.numerics.rounding import UNIT, down, float_up, log_of, near_float, up

if TYPE_CHECKING:
    from collections.abc import Callable

_ERFCX = 16 * UNIT  # relative; measured 8 units at most on the whole line
_LOG_ROOT_TAU = 0.5 * math.log(2.0 * math.pi)
_ROOT_HALF = math.sqrt(0.5)
_ROOT_HALF_PI = math.sqrt(0.5 * math.pi)
_LEAST = 1e-150  # below it a float has too few digits; such a mu is bracketed by 0 and this


class _Point(NamedTuple):
    """log delta within ± error, with its slopes −∂/∂eps and ∂/∂mu (approximate)."""

    log_delta: float
    error: float
    epsilon_slope: float
    mu_slope: float


def gaussian_log_delta(mu: Number, *, epsilon: Number) -> tuple[float, float]:
    """Return bounds of log delta(epsilon) of Gaussian noise with sensitivity/sigma = mu.

    Claim   lower ≤ log(Phi(mu/2 − eps/mu) − e^eps Phi(−mu/2 − eps/mu)) ≤ upper; (−∞, −∞) at mu = 0.
    Needs   mu ≥ 0, epsilon ≥ 0.
    Rounds  Outward.
    Source  [BW18, Thm. 8]
    """
    signal, threshold = at_least_zero(mu, "mu"), near_float(at_least_zero(epsilon, "epsilon"))
    if signal == 0:
        return -math.inf, -math.inf
    near = near_float(signal)
    point = _curve(max(near, _LEAST), threshold)
    lower = -math.inf if near < _LEAST else down(point.log_delta - point.error, 2)
    return lower, min(0.0, up(point.log_delta + point.error, 2))


def gaussian_delta(mu: Number, *, epsilon: Number) -> tuple[float, float]:
    """Return bounds of delta(epsilon) of Gaussian noise with sensitivity/sigma = mu.

    Claim   lower ≤ Phi(mu/2 − eps/mu) − e^eps Phi(−mu/2 − eps/mu) ≤ upper. k releases are one with mu √k.
    Needs   mu ≥ 0, epsilon ≥ 0.
    Rounds  Outward; an upper bound is 0 only at mu = 0.
    Source  [BW18, Thm. 8]; [DRS19] for many releases
    """
    lower, upper = gaussian_log_delta(mu, epsilon=epsilon)
    if upper == -math.inf:
        return 0.0, 0.0
    return max(0.0, down(math.exp(lower), 5)), min(1.0, up(math.exp(upper), 5))


def gaussian_epsilon(mu: Number, *, delta: Number) -> tuple[float, float]:
    """Return bounds of the least epsilon ≥ 0 at which Gaussian noise is (epsilon, delta)-private.

    Claim   lower ≤ min {eps ≥ 0 : delta(eps) ≤ delta} ≤ upper; (∞, ∞) at delta = 0 unless mu = 0.
    Needs   mu ≥ 0, 0 ≤ delta < 1.
    Rounds  Outward: both ends are decided by certified values of log delta.
    Source  [BW18, Thm. 8]
    """
    signal, target = near_float(at_least_zero(mu, "mu")), probability(delta, "delta")
    if signal == 0 or target == 0:
        return (math.inf, math.inf) if signal > 0 else (0.0, 0.0)
    signal = max(signal, _LEAST)
    goal, doubt = log_of(target)
    at_zero = _curve(signal, 0.0)
    if at_zero.log_delta + at_zero.error <= goal - doubt:
        return 0.0, 0.0
    # log delta is concave and decreasing, so that Newton's steps stay to the right of the root; they start
    # where delta ≤ min(1, mu phi(0)) e^(−x1²/2) reaches the target.
    epsilon = signal * (0.5 * signal + math.sqrt(max(0.0, 2.0 * min(0.0, math.log(0.4 * signal)) - 2.0 * goal)))
    point = at_zero
    for _ in range(20):
        point = _curve(signal, epsilon)
        following = max(0.0, epsilon + (point.log_delta - goal) / point.epsilon_slope)
        close = abs(following - epsilon) <= 4 * UNIT * epsilon
        epsilon = following
        if close or abs(point.log_delta - goal) <= 0.1 * point.error:
            break
    width = 1.1 * (point.error + doubt) / point.epsilon_slope

    def enough(at: float) -> bool:
        point = _curve(signal, at)
        return point.log_delta + point.error <= goal - doubt

    def too_small(at: float) -> bool:
        point = _curve(signal, at)
        return at == 0.0 or point.log_delta - point.error >= goal + doubt

    return _walk(too_small, epsilon, -width), _walk(enough, epsilon, width)


def gaussian_mu(*, epsilon: Number, delta: Number) -> float:
    """Return the largest mu = sensitivity/sigma at which Gaussian noise is (epsilon, delta)-private.

    Claim   delta(epsilon) of the result is at most delta: noise of sigma ≥ sensitivity/mu suffices.
    Needs   epsilon ≥ 0, 0 ≤ delta < 1; not both 0 for a result above 0.
    Rounds  Down.
    Source  [BW18, Thm. 8 and Alg. 1]
    """
    threshold, target = near_float(at_least_zero(epsilon, "epsilon")), probability(delta, "delta")
    if target == 0:
        return 0.0
    goal, doubt = log_of(target)
    scale = math.sqrt(-2.0 * goal)
    # Both starts are below the root: delta ≤ e^(−x1²/2) and delta ≤ mu phi(0).
    mu = max(2.0 * threshold / (scale + math.sqrt(scale * scale + 2.0 * threshold)), 2.5 * math.exp(goal))
    if mu < _LEAST:
        return 0.0
    point = _curve(mu, threshold)
    for _ in range(20):
        step = (goal - point.log_delta) / point.mu_slope
        mu = max(mu + step, 0.5 * mu)
        point = _curve(mu, threshold)
        if abs(step) <= 4 * UNIT * mu or abs(goal - point.log_delta) <= 0.1 * point.error:
            break

    def enough(at: float) -> bool:
        point = _curve(at, threshold)
        return point.log_delta + point.error <= goal - doubt

    return _walk(enough, mu, -(point.error + doubt) / point.mu_slope)


def classical_gaussian_sigma(*, epsilon: Number, delta: Number, sensitivity: Number = 1) -> float:
    """Return the textbook scale √(2 ln(1.25/delta)) · sensitivity/epsilon, for comparison.

    Claim   Noise of this standard deviation is (epsilon, delta)-private for epsilon below 1.
    Needs   0 < epsilon < 1: at epsilon = 10, delta = 1e-5 it would give delta 2.3e-5. Sensitivity in L2.
    Rounds  Up.
    Source  [DR14]
    """
    exact, target = positive(epsilon, "epsilon"), open_probability(delta, "delta")
    distance = float_up(at_least_zero(sensitivity, "sensitivity"))
    if exact >= 1:
        hint = "sensitivity / gaussian_mu(epsilon=, delta=) holds for every epsilon, with less noise"
        raise NotPrivate.must_be("epsilon", "below 1 for the classical Gaussian scale", epsilon, hint)
    logarithm, doubt = log_of(target / Fraction(5, 4))
    return up(math.sqrt(2.0 * (doubt - logarithm)) * distance / near_float(exact), 6)


def _curve(mu: float, epsilon: float) -> _Point:
    """Return log delta and its error: rounding, and half an ulp of doubt about either parameter."""
    centre, half = epsilon / mu, 0.5 * mu
    near, far = centre - half, centre + half
    if near < -1.0:
        return _large(mu, near, far)
    mills = _mills(far)
    if half <= 0.05:
        gap, relative = _narrow_gap(centre, half)
    else:
        first = _mills(near)
        gap = first - mills
        slope = 1.0 / (1.0 + near * near) if near > 0 else 5.0  # of R at x1, an upper bound; that at x2 is smaller
        relative = (_ERFCX * (first + mills) + 4 * UNIT * far * slope) / gap + 4 * UNIT
    if not gap > 0.0 or relative > 0.5:
        raise NumericalFailure(f"the Gaussian curve is out of reach at mu = {mu:g}, epsilon = {epsilon:g}")
    value = math.log(gap) - 0.5 * near * near - _LOG_ROOT_TAU
    rounding = UNIT * (2 * near * near + 3 * abs(near) * far + 8 * abs(math.log(gap)) + 2 * abs(value) + 8)
    return _Point(value, 1.01 * (rounding + 2 * relative + 2 * UNIT * mu / gap), mills / gap, 1.0 / gap)


def _large(mu: float, near: float, far: float) -> _Point:
    height = math.exp(-0.5 * near * near - _LOG_ROOT_TAU)
    mills = _mills(far)
    missing = height * (_mills(-near) + mills)
    rest = 1.0 - missing
    # `height` moves by |x1| dx1; once the square is beyond 1500 both are 0 and one ulp of 0 is paid instead.
    relative = UNIT * (2 * near * near + 3 * abs(near) * (far - near + far) + 40)
    error = (missing * relative + 2 * UNIT * mu * height + UNIT + 1e-300) / rest
    height = max(height, 1e-300)
    return _Point(math.log1p(-missing), 1.01 * error + 1e-300, height * mills / rest, height / rest)


def _narrow_gap(centre: float, half: float) -> tuple[float, float]:
    """R(c − h) − R(c + h) for h ≤ 1/20 without a subtraction, and its relative error."""
    moments = _moments_forward(centre) if centre <= 2.0 else _moments_backward(centre)
    square = half * half
    total = 0.0
    for moment in reversed(moments[1:10:2]):
        total = total * square + moment
    # What is left out starts with h^10 I_11 ≤ h^10 I_1/10395 and decreases.
    return 2.0 * half * total, 200 * UNIT + square**5 / 1e4


def _moments_forward(centre: float) -> list[float]:
    """I_0 … I_9 by (n+1) I_(n+1) = I_(n−1) − c I_n; for c ≤ 2 this costs three bits of I_1."""
    moments = [_mills(centre)]
    moments.append(1.0 - centre * moments[0])
    for n in range(1, 9):
        moments.append((moments[n - 1] - centre * moments[n]) / (n + 1))
    return moments


def _moments_backward(centre: float) -> list[float]:
    """I_0 … I_9 by their ratios r_n = 1/(c + (n+1) r_(n+1)), a continued fraction of positive terms.

    Each step shrinks the relative error of the start by 1 − c r_n ≈ 1 − c/√n, and the start is within 1 %,
    so (18/c)² + 24 steps leave less than 2^−53.
    """
    start = int((18.0 / centre) ** 2) + 24
    ratio = 2.0 / (centre + math.sqrt(centre * centre + 4.0 * start))
    for n in range(start + 1, 10, -1):
        ratio = 1.0 / (centre + n * ratio)
    ratios: list[float] = []
    for n in range(10, 1, -1):
        ratio = 1.0 / (centre + n * ratio)
        ratios.append(ratio)
    moments = [_mills(centre)]
    for factor in reversed(ratios):
        moments.append(moments[-1] * factor)
    return moments


def _mills(x: float) -> float:
    from scipy.special import erfcx

    return _ROOT_HALF_PI * float(erfcx(_ROOT_HALF * x))


def _walk(holds: Callable[[float], bool], start: float, width: float) -> float:
    """Return the first of start + width, start + 2 width, start + 4 width … where the condition holds."""
    for power in range(200):
        step = math.ldexp(width, power)
        least = (power + 1) * math.ulp(start)
        at = max(0.0, start + math.copysign(max(abs(step), least), width))
        if holds(at):
            return at
    raise NumericalFailure(f"no bound near {start:g} could be certified")
