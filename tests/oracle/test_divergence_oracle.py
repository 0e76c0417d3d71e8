"""Divergences against their defining sums and integrals, evaluated with 50 digits and more."""

from __future__ import annotations

import contextlib
import itertools
import math
from fractions import Fraction

import mpmath
import pytest

from curador.privacy.divergence import (
    Bernoulli,
    Finite,
    Laplace,
    Normal,
    hockey_stick,
    kl,
    max_divergence,
    renyi,
)

MP = mpmath.mp.clone()
MP.dps = 50
MANY = mpmath.mp.clone()
MANY.dps = 1400  # sums at extremes cancel many digits

ORDERS = (1, "1.000000001", 1.5, 2, 32, 10**4)
LAST_PLACES = 2**-52
SUBNORMAL = MP.mpf("1e-320")  # a positive value below is not resolved, but never 0


def exact(value) -> Fraction:
    return Fraction(str(value))


def real(value, context=MP):
    fraction = exact(value)
    return context.mpf(fraction.numerator) / fraction.denominator


@contextlib.contextmanager
def digits_of(digits):
    """Fewer digits for a while: enough to judge a float by, and faster."""
    before, MP.dps = MP.dps, digits
    try:
        yield
    finally:
        MP.dps = before


def assert_rounded(got: float, true) -> None:
    """The float is the true, positive value, rounded: at most two last places away."""
    assert math.isfinite(got)
    if true < SUBNORMAL:
        assert 0 < got < 1e-315
    else:
        assert abs(got - true) <= LAST_PLACES * abs(true)


# ------------------------------------------------------------------------------------------------------ sums

PROBABILITIES = (0, 1, 0.5, "1e-300", "0.3", "0.30000001", "0.3000000000000000000001", Fraction(1, 3))


def divergence_of_sums(first, second, alpha):
    """Σ p log(p/q), or log Σ p^α q^(1-α) / (α-1), straight from the definition."""
    atoms = [(real(p, MANY), real(q, MANY)) for p, q in zip(first, second, strict=True) if p > 0]
    if any(q == 0 for _, q in atoms):
        return MANY.inf
    if alpha == 1:
        return MANY.fsum(p * MANY.log(p / q) for p, q in atoms)
    order = real(alpha, MANY)
    return MANY.log(MANY.fsum(p**order * q ** (1 - order) for p, q in atoms)) / (order - 1)


@pytest.mark.parametrize("alpha", ORDERS)
@pytest.mark.parametrize("p", PROBABILITIES)
def test_bernoulli(p, alpha):
    """Closed form against the sum, from probability 0 to 1 and differences of 1e-22."""
    for q in PROBABILITIES:
        got = renyi(Bernoulli(p), Bernoulli(q), alpha=alpha)
        true = divergence_of_sums((exact(p), 1 - exact(p)), (exact(q), 1 - exact(q)), alpha)
        if true == MANY.inf or exact(p) == exact(q):
            assert got == (0 if exact(p) == exact(q) else math.inf)
        else:
            assert_rounded(got, true)


@pytest.mark.parametrize("p", PROBABILITIES)
@pytest.mark.parametrize("epsilon", [-700, -1, "-1e-22", 0, "1e-22", "0.7", 690, 700])
def test_bernoulli_hockey_stick(p, epsilon):
    """Σ (p - e^ε q)₊ from the definition."""
    weight = MANY.exp(real(epsilon, MANY))
    for q in PROBABILITIES:
        pairs = [(real(p, MANY), real(q, MANY)), (1 - real(p, MANY), 1 - real(q, MANY))]
        true = MANY.fsum(max(x - weight * y, 0) for x, y in pairs)
        got = hockey_stick(Bernoulli(p), Bernoulli(q), epsilon=epsilon)
        assert got == true == 0 or abs(got - true) <= LAST_PLACES * true


