from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from curador.errors import CuradorError, InvalidParameter, NotPrivate, Refused
from curador.privacy.account import enclosure
from curador.privacy.adjacency import ADD_OR_REMOVE_ONE, REPLACE_ONE
from curador.privacy.kinds.derived import without_replacement_renyi
from curador.privacy.losses import (
    Approx,
    BoundedRange,
    Concentrated,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    Finite,
    GaussianLoss,
    Group,
    KeySelection,
    LaplaceLoss,
    Pure,
    RandomizedResponseLoss,
    Subsampled,
)
from curador.privacy.renyi import curve

MP = mpmath.mp.clone()
MP.dps = 40
RATES = ("0.001", "0.1", "1/2", "1")
POINTS = ("0", "0.01", "0.1", "0.5", "1.5")


def number(value):
    fraction = Fraction(value)
    return MP.mpf(fraction.numerator) / fraction.denominator


# ---- profiles of the bases: H(a) = δ(log a) for a ≥ 1 -----------------------------------------------------------------


def laplace_profile(epsilon0):
    return lambda a: max(1 - MP.exp((MP.log(a) - number(epsilon0)) / 2), MP.mpf(0))


def pure_profile(epsilon0):
    grow = MP.exp(number(epsilon0))
    return lambda a: max(grow - a, MP.mpf(0)) / (1 + grow)


def gaussian_profile(mu):
    m = number(mu)
    return lambda a: MP.ncdf(m / 2 - MP.log(a) / m) - a * MP.ncdf(-m / 2 - MP.log(a) / m)


BASES = {
    "laplace": (LaplaceLoss(epsilon=1), laplace_profile(1), 1e-6),
    "pure": (Pure(epsilon="0.8"), pure_profile("0.8"), 1e-9),
    "response": (RandomizedResponseLoss(epsilon=2), pure_profile(2), 1e-9),
    "gaussian": (GaussianLoss(mu="0.7"), gaussian_profile("0.7"), 1e-9),
}
EACH = pytest.mark.parametrize("base", BASES)


def leaves(profile, rate, epsilon):
    """H of ((1−q)Q + qP, Q) at e^ε: q H(1 + (e^ε − 1)/q)."""
    q, grow = number(rate), MP.exp(number(epsilon))
    return q * profile(1 + (grow - 1) / q)


def comes(profile, rate, epsilon):
    """H of (Q, (1−q)Q + qP) at e^ε: b H(e^ε q/b), b = 1 − e^ε (1 − q); 0 where b is not positive."""
    q, grow = number(rate), MP.exp(number(epsilon))
    b = 1 - grow * (1 - q)
    return b * profile(grow * q / b) if b > 0 else MP.mpf(0)


@EACH
@pytest.mark.parametrize("rate", RATES)
def test_one_poisson_step_in_both_directions(base, rate):
    """δ of one Poisson sample is the closed form of its direction, enclosed and tight."""
    loss, profile, tight = BASES[base]
    reading = enclosure(loss.subsample(rate=rate))
    for epsilon in POINTS:
        for place, form in enumerate((leaves, comes)):
            truth = form(profile, rate, epsilon)
            low, high = (
                reading.below[place].delta(float(Fraction(epsilon))).lower,
                reading.above[place].delta(float(Fraction(epsilon))).upper,
            )
            assert low <= truth * (1 + MP.mpf(10) ** -15) + MP.mpf(10) ** -15
            assert truth * (1 - MP.mpf(10) ** -15) <= high
            assert high <= truth * (1 + MP.mpf(100 * tight)) + MP.mpf(10) ** -9


@EACH
@pytest.mark.parametrize("rate", RATES)
def test_one_poisson_step_costs_its_worse_direction(base, rate):
    """The loss itself answers for both directions."""
    loss, profile, _ = BASES[base]
    sampled = loss.subsample(rate=rate)
    for epsilon in POINTS:
        truth = max(leaves(profile, rate, epsilon), comes(profile, rate, epsilon))
        interval = sampled.delta_interval(epsilon)
        assert interval.lower <= truth * (1 + MP.mpf(10) ** -15) + MP.mpf(10) ** -15
        assert truth * (1 - MP.mpf(10) ** -15) <= interval.upper <= truth * (1 + MP.mpf(10) ** -4) + MP.mpf(10) ** -9


