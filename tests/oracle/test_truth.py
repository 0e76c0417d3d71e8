"""The oracle against golden numbers of twenty digits and against itself, computed in two ways."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from random import Random

import pytest
import truth
from truth import MP, Composition

HUNDREDTH, TENTH, HALF = Fraction(1, 100), Fraction(1, 10), Fraction(1, 2)


def close(got, expected, digits: int = 19) -> bool:
    """Whether two numbers agree to that many digits."""
    expected = MP.mpf(expected)
    return abs(got - expected) <= abs(expected) * MP.mpf(10) ** -digits


@pytest.mark.parametrize(
    ("mu", "epsilon", "delta"),
    [
        (1, 1, "0.1269367375066439458"),
        (HALF, 1, "0.0068295949831145753842"),
        (1, 0, "0.38292492254802620728"),
        (2, 10, "9.9402028161181527684e-6"),
        (2, 1, "0.50986166005467015308"),
    ],
)
def test_gaussian_golden(mu, epsilon, delta):
    """The Gaussian curve has the published digits, in closed form and by the Fourier sum."""
    assert close(truth.gaussian_delta(mu, epsilon), delta)
    summed = truth.fourier_curve(Composition(truth.number(mu) ** 2))(epsilon)
    assert close(summed, truth.gaussian_delta(mu, epsilon), 36)


@pytest.mark.parametrize(
    ("mu", "delta", "epsilon"), [(TENTH, 1e-5, "0.34066936468432641075"), (1, 1e-5, "4.3771780956812246277")]
)
def test_gaussian_epsilon_golden(mu, delta, epsilon):
    """Bisection returns the published epsilon (the delta of the recipe is the decimal)."""
    found = truth.epsilon_of(lambda eps: truth.gaussian_delta(mu, eps), Fraction(str(delta)))
    assert close(found, epsilon)


@pytest.mark.parametrize(
    ("count", "epsilon", "at", "delta"),
    [
        (100, TENTH, 4, "0.000034223123191967732835"),
        (20, HALF, 5, "0.054420392579346094397"),
        (4, HALF, 1, "0.094895111946344845941"),
        (1, 1, Fraction(99, 100), "0.0072741543964654473586"),
    ],
)
def test_pure_golden(count, epsilon, at, delta):
    """The binomial sum has the published digits, and equals plain repeated convolution."""
    law = truth.randomized_response(epsilon)
    assert close(truth.terms_curve(truth.power(law, count))(at), delta)
    slow = truth.NOTHING
    for _ in range(count):
        slow = truth.compose(slow, law)
    assert close(truth.terms_curve(slow)(at), truth.terms_curve(truth.power(law, count))(at), 50)


@pytest.mark.parametrize(
    ("count", "epsilon", "delta", "at"),
    [
        (100, TENTH, Fraction(1, 10**6), "4.7745675881079861533"),
        (20, HALF, Fraction(1, 10**5), "9.8594110241151243468"),
        (1000, HUNDREDTH, Fraction(1, 10**6), "1.3654467099937559603"),
        (30, TENTH, Fraction(1, 10**6), "2.3458876930080366227"),
    ],
)
def test_pure_epsilon_golden(count, epsilon, delta, at):
    """The exact epsilon of homogeneous pure losses has the published digits."""
    curve = truth.terms_curve(truth.power(truth.randomized_response(epsilon), count))
    assert close(truth.epsilon_of(curve, delta, digits=22), at)


def test_approximate_golden():
    """A hundred (0.1, 1e-8) losses have the published delta at 4."""
    law = truth.power(truth.approximate(TENTH, Fraction(1, 10**8)), 100)
    assert close(truth.terms_curve(law)(4), "0.000035223088473861643007")


LAPLACE = [
    (1, 1, 0, "0.3934693402873665764"),
    (1, 1, Fraction(3, 10), "0.29531191028128656565"),
    (1, 1, Fraction(9, 10), "0.048770575499285990909"),
    (2, 1, HALF, "0.35049598998110477769"),
    (5, HALF, 1, "0.1453156127630736905"),
    (10, TENTH, Fraction(3, 10), "0.032999170656713821741"),
    (10, TENTH, HALF, "0.008938294602943774577"),
    (20, Fraction(1, 5), 1, "0.082609258361991200535"),
]


def irwin_hall(count: int, epsilon: Fraction, at: Fraction):
    """The k-fold Laplace delta by the other route: atoms apart, the continuous parts' density integrated."""
    e0, total = truth.number(epsilon), MP.mpf(0)
    for plus, minus in product(range(count + 1), repeat=2):
        m = count - plus - minus
        if m < 0:
            continue
        ways = math.factorial(count) // math.prod(map(math.factorial, (plus, minus, m)))
        weight = ways * MP.mpf(2) ** -(plus + minus) * MP.exp(-minus * e0)
        t = truth.number(at) - (plus - minus) * e0
        if not m:
            total += weight * max(0, 1 - MP.exp(t))
            continue

        def density(s, m=m):
            ends = [(r, s + (m - 2 * r) * e0) for r in range(m + 1)]
            spikes = ((-1) ** r * math.comb(m, r) * above ** (m - 1) for r, above in ends if above > 0)
            return MP.mpf(4) ** -m * MP.exp((s - m * e0) / 2) * MP.fsum(spikes) / math.factorial(m - 1)

        knots = [max(t, -m * e0)] + [(2 * r - m) * e0 for r in range(m + 1) if (2 * r - m) * e0 > t]
        if knots[0] < m * e0:
            total += weight * MP.quad(lambda s, t=t, f=density: (1 - MP.exp(t - s)) * f(s), sorted(set(knots)))
    return total