def test_finite_on_many_points():
    """Sixty points with weights over twenty orders of magnitude, at every order."""
    weights = [[Fraction(1 + (k * i * i + 3 * i) % 17, 10 ** (i % 21)) for i in range(60)] for k in (1, 5)]
    first, second = ([w / sum(row) for w in row] for row in weights)
    for alpha in ORDERS:
        assert_rounded(renyi(Finite(first), Finite(second), alpha=alpha), divergence_of_sums(first, second, alpha))
    top = max(p / q for p, q in zip(first, second, strict=True))
    assert_rounded(max_divergence(Finite(first), Finite(second)), MANY.log(real(top, MANY)))


# ------------------------------------------------------------------------------------------------- integrals


def normal_log_density(x, distribution):
    scale = real(distribution.deviation)
    return -(((x - real(distribution.mean)) / scale) ** 2) / 2 - MP.log(scale * MP.sqrt(2 * MP.pi))


def laplace_log_density(x, distribution):
    scale = real(distribution.scale)
    return -abs(x - real(distribution.location)) / scale - MP.log(2 * scale)


NORMAL_PAIRS = [
    (Normal(0, 1), Normal(1, 1)),
    (Normal(0, 1), Normal(1, 2)),
    (Normal(-1, 1), Normal(1, "1.001")),
    (Normal(0, "0.5"), Normal(1000, 3)),
    (Normal(0, "1.0000001"), Normal(2, 1)),
]


@pytest.mark.parametrize("pair", NORMAL_PAIRS, ids=str)
@pytest.mark.parametrize("alpha", ["1.01", 1.5, 2, 32, 10**4])
def test_normal_by_quadrature(pair, alpha):
    """Rényi as log ∫ p^α q^(1-α) / (α-1) by quadrature around the integrand's peak."""
    order, (first, second) = real(alpha), pair
    blend = (1 - order) * real(first.deviation) ** 2 + order * real(second.deviation) ** 2
    if blend <= 0:
        assert renyi(*pair, alpha=alpha) == math.inf
        return

    def log_integrand(x):
        return order * normal_log_density(x, first) + (1 - order) * normal_log_density(x, second)

    slope = MP.diff(log_integrand, 0)
    width = real(first.deviation) * real(second.deviation) / MP.sqrt(blend)
    peak = slope * width**2  # the integrand is a Gaussian: its peak follows from slope and curvature at 0
    assert_rounded_after_quadrature(renyi(*pair, alpha=alpha), log_integrand, [peak], width, order=order)


LAPLACE_PAIRS = [
    (Laplace(0, 1), Laplace(1, 1)),
    (Laplace(0, 1), Laplace(1, 2)),
    (Laplace(0, "1.25"), Laplace(-3, 1)),
    (Laplace(5, 1), Laplace(5, "1.5")),
    (Laplace(0, 1), Laplace(40, "1.01")),
]


@pytest.mark.parametrize("pair", LAPLACE_PAIRS, ids=str)
@pytest.mark.parametrize("alpha", ["1.01", 1.5, 2, 32, 10**4])
def test_laplace_by_quadrature(pair, alpha):
    """Rényi as log ∫ p^α q^(1-α) / (α-1) by quadrature over the pieces between and beyond the locations."""
    order, (first, second) = real(alpha), pair
    rate = order / real(first.scale) - (order - 1) / real(second.scale)
    if rate <= 0:
        assert renyi(*pair, alpha=alpha) == math.inf
        return

    def log_integrand(x):
        return order * laplace_log_density(x, first) + (1 - order) * laplace_log_density(x, second)

    breaks = [real(first.location), real(second.location)]
    steep = order / real(first.scale) + (order - 1) / real(second.scale)
    value = renyi(*pair, alpha=alpha)
    assert_rounded_after_quadrature(value, log_integrand, breaks, 1 / rate, order=order, finer=1 / steep)


def assert_rounded_after_quadrature(got, log_integrand, breaks, width, *, order, finer=None):
    pieces = sorted({b + k * w for b in breaks for w in (width, finer or width) for k in STEPS})
    top = max(log_integrand(x) for x in pieces)
    with digits_of(40):
        integral = MP.quad(lambda x: MP.exp(log_integrand(x) - top), pieces)
    true = (top + MP.log(integral)) / (order - 1)
    assert got == pytest.approx(float(true), rel=1e-14)