@pytest.mark.slow
@EACH
@pytest.mark.parametrize("rate", RATES)
def test_one_step_without_replacement(base, rate):
    """δ of one sample without replacement is q δ(log(1 + (e^ε − 1)/q)) under replace-one."""
    loss, profile, _ = BASES[base]
    sampled = loss.subsample(rate=rate, scheme="without_replacement")
    assert sampled.adjacency is REPLACE_ONE
    for epsilon in POINTS:
        truth = leaves(profile, rate, epsilon)
        interval = sampled.delta_interval(epsilon)
        assert interval.lower <= truth * (1 + MP.mpf(10) ** -15) + MP.mpf(10) ** -15
        assert truth * (1 - MP.mpf(10) ** -15) <= interval.upper <= truth * (1 + MP.mpf(10) ** -3) + MP.mpf(10) ** -8


@pytest.mark.parametrize("rate", ["0.05", "1/2", "1"])
def test_one_poisson_step_under_replacement(rate):
    """(1−q)N(0) + qN(+μ) against (1−q)N(0) + qN(−μ), by the threshold where the ratio is e^ε."""
    mu, q = MP.mpf("0.7"), number(rate)
    sampled = GaussianLoss(mu="0.7").subsample(rate=rate, adjacency="replace_one")
    assert sampled.adjacency is REPLACE_ONE

    def ratio(x):
        up, down = ((1 - q) + q * MP.exp(sign * mu * x - mu * mu / 2) for sign in (1, -1))
        return MP.log(up / down)

    for epsilon in ("0", "0.2", "1"):
        e = number(epsilon)
        at = MP.findroot(lambda x, e=e: ratio(x) - e, 1)
        p = (1 - q) * MP.ncdf(-at) + q * MP.ncdf(mu - at)
        other = (1 - q) * MP.ncdf(-at) + q * MP.ncdf(-mu - at)
        truth = p - MP.exp(number(epsilon)) * other
        interval = sampled.delta_interval(epsilon)
        assert interval.lower <= truth <= interval.upper <= truth * (1 + MP.mpf(10) ** -9)


@EACH
@pytest.mark.parametrize("scheme", ["poisson", "without_replacement"])
def test_sampling_everything_changes_nothing(base, scheme):
    """A rate of 1 is the mechanism itself."""
    loss, _, _ = BASES[base]
    sampled = loss.subsample(rate=1, scheme=scheme)
    assert sampled.epsilon_interval("1e-4").upper == pytest.approx(loss.epsilon("1e-4"), rel=2e-4)


def test_pure_epsilon_of_a_sample():
    """log(1 + q(e^ε − 1)), rounded up, for either scheme, and never above ε."""
    for scheme in ("poisson", "without_replacement"):
        for epsilon, rate in (("1", "0.1"), ("1e-6", "0.5"), ("30", "0.001"), ("800", "0.1"), ("2", "1")):
            got = Pure(epsilon=epsilon).subsample(rate=rate, scheme=scheme).pure_epsilon
            truth = MP.log(1 + number(rate) * MP.expm1(number(epsilon)))
            assert truth <= number(got) * (1 + MP.mpf(10) ** -30)
            assert got <= Fraction(epsilon)
            assert number(got) <= truth * (1 + MP.mpf(10) ** -12) or Fraction(epsilon) > 700


@pytest.mark.parametrize("scheme", ["poisson", "without_replacement"])
def test_nested_sampling_multiplies_the_rates(scheme):
    """A sample of a sample is a sample at the product of the rates."""
    loss = GaussianLoss(mu=1)
    nested = loss.subsample(rate="0.2", scheme=scheme).subsample(rate="1/3", scheme=scheme)
    assert nested == loss.subsample(rate="1/15", scheme=scheme)