@pytest.mark.parametrize(("count", "epsilon", "at", "delta"), LAPLACE)
def test_laplace_golden(count, epsilon, at, delta):
    """The residues of k Laplace losses give the published digits."""
    assert close(truth.terms_curve(truth.power(truth.laplace(epsilon), count))(at), delta)


@pytest.mark.parametrize(("count", "epsilon", "at"), [(1, 1, HALF), (3, HALF, Fraction(7, 10)), (4, HALF, Fraction(-1, 5))])
def test_laplace_two_ways(count, epsilon, at):
    """The residues equal the integral of the Irwin-Hall density, also at a negative epsilon."""
    curve = truth.terms_curve(truth.power(truth.laplace(epsilon), count))
    assert close(curve(at), irwin_hall(count, Fraction(epsilon), Fraction(at)), 35)


def test_laplace_many_is_inside_a_published_interval():
    """A hundred thousand Laplace losses of 0.01 reach 1e-6 between 19.3816673499 and 19.3816673546."""
    curve = truth.fourier_curve(Composition(MP.mpf(0), laws=((truth.laplace(HUNDREDTH), 100_000),)))
    assert curve(Fraction("19.3816673499")) > MP.mpf(10) ** -6 > curve(Fraction("19.3816673546"))


@pytest.mark.parametrize(
    ("sigma2", "at", "delta"),
    [
        (1, 1, "0.1413513394056219081"),
        (4, HALF, "0.054007223694154420918"),
        (100, HALF, "6.9343703475178678731e-9"),
    ],
)
def test_discrete_gaussian_golden(sigma2, at, delta):
    """The discrete Gaussian's curve has the published digits."""
    assert close(truth.terms_curve(truth.discrete_gaussian(sigma2, 1))(at), delta)


def test_discrete_laplace_golden():
    """The discrete Laplace curve has the published digits, and masses at 0 and 1 are those of its pmf."""
    law = truth.discrete_laplace(1, 1)
    assert close(truth.terms_curve(law)(HALF), "0.28764913664496792492")
    inner = truth.discrete_laplace(1, 2).terms[Fraction(0), Fraction(1), 0]
    assert close(inner, MP.mpf("0.4621171572600097585") / MP.e)