STEPS = (-110, -40, -15, -5, -1, 0, 1, 5, 15, 40, 110)


@pytest.mark.parametrize("pair", [*NORMAL_PAIRS, *LAPLACE_PAIRS], ids=str)
def test_order_one_and_its_neighbourhood(pair):
    """KL by quadrature of p log p/q; at order 1 + 1e-9 it has moved by half the variance of the loss."""
    first, second = pair
    log_density = normal_log_density if isinstance(first, Normal) else laplace_log_density
    width = real(first.deviation if isinstance(first, Normal) else first.scale)
    breaks = [real(d.mean if isinstance(d, Normal) else d.location) for d in pair]
    points = sorted({breaks[0] + k * width for k in STEPS} | {breaks[1]})

    def moment(power):
        def integrand(x):
            log = log_density(x, first)
            return MP.exp(log) * (log - log_density(x, second)) ** power

        with digits_of(40):
            return MP.quad(integrand, points)

    mean, square = moment(1), moment(2)
    assert kl(*pair) == pytest.approx(float(mean), rel=1e-14)
    near_one = renyi(*pair, alpha="1.000000001")
    assert near_one == pytest.approx(float(mean + (square - mean**2) / 2 * MP.mpf("1e-9")), rel=1e-13)


@pytest.mark.parametrize("shift", ["1e-8", "1e-3", 1, 30, 1000])
@pytest.mark.parametrize("alpha", ORDERS)
def test_shifts_of_equal_scale(shift, alpha):
    """Closed forms with 1400 digits, where floats would cancel: shifts from 1e-8 to 1e3."""
    t, a = real(shift, MANY), real(alpha, MANY)
    assert_rounded(renyi(Normal(0, 1), Normal(shift, 1), alpha=alpha), a * t * t / 2)
    if alpha == 1:
        true = t + MANY.exp(-t) - 1
    else:
        grown = a / (2 * a - 1) * MANY.exp((a - 1) * t) + (a - 1) / (2 * a - 1) * MANY.exp(-a * t)
        true = MANY.log(grown) / (a - 1)
    assert_rounded(renyi(Laplace(shift, 1), Laplace(0, 1), alpha=alpha), true)


@pytest.mark.parametrize("pair", [p for p in (*NORMAL_PAIRS, *LAPLACE_PAIRS) if not math.isinf(max_divergence(*p))], ids=str)
def test_order_infinity_is_the_highest_loss(pair):
    """The maximum of the loss, found by ternary search on a grid's best cell."""
    log_density = normal_log_density if isinstance(pair[0], Normal) else laplace_log_density

    def loss(x):
        return log_density(x, pair[0]) - log_density(x, pair[1])

    centre = real(pair[0].mean if isinstance(pair[0], Normal) else pair[0].location)
    low, high = centre - 1000, centre + 1000  # the loss rises, then falls
    for _ in range(300):
        third = (high - low) / 3
        low, high = (low + third, high) if loss(low + third) < loss(high - third) else (low, high - third)
    assert max_divergence(*pair) == pytest.approx(float(loss((low + high) / 2)), rel=1e-14)


# ----------------------------------------------------------------------------------------------- hockey-stick


def hockey_stick_by_quadrature(pair, epsilon):
    """∫ (p - e^ε q)₊, cut where the integrand changes sign, the cuts found by bisection."""
    first, second = pair
    normal = isinstance(first, Normal)
    log_density = normal_log_density if normal else laplace_log_density
    bound = real(epsilon)

    def loss(x):
        return log_density(x, first) - log_density(x, second) - bound

    def integrand(x):
        return MP.exp(log_density(x, first)) - MP.exp(bound + log_density(x, second))

    points = set()
    for d in pair:
        centre, scale = (real(d.mean), real(d.deviation)) if normal else (real(d.location), real(d.scale))
        points |= {centre + scale * k for k in (-75, -30, -12, -6, -3, -1, 0, 1, 3, 6, 12, 30, 75)}
    grid = sorted(points)
    crossed = [(a, b) for a, b in itertools.pairwise(grid) if loss(a) * loss(b) < 0]
    cuts = [MP.findroot(loss, ends, solver="anderson", tol=1e-80, verify=False) for ends in crossed]
    pieces = [ends for ends in itertools.pairwise(sorted({*grid, *cuts})) if loss(sum(ends) / 2) > 0]
    with digits_of(30):
        return MP.fsum(MP.quad(integrand, piece) for piece in pieces)