def test_a_huge_pure_loss_has_a_sample():
    """A sample of a loss beyond the floats' exponential is answered or refused, not broken."""
    for loss in (
        Pure(epsilon=1000),
        LaplaceLoss(epsilon=1000),
        BoundedRange(epsilon=1000),
        RandomizedResponseLoss(epsilon=800),
    ):
        sampled = loss.subsample(rate="0.1")
        try:
            got = sampled.epsilon("1e-6")
        except CuradorError:
            continue
        assert 990 - 800 <= got <= 1000


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (
            lambda: Pure(epsilon=1).subsample(rate="0.1").subsample(rate="0.1", scheme="without_replacement"),
            Refused,
            "adjacency must be|inside another",
        ),
        (lambda: Concentrated(rho=1).subsample(rate="0.1"), NotPrivate, "Concentrated"),
        (lambda: KeySelection(sigma2=9, keys=1, delta="1e-9").subsample(rate="0.1"), NotPrivate, "KeySelection"),
        (lambda: (Pure(epsilon=1) + Pure(epsilon=1).subsample(rate="0.1")).subsample(rate="0.1"), NotPrivate, "Subsampled"),
        (lambda: (2 * GaussianLoss(mu=1).subsample(rate="0.1").group(2)).subsample(rate="0.1"), NotPrivate, "Group"),
        (lambda: Pure(epsilon=1).subsample(rate="0.1", adjacency="replace_one"), NotPrivate, "Gaussian noise only"),
        (
            lambda: Pure(epsilon=1).subsample(rate="0.1", scheme="without_replacement", adjacency="add_or_remove_one"),
            NotPrivate,
            "replace_one only",
        ),
        (lambda: Pure(epsilon=1, adjacency="replace_one").subsample(rate="0.1"), InvalidParameter, "adjacency must be"),
        (
            lambda: Pure(epsilon=1, adjacency="add_or_remove_one").subsample(rate="0.1", scheme="without_replacement"),
            InvalidParameter,
            "adjacency must be",
        ),
        (
            lambda: Finite(p=["0.1", "0.9"], q=["0.3", "0.7"]).subsample(rate="0.1", scheme="without_replacement"),
            NotPrivate,
            "both directions",
        ),
        (lambda: Pure(epsilon=1).subsample(rate="0.1", scheme="bernoulli"), InvalidParameter, "scheme must be"),
        (lambda: Pure(epsilon=1).subsample(rate=0), InvalidParameter, "rate must be positive"),
        (lambda: Pure(epsilon=1).subsample(rate="1.5"), InvalidParameter, "rate must be at most 1"),
        (lambda: Pure(epsilon=1).subsample(rate="0.1", adjacency="friends"), InvalidParameter, "adjacency must be"),
        (
            lambda: (LaplaceLoss(epsilon=1) + GaussianLoss(mu=1)).subsample(rate="0.1").epsilon("1e-6"),
            NotPrivate,
            "no subsampling rule",
        ),
        (
            lambda: DiscreteGaussianLoss(sigma2=2, sensitivity=1).subsample(rate="0.1").epsilon("1e-6"),
            NotPrivate,
            "no subsampling rule",
        ),
    ],
)
def test_what_is_not_proved_is_refused(make, error, words):
    """Each refusal names the rule that is missing."""
    with pytest.raises(error, match=words):
        make()


def test_composed_bases():
    """Several mechanisms that see one sample are sampled together, dearer than each on its own sample."""
    together = (2 * Pure(epsilon="0.5")).subsample(rate="0.1")
    apart = 2 * Pure(epsilon="0.5").subsample(rate="0.1")
    assert together.pure_epsilon > apart.pure_epsilon
    merged = (3 * GaussianLoss(mu=1) + GaussianLoss(mu=2)).subsample(rate="0.1")
    single = GaussianLoss(mu=7).subsample(rate="0.1")  # √(3 + 4) < 7: not the same
    assert merged.epsilon_interval("1e-5").upper < single.epsilon_interval("1e-5").lower
    same = GaussianLoss(mu=5).subsample(rate="0.1")
    assert (GaussianLoss(mu=3) + GaussianLoss(mu=4)).subsample(rate="0.1").delta_interval(1).upper == pytest.approx(
        same.delta_interval(1).upper, rel=1e-12
    )


def test_a_fine_discrete_gaussian_is_sampled_like_a_gaussian():
    """The noise that is really drawn has the amplification of the ideal one."""
    drawn = DiscreteGaussianLoss(sigma2=4 * 2**80, sensitivity=2**40).subsample(rate="0.1")
    ideal = GaussianLoss(mu="0.5").subsample(rate="0.1")
    assert drawn.delta_interval("0.3").upper == pytest.approx(ideal.delta_interval("0.3").upper, rel=1e-10)
    assert drawn.delta_interval("0.3").upper >= ideal.delta_interval("0.3").lower


def test_sampling_without_replacement_from_a_curve_is_above_the_pair():
    """The bound from the base's Rényi curve alone is valid, hence above the one that knows the pair."""
    own = curve(GaussianLoss(mu="0.7").subsample(rate="0.05", scheme="without_replacement")).divergence
    for one_pair in (False, True):
        for alpha in (2, 5, 16):
            bound = without_replacement_renyi(
                lambda j: math.inf if j == 0 else j * 0.49 / 2, rate="0.05", alpha=alpha, one_pair=one_pair
            )
            assert bound >= own(np.array([float(alpha)]))[0] * (1 - 1e-3)
            assert bound < alpha * 0.49 / 2