def test_bounded_range_is_its_closed_form():
    """The residues of one bounded-range loss give (1 - e^((x-e)/2))^2 / (1 - e^-e), and 1 - e^x below -e."""
    curve = truth.terms_curve(truth.bounded_range(Fraction(3, 4)))
    for at in (Fraction(-1, 2), Fraction(0), Fraction(1, 3), Fraction(7, 10)):
        x, e = truth.number(at), MP.mpf(3) / 4
        assert close(curve(at), (1 - MP.exp((x - e) / 2)) ** 2 / (1 - MP.exp(-e)), 50)
    assert close(curve(-1), 1 - MP.exp(-1), 50)
    assert curve(Fraction(3, 4)) == 0


SAMPLED = [
    (1, TENTH, "add", TENTH, "7.5267450100566018261e-6"),
    (1, TENTH, "remove", Fraction(1, 20), "0.026143662958947260169"),
    (2, HUNDREDTH, "remove", HALF, "0.00071936183140433545239"),
    (2, HUNDREDTH, "add", HALF, "0"),
    (1, HALF, "remove", HALF, "0.07994462460138234727"),
]


@pytest.mark.parametrize(("mu", "rate", "direction", "at", "delta"), SAMPLED)
def test_sampled_gaussian_golden(mu, rate, direction, at, delta):
    """One Poisson-subsampled step has the published digits in both directions."""
    assert close(truth.pair_curve(truth.poisson_pair(mu, rate, direction))(at), delta)


@pytest.mark.parametrize("at", [Fraction(-1, 3), Fraction(0), Fraction(1, 4), Fraction(3)])
def test_sampled_gaussian_two_ways(at):
    """Removing one record costs q times the Gaussian's delta at log((e^eps - 1 + q) / q)."""
    mu, rate = Fraction(13, 10), Fraction(2, 5)
    moved = MP.log((MP.exp(truth.number(at)) - 1 + truth.number(rate)) / truth.number(rate))
    curve = truth.pair_curve(truth.poisson_pair(mu, rate, "remove"))
    assert close(curve(at), truth.number(rate) * truth.gaussian_delta(mu, moved), 45)


@pytest.mark.parametrize("at", [Fraction(-1, 3), Fraction(0), Fraction(1, 4), Fraction(3, 5)])
def test_sampled_finite_pair_two_ways(at):
    """Subsampling a pair by its curve equals the curve of the mixed pair, written out, in both directions."""
    p, q, rate = (Fraction(7, 10), Fraction(3, 10)), (Fraction(1, 5), Fraction(4, 5)), Fraction(3, 10)
    mixed = tuple(rate * a + (1 - rate) * b for a, b in zip(p, q, strict=True))
    ways = truth.sampled_curves(truth.terms_curve(truth.finite(p, q)), rate)
    for way, pair in zip(ways, ((mixed, q), (q, mixed)), strict=True):
        assert abs(way(at) - truth.terms_curve(truth.finite(*pair))(at)) < MP.mpf(10) ** -50


@pytest.mark.parametrize("at", [Fraction(0), Fraction(1, 4), Fraction(9, 10)])
@pytest.mark.parametrize("group", [1, 3])
def test_directions_are_duals(at, group):
    """delta_add(eps) = 1 - e^eps (1 - delta_remove(-eps)): one direction's curve gives the other's."""
    add, remove = (truth.pair_curve(truth.poisson_pair(1, HALF, way, group)) for way in ("add", "remove"))
    expected = 1 - MP.exp(truth.number(at)) * (1 - remove(-at))
    assert abs(add(at) - expected) < MP.mpf(10) ** -50