@pytest.mark.parametrize("epsilon", [-3, 0, "0.3", 5])
@pytest.mark.parametrize(
    "pair",
    [
        (Normal(0, 1), Normal(1, 1)),
        (Normal(0, 1), Normal(1, 2)),
        (Normal(0, 2), Normal(1, 1)),
        (Normal(0, 1), Normal(6, "1.1")),
        (Laplace(0, 1), Laplace(1, 2)),
        (Laplace(0, 2), Laplace(1, 1)),
        (Laplace(3, 1), Laplace(-3, "1.5")),
        (Laplace(3, "1.5"), Laplace(-3, 1)),
    ],
    ids=str,
)
def test_hockey_stick_by_quadrature(pair, epsilon):
    """Closed forms by the crossings of the loss against brute quadrature of the positive part."""
    true = hockey_stick_by_quadrature(pair, epsilon)
    assert hockey_stick(*pair, epsilon=epsilon) == pytest.approx(float(true), rel=1e-13, abs=1e-45)


@pytest.mark.parametrize("shift", ["1e-8", "1e-3", 1, 12, 1000])
@pytest.mark.parametrize("share", ["-3", "0", "0.5", "0.999", "1", "1.5", "30"])
def test_normal_hockey_stick_at_extremes(shift, share):
    """Φ(m/2 - ε/m) - e^ε Φ(-m/2 - ε/m) with 1400 digits, ε as a share of the mean loss m²/2."""
    m, epsilon = real(shift, MANY), exact(share) * exact(shift) ** 2 / 2
    e = real(epsilon, MANY)
    true = MANY.ncdf(m / 2 - e / m) - MANY.exp(e) * MANY.ncdf(-m / 2 - e / m)
    got = hockey_stick(Normal(0, 1), Normal(shift, 1), epsilon=epsilon)
    assert_rounded(got, true)


@pytest.mark.parametrize("epsilon", ["1e-8", "0.5", 20, 100])
@pytest.mark.parametrize("deviation", ["1.000000000001", "0.999999999999", "1.5", "0.01", 100])
def test_unequal_normal_hockey_stick_at_extremes(deviation, epsilon):
    """Two roots of the loss, from nearly equal variances to hundredfold ones, with 1400 digits."""
    scale, e = real(deviation, MANY), real(epsilon, MANY)
    a, b = (1 - scale**2) / (2 * scale**2), -1 / scale**2
    discriminant = b**2 - 4 * a * (1 / (2 * scale**2) + MANY.log(scale) - e)
    got = hockey_stick(Normal(0, 1), Normal(1, deviation), epsilon=epsilon)
    if discriminant < 0:
        assert got == 0  # P is narrower and its highest loss is below ε
        return
    low, high = sorted((-b + sign * MANY.sqrt(discriminant)) / (2 * a) for sign in (-1, 1))
    masses = [MANY.ncdf(high) - MANY.ncdf(low), MANY.ncdf((high - 1) / scale) - MANY.ncdf((low - 1) / scale)]
    p, q = masses if scale > 1 else [1 - mass for mass in masses]
    assert_rounded(got, p - MANY.exp(e) * q)


def test_wrong_formulas_are_seen():
    """The oracle tells α d²/2 from α d²/(2σ²), and the divergence of (P, Q) from that of (Q, P)."""
    pair = Normal(0, 1), Normal(1, 2)
    width = MP.mpf(1)
    points = sorted(k * width for k in STEPS)
    true = MP.quad(
        lambda x: MP.exp(normal_log_density(x, pair[0])) * (normal_log_density(x, pair[0]) - normal_log_density(x, pair[1])),
        points,
    )
    assert kl(*pair) == pytest.approx(float(true), rel=1e-14)
    assert kl(*reversed(pair)) != pytest.approx(float(true), rel=1e-2)