@pytest.mark.parametrize("count", [1, 3, 50])
@pytest.mark.slow
def test_samples_without_replacement_have_an_end_that_occurs(count):
    """The lower end is the directed pair's, that of a Poisson sample; one sample has no other, several have one above."""
    low, high = (count * GaussianLoss(mu="0.5").subsample(rate="0.1", scheme="without_replacement")).epsilon_interval("1e-6")
    directed = (count * GaussianLoss(mu="0.5").subsample(rate="0.1")).epsilon_interval("1e-6")
    assert 0.99 * directed.lower <= low <= directed.upper
    assert low <= high <= (1.01 if count == 1 else 1.25) * low


def _twice(rows):
    return [(p * a, q * b) for p, q in rows for a, b in rows]


def test_no_data_set_needs_more_than_the_lower_end_claims():
    """Half of the people are sampled twice, each time a coin of 3/4 is thrown: everything is enumerated.

    The largest δ over both directed pairs is what occurs; the symmetric pair, which dominates, is larger and does not.
    """
    heavy, light, middle = Fraction(3, 4), Fraction(1, 4), Fraction(1, 2)
    sampled = RandomizedResponseLoss(epsilon=Fraction(math.log(3))).subsample(rate="0.5", scheme="without_replacement")
    rows = [(middle * heavy + middle * light, light), (middle * light + middle * heavy, heavy)]
    ratio = Fraction(math.exp(0.3))
    occurs = max(sum(max(p - ratio * q, 0) for p, q in _twice(pair)) for pair in (rows, [(q, p) for p, q in rows]))
    low, high = (2 * sampled).delta_interval("0.3")
    assert low == pytest.approx(float(occurs), rel=1e-9)
    assert high > 1.09 * low


def test_the_renyi_divergence_of_a_gaussian_sample_without_replacement_is_finite():
    """Gaussian noise has every Rényi order, and a sample of it no more than all of it."""
    sampled = GaussianLoss(mu="0.7").subsample(rate="0.05", scheme="without_replacement")
    assert sampled.renyi(2) <= GaussianLoss(mu="0.7").renyi(2)


# ---- groups -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 5])
def test_group_records(size):
    """Noise shifts further, ratios multiply, ρ grows with the square."""
    k = Fraction(size)
    assert GaussianLoss(mu="0.3").group(size) == GaussianLoss(mu=k * Fraction(3, 10))
    assert DiscreteGaussianLoss(sigma2=9, sensitivity=2).group(size) == DiscreteGaussianLoss(sigma2=9, sensitivity=2 * size)
    assert LaplaceLoss(epsilon="0.3").group(size) == LaplaceLoss(epsilon=k * Fraction(3, 10))
    assert DiscreteLaplaceLoss(scale=9, sensitivity=2).group(size) == DiscreteLaplaceLoss(scale=9, sensitivity=2 * size)
    assert BoundedRange(epsilon=1).group(size) == BoundedRange(epsilon=size)
    assert Pure(epsilon=1).group(size) == RandomizedResponseLoss(epsilon=1).group(size) == Pure(epsilon=size)
    assert Concentrated(rho=1).group(size) == Concentrated(rho=size * size)
    assert Pure(epsilon=1, adjacency="replace_one").group(size).adjacency is REPLACE_ONE
    assert Pure(epsilon=1).subsample(rate="0.1").group(size).adjacency is ADD_OR_REMOVE_ONE


@pytest.mark.parametrize(
    ("epsilon", "delta", "size"), [("0.1", "1e-9", 3), ("0", "1e-9", 7), ("2", "1e-12", 5), ("1e-6", "1e-3", 100)]
)
def test_group_of_an_approximate_loss(epsilon, delta, size):
    """(kε, δ (e^(kε) − 1)/(e^ε − 1)), rounded up."""
    got = Approx(epsilon=epsilon, delta=delta).group(size)
    e, d = number(epsilon), number(delta)
    truth = d * size if e == 0 else d * MP.expm1(size * e) / MP.expm1(e)
    assert got.epsilon0 == size * Fraction(epsilon)
    assert truth <= number(got.delta0) <= truth * (1 + MP.mpf(10) ** -12)