def test_group_and_replacement_golden():
    """Three records together, and one replaced, cost what is published for one step."""
    group = truth.pair_curve(truth.poisson_pair(1, HUNDREDTH, "remove", group=3))
    assert close(group(HALF), "0.000046009923195066884404")
    assert close(truth.pair_curve(truth.replace_pair(1, TENTH))(TENTH), "0.033996378552932438503")
    assert close(truth.pair_curve(truth.replace_pair(1, 1))(1), "0.50986166005467015308")


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_sampled_with_gaussian_three_ways(direction):
    """A subsampled and a plain Gaussian: trapezoid over x, quadrature over the other loss, and Fourier agree."""
    pair, mu, at = truth.poisson_pair(1, TENTH, direction), HALF, Fraction(9, 10)
    value = truth.pair_with_gaussian(pair, mu)(at)
    fourier = truth.fourier_curve(Composition(truth.number(mu) ** 2, pairs=((pair, 1),)))
    assert close(value, fourier(at), 30)
    curve, width = truth.pair_curve(pair), truth.number(mu)
    edge = next(limit for limit in pair.limits() if MP.isfinite(limit))  # where the step's curve has its corner

    def integrand(z):
        return MP.npdf(z) * curve(truth.number(at) - width * z - width**2 / 2)

    corner = (truth.number(at) - edge) / width - width / 2
    with MP.workdps(22):
        knots = sorted([corner, corner - MP.mpf(1) / 2, corner + MP.mpf(1) / 2, -10, -5, -2, 0, 2, 5, 10])
        assert close(value, MP.quad(integrand, knots, maxdegree=6), 12)


DIGITS = {"remove": "0.00261242058", "add": "0.000794590175"}


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_sampled_many_golden(direction):
    """A thousand steps at q = 0.01, sigma = 1 have the published delta(1)."""
    pairs = ((truth.poisson_pair(1, HUNDREDTH, direction), 1000),)
    assert close(truth.fourier_curve(Composition(MP.mpf(0), pairs=pairs))(1), DIGITS[direction], 8)


@pytest.mark.slow
def test_replaced_many_golden():
    """A thousand steps under replacement: at a published upper epsilon the true delta is just below 1e-5."""
    what = Composition(MP.mpf(0), pairs=((truth.replace_pair(1, HUNDREDTH), 1000),))
    curve, at = truth.fourier_curve(what), Fraction("2.8434458133243163")
    assert curve(at) <= MP.mpf(10) ** -5 < curve(at * Fraction(9999, 10_000))


def test_sampled_many_is_inside_a_published_interval():
    """Ten thousand steps at q = 0.01, sigma = 1.1 reach 1e-5 inside the published interval."""
    pairs = ((truth.poisson_pair(Fraction(10, 11), HUNDREDTH), 10_000),)
    curve = truth.fourier_curve(Composition(MP.mpf(0), pairs=pairs))
    assert curve(Fraction("5.1925834384")) > MP.mpf(10) ** -5 > curve(Fraction("5.1925834467"))


@pytest.mark.parametrize(
    "what",
    [
        Composition(MP.mpf(1) / 4, laws=((truth.randomized_response(Fraction(3, 10)), 5), (truth.laplace(HALF), 2))),
        Composition(MP.mpf(4) / 5, laws=((truth.bounded_range(HALF), 9), (truth.approximate(TENTH, Fraction(1, 10**9)), 3))),
        Composition(MP.mpf(0), pairs=((truth.poisson_pair(HALF, HALF), 100),)),
        Composition(MP.mpf(0), pairs=((truth.poisson_pair(HALF, HALF, "add"), 100),)),
    ],
    ids=["atoms and Laplace", "bounded range and infinity", "remove", "add"],
)
def test_the_fourier_sum_does_not_depend_on_its_choices(what):
    """Other tilts and periods give the same 30 digits: aliasing, truncation and quadrature are all negligible."""
    value = truth.fourier_curve(what)(2)
    assert close(truth.fourier_curve(what, tilt_factor=1.4, period_factor=2.2)(2), value, 30)
    assert close(truth.fourier_curve(what, tilt_factor=0.8, period_factor=1.1)(2), value, 30)


