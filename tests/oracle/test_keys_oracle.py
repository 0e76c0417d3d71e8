from __future__ import annotations

import itertools
from fractions import Fraction

import mpmath
import pytest

from curador.mechanisms.keys import GaussianKeys, LaplaceKeys
from curador.mechanisms.optimal_keys import ONE, OptimalKeys
from curador.mechanisms.tails import any_of, gaussian_tail, laplace_tail, normal_tail

MP = mpmath.mp.clone()
MP.dps = 60


def big(value):
    return MP.mpf(value.numerator) / value.denominator


def encloses(bounds, truth, relative):
    """Whether the truth lies between the ends and the ends are that close to it."""
    slack = MP.mpf(10) ** -50
    inside = big(bounds.lower) <= truth * (1 + slack) and big(bounds.upper) >= truth * (1 - slack)
    return inside and (big(bounds.upper) - big(bounds.lower)) <= truth * MP.mpf(relative)


def gaussian_truth(sigma2, reach):
    """P[N ≥ reach] by adding up, 60 digits."""
    s2 = big(sigma2)
    whole = MP.jtheta(3, 0, MP.exp(-1 / (2 * s2)))
    last = reach + int(MP.sqrt(s2 * 300)) + 20
    return MP.fsum(MP.exp(-(MP.mpf(k) ** 2) / (2 * s2)) for k in range(reach, last)) / whole


# ---- tails ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [Fraction(1, 5), Fraction(1), Fraction(22, 7), Fraction(2**41, 3)])
@pytest.mark.parametrize("far", ["0.1", "1", "30", "1000"])
def test_laplace_tail(scale, far):
    """r^m/(1 + r) with 60 digits lies in the enclosure, which is a relative 1e-40 wide."""
    reach = max(int(scale * Fraction(far)), 1)
    r = MP.exp(-1 / big(scale))
    assert encloses(laplace_tail(scale, reach), MP.exp(-reach / big(scale)) / (1 + r), 1e-40)


@pytest.mark.parametrize(
    ("sigma2", "reach"),
    [
        ("1/100", 1),
        ("1/4", 1),
        ("1", 3),
        ("1", 30),
        ("9", 1),
        ("15", 100),
        ("16", 1),
        ("17", 40),
        ("400", 7),
        ("10000", 2500),
    ],
)
def test_gaussian_tail_on_coarse_grids(sigma2, reach):
    """The sum with 60 digits lies in the enclosure, which is a relative 1e-12 wide, also at 1e-136."""
    assert encloses(gaussian_tail(Fraction(sigma2), reach), gaussian_truth(Fraction(sigma2), reach), 1e-12)


@pytest.mark.parametrize("z", ["0.001", "0.5", "1", "1.99", "2", "2.01", "5", "37", "150"])
def test_normal_tail(z):
    """erfc with 60 digits lies in the enclosure, which is a relative 1e-30 wide."""
    assert encloses(normal_tail(Fraction(z) ** 2), MP.erfc(MP.mpf(z) / MP.sqrt(2)) / 2, 1e-30)


@pytest.mark.parametrize("z", ["1.001", "3", "6", "38", "120"])
@pytest.mark.parametrize("bits", [20, 40])
def test_gaussian_tail_on_fine_grids(z, bits):
    """Euler and Maclaurin's corrections to the integral lie between midpoint and trapezoid, which are z²/σ² apart."""
    sigma = Fraction(3 << bits, 2)
    reach = int(sigma * Fraction(z))
    s, x = big(sigma), MP.mpf(reach)
    # Σ f from m on = ∫ + f/2 − f′/12 + f‴/720 − …; f′ = −(m/σ²) f, f‴ = (3m/σ⁴ − m³/σ⁶) f
    integral = s * MP.sqrt(2 * MP.pi) * MP.erfc(x / (s * MP.sqrt(2))) / 2
    bell = MP.exp(-(x**2) / (2 * s**2))
    truth = integral + bell * (MP.mpf(1) / 2 + x / s**2 / 12 + (3 * x / s**4 - x**3 / s**6) / 720)
    bounds = gaussian_tail(sigma * sigma, reach)
    truth /= s * MP.sqrt(2 * MP.pi)
    assert big(bounds.lower) < truth < big(bounds.upper)
    assert (big(bounds.upper) - big(bounds.lower)) / truth < MP.mpf(z) ** 2 / s**2


def test_midpoint_without_the_half_step_would_be_too_small():
    """The seeded error Φc(m/σ) for P[N ≥ m] is caught: it lies below the enclosure."""
    sigma = Fraction(1 << 21)
    reach = 5 * (1 << 21)
    assert normal_tail(reach * reach / sigma**2).upper < gaussian_tail(sigma * sigma, reach).lower


# ---- thresholds -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "delta", "keys"), [("1", "1e-5", 1), ("0.5", "1e-9", 7), ("3", "1e-12", 2), ("1", "1e-30", 1)]
)
def test_laplace_threshold(epsilon, delta, keys):
    """τ = 1 − (k/ε) log(2(1 − (1 − δ)^(1/k))) to 1e-11 on the fine grid."""
    single = 1 - (1 - MP.mpf(delta)) ** (MP.mpf(1) / keys)
    truth = 1 - keys / MP.mpf(epsilon) * MP.log(2 * single)
    assert float(abs(big(LaplaceKeys(epsilon=epsilon, delta=delta, keys=keys).threshold) / truth - 1)) < 1e-11