@pytest.mark.parametrize(
    ("epsilon", "delta", "size"), [("400", "1e-140", 2), ("800", "1e-140", 2), ("100", "1e-200", 8), ("1", "1e-3", 10)]
)
def test_a_group_without_a_guarantee_is_refused(epsilon, delta, size):
    """Where δ (e^(kε) − 1)/(e^ε − 1) is 1 or more there is nothing left to promise, also beyond the floats."""
    with pytest.raises(NotPrivate, match="no guarantee"):
        Approx(epsilon=epsilon, delta=delta).group(size)


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("rate", ["0.1", "1/2"])
def test_one_step_of_a_group_in_a_sample(size, rate):
    """A group enters a Poisson sample as a binomial number of shifts."""
    q, mu = number(rate), MP.mpf("0.5")
    weights = [MP.binomial(size, j) * q**j * (1 - q) ** (size - j) for j in range(size + 1)]
    loss = GaussianLoss(mu="0.5").subsample(rate=rate).group(size)
    reading = enclosure(loss)

    def ratio(x):
        return MP.log(MP.fsum(w * MP.exp(j * mu * x - (j * mu) ** 2 / 2) for j, w in enumerate(weights)))

    for epsilon in ("0", "0.3"):
        e = number(epsilon)
        at = MP.findroot(lambda x, e=e: ratio(x) - e, 1)
        mixed = MP.fsum(w * MP.ncdf(j * mu - at) for j, w in enumerate(weights))
        truth = mixed - MP.exp(e) * MP.ncdf(-at)
        got = reading.above[0].delta(float(Fraction(epsilon)))
        assert got.lower <= truth <= got.upper <= truth * (1 + MP.mpf(10) ** -9)
        if e >= -size * MP.log(1 - q):  # nobody of the group is in: the ratio goes no further
            assert reading.above[1].delta(float(Fraction(epsilon))).upper <= 1e-12
            continue
        at = MP.findroot(lambda x, e=e: ratio(x) + e, -1)
        mixed = MP.fsum(w * MP.ncdf(at - j * mu) for j, w in enumerate(weights))
        truth = MP.ncdf(at) - MP.exp(e) * mixed
        got = reading.above[1].delta(float(Fraction(epsilon)))
        assert got.lower <= truth <= got.upper <= truth * (1 + MP.mpf(10) ** -9)


def test_a_group_of_everybody_is_a_larger_shift():
    """At rate 1 all of the group is in: k shifts."""
    sampled = GaussianLoss(mu="0.5").subsample(rate=1).group(3)
    assert sampled.delta_interval(1).upper == pytest.approx(GaussianLoss(mu="1.5").delta(1), rel=1e-9)


def test_a_large_group_in_a_sample():
    """A group of thousands is answered or refused, not broken."""
    try:
        got = GaussianLoss(mu="0.001").subsample(rate="0.01").group(2000).epsilon_interval("1e-6").upper
    except CuradorError:
        return
    assert got >= 0.01


@pytest.mark.parametrize(
    "loss",
    [
        Concentrated(rho=1, delta="1e-9"),
        KeySelection(sigma2=9, keys=1, delta="1e-9"),
        Finite(p=[1, 0], q=["0.9", "0.1"]),
        GaussianLoss(mu=1).subsample(rate="0.1", scheme="without_replacement"),
        GaussianLoss(mu=1).subsample(rate="0.1", adjacency="replace_one"),
        Approx(epsilon=1, delta="1e-9").subsample(rate="0.1"),
    ],
    ids=lambda loss: type(loss).__name__,
)
def test_groups_that_are_not_proved_are_refused(loss):
    """No rule, no group."""
    with pytest.raises(NotPrivate, match="no group rule"):
        loss.group(2)
    assert loss.group(1) is loss


def test_pure_losses_of_any_kind_multiply():
    """A pure sample or pair has at least the group rule of its ε."""
    sample = Pure(epsilon=1).subsample(rate="0.1")
    assert sample.group(3) == Pure(epsilon=3 * sample.pure_epsilon, adjacency="add_or_remove_one")
    pair = Finite(p=["0.2", "0.8"], q=["0.4", "0.6"])
    assert pair.group(2) == Pure(epsilon=2 * pair.pure_epsilon)


def test_wrapped_records_are_values():
    """Samples and groups compare, hash and tell their neighbours."""
    sampled = GaussianLoss(mu=1).subsample(rate="0.1")
    assert isinstance(sampled, Subsampled)
    assert isinstance(sampled.group(2), Group)
    assert sampled.group(2).adjacency is ADD_OR_REMOVE_ONE
    assert len({sampled, GaussianLoss(mu=1).subsample(rate="1/10"), sampled.group(2), sampled.group(3)}) == 3
    assert np.isfinite(sampled.renyi(np.array([1.5, 3.0]))).all()