def test_too_short_a_period_is_visible():
    """The check above can fail: at a seventh of the period aliasing shows in the 30 digits."""
    what = Composition(MP.mpf(1) / 4, laws=((truth.laplace(HALF), 2),))
    assert not close(truth.fourier_curve(what, period_factor=1 / 7)(2), truth.fourier_curve(what)(2), 30)


def test_atoms_with_gaussian_two_ways():
    """Atoms mixed with an analytic Gaussian equal the Fourier sum; so do discrete and arbitrary pairs."""
    pair = truth.finite((Fraction(1, 5), Fraction(4, 5)), (Fraction(1, 2), Fraction(1, 2)))
    laws = ((pair, 2), (truth.discrete_laplace(2, 3), 2), (truth.randomized_response(HALF, 4), 3))
    exact = truth.terms_curve(truth.compose_all(laws), Fraction(3, 5))
    assert close(truth.fourier_curve(Composition(MP.mpf(9) / 25, laws=laws))(1), exact(1), 30)


def brute_force(p, q, count: int, at):
    """The hockey-stick divergence of product distributions over every outcome, straight from its definition."""
    total = MP.mpf(0)
    grow = MP.exp(truth.number(at))
    for outcome in product(range(len(p)), repeat=count):
        above = truth.number(math.prod((p[i] for i in outcome), start=Fraction(1)))
        below = truth.number(math.prod((q[i] for i in outcome), start=Fraction(1)))
        total += max(MP.mpf(0), above - grow * below)
    return total


@pytest.mark.parametrize("seed", range(6))
def test_finite_pairs_against_their_definition(seed):
    """Composed finite pairs, also with outputs only one side can give, match the sum over all outcomes."""
    rng = Random(seed)
    p, q = ([rng.randint(0 if side else 1, 9) for _ in range(3)] for side in range(2))
    p, q = [Fraction(x, sum(p)) for x in p], [Fraction(x, sum(q) or 1) for x in q]
    if not sum(q):
        q = [Fraction(1), Fraction(0), Fraction(0)]
    for first, second in ((p, q), (q, p)):
        law = truth.power(truth.finite(first, second), 4)
        for at in (Fraction(0), Fraction(1, 7), Fraction(3, 2)):
            expected = brute_force(first, second, 4, at)
            assert abs(truth.terms_curve(law)(at) - expected) < MP.mpf(10) ** -50


@pytest.mark.parametrize(
    "law",
    [
        truth.randomized_response(HALF, 7),
        truth.approximate(HALF, HUNDREDTH),
        truth.discrete_laplace(Fraction(3, 2), 4),
        truth.discrete_gaussian(Fraction(7, 3), 2),
        truth.laplace(HALF),
        truth.bounded_range(HALF),
    ],
    ids=["k-ary", "approximate", "discrete Laplace", "discrete Gaussian", "Laplace", "bounded range"],
)
def test_laws_are_symmetric_probabilities(law):
    """M(0) + p_inf = 1 under P; the reversed direction, M(-1-s), is the same law; and delta(0) is a total variation."""
    assert close(truth.term_moment(law, MP.mpf(0)) + law.infinite, 1, 50)
    for s in (MP.mpf(1) / 3, MP.mpf(2)):
        assert close(truth.term_moment(law, -1 - s), truth.term_moment(law, s), 50)
    assert 0 < truth.terms_curve(law)(0) < 1


def test_a_wrong_formula_is_caught():
    """The golden digits see a Laplace atom of mass e^-eps instead of e^-eps / 2."""
    right = truth.laplace(1)
    wrong = truth.Terms({**right.terms, (Fraction(-1), Fraction(1), 0): MP.exp(-1)}, MP.mpf(0))
    assert not close(truth.terms_curve(truth.power(wrong, 2))(-HALF), truth.terms_curve(truth.power(right, 2))(-HALF), 3)
    assert not close(truth.term_moment(wrong, MP.mpf(0)), 1, 3)