@pytest.mark.parametrize(
    ("sigma", "delta", "keys", "threshold"),
    [(2, "1e-6", 1, "10.506848617645797896"), (4, "1e-6", 4, "21.105251056427035237")],
)
def test_gaussian_threshold(sigma, delta, keys, threshold):
    """τ = 1 + σ Φ⁻¹((1 − δ)^(1/k)) to 1e-12: at it δ is met, and 1e-12 below it is missed."""
    above = GaussianKeys(sigma=sigma, threshold=Fraction(threshold) * (1 + Fraction(1, 10**12)), keys=keys)
    below = GaussianKeys(sigma=sigma, threshold=Fraction(threshold) * (1 - Fraction(1, 10**12)), keys=keys)
    assert above.delta <= Fraction(delta) < below.delta
    found = GaussianKeys.calibrate(rho=Fraction(keys, 2 * sigma**2), delta_keys=delta, keys=keys)
    assert found.sigma == sigma
    assert float(abs(found.threshold / Fraction(threshold) - 1)) < 1e-12


# ---- optimal selection ------------------------------------------------------------------------------------------------


def closed_form(n, epsilon, delta):
    """π(n) of the truncated geometric, in three pieces."""
    e, d = MP.mpf(epsilon), MP.mpf(delta)
    grow = MP.exp(e)
    turn = 1 + int(MP.floor(MP.log((grow + 2 * d - 1) / ((grow + 1) * d)) / e))
    if n <= turn:
        return d * (MP.exp(n * e) - 1) / (grow - 1)
    at = d * (MP.exp(turn * e) - 1) / (grow - 1)
    m = n - turn
    value = (1 - MP.exp(-m * e)) * (1 + d / (grow - 1)) + MP.exp(-m * e) * at
    return min(value, MP.mpf(1))


@pytest.mark.parametrize(
    ("epsilon", "delta"), [("1", "1e-5"), ("0.1", "1e-3"), ("0.5", "1e-10"), ("5", "1e-7"), ("0.01", "1e-4")]
)
def test_optimal_probabilities_agree_with_the_closed_form(epsilon, delta):
    """π(n) to a relative 1e-12 for all n, and never above it."""
    mechanism = OptimalKeys(epsilon=epsilon, delta=delta)
    table = mechanism.table()
    for n in range(1, len(table), max(len(table) // 200, 1)):
        truth = closed_form(n, epsilon, delta)
        assert MP.mpf(table[n]) / ONE <= truth * (1 + MP.mpf(10) ** -50)
        assert float(abs(MP.mpf(table[n]) / ONE / truth - 1)) < 1e-12


@pytest.mark.parametrize(
    ("epsilon", "delta", "keys"), [("1", "1e-5", 1), ("0.1", "1e-3", 1), ("2", "1e-9", 5), ("40", "0.2", 2)]
)
def test_the_four_inequalities_hold_in_integers(epsilon, delta, keys):
    """For all neighbouring n: both chances, both ways, with a rational E ≤ e^(ε/keys) and δ₁, exactly."""
    mechanism = OptimalKeys(epsilon=epsilon, delta=delta, keys=keys)
    growth, single = mechanism.single
    assert big(growth) <= MP.exp(MP.mpf(epsilon) / keys)
    assert any_of(single, keys) <= Fraction(delta)
    e, d = int(growth * ONE), int(single * ONE)
    table = [*mechanism.table(), ONE]
    for p, q in itertools.chain(itertools.pairwise(table), ((b, a) for a, b in itertools.pairwise(table))):
        assert p * ONE <= e * q + d * ONE
        assert (ONE - p) * ONE <= e * (ONE - q) + d * ONE


def test_probabilities_rounded_to_nearest_break_an_inequality():
    """The seeded error of rounding π up by its last bit is seen by the integer check."""
    mechanism = OptimalKeys(epsilon="1", delta="1e-5")
    growth, single = mechanism.single
    e, d = int(growth * ONE), int(single * ONE)
    table = [value + 1 if 0 < value < ONE else value for value in mechanism.table()]
    assert any(q * ONE > e * p + d * ONE or (ONE - p) * ONE > e * (ONE - q) + d * ONE for p, q in itertools.pairwise(table))


@pytest.mark.parametrize("adjacency", ["add_or_remove_one", "replace_one"])
def test_several_keys_together_keep_epsilon_and_delta(adjacency):
    """The hockey-stick divergence of all outputs over a person's keys, all counts, both ways, is at most δ."""
    mechanism = OptimalKeys(epsilon=1, delta="1e-2", keys=2, adjacency=adjacency)
    table = [Fraction(value, ONE) for value in mechanism.table()] + [Fraction(1)]
    changed = 2 if adjacency == "add_or_remove_one" else 4
    pairs = [*itertools.pairwise(table)]
    pairs = pairs[:: max(len(pairs) // 6, 1)] if changed == 4 else pairs
    factor = Fraction(int(MP.exp(1) * ONE), ONE)
    worst = Fraction(0)
    for combination in itertools.combinations_with_replacement(pairs, changed):
        for up in (changed, 0) if changed == 2 else (2,):
            lost = Fraction(0)
            for output in itertools.product((True, False), repeat=changed):
                p = q = Fraction(1)
                for place, (kept, (low, high)) in enumerate(zip(output, combination, strict=True)):
                    a, b = (high, low) if place < up else (low, high)
                    p *= a if kept else 1 - a
                    q *= b if kept else 1 - b
                lost += max(p - factor * q, Fraction(0))
            worst = max(worst, lost)
    assert worst <= Fraction(1, 100)
    assert changed == 4 or worst > Fraction(99, 10000)  # and no more than that is wasted
